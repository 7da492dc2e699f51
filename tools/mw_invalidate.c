// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Revoking a window: each way, and the attempts that must fail. */
#include "mw_env.h"

#define OFF	640
#define LEN	4096

/* Nothing goes through the key any more, and the region is free. */
static void way(long arg)
{
	enum mw_how how = (enum mw_how)MW_ARG(arg);
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
	mw_expect_busy(&e);
	t = mw_at(&e, OFF, LEN);
	mw_revoke(&e, how);
	for (int op = 0; op < mw_ops(&e); op++)
		mw_refused(&e, &e.a, (enum mw_op)op, t);
	if (how == MW_BY_REBIND)
		mw_revoke(&e, MW_BY_ZERO_BIND);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* A revoked window is as good as new. */
static void bind_again(long arg)
{
	enum mw_how how = (enum mw_how)MW_ARG(arg);
	struct mw_env e;

	mw_open(&e, arg);
	for (int i = 0; i < 3; i++) {
		mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
		mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
		mw_allowed(&e, &e.a, MW_READ, mw_at(&e, OFF, LEN));
		mw_revoke(&e, how);
	}
	mw_close(&e);
}

static void unsignaled(long arg)
{
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_recv(&e.a.peer, 1, NULL, 0, 0);
	rdma_wr_local_inv(&w[0], e.rkey);
	w[0].wr.send_flags = 0;
	rdma_wr_send(&w[1], NULL, 0, 0);
	rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
	check(rdma_wait_wc(e.a.owner.scq, &wc, RDMA_WAIT_MS),
	      "the send after it completes");
	check_eq(wc.wr_id, w[1].wr.wr_id, "a good one is silent");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of the send");
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF, 8));
	mw_close(&e);
}

/* --- LOCAL_INV that must fail --- */

enum target {
	TYPE1_WINDOW, REGION_RKEY, REGION_LKEY, OTHER_QP, OTHER_PD, WRONG_KEY,
	FREE_WINDOW, FREED_WINDOW, KEY_0, KEY_ONES, TARGETS,
};

static const char *const target_name[TARGETS] = {
	[TYPE1_WINDOW] = "type1",
	[REGION_RKEY] = "region-rkey",
	[REGION_LKEY] = "region-lkey",
	[OTHER_QP] = "other-qp",
	[OTHER_PD] = "other-pd",
	[WRONG_KEY] = "wrong-key",
	[FREE_WINDOW] = "free-window",
	[FREED_WINDOW] = "freed-window",
	[KEY_0] = "key-0",
	[KEY_ONES] = "key-ones",
};

static int type_for(enum target target)
{
	return target == TYPE1_WINDOW ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
}

/* The key to invalidate by; the window is bound by e->a, b is another. */
static uint32_t make_target(struct mw_env *e, enum target target)
{
	struct ibv_mw *mw;
	uint32_t rkey;

	if (target != FREE_WINDOW)
		mw_bind(e, OFF, LEN, RDMA_ALL_REMOTE);
	switch (target) {
	case REGION_RKEY:
		return e->region.mr->rkey;
	case REGION_LKEY:
		return e->region.mr->lkey;
	case WRONG_KEY:
		return e->rkey ^ 0x80;
	case FREED_WINDOW:
		mw = mw_alloc(e->a.owner.pd, IBV_MW_TYPE_2);
		rkey = mw->rkey;
		check_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
		return rkey;
	case KEY_0:
		return 0;
	case KEY_ONES:
		return 0xffffffff;
	default:
		return e->rkey;
	}
}

/*
 * What was to be invalidated is untouched. A connection that ended took the
 * windows of type 2 with it, so those are looked at on a second one.
 */
static void expect_target_untouched(struct mw_env *e, struct mw_pair *users,
				    enum target target)
{
	struct mw_target t;

	if (target == FREE_WINDOW) {
		mw_refused(e, users, MW_WRITE, mw_at(e, OFF, 8));
		mw_expect_dereg(e);
		return;
	}
	mw_expect_busy(e);
	mw_allowed(e, users, MW_WRITE, mw_at(e, OFF, LEN));
	mw_allowed(e, users, MW_READ, mw_at(e, OFF, LEN));
	t = mw_at(e, OFF, LEN);
	t.rkey = e->region.mr->rkey;
	mw_allowed(e, users, MW_WRITE, t);
}

