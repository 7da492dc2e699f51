// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: made, taken through their states, given back. A queue pair whose
 * transition failed is in the state it was in, and the next try succeeds.
 */
#include "fail_env.h"

#include <stdlib.h>

static void make_parts(struct fail_env *e)
{
	struct rdma_end *end = &e->end;

	memset(end, 0, sizeof(*end));
	end->dev = &e->q.dev;
	end->conf = rdma_conf_default();
	end->conf.rd_atomic = 16;
	end->pd = e->q.a.pd;
	end->scq = e->q.a.scq;
	end->rcq = e->q.a.rcq;
	end->dgid = e->q.dev.gid;
}

static int create_qp(struct fail_env *e)
{
	e->end.qp = rdma_qp_create(&e->end);
	return fail_errno(e->end.qp);
}

static void make_parts_small(struct fail_env *e)
{
	make_parts(e);
	e->end.conf.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };
}

static void make_parts_large(struct fail_env *e)
{
	make_parts(e);
	e->end.conf.cap = (struct ibv_qp_cap){ 2000, 2000, 16, 16, 512 };
}

static void make_parts_ex(struct fail_env *e)
{
	make_parts(e);
	e->end.conf.wr_api = true;
}

static void make_qp(struct fail_env *e)
{
	make_parts(e);
	check_errno(create_qp(e), 0, "ibv_create_qp");
}

static void make_init(struct fail_env *e)
{
	make_qp(e);
	check_errno(rdma_to_init(&e->end), 0, "to INIT");
}

/* It is its own peer. */
static int to_rtr(struct fail_env *e)
{
	return rdma_to_rtr(&e->end, e->end.qp->qp_num, e->end.conf.psn);
}

static void make_rtr(struct fail_env *e)
{
	make_init(e);
	check_errno(to_rtr(e), 0, "to RTR");
}

static void make_rts(struct fail_env *e)
{
	make_rtr(e);
	check_errno(rdma_to_rts(&e->end), 0, "to RTS");
}

static void make_sqd(struct fail_env *e)
{
	make_rts(e);
	check_errno(rdma_to_state(&e->end, IBV_QPS_SQD), 0, "to SQD");
}

/* Everything that can be changed while the send queue is drained. */
static int change_sqd(struct fail_env *e)
{
	struct ibv_qp_attr attr = {
		.max_dest_rd_atomic = 3,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = e->q.dev.gid,
				.sgid_index = (uint8_t)e->q.dev.gid_index,
				.hop_limit = 64,
				.traffic_class = 33,
			},
		},
	};

	return ibv_modify_qp(e->end.qp, &attr, IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC);
}

static void destroy_qp(struct fail_env *e, int err)
{
	if (e->end.qp)
		fail_expect_gone(ibv_destroy_qp(e->end.qp), err, "ibv_destroy_qp");
	e->end.qp = NULL;
}

static void query(struct fail_env *e, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	check_errno(ibv_query_qp(e->end.qp, attr, IBV_QP_STATE | IBV_QP_AV, &init), 0,
		    "ibv_query_qp");
}

/* ibv_modify_qp(3): on failure no attribute is changed. */
static void undo_sqd(struct fail_env *e, int err)
{
	struct ibv_qp_attr attr;

	query(e, &attr);
	check_eq(attr.qp_state, IBV_QPS_SQD, "state");
	check_eq(attr.ah_attr.grh.traffic_class, err ? 0 : 33, "traffic class");
	check_eq(attr.max_dest_rd_atomic, err ? 16 : 3, "max_dest_rd_atomic");
	destroy_qp(e, 0);
}

/* After a failed step the state is the old one, and the step can be repeated. */
static void expect_step(struct fail_env *e, int err, enum ibv_qp_state from,
			enum ibv_qp_state to, int (*again)(struct fail_env *))
{
	check_eq(rdma_state(e->end.qp), err ? from : to, "state");
	if (err)
		check_errno(again(e), 0, "the step, again");
	check_eq(rdma_state(e->end.qp), to, "state after a second try");
	destroy_qp(e, 0);
}

static int to_init(struct fail_env *e)
{
	return rdma_to_init(&e->end);
}

static int to_rts(struct fail_env *e)
{
	return rdma_to_rts(&e->end);
}

static int to_err(struct fail_env *e)
{
	return rdma_to_state(&e->end, IBV_QPS_ERR);
}

