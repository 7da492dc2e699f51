// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Who may use a window: its queue pair, its PD; and windows side by side. */
#include "mw_env.h"

#include <stdlib.h>

#define MANY	64

static void open_two(struct mw_env *e, struct mw_pair *b, long arg, bool same_pd)
{
	mw_open(e, arg);
	mw_second_pair(e, b, same_pd);
}

/* Type 1 belongs to the PD: every queue pair of it may be used. */
static void type1_other_qp(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, true);
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	mw_allowed(&e, &b, MW_WRITE, mw_at(&e, 512, 1024));
	mw_allowed(&e, &b, MW_READ, mw_at(&e, 512, 1024));
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 512, 1024));
	mw_refused(&e, &b, MW_WRITE, mw_at(&e, 511, 8));
	mw_close_two(&e, &b);
}

/* Type 2B belongs to one queue pair of the PD. */
static void type2_other_qp(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, true);
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	for (int op = 0; op < mw_ops(&e); op++)
		mw_refused(&e, &b, (enum mw_op)op, mw_at(&e, 512, 8));
	/* and the attempts of others change nothing for its own */
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 512, 1024));
	mw_close_two(&e, &b);
}

/* The whole of a window of 1024 bytes, and its last byte. */
static void use_edge(struct mw_env *e, struct mw_pair *p, size_t off)
{
	mw_allowed(e, p, MW_WRITE, mw_at(e, off, 1024));
	mw_allowed(e, p, MW_READ, mw_at(e, off + 1023, 1));
}

/* Bind e->mw by another pair of the PD. */
static void bind_by(struct mw_env *e, struct mw_pair *p, size_t off, size_t len)
{
	struct rdma_bind bind = mw_good_bind(e, off, len, RDMA_ALL_REMOTE);

	check_eq(mw_try_bind(&p->owner, &bind), IBV_WC_SUCCESS,
		 "status of a bind by another queue pair of the PD");
	e->rkey = bind.new_rkey;
}

/* A window of type 1 is bound, bound anew and unbound by any of them. */
static void type1_bound_by_others(long arg)
{
	struct mw_target old;
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, true);
	bind_by(&e, &e.a, 512, 1024);
	old = mw_at(&e, 512, 1024);
	use_edge(&e, &e.a, 512);
	bind_by(&e, &b, 4096, 1024);
	use_edge(&e, &e.a, 4096);
	use_edge(&e, &b, 4096);
	mw_refused(&e, &e.a, MW_WRITE, old);
	bind_by(&e, &e.a, 512, 1024);
	old = mw_at(&e, 512, 1024);
	bind_by(&e, &b, 0, 0);
	mw_refused(&e, &e.a, MW_WRITE, old);
	mw_refused(&e, &b, MW_WRITE, old);
	mw_expect_dereg(&e);
	mw_close_two(&e, &b);
}

/* A Free window may go to another queue pair, and leaves the first for good. */
static void type2_moves(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, true);
	for (int i = 0; i < 2; i++) {
		bind_by(&e, &e.a, 512, 1024);
		use_edge(&e, &e.a, 512);
		mw_local_inv(&e.a.owner, e.rkey);
		bind_by(&e, &b, 512, 1024);
		use_edge(&e, &b, 512);
		mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, 512, 8));
		use_edge(&e, &b, 512);
		mw_local_inv(&b.owner, e.rkey);
	}
	mw_expect_dereg(&e);
	mw_close_two(&e, &b);
}

/* Two queue pairs, a window each, on the same bytes: neither key is for both. */
static void type2_one_each(long arg)
{
	uint32_t first_rkey;
	struct ibv_mw *first;
	struct mw_target t;
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, true);
	bind_by(&e, &e.a, 512, 1024);
	first = e.mw;
	first_rkey = e.rkey;
	mw_next(&e);
	bind_by(&e, &b, 512, 1024);
	use_edge(&e, &b, 512);
	t = mw_at(&e, 512, 8);
	t.rkey = first_rkey;
	mw_allowed(&e, &e.a, MW_WRITE, t);
	mw_refused(&e, &b, MW_WRITE, t);
	mw_allowed(&e, &e.a, MW_WRITE, t);
	check_errno(ibv_dealloc_mw(first), 0, "ibv_dealloc_mw");
	mw_close_two(&e, &b);
}