/*
 * By a second queue pair; of the same PD unless the case is about another.
 * Its failure does not touch the first, where the window is bound.
 */
static void local_inv_error(long arg)
{
	enum target target = (enum target)MW_ARG(arg);
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct mw_pair b;
	struct mw_env e;
	uint32_t rkey;

	mw_open(&e, arg);
	mw_second_pair(&e, &b, target != OTHER_PD);
	rkey = make_target(&e, target);
	rdma_wr_local_inv(&w[0], rkey);
	rdma_wr_send(&w[1], NULL, 0, 0);
	if (arg & MW_WR_API)
		w[0].wr.send_flags = 0;
	rdma_recv(&b.peer, 1, NULL, 0, 0);
	rdma_post(&b.owner, rdma_wr_chain(w, 2));
	check(rdma_wait_wc(b.owner.scq, &wc, RDMA_WAIT_MS),
	      "a failed LOCAL_INV completes, unsignaled or not");
	check_eq(wc.wr_id, w[0].wr.wr_id, "wr_id");
	check(wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR,
	      "LOCAL_INV of %s fails with an error of its own (%s)",
	      target_name[target], ibv_wc_status_str(wc.status));
	check_eq(wc.opcode, IBV_WC_LOCAL_INV, "opcode");
	check(rdma_wait_wc(b.owner.scq, &wc, RDMA_WAIT_MS),
	      "the request after it completes");
	check_eq(wc.status, IBV_WC_WR_FLUSH_ERR, "status of the next request");
	check(rdma_wait_state(b.owner.qp, IBV_QPS_ERR),
	      "the queue pair is in ERR");
	expect_target_untouched(&e, &e.a, target);
	mw_close_two(&e, &b);
}

/* By the queue pair that a window of type 2 is bound to, all the same. */
static void local_inv_wrong_key_own_qp(long arg)
{
	struct rdma_wr w;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_wr_local_inv(&w, e.rkey ^ 1);
	check(rdma_do(&e.a.owner, &w, NULL) != IBV_WC_SUCCESS,
	      "LOCAL_INV by a wrong key fails");
	mw_expect_busy(&e);
	mw_close(&e);
}

/* By the connection that the window belongs to: a wrong key is wrong there. */
static void send_inv_wrong_key_own_qp(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;

	conf.timeout = 8;	/* 1 ms */
	conf.retry_cnt = 2;
	mw_open_conf(&e, arg, &conf, MW_BIND_RIGHTS);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_recv(&e.a.owner, 0x55, NULL, 0, 0);
	rdma_wr_send_inv(&w, NULL, 0, 0, e.rkey ^ 1);
	rdma_post(&e.a.peer, rdma_wr_chain(&w, 1));
	check(rdma_wait_wc(e.a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "the receive completes");
	check(wc.status == IBV_WC_REM_INV_REQ_ERR,
	      "the receive ends with REM_INV_REQ_ERR (%s)",
	      ibv_wc_status_str(wc.status));
	check(rdma_wait_wc(e.a.peer.scq, &wc, RDMA_WAIT_MS),
	      "the requester gives up");
	check_eq(wc.status, IBV_WC_RETRY_EXC_ERR, "status of the request");
	mw_expect_busy(&e);
	mw_close(&e);
}

static void local_inv_twice(long arg)
{
	struct rdma_wr w;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_local_inv(&e.a.owner, e.rkey);
	mw_expect_dereg(&e);
	rdma_wr_local_inv(&w, e.rkey);
	check(rdma_do(&e.a.owner, &w, NULL) != IBV_WC_SUCCESS,
	      "LOCAL_INV of what is Free already fails");
	mw_close(&e);
}

/* --- SEND_WITH_INV --- */

static void send_inv_payload(long arg)
{
	uint32_t len = (uint32_t)MW_ARG(arg);
	struct rdma_buf sink;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&sink, e.a.owner.pd, 16384, 0, IBV_ACCESS_LOCAL_WRITE);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
	rdma_buf_fill(&sink, 0);
	rdma_recv(&e.a.owner, 0x99, sink.addr, 16384, sink.mr->lkey);
	rdma_wr_send_inv(&w, e.a.local.addr, len, e.a.local.mr->lkey, e.rkey);
	check_eq(rdma_do(&e.a.peer, &w, NULL), IBV_WC_SUCCESS,
		 "status of SEND_WITH_INV");
	check(rdma_wait_wc(e.a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "it completes a receive");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of the receive");
	check_eq(wc.opcode, IBV_WC_RECV, "opcode of the receive");
	check_eq(wc.wr_id, 0x99, "wr_id of the receive");
	check_eq(wc.byte_len, len, "byte_len of the receive");
	check_eq(wc.wc_flags, IBV_WC_WITH_INV, "wc_flags of the receive");
	check_eq(wc.invalidated_rkey, e.rkey, "invalidated_rkey");
	check(!memcmp(sink.addr, e.a.local.addr, len) &&
	      rdma_buf_touched(&sink, 0, 0, len) < 0, "the payload is placed");
	mw_expect_dereg(&e);
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF, 8));
	rdma_buf_destroy(&sink);
	mw_close(&e);
}