static int to_reset(struct fail_env *e)
{
	return rdma_to_state(&e->end, IBV_QPS_RESET);
}

static void undo_init(struct fail_env *e, int err)
{
	expect_step(e, err, IBV_QPS_RESET, IBV_QPS_INIT, to_init);
}

static void undo_rtr(struct fail_env *e, int err)
{
	expect_step(e, err, IBV_QPS_INIT, IBV_QPS_RTR, to_rtr);
}

static void undo_rts(struct fail_env *e, int err)
{
	expect_step(e, err, IBV_QPS_RTR, IBV_QPS_RTS, to_rts);
}

static void undo_err(struct fail_env *e, int err)
{
	expect_step(e, err, IBV_QPS_RTS, IBV_QPS_ERR, to_err);
}

static void undo_reset(struct fail_env *e, int err)
{
	expect_step(e, err, IBV_QPS_RTS, IBV_QPS_RESET, to_reset);
}

/* With receives posted and a window bound: destroying it must not need memory. */
static void make_busy(struct fail_env *e)
{
	struct rdma_bind bind;
	struct rdma_wr w;

	make_rts(e);
	e->mw = ibv_alloc_mw(e->end.pd, IBV_MW_TYPE_2);
	check(e->mw, "ibv_alloc_mw: %s", strerror(errno));
	e->mr = ibv_reg_mr(e->end.pd, e->q.abuf.map, 4096,
			   QP_REGION_RIGHTS | IBV_ACCESS_MW_BIND);
	check(e->mr, "ibv_reg_mr: %s", strerror(errno));
	bind = (struct rdma_bind){
		.mw = e->mw,
		.current_rkey = e->mw->rkey,
		.new_rkey = ibv_inc_rkey(e->mw->rkey),
		.mr_lkey = e->mr->lkey,
		.addr = (uintptr_t)e->q.abuf.map,
		.length = 4096,
		.access = IBV_ACCESS_REMOTE_READ,
	};
	rdma_wr_bind(&w, &bind);
	check_eq(rdma_do(&e->end, &w, NULL), IBV_WC_SUCCESS, "status of a bind");
	rdma_recv(&e->end, 1, NULL, 0, 0);
}

static int try_destroy_qp(struct fail_env *e)
{
	int err = ibv_destroy_qp(e->end.qp);

	if (!err)
		e->end.qp = NULL;
	return err;
}

/* The window is free of its queue pair, and lets its region go. */
static void undo_busy(struct fail_env *e, int err)
{
	destroy_qp(e, err);
	check_errno(ibv_dereg_mr(e->mr), 0, "ibv_dereg_mr");
	check_errno(ibv_dealloc_mw(e->mw), 0, "ibv_dealloc_mw");
}

static const struct fail_path paths[] = {
	{ .name = "create", .prepare = make_parts, .run = create_qp,
	  .undo = destroy_qp },
	{ .name = "create-small", .prepare = make_parts_small, .run = create_qp,
	  .undo = destroy_qp },
	{ .name = "create-large", .prepare = make_parts_large, .run = create_qp,
	  .undo = destroy_qp },
	{ .name = "create_ex", .prepare = make_parts_ex, .run = create_qp,
	  .undo = destroy_qp },
	{ .name = "to-init", .prepare = make_qp, .run = to_init, .undo = undo_init },
	/* ENOBUFS: the core looked for a route */
	{ .name = "to-rtr", .prepare = make_init, .run = to_rtr, .undo = undo_rtr,
	  .errnos = { ENOBUFS } },
	{ .name = "to-rts", .prepare = make_rtr, .run = to_rts, .undo = undo_rts },
	{ .name = "to-err", .prepare = make_rts, .run = to_err, .undo = undo_err },
	{ .name = "to-reset", .prepare = make_rts, .run = to_reset,
	  .undo = undo_reset },
	{ .name = "change-drained", .prepare = make_sqd, .run = change_sqd,
	  .undo = undo_sqd, .errnos = { ENOBUFS } },
	{ .name = "destroy", .prepare = make_busy, .run = try_destroy_qp,
	  .undo = undo_busy },
};

static void fail_qp(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_every(&e, &paths[arg]);
	fail_close(&e);
}

void fail_qp_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ktap_add("ibv_create_qp(3), ibv_modify_qp(3)", fail_qp, (long)i, 0,
			 "qp.%s", paths[i].name);
}
