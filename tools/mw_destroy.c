// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of things: regions, queue pairs, windows, in any order. */
#include "mw_env.h"

#include <stdlib.h>
#include <unistd.h>

#define OFF		640
#define LEN		2048

/* --- the region --- */

static void dereg_busy(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	for (int i = 0; i < 3; i++) {
		mw_expect_busy(&e);
		/* region and window are as usable as before */
		mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
		t = mw_at(&e, 0, MW_REGION_LEN);
		t.rkey = e.region.mr->rkey;
		mw_allowed(&e, &e.a, MW_WRITE, t);
	}
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF - 1, LEN));
	if (MW_TYPE(arg) == IBV_MW_TYPE_1)
		mw_expect_busy(&e);
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* The region's own key, and more windows, after a refused deregistration. */
static void busy_then_bind(long arg)
{
	struct ibv_mw *first;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_expect_busy(&e);
	first = e.mw;
	mw_next(&e);
	mw_bind(&e, OFF + LEN, LEN, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF + LEN, LEN));
	check_errno(ibv_dealloc_mw(first), 0, "ibv_dealloc_mw");
	mw_expect_busy(&e);
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_expect_dereg(&e);
	mw_close(&e);
}

static void rereg_busy(long arg)
{
	int flags = (int)MW_ARG(arg);
	struct mw_target t;
	struct ibv_pd *pd;
	struct mw_env e;
	int err;

	mw_open(&e, arg);
	pd = ibv_alloc_pd(e.dev.ctx);
	check(pd, "ibv_alloc_pd");
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	err = rdma_rereg_mr(e.region.mr, flags, pd, e.region.map, 8192,
			    MW_BIND_RIGHTS);
	if (err == EOPNOTSUPP)
		ktap_skip("the device does not register regions anew");
	check_errno(err, EBUSY, "rereg of a region with a bound window");
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
	/* nothing of the region is changed */
	t = mw_at(&e, MW_REGION_LEN - LEN, LEN);
	t.rkey = e.region.mr->rkey;
	mw_allowed(&e, &e.a, MW_WRITE, t);
	mw_expect_busy(&e);
	mw_revoke(&e, MW_BY_DEALLOC);
	check_errno(rdma_rereg_mr(e.region.mr, flags, pd, e.region.map, 8192,
				  MW_BIND_RIGHTS), 0,
		    "rereg of a region without one");
	mw_expect_dereg(&e);
	check_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	mw_close(&e);
}

/* --- the queue pair --- */

static void destroy_owner_qp(struct mw_env *e)
{
	uint64_t start = rdma_now_us();

	check_errno(ibv_destroy_qp(e->a.owner.qp), 0, "ibv_destroy_qp");
	mw_at_once(start, "ibv_destroy_qp");
	e->a.owner.qp = NULL;
}