static void other_pd(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	open_two(&e, &b, arg, false);
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	for (int op = 0; op < mw_ops(&e); op++)
		mw_refused(&e, &b, (enum mw_op)op, mw_at(&e, 512, 8));
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 512, 1024));
	mw_close_two(&e, &b);
}

/* The peer holds the key, but the way back is not open by it. */
static void other_direction(long arg)
{
	struct rdma_wr w;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	rdma_buf_fill(&e.region, 0);
	rdma_wr_write(&w, e.region.addr, 8, e.region.mr->lkey,
		      e.region.iova + 512, e.rkey);
	check_eq(rdma_do(&e.a.owner, &w, NULL), IBV_WC_REM_ACCESS_ERR,
		 "status of a write to the peer by the owner's own key");
	check(rdma_buf_touched(&e.region, 0, 0, 0) < 0, "nothing is written");
	mw_close(&e);
}

/* A window's key is for remote use: it is no lkey. */
static void as_lkey(long arg)
{
	struct rdma_wr w;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	rdma_recv(&e.a.peer, 1, e.a.local.addr, 64, e.a.local.mr->lkey);
	rdma_wr_send(&w, e.region.addr + 512, 64, e.rkey);
	check_eq(rdma_do(&e.a.owner, &w, NULL), IBV_WC_LOC_PROT_ERR,
		 "status of a send whose lkey is a window's key");
	mw_close(&e);
}

/* After its queue pair, a later one with the same number is another one. */
static void qp_number_reuse(long arg)
{
	enum { TRIES = 2000 };
	struct mw_target t;
	struct mw_env e;
	uint32_t number;
	int i;

	mw_open(&e, arg);
	if (!(e.dev.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		ktap_skip("windows of type 2A go by the queue pair's number");
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	t = mw_at(&e, 512, 8);
	number = e.a.owner.qp->qp_num;
	check_errno(ibv_destroy_qp(e.a.owner.qp), 0, "ibv_destroy_qp");
	for (i = 0; i < TRIES; i++) {
		e.a.owner.qp = rdma_qp_create(&e.a.owner);
		check(e.a.owner.qp, "a queue pair can be made");
		if (e.a.owner.qp->qp_num == number || i == TRIES - 1)
			break;
		check_errno(ibv_destroy_qp(e.a.owner.qp), 0, "ibv_destroy_qp");
	}
	if (e.a.owner.qp->qp_num != number)
		ktap_note("the number did not come back in %d tries", TRIES);
	rdma_reconnect(&e.a.owner, &e.a.peer);
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_close(&e);
}

/* Windows may overlap: each has its range, its rights, its life. */
static void overlap(long arg)
{
	struct mw_target both, second_only;
	struct rdma_bind bind;
	struct ibv_mw *first;
	uint32_t first_rkey;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 1000, 2000, IBV_ACCESS_REMOTE_READ);
	both = mw_at(&e, 2000, 1000);
	first = e.mw;
	first_rkey = e.rkey;
	mw_allowed(&e, &e.a, MW_READ, both);

	mw_next(&e);
	mw_bind(&e, 2000, 2000, IBV_ACCESS_REMOTE_WRITE);
	second_only = mw_at(&e, 2000, 2000);
	mw_allowed(&e, &e.a, MW_WRITE, second_only);
	mw_allowed(&e, &e.a, MW_READ, both);

	/* one goes, the other stays */
	check_errno(ibv_dealloc_mw(first), 0, "ibv_dealloc_mw");
	mw_expect_busy(&e);
	mw_allowed(&e, &e.a, MW_WRITE, second_only);
	both.rkey = first_rkey;
	mw_refused(&e, &e.a, MW_READ, both);
	if (MW_TYPE(arg) == IBV_MW_TYPE_2) {
		bind = mw_good_bind(&e, 2000, 2000, IBV_ACCESS_REMOTE_WRITE);
		check_eq(mw_try_bind(&e.a.owner, &bind), IBV_WC_SUCCESS,
			 "status of a bind");
		second_only.rkey = bind.new_rkey;
		e.rkey = second_only.rkey;
	}
	mw_allowed(&e, &e.a, MW_WRITE, second_only);
	mw_close(&e);
}

/* Many windows on one region, each with bytes of its own. */
static void many(long arg)
{
	struct ibv_mw *mw[MANY];
	uint32_t rkey[MANY];
	struct mw_env e;

	mw_open(&e, arg);
	for (size_t i = 0; i < MANY; i++) {
		mw[i] = e.mw;
		mw_bind(&e, i * 64, 64, RDMA_ALL_REMOTE);
		rkey[i] = e.rkey;
		if (i + 1 < MANY)
			mw_next(&e);
	}
	for (size_t i = 0; i < MANY; i++) {
		e.rkey = rkey[i];
		mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, i * 64, 64));
	}
	for (size_t i = 0; i + 1 < MANY; i++) {
		mw_expect_busy(&e);
		check_errno(ibv_dealloc_mw(mw[i]), 0, "ibv_dealloc_mw");
	}
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, (MANY - 1) * 64, 64));
	/* the neighbour's bytes, by the last one's key */
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, (MANY - 2) * 64, 64));
	check_errno(ibv_dealloc_mw(mw[MANY - 1]), 0, "ibv_dealloc_mw");
	e.mw = NULL;
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* Two ends of one connection, each with a window for the other. */
static void both_ways(long arg)
{
	struct rdma_buf back;
	struct rdma_bind bind;
	struct ibv_mw *mw;
	struct rdma_wr w;
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&back, e.a.peer.pd, 8192, 8, MW_BIND_RIGHTS);
	mw = mw_alloc(e.a.peer.pd, MW_TYPE(arg));
	bind = (struct rdma_bind){
		.mw = mw,
		.current_rkey = mw->rkey,
		.new_rkey = ibv_inc_rkey(mw->rkey),
		.mr_lkey = back.mr->lkey,
		.addr = back.iova + 1000,
		.length = 2000,
		.access = RDMA_ALL_REMOTE,
	};
	check_eq(mw_try_bind(&e.a.peer, &bind), IBV_WC_SUCCESS,
		 "status of the peer's bind");
	mw_bind(&e, 512, 1024, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 512, 1024));
	rdma_buf_fill(&back, 0x80);
	rdma_buf_fill(&e.region, 0);
	rdma_wr_write(&w, e.region.addr, 2000, e.region.mr->lkey,
		      back.iova + 1000, bind.new_rkey);
	check_eq(rdma_do(&e.a.owner, &w, NULL), IBV_WC_SUCCESS,
		 "status of the owner's write");
	check(!memcmp(back.addr + 1000, e.region.addr, 2000) &&
	      rdma_buf_touched(&back, 0x80, 1000, 2000) < 0,
	      "the owner's write lands in the peer's window");
	check_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
	rdma_buf_destroy(&back);
	mw_close(&e);
}

