// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of things: regions, queue pairs, windows, processes, in any order. */
#include "mw_env.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE_US	1000000	/* nothing here waits for the network */
#define OFF		640
#define LEN		2048

static void expect_at_once(uint64_t since, const char *what)
{
	uint64_t us = rdma_now_us() - since;

	check(us < (uint64_t)AT_ONCE_US * ktap_opt.scale,
	      "%s returns at once (%llu ms)", what,
	      (unsigned long long)us / 1000);
}

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
	e.mw = mw_alloc(e.a.owner.pd, MW_TYPE(arg));
	e.rkey = e.mw->rkey;
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
	expect_at_once(start, "ibv_destroy_qp");
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
		e.mw = mw_alloc(e.a.owner.pd, MW_TYPE(arg));
		e.rkey = e.mw->rkey;
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
	struct rdma_conf conf = rdma_conf_default();
	struct mw_pair b;
	struct mw_env e;

	mw_open(&e, arg);
	mw_pair_open(&b, &e.dev, e.a.owner.pd, &conf);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	destroy_owner_qp(&e);
	mw_expect_busy(&e);
	mw_allowed(&e, &b, MW_WRITE, mw_at(&e, OFF, LEN));
	mw_allowed(&e, &b, MW_READ, mw_at(&e, OFF, LEN));
	mw_refused(&e, &b, MW_WRITE, mw_at(&e, OFF - 1, LEN));
	mw_revoke(&e, MW_BY_DEALLOC);
	mw_expect_dereg(&e);
	mw_pair_close(&b);
	mw_close(&e);
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
	expect_at_once(start, "ibv_dealloc_mw");
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

/* --- the process --- */

/* The counts of one device, as rdma(8) prints them. */
static bool resources(char *line, size_t len)
{
	struct rdma_dev dev;
	char command[128];
	FILE *f;
	bool ok;

	mw_open_dev(&dev);
	snprintf(command, sizeof(command), "rdma resource show %s 2>&1",
		 ibv_get_device_name(dev.ctx->device));
	rdma_dev_close(&dev);
	f = popen(command, "r");
	if (!f)
		return false;
	ok = fgets(line, (int)len, f);
	return !pclose(f) && ok;
}

static void bind_everything(struct mw_env *e, long arg)
{
	mw_open(e, arg);
	for (size_t i = 0; i < 32; i++) {
		mw_bind(e, i * 64, LEN, RDMA_ALL_REMOTE);
		e->mw = mw_alloc(e->a.owner.pd, 1 + (int)(i & 1));
		e->rkey = e->mw->rkey;
	}
	mw_bind(e, 0, MW_REGION_LEN, RDMA_ALL_REMOTE);
}

/* A process that binds, keeps a peer reading, says so, and waits for its end */
static _Noreturn void victim(long arg, int ready)
{
	struct rdma_wr w[8];
	struct mw_env e;

	bind_everything(&e, arg);
	for (;;) {
		for (size_t i = 0; i < 8; i++)
			rdma_wr_read(&w[i], e.a.local.addr, MW_REGION_LEN,
				     e.a.local.mr->lkey, e.region.iova, e.rkey);
		rdma_post(&e.a.peer, rdma_wr_chain(w, 8));
		if (ready >= 0 && write(ready, "", 1) == 1)
			ready = -1;
		for (size_t i = 0; i < 8; i++) {
			struct ibv_wc wc;

			if (!rdma_wait_wc(e.a.peer.scq, &wc, RDMA_WAIT_MS) ||
			    wc.status != IBV_WC_SUCCESS)
				_exit(1);
		}
	}
}

static void sigkill(long arg)
{
	char before[256], after[256], byte;
	struct mw_env e;

	if (!resources(before, sizeof(before)))
		ktap_skip("rdma(8) cannot be run: %s", before);
	for (int i = 0; i < 3; i++) {
		uint64_t start;
		int ready[2];
		pid_t pid;

		check(!pipe(ready), "pipe");
		pid = fork();
		check(pid >= 0, "fork");
		if (!pid)
			victim(arg, ready[1]);
		close(ready[1]);
		check(read(ready[0], &byte, 1) == 1,
		      "a process has everything bound");
		start = rdma_now_us();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		expect_at_once(start, "the end of a killed process");
		close(ready[0]);
	}
	check(resources(after, sizeof(after)), "rdma(8)");
	check(!strcmp(before, after), "all is given back: %s, then %s", before,
	      after);
	bind_everything(&e, arg);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 0, MW_REGION_LEN));
}

/* The device is closed, or the process ends, with everything bound. */
static void left_bound(long arg)
{
	char before[256], after[256];
	struct mw_env e;
	uint64_t start;
	int status;
	pid_t pid;

	if (!resources(before, sizeof(before)))
		ktap_skip("rdma(8) cannot be run: %s", before);
	pid = fork();
	check(pid >= 0, "fork");
	if (!pid) {
		bind_everything(&e, arg);
		start = rdma_now_us();
		if (MW_ARG(arg)) {
			check_errno(ibv_close_device(e.dev.ctx), 0,
				    "ibv_close_device");
			expect_at_once(start, "ibv_close_device");
		}
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && !status,
	      "a process can end with everything bound");
	check(resources(after, sizeof(after)), "rdma(8)");
	check(!strcmp(before, after), "all is given back: %s, then %s", before,
	      after);
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
		for (long flags = 1; flags <= 4; flags *= 2)
			ktap_add("rereg likewise", rereg_busy,
				 type | flags << MW_ARG_SHIFT, 0,
				 "destroy.type%ld.rereg-%s-busy", type,
				 flags == 1 ? "translation" :
				 flags == 2 ? "pd" : "access");
		ktap_add("nothing waits for the network", qp_with_pending,
			 type, 0, "destroy.type%ld.qp-with-pending", type);
		ktap_add("ibv_dealloc_mw(3): at once", dealloc_at_once, type,
			 0, "destroy.type%ld.dealloc-under-load", type);
		ktap_add("all freed in any order", any_order, type, 60,
			 "destroy.type%ld.any-order", type);
		ktap_add("process killed with everything bound", sigkill, type,
			 60, "destroy.type%ld.sigkill", type);
		ktap_add("process ends with everything bound", left_bound,
			 type, 60, "destroy.type%ld.exit", type);
		ktap_add("process ends with everything bound", left_bound,
			 type | 1 << MW_ARG_SHIFT, 60,
			 "destroy.type%ld.close-device", type);
	}
}
