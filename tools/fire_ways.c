// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ways to take a key back. Each returns at the moment from which on
 * nothing may move: with the completion, or from the call.
 */
#include "fire.h"

#define WR_INV	0x1000	/* wr_id; the accesses have those of their slots */

/* --- windows of type 1: ibv_bind_mw(3) --- */

static void bind_type1(struct fire *f, struct fire_target *t, size_t off,
		       size_t len)
{
	struct ibv_mw_bind bind = {
		.wr_id = WR_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = f->region.mr,
			.addr = f->region.iova + off,
			.length = len,
			.mw_access_flags = RDMA_ALL_REMOTE,
		},
	};
	struct ibv_wc wc;

	check_errno(ibv_bind_mw(t->end->qp, t->mw, &bind), 0, "ibv_bind_mw");
	check(rdma_wait_wc(t->end->scq, &wc, RDMA_WAIT_MS), "a bind completes");
	check(wc.status == IBV_WC_SUCCESS, "status of a bind (%s)",
	      ibv_wc_status_str(wc.status));
	check_eq(wc.opcode, IBV_WC_BIND_MW, "opcode of a bind");
	t->rkey = t->mw->rkey;
}

static void by_zero_bind(struct fire *f, struct fire_target *t)
{
	bind_type1(f, t, 0, 0);
}

/* The old key is dead whatever the new one is for: the same range, or another. */
static void by_rebind(struct fire *f, struct fire_target *t)
{
	if (f->rounds & 1)
		bind_type1(f, t, t->off, t->len);
	else
		bind_type1(f, t, FIRE_PARTS, FIRE_PART);
}

/* --- windows of type 2: work requests --- */

static void bind_type2(struct fire *f, struct fire_target *t, size_t off,
		       size_t len)
{
	struct rdma_bind bind = {
		.mw = t->mw,
		.current_rkey = t->rkey,
		.new_rkey = ibv_inc_rkey(t->rkey),
		.mr_lkey = f->region.mr->lkey,
		.addr = f->region.iova + off,
		.length = len,
		.access = RDMA_ALL_REMOTE,
	};
	enum ibv_wc_status status;
	struct rdma_wr w;

	rdma_wr_bind(&w, &bind);
	status = rdma_do(t->end, &w, NULL);
	check(status == IBV_WC_SUCCESS, "status of a bind (%s)",
	      ibv_wc_status_str(status));
	t->rkey = bind.new_rkey;
}

static void by_local_inv(struct fire *f, struct fire_target *t)
{
	enum ibv_wc_status status;
	struct rdma_wr w;

	(void)f;
	rdma_wr_local_inv(&w, t->rkey);
	status = rdma_do(t->end, &w, NULL);
	check(status == IBV_WC_SUCCESS, "status of LOCAL_INV (%s)",
	      ibv_wc_status_str(status));
}

/* The peer posts it among its accesses; the owner sees the receive. */
static void by_send_inv(struct fire *f, struct fire_target *t)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	(void)f;
	rdma_recv(t->end, WR_INV, NULL, 0, 0);
	rdma_wr_send_inv(&w, NULL, 0, 0, t->rkey);
	w.wr.wr_id = WR_INV;
	w.wr.send_flags = 0;
	rdma_post(t->peer, rdma_wr_chain(&w, 1));
	check(rdma_wait_wc(t->end->rcq, &wc, RDMA_WAIT_MS),
	      "SEND_WITH_INV completes a receive");
	check(wc.status == IBV_WC_SUCCESS, "status of its receive (%s)",
	      ibv_wc_status_str(wc.status));
	check(wc.wc_flags & IBV_WC_WITH_INV, "the receive has IBV_WC_WITH_INV");
	check_eq(wc.invalidated_rkey, t->rkey, "invalidated_rkey");
}

/* --- windows of both types --- */

void fire_bind(struct fire *f, struct fire_target *t, size_t off, size_t len)
{
	if (t->mw->type == IBV_MW_TYPE_1)
		bind_type1(f, t, off, len);
	else
		bind_type2(f, t, off, len);
}

static void by_dealloc(struct fire *f, struct fire_target *t)
{
	(void)f;
	check_errno(ibv_dealloc_mw(t->mw), 0, "ibv_dealloc_mw");
	t->mw = NULL;
}

/* --- the queue pair that a window is bound to --- */

static void by_qp_error(struct fire *f, struct fire_target *t)
{
	(void)f;
	check_errno(rdma_to_state(t->end, IBV_QPS_ERR), 0, "to ERR");
}

static void by_qp_reset(struct fire *f, struct fire_target *t)
{
	(void)f;
	check_errno(rdma_to_state(t->end, IBV_QPS_RESET), 0, "to RESET");
}

static void by_qp_destroy(struct fire *f, struct fire_target *t)
{
	(void)f;
	check_errno(ibv_destroy_qp(t->end->qp), 0, "ibv_destroy_qp");
	t->end->qp = NULL;
}

/* --- regions --- */

static void by_dereg(struct fire *f, struct fire_target *t)
{
	(void)t;
	check_errno(ibv_dereg_mr(f->region.mr), 0, "ibv_dereg_mr");
	f->region.mr = NULL;
}

static void by_rereg(struct fire *f, struct fire_target *t)
{
	(void)t;
	check_errno(rdma_rereg_mr(f->region.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				  NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0,
		    "ibv_rereg_mr");
}

/* The old memory is no region's any more, whoever writes to the new one. */
static void by_rereg_memory(struct fire *f, struct fire_target *t)
{
	(void)t;
	check_errno(rdma_rereg_mr(f->region.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				  f->elsewhere, FIRE_REGION, 0), 0, "ibv_rereg_mr");
}

static void by_rereg_domain(struct fire *f, struct fire_target *t)
{
	(void)t;
	check_errno(rdma_rereg_mr(f->region.mr, IBV_REREG_MR_CHANGE_PD, f->other_pd, NULL, 0,
				  0), 0, "ibv_rereg_mr");
}

const struct fire_way fire_ways[] = {
	{ "type1.zero-length-bind", "ibv_bind_mw(3)", 1, by_zero_bind, true, 0 },
	{ "type1.rebind", "ibv_bind_mw(3)", 1, by_rebind, true, 0 },
	{ "type1.dealloc", "ibv_dealloc_mw(3)", 1, by_dealloc, true, 100 },
	{ "type2.local-inv", "ibv_post_send(3)", 2, by_local_inv, true, 0 },
	{ "type2.send-with-inv", "ibv_post_send(3)", 2, by_send_inv, true, 0 },
	{ "type2.dealloc", "ibv_dealloc_mw(3)", 2, by_dealloc, true, 100 },
	{ "type2.qp-error", "ibv_modify_qp(3)", 2, by_qp_error, false, 0 },
	{ "type2.qp-reset", "o10-2.2.5", 2, by_qp_reset, false, 0 },
	{ "type2.qp-destroy", "o10-2.2.5", 2, by_qp_destroy, false, 0 },
	{ "region.dereg", "ibv_dereg_mr(3)", 0, by_dereg, true, 0 },
	{ "region.rereg", "ibv_rereg_mr(3)", 0, by_rereg, true, 0 },
	{ "region.rereg-memory", "ibv_rereg_mr(3)", 0, by_rereg_memory, true, 0 },
	{ "region.rereg-domain", "ibv_rereg_mr(3)", 0, by_rereg_domain, true, 0 },
};

const size_t fire_num_ways = ARRAY_SIZE(fire_ways);
