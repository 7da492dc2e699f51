// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Revocation is a fence: when it is complete, not one more byte moves through
 * the old key, whatever was on its way.
 *
 * Threads of the peer write through the window without pause; the owner
 * revokes it in the middle, looks at the memory, gives it to somebody else
 * (fills it), waits until the peer has been told, and looks again.
 */
#include "mw_env.h"

#include <pthread.h>
#include <stdlib.h>

#define WIN_LEN		32768
#define DEPTH		8	/* writes on their way at any time */
#define ROUNDS		20
#define AFTER		0x00	/* patterns: of the region once it is revoked */
#define BEFORE		0x80	/* of the region before, and of the peer */

struct load {
	struct rdma_end *peer;
	struct rdma_buf *local;
	enum mw_op op;
	uint64_t va;
	uint32_t rkey;
	unsigned long done;	/* accesses that were good */
	enum ibv_wc_status end;	/* of the first that was not */
	uint64_t bad_wr_id;
};

static void post_one(struct load *l, unsigned int slot)
{
	struct rdma_wr w;

	if (l->op == MW_READ)
		rdma_wr_read(&w, l->local->addr, WIN_LEN, l->local->mr->lkey,
			     l->va, l->rkey);
	else
		rdma_wr_write(&w, l->local->addr, WIN_LEN, l->local->mr->lkey,
			      l->va, l->rkey);
	w.wr.wr_id = slot;
	rdma_post(l->peer, rdma_wr_chain(&w, 1));
}

/* Keep DEPTH accesses going until one fails. */
static void *run_load(void *arg)
{
	struct load *l = arg;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < DEPTH; i++)
		post_one(l, i);
	for (;;) {
		if (!rdma_wait_wc(l->peer->scq, &wc, 2 * RDMA_WAIT_MS)) {
			l->end = IBV_WC_FATAL_ERR;
			return NULL;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			l->end = wc.status;
			return NULL;
		}
		__atomic_add_fetch(&l->done, 1, __ATOMIC_RELAXED);
		post_one(l, (unsigned int)wc.wr_id);
	}
}

static void wait_for_load(struct load *l, unsigned long accesses)
{
	uint64_t until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;

	while (__atomic_load_n(&l->done, __ATOMIC_RELAXED) < accesses)
		check(rdma_now_us() < until, "the peer's accesses go through");
}

/* Nothing that the owner stored after the revocation reaches the peer. */
static void expect_nothing_read(const struct rdma_buf *local)
{
	for (size_t i = 0; i < WIN_LEN; i++)
		check(local->addr[i] & BEFORE,
		      "not one byte is read after the revocation");
}

/* What the owner sees from the moment on when the revocation is complete. */
static void expect_silence(struct mw_env *e, pthread_t thread,
			   const struct load *l)
{
	rdma_buf_fill(&e->region, AFTER);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	check(!pthread_join(thread, NULL), "pthread_join");
	check(l->end == IBV_WC_REM_ACCESS_ERR,
	      "pending accesses end with REM_ACCESS_ERR (%s)",
	      ibv_wc_status_str(l->end));
	check(rdma_buf_touched(&e->region, AFTER, 0, 0) < 0,
	      "not one byte is written after the revocation");
	expect_nothing_read(l->local);
}

static void one_round(struct mw_env *e, enum mw_how how, enum mw_op op,
		      unsigned int round, int type)
{
	struct load l = {
		.peer = &e->a.peer,
		.local = &e->a.local,
		.op = op,
		.va = e->region.iova + 640,
	};
	pthread_t thread;

	if (!e->mw) {
		e->mw = mw_alloc(e->a.owner.pd, type);
		e->rkey = e->mw->rkey;
	}
	rdma_buf_fill(&e->region, BEFORE);
	mw_bind(e, 640, WIN_LEN, RDMA_ALL_REMOTE);
	l.rkey = e->rkey;
	check(!pthread_create(&thread, NULL, run_load, &l), "pthread_create");
	wait_for_load(&l, 1 + round % 5);
	mw_revoke(e, how);
	expect_silence(e, thread, &l);
	rdma_reconnect(&e->a.owner, &e->a.peer);
}

static void fence(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : ROUNDS;
	enum mw_how how = (enum mw_how)(MW_ARG(arg) >> 4);
	enum mw_op op = (enum mw_op)(MW_ARG(arg) & 15);
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_fill(&e.a.local, BEFORE);
	for (unsigned int i = 0; i < rounds; i++)
		one_round(&e, how, op, i, MW_TYPE(arg));
	mw_close(&e);
}

void mw_fence_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		for (long how = 0; how < MW_BY_QP_DESTROY; how++) {
			/* the posting of SEND_WITH_INV is the peer's own */
			if (!mw_how_fits((enum mw_how)how, (int)type) ||
			    how == MW_BY_SEND_INV)
				continue;
			ktap_add("revocation is a fence", fence, type |
				 (how << 4 | MW_WRITE) << MW_ARG_SHIFT, 120,
				 "fence.type%ld.%s-write", type,
				 mw_how_name[how]);
			ktap_add("revocation is a fence", fence, type |
				 (how << 4 | MW_READ) << MW_ARG_SHIFT, 120,
				 "fence.type%ld.%s-read", type,
				 mw_how_name[how]);
		}
	}
}