static void qp_type2(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_expect_busy(&e);
	destroy_owner_qp(&e);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* A window of type 2 outlives its queue pair: Free, for another one. */
static void qp_type2_window_lives(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	t = mw_at(&e, OFF, LEN);
	mw_revoke(&e, MW_BY_QP_DESTROY);
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
	mw_close(&e);
}

static void qp_type2_many(long arg)
{
	enum { N = 100 };
	struct ibv_mw *mw[N];
	struct mw_env e;

	mw_open(&e, arg);
	for (size_t i = 0; i < N; i++) {
		mw[i] = e.mw;
		mw_bind(&e, i, LEN, RDMA_ALL_REMOTE);
		mw_next(&e);
	}
	destroy_owner_qp(&e);
	mw_expect_dereg(&e);
	for (size_t i = 0; i < N; i++)
		check_errno(ibv_dealloc_mw(mw[i]), 0, "ibv_dealloc_mw");
	mw_close(&e);
}

/* A window of type 1 does not mind which queue pair it was bound by. */
static void qp_type1_lives_on(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	mw_open(&e, arg);
	mw_second_pair(&e, &b, true);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	destroy_owner_qp(&e);
	mw_expect_busy(&e);
	mw_allowed(&e, &b, MW_WRITE, mw_at(&e, OFF, LEN));
	mw_allowed(&e, &b, MW_READ, mw_at(&e, OFF, LEN));
	mw_refused(&e, &b, MW_WRITE, mw_at(&e, OFF - 1, LEN));
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_expect_dereg(&e);
	mw_close_two(&e, &b);
}

/* A queue pair with requests that nobody answers is destroyed at once, too. */
static void qp_with_pending(long arg)
{
	struct rdma_wr w[3];
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	for (size_t i = 0; i < 3; i++)
		rdma_wr_send(&w[i], NULL, 0, 0);	/* RNR for ever */
	rdma_post(&e.a.owner, rdma_wr_chain(w, 3));
	destroy_owner_qp(&e);
	if (MW_TYPE(arg) == IBV_MW_TYPE_1)
		mw_expect_busy(&e);
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* --- the window --- */

static void dealloc_at_once(long arg)
{
	struct rdma_wr w[16];
	uint64_t start;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 0, MW_REGION_LEN, RDMA_ALL_REMOTE);
	for (size_t i = 0; i < 16; i++)
		rdma_wr_read(&w[i], e.a.local.addr, MW_REGION_LEN,
			     e.a.local.mr->lkey, e.region.iova, e.rkey);
	rdma_post(&e.a.peer, rdma_wr_chain(w, 16));
	start = rdma_now_us();
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_at_once(start, "ibv_dealloc_mw");
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* --- all orders in which a program may clean up --- */

enum thing { QP, MW, MR, THINGS };

static void clean_up(struct mw_env *e, enum thing thing, bool bound)
{
	switch (thing) {
	case QP:
		destroy_owner_qp(e);
		break;
	case MW:
		mw_revoke(e, MW_BY_DEALLOC);
		break;
	default:
		if (bound)
			mw_expect_busy(e);
		else
			mw_expect_dereg(e);
		break;
	}
}

static void any_order(long arg)
{
	static const enum thing orders[][THINGS] = {
		{ QP, MW, MR }, { QP, MR, MW }, { MW, QP, MR },
		{ MW, MR, QP }, { MR, QP, MW }, { MR, MW, QP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		bool bound = true;
		struct mw_env e;

		mw_open(&e, arg);
		mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
		for (size_t j = 0; j < THINGS; j++) {
			clean_up(&e, orders[i][j], bound);
			if (orders[i][j] == MW || (orders[i][j] == QP &&
						   MW_TYPE(arg) == IBV_MW_TYPE_2))
				bound = false;
		}
		if (e.region.mr)
			mw_expect_dereg(&e);
		mw_close(&e);
	}
}

void mw_destroy_cases(void)
{
	ktap_add("o10-2.2.5", qp_type2, 2, 0, "destroy.qp.type2");
	ktap_add("o10-2.2.5", qp_type2_window_lives, 2, 0,
		 "destroy.qp.type2-window-lives");
	ktap_add("o10-2.2.5", qp_type2_many, 2, 0, "destroy.qp.type2-many");
	ktap_add("type 1: window lives on", qp_type1_lives_on, 1, 0,
		 "destroy.qp.type1-lives-on");
	for (long type = 1; type <= 2; type++) {
		ktap_add("ibv_dereg_mr(3): EBUSY", dereg_busy, type, 0,
			 "destroy.type%ld.dereg-busy", type);
		ktap_add("ibv_dereg_mr(3): MR and windows stay usable",
			 busy_then_bind, type, 0,
			 "destroy.type%ld.busy-then-bind", type);
		for (long flags = 1; flags <= 7; flags++)
			ktap_add("rereg likewise", rereg_busy,
				 type | flags << MW_ARG_SHIFT, 0,
				 "destroy.type%ld.rereg%s%s%s-busy", type,
				 flags & IBV_REREG_MR_CHANGE_TRANSLATION ? "-memory" : "",
				 flags & IBV_REREG_MR_CHANGE_PD ? "-pd" : "",
				 flags & IBV_REREG_MR_CHANGE_ACCESS ? "-access" : "");
		ktap_add("nothing waits for the network", qp_with_pending,
			 type, 0, "destroy.type%ld.qp-with-pending", type);
		ktap_add("ibv_dealloc_mw(3): at once", dealloc_at_once, type,
			 0, "destroy.type%ld.dealloc-under-load", type);
		ktap_add("all freed in any order", any_order, type, 60,
			 "destroy.type%ld.any-order", type);
	}
}
