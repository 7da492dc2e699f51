// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Revocation is a fence: when it is complete, not one more byte moves through
 * the old key, whatever was on its way.
 *
 * A thread for each peer reads or writes through the key without pause; the
 * owner revokes it in the middle, gives the memory to somebody else (fills it),
 * waits until the peers have been told, and looks at it.
 */
#include "mw_env.h"

#include <pthread.h>
#include <stdlib.h>

#define WIN_OFF		640
#define WIN_LEN		32768
#define DEPTH		8	/* accesses on their way at any time */
#define ROUNDS		20
#define MAX_PEERS	2
#define AFTER		0x00	/* patterns: of the region once it is revoked */
#define BEFORE		0x80	/* of the region before, and of the peer */

/* Beside the ways to revoke a window: the region's own key, by ibv_dereg_mr() */
#define BY_DEREG	MW_WAYS

/* The argument of a case, beside the window's type. */
#define FENCE_ARG(how, op, peers) \
	((((long)(how) << 8) | ((op) << 4) | (peers)) << MW_ARG_SHIFT)
#define FENCE_HOW(arg)		((int)(MW_ARG(arg) >> 8))
#define FENCE_OP(arg)		((enum mw_op)(MW_ARG(arg) >> 4 & 15))
#define FENCE_PEERS(arg)	((size_t)(MW_ARG(arg) & 15))

struct load {
	struct mw_pair *pair;
	enum mw_op op;
	uint64_t va;
	uint32_t rkey;
	bool invalidate;	/* the owner asks the peer for SEND_WITH_INV */
	unsigned long done;	/* accesses that were good */
	enum ibv_wc_status end;	/* of the first that was not */
	pthread_t thread;
};

struct fence {
	struct mw_env e;
	struct mw_pair second;
	struct load loads[MAX_PEERS];
	size_t peers;
	int how;
};

static void post_one(struct load *l)
{
	struct rdma_buf *local = &l->pair->local;
	struct rdma_wr w;

	if (l->op == MW_READ)
		rdma_wr_read(&w, local->addr, WIN_LEN, local->mr->lkey, l->va,
			     l->rkey);
	else
		rdma_wr_write(&w, local->addr, WIN_LEN, local->mr->lkey, l->va,
			      l->rkey);
	rdma_post(&l->pair->peer, rdma_wr_chain(&w, 1));
}

static void post_invalidate(struct load *l)
{
	struct rdma_wr w;

	rdma_wr_send_inv(&w, NULL, 0, 0, l->rkey);
	rdma_post(&l->pair->peer, rdma_wr_chain(&w, 1));
}

/* Keep DEPTH requests going until one fails. */
static void *run_load(void *arg)
{
	struct load *l = arg;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < DEPTH; i++)
		post_one(l);
	for (;;) {
		if (!rdma_wait_wc(l->pair->peer.scq, &wc, 2 * RDMA_WAIT_MS)) {
			l->end = IBV_WC_FATAL_ERR;
			return NULL;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			l->end = wc.status;
			return NULL;
		}
		__atomic_add_fetch(&l->done, 1, __ATOMIC_RELAXED);
		if (__atomic_exchange_n(&l->invalidate, false, __ATOMIC_RELAXED))
			post_invalidate(l);
		else
			post_one(l);
	}
}

static void start_load(struct load *l, struct mw_pair *pair, enum mw_op op,
		       struct mw_target t)
{
	*l = (struct load){
		.pair = pair,
		.op = op,
		.va = t.va,
		.rkey = t.rkey,
	};
	check(!pthread_create(&l->thread, NULL, run_load, l), "pthread_create");
}

static void wait_for_load(struct load *l, unsigned long accesses)
{
	uint64_t until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;

	while (__atomic_load_n(&l->done, __ATOMIC_RELAXED) < accesses)
		check(rdma_now_us() < until, "the peer's accesses go through");
}