/* It invalidates when a receive takes it, not before. */
static void send_inv_without_receive(long arg)
{
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_wr_send_inv(&w, NULL, 0, 0, e.rkey);
	rdma_post(&e.a.peer, rdma_wr_chain(&w, 1));
	for (int i = 0; i < 20; i++)
		mw_expect_busy(&e);
	check(!ibv_poll_cq(e.a.peer.scq, 1, &wc),
	      "SEND_WITH_INV waits for a receive");
	rdma_recv(&e.a.owner, 0x99, NULL, 0, 0);
	check(rdma_wait_wc(e.a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "it completes a receive");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of the receive");
	check_eq(wc.invalidated_rkey, e.rkey, "invalidated_rkey");
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* What is too long for its receive is not placed, and invalidates nothing. */
static void send_inv_too_long(long arg)
{
	struct rdma_buf sink;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&sink, e.a.owner.pd, 4096, 0, IBV_ACCESS_LOCAL_WRITE);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_recv(&e.a.owner, 0x99, sink.addr, 100, sink.mr->lkey);
	rdma_wr_send_inv(&w, e.a.local.addr, 101, e.a.local.mr->lkey, e.rkey);
	check_eq(rdma_do(&e.a.peer, &w, NULL), IBV_WC_REM_INV_REQ_ERR,
		 "status of a SEND_WITH_INV that is too long");
	check(rdma_wait_wc(e.a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "its receive completes");
	check_eq(wc.status, IBV_WC_LOC_LEN_ERR, "status of the receive");
	mw_expect_busy(&e);
	rdma_buf_destroy(&sink);
	mw_close(&e);
}

/*
 * Class J: the receive ends with REM_INV_REQ_ERR, the responder in ERR and
 * silent, so that the requester gives up after its retries.
 */
static void send_inv_error(long arg)
{
	enum target target = (enum target)MW_ARG(arg);
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_pair b;
	struct mw_env e;
	uint32_t rkey;

	conf.timeout = 8;	/* 1 ms */
	conf.retry_cnt = 2;
	mw_open_conf(&e, arg, &conf, MW_BIND_RIGHTS);
	mw_second_pair(&e, &b, target != OTHER_PD);
	rkey = make_target(&e, target);
	rdma_recv(&b.owner, 0x55, NULL, 0, 0);
	rdma_recv(&b.owner, 0x56, NULL, 0, 0);
	rdma_wr_send_inv(&w, NULL, 0, 0, rkey);
	rdma_post(&b.peer, rdma_wr_chain(&w, 1));
	check(rdma_wait_wc(b.owner.rcq, &wc, RDMA_WAIT_MS),
	      "the receive completes");
	check_eq(wc.wr_id, 0x55, "wr_id of the receive");
	check(wc.status == IBV_WC_REM_INV_REQ_ERR,
	      "the receive ends with REM_INV_REQ_ERR (%s)",
	      ibv_wc_status_str(wc.status));
	check(rdma_wait_wc(b.owner.rcq, &wc, RDMA_WAIT_MS),
	      "the next receive is flushed");
	check_eq(wc.status, IBV_WC_WR_FLUSH_ERR, "status of the next receive");
	check(rdma_wait_state(b.owner.qp, IBV_QPS_ERR),
	      "the responder's queue pair is in ERR");
	check(rdma_wait_wc(b.peer.scq, &wc, RDMA_WAIT_MS),
	      "the requester gives up");
	check(wc.status == IBV_WC_RETRY_EXC_ERR,
	      "the requester is not told anything (%s)",
	      ibv_wc_status_str(wc.status));
	expect_target_untouched(&e, &e.a, target);
	mw_close_two(&e, &b);
}

void mw_invalidate_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		for (long how = 0; how < MW_WAYS; how++) {
			long arg = type | how << MW_ARG_SHIFT;

			if (!mw_how_fits((enum mw_how)how, (int)type))
				continue;
			ktap_add("ibv_alloc_mw(3): until invalidated by …", way,
				 arg, 0, "invalidate.type%ld.%s", type,
				 mw_how_name[how]);
			ktap_add("ibv_alloc_mw(3): until invalidated by …", way,
				 arg | MW_WR_API, 0,
				 "invalidate.type%ld.%s-wr-api", type,
				 mw_how_name[how]);
			if (how != MW_BY_DEALLOC)
				ktap_add("type 2: Valid -> Free -> Valid",
					 bind_again, arg, 0,
					 "invalidate.type%ld.%s-bind-again",
					 type, mw_how_name[how]);
		}
	}
	ktap_add("ibv_post_send(3): unsignaled", unsignaled, 2, 0,
		 "invalidate.local-inv.unsignaled");
	for (long t = 0; t < TARGETS; t++) {
		const char *clause = t == TYPE1_WINDOW ?
			"o10-37.2.26" : t == FREE_WINDOW ?
			"choice: LOCAL_INV of a Free window fails" :
			"LOCAL_INV: error CQE, target untouched";
		long arg = type_for((enum target)t) | t << MW_ARG_SHIFT;

		ktap_add(clause, local_inv_error, arg, 0,
			 "invalidate.local-inv-error.%s", target_name[t]);
		ktap_add(clause, local_inv_error, arg | MW_WR_API, 0,
			 "invalidate.local-inv-error.%s.unsignaled",
			 target_name[t]);
		ktap_add(t == FREE_WINDOW ?
			 "choice: SEND_WITH_INV of a Free window fails" :
			 "SEND_WITH_INV: class J", send_inv_error, arg, 0,
			 "invalidate.send-inv-error.%s", target_name[t]);
	}
	ktap_add("LOCAL_INV: wrong key", local_inv_wrong_key_own_qp, 2, 0,
		 "invalidate.local-inv-error.wrong-key-own-qp");
	ktap_add("SEND_WITH_INV: class J", send_inv_wrong_key_own_qp, 2, 0,
		 "invalidate.send-inv-error.wrong-key-own-qp");
	ktap_add("choice: LOCAL_INV of a Free window fails", local_inv_twice, 2, 0,
		 "invalidate.local-inv-error.twice");
	ktap_add("SEND_WITH_INV: before the receive CQE, not earlier",
		 send_inv_without_receive, 2, 0,
		 "invalidate.send-with-inv.no-receive");
	ktap_add("SEND_WITH_INV: after the payload is placed",
		 send_inv_too_long, 2, 0, "invalidate.send-with-inv.too-long");
	for (long len = 0; len < 16384; len = len ? len * 9 + 1023 : 1)
		ktap_add("SEND_WITH_INV: after the payload is placed",
			 send_inv_payload, 2 | len << MW_ARG_SHIFT, 0,
			 "invalidate.send-with-inv.%ld-bytes", len);
}