void mw_share_cases(void)
{
	ktap_add("type 1: QP PD == window PD", type1_other_qp, 1, 0,
		 "share.type1.other-qp");
	ktap_add("2B: QP == the bound QP", type2_other_qp, 2, 0,
		 "share.type2.other-qp");
	ktap_add("type 1: QP PD == window PD", type1_bound_by_others, 1, 0,
		 "share.type1.bound-by-others");
	ktap_add("type 2: Valid -> Free -> Valid", type2_moves, 2, 0,
		 "share.type2.moves");
	ktap_add("2B: QP == the bound QP", type2_one_each, 2, 0,
		 "share.type2.one-each");
	ktap_add("2B: not a later QP with its number", qp_number_reuse, 2, 60,
		 "share.type2.qp-number-reuse");
	for (long type = 1; type <= 2; type++) {
		ktap_add("QP PD == window PD", other_pd, type, 0,
			 "share.type%ld.other-pd", type);
		ktap_add("QP PD == window PD", other_direction, type, 0,
			 "share.type%ld.other-direction", type);
		ktap_add("a window's key is an rkey", as_lkey, type, 0,
			 "share.type%ld.as-lkey", type);
		ktap_add("windows may overlap", overlap, type, 0,
			 "share.type%ld.overlap", type);
		ktap_add("the region's bound count", many, type, 0,
			 "share.type%ld.many", type);
		ktap_add("ibv_alloc_mw(3)", both_ways, type, 0,
			 "share.type%ld.both-ways", type);
	}
}