/* The peer invalidates, between its accesses; the owner learns of it. */
static void let_peer_invalidate(struct fence *f)
{
	struct ibv_wc wc;

	rdma_recv(&f->e.a.owner, 0x77, NULL, 0, 0);
	__atomic_store_n(&f->loads[0].invalidate, true, __ATOMIC_RELAXED);
	check(rdma_wait_wc(f->e.a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "SEND_WITH_INV completes a receive");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of its receive");
	check_eq(wc.invalidated_rkey, f->e.rkey, "invalidated_rkey");
}

static void revoke(struct fence *f)
{
	struct rdma_end *owner = &f->e.a.owner;

	switch (f->how) {
	case MW_BY_SEND_INV:
		let_peer_invalidate(f);
		break;
	case MW_BY_QP_DESTROY:
		check_errno(ibv_destroy_qp(owner->qp), 0, "ibv_destroy_qp");
		owner->qp = NULL;
		break;
	case MW_BY_QP_RESET:
		check_errno(rdma_to_state(owner, IBV_QPS_RESET), 0, "to RESET");
		break;
	case BY_DEREG:
		mw_expect_dereg(&f->e);
		break;
	default:
		mw_revoke(&f->e, (enum mw_how)f->how);
		break;
	}
}

/* Give back what was revoked, and connect again. */
static void restore(struct fence *f, int type)
{
	struct mw_env *e = &f->e;

	if (!e->region.mr) {
		rdma_buf_destroy(&e->region);
		rdma_buf_create(&e->region, e->a.owner.pd, MW_REGION_LEN,
				MW_REGION_OFF, MW_BIND_RIGHTS);
	}
	if (type && !e->mw) {
		e->mw = mw_alloc(e->a.owner.pd, type);
		e->rkey = e->mw->rkey;
	}
	if (!e->a.owner.qp) {
		e->a.owner.qp = rdma_qp_create(&e->a.owner);
		check(e->a.owner.qp, "another queue pair can be made");
	}
	for (size_t i = 0; i < f->peers; i++)
		rdma_reconnect(&f->loads[i].pair->owner,
			       &f->loads[i].pair->peer);
}

/* Without its queue pair the owner cannot even refuse. */
static enum ibv_wc_status expected_end(int how)
{
	return how == MW_BY_QP_DESTROY || how == MW_BY_QP_RESET ?
	       IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR;
}

/* Nothing that the owner stored after the revocation reaches the peer. */
static void expect_nothing_read(const struct rdma_buf *local)
{
	for (size_t i = 0; i < WIN_LEN; i++)
		check(local->addr[i] & BEFORE,
		      "not one byte is read after the revocation");
}

/* What the owner sees from the moment on when the revocation is complete. */
static void expect_silence(struct fence *f)
{
	rdma_buf_fill(&f->e.region, AFTER);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (size_t i = 0; i < f->peers; i++) {
		struct load *l = &f->loads[i];

		check(!pthread_join(l->thread, NULL), "pthread_join");
		check(l->end == expected_end(f->how),
		      "pending accesses end with '%s' (not '%s')",
		      ibv_wc_status_str(expected_end(f->how)),
		      ibv_wc_status_str(l->end));
		expect_nothing_read(&l->pair->local);
	}
	check(rdma_buf_touched(&f->e.region, AFTER, 0, 0) < 0,
	      "not one byte is written after the revocation");
}

static void one_round(struct fence *f, enum mw_op op, unsigned int round)
{
	struct mw_pair *pairs[MAX_PEERS] = { &f->e.a, &f->second };
	struct mw_target t;

	rdma_buf_fill(&f->e.region, BEFORE);
	if (f->e.mw)
		mw_bind(&f->e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
	t = mw_at(&f->e, WIN_OFF, WIN_LEN);
	if (!f->e.mw)
		t.rkey = f->e.region.mr->rkey;
	for (size_t i = 0; i < f->peers; i++)
		start_load(&f->loads[i], pairs[i], op, t);
	for (size_t i = 0; i < f->peers; i++)
		wait_for_load(&f->loads[i], 1 + round % 5);
	revoke(f);
	expect_silence(f);
}

static void fence(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : ROUNDS;
	struct rdma_conf conf = rdma_conf_default();
	struct fence f = {
		.how = FENCE_HOW(arg),
		.peers = FENCE_PEERS(arg),
	};

	conf.timeout = 12;	/* 16 ms: the end of some rounds is a timeout */
	mw_open_conf(&f.e, arg, &conf, MW_BIND_RIGHTS);
	rdma_buf_fill(&f.e.a.local, BEFORE);
	if (f.peers > 1) {
		mw_second_pair(&f.e, &f.second, true);
		rdma_buf_fill(&f.second.local, BEFORE);
	}
	for (unsigned int i = 0; i < rounds; i++) {
		one_round(&f, FENCE_OP(arg), i);
		restore(&f, MW_TYPE(arg));
	}
	if (f.peers > 1)
		mw_pair_close(&f.second);
	mw_close(&f.e);
}

static void add_fence(long type, long how, long peers, const char *whose,
		      const char *way)
{
	for (long op = MW_READ; op <= MW_WRITE; op++)
		ktap_add("revocation is a fence", fence,
			 type | FENCE_ARG(how, op, peers), 120,
			 "fence.%s.%s-%s%s", whose, way, mw_op_name[op],
			 peers > 1 ? "-two-peers" : "");
}

void mw_fence_cases(void)
{
	static const char *const whose[] = { "region", "type1", "type2" };

	for (long type = 1; type <= 2; type++) {
		for (long how = 0; how < MW_WAYS; how++) {
			if (!mw_how_fits((enum mw_how)how, (int)type))
				continue;
			add_fence(type, how, 1, whose[type], mw_how_name[how]);
			/* a window of type 2 has one queue pair */
			if (type == IBV_MW_TYPE_1)
				add_fence(type, how, 2, whose[type],
					  mw_how_name[how]);
		}
	}
	add_fence(0, BY_DEREG, 1, whose[0], "dereg");
}
