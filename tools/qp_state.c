// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_query_qp(3), and what a queue pair does in each state. */
#include "qp_modify.h"

/* --- query --- */

static void query(long arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr want, got;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	qp_bring_to(&e, IBV_QPS_RTS);
	want = qp_good(&e, IBV_QPS_RTS);
	/* all but what is UD's */
	qp_expect_attr(&e, &want, (2 * IBV_QP_DEST_QPN - 1) & ~IBV_QP_QKEY);
	check_errno(ibv_query_qp(e.a.qp, &got, IBV_QP_CAP, &init), 0, "ibv_query_qp");
	check_eq(got.cur_qp_state, IBV_QPS_RTS, "cur_qp_state");
	check_eq(got.sq_draining, 0, "sq_draining");
	check(init.send_cq == e.a.scq && init.recv_cq == e.a.rcq,
	      "the completion queues");
	check_eq(init.qp_type, IBV_QPT_RC, "qp_type");
	check(init.cap.max_send_wr >= 64 && init.cap.max_recv_wr >= 64 &&
	      init.cap.max_send_sge >= 4 && init.cap.max_recv_sge >= 4,
	      "the capabilities are what was asked for, or more");
	qp_close(&e);
}

/* In RTS a few attributes may change: they do, and the others do not. */
static void modify_in_rts(long arg)
{
	struct ibv_qp_attr attr;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	attr = qp_good(&e, IBV_QPS_RTS);
	attr.path_mtu = e.a.conf.mtu;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr.min_rnr_timer = 9;
	check_errno(ibv_modify_qp(e.a.qp, &attr, IBV_QP_ACCESS_FLAGS |
				  IBV_QP_MIN_RNR_TIMER), 0, "in RTS");
	qp_expect_attr(&e, &attr, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
		       IBV_QP_PATH_MTU);
	check_errno(ibv_modify_qp(e.a.qp, &attr, IBV_QP_PATH_MTU), EINVAL,
		    "the path MTU in RTS");
	qp_expect_works(&e);
	qp_close(&e);
}

/* Before RTS nothing can be sent; then it can. */
static void post_too_early(long arg)
{
	enum ibv_qp_state state = (enum ibv_qp_state)arg;
	struct rdma_wr w;
	struct qp_env e;

	qp_open_unconnected(&e, NULL, 4096);
	qp_bring_to(&e, state);
	rdma_wr_send(&w, NULL, 0, 0);
	check(rdma_try_post(&e.a, rdma_wr_chain(&w, 1)),
	      "a send cannot be posted in this state");
	qp_expect_none(e.a.scq, "a send that was not posted");
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

/* Receives posted before the connection wait for it. */
static void recv_before_rtr(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	check_errno(rdma_to_init(&e.a), 0, "to INIT");
	check_errno(rdma_to_init(&e.b), 0, "to INIT");
	rdma_recv(&e.b, 42, e.bbuf.addr, 64, e.bbuf.mr->lkey);
	rdma_connect(&e.a, &e.b);
	qp_build(&e, &w, QP_SEND, 0, 64);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "the send");
	qp_expect(e.b.rcq, 42, IBV_WC_SUCCESS, "the receive");
	qp_close(&e);
}

/* Bring a to SQD, and ask for the event. */
static void to_sqd(struct qp_env *e)
{
	struct ibv_qp_attr attr = qp_good(e, IBV_QPS_SQD);

	attr.en_sqd_async_notify = 1;
	check_errno(ibv_modify_qp(e->a.qp, &attr, IBV_QP_STATE |
				  IBV_QP_EN_SQD_ASYNC_NOTIFY), 0, "to SQD");
}

static void expect_drained(struct qp_env *e)
{
	check(rdma_wait_event(&e->dev, IBV_EVENT_SQ_DRAINED, e->a.qp,
			      RDMA_WAIT_MS), "IBV_EVENT_SQ_DRAINED comes");
}

static int draining(const struct qp_env *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check_errno(ibv_query_qp(e->a.qp, &attr, IBV_QP_STATE, &init), 0, "ibv_query_qp");
	return attr.sq_draining;
}

/* SQD: what is on its way ends, what is posted waits for RTS. */
static void drain(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	to_sqd(&e);
	expect_drained(&e);
	qp_build(&e, &w, QP_WRITE, 0, 64);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	qp_expect_none(e.a.scq, "a request posted in SQD");
	check_errno(rdma_to_state(&e.a, IBV_QPS_RTS), 0, "back to RTS");
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the request");
	qp_close(&e);
}

/* A SEND that waits for a receive is on its way, until there is one. */
static void draining_told(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	qp_build(&e, &w, QP_SEND, 0, 64);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	check_eq(draining(&e), 0, "sq_draining in RTS");
	to_sqd(&e);
	check_eq(draining(&e), 1, "sq_draining while the SEND waits");
	check(!rdma_wait_event(&e.dev, IBV_EVENT_SQ_DRAINED, e.a.qp, QP_QUIET_MS),
	      "no event meanwhile");
	check_eq(draining(&e), 1, "sq_draining while the SEND still waits");
	rdma_recv(&e.b, 1, e.bbuf.addr, 64, e.bbuf.mr->lkey);
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the SEND");
	expect_drained(&e);
	check_eq(draining(&e), 0, "sq_draining when it is over");
	check_errno(rdma_to_state(&e.a, IBV_QPS_RTS), 0, "back to RTS");
	qp_close(&e);
}

/* Bytes of a READ that is not over when the next call is made. */
#define LONG_READ (16 << 20)

/* What one stay in SQD asked for is not remembered in the next. */
static void drain_again(long arg)
{
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	to_sqd(&e);
	expect_drained(&e);
	check_errno(rdma_to_state(&e.a, IBV_QPS_RTS), 0, "back to RTS");
	check_errno(rdma_to_state(&e.a, IBV_QPS_SQD), 0, "to SQD, nothing asked for");
	check(!rdma_wait_event(&e.dev, IBV_EVENT_SQ_DRAINED, e.a.qp, QP_QUIET_MS),
	      "no event comes");
	qp_close(&e);
}

/* A READ waits for one that takes its time, and its turn is taken from it. */
static void depth_gone(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct qp_env e;

	(void)arg;
	conf.rd_atomic = 1;
	qp_open(&e, &conf, LONG_READ);
	qp_build(&e, &w[0], QP_READ, 0, LONG_READ);
	qp_build(&e, &w[1], QP_READ, 0, 64);
	w[1].wr.wr_id = w[0].wr.wr_id + 1;
	rdma_post(&e.a, rdma_wr_chain(w, 2));
	check_errno(rdma_to_state(&e.a, IBV_QPS_SQD), 0, "to SQD");
	check_errno(ibv_modify_qp(e.a.qp, &attr, IBV_QP_STATE |
				  IBV_QP_MAX_QP_RD_ATOMIC), 0, "max_rd_atomic 0");
	check_errno(rdma_to_state(&e.a, IBV_QPS_RTS), 0, "back to RTS");
	qp_expect(e.a.scq, w[0].wr.wr_id, IBV_WC_SUCCESS, "the READ in progress");
	check(rdma_wait_wc(e.a.scq, &wc, RDMA_WAIT_MS), "the READ that waited completes");
	if (wc.status == IBV_WC_SUCCESS)
		ktap_skip("both were over before the next call: too fast");
	check_eq(wc.status, IBV_WC_LOC_QP_OP_ERR, "its status");
	qp_close(&e);
}

/* What arrives in RTR tells that the peer has begun (IBTA 11.6.3.2); once. */
static void established(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	qp_open(&e, NULL, 4096);
	check_errno(rdma_to_state(&e.b, IBV_QPS_RESET), 0, "to RESET");
	check_errno(rdma_to_init(&e.b), 0, "to INIT");
	check_errno(rdma_to_rtr(&e.b, e.a.qp->qp_num, e.a.conf.psn), 0, "to RTR");
	qp_build(&e, &w, (enum qp_op)arg, 0, 8);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "a request to a peer in RTR");
	check(rdma_wait_event(&e.dev, IBV_EVENT_COMM_EST, e.b.qp, RDMA_WAIT_MS),
	      "IBV_EVENT_COMM_EST comes");
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "one more");
	check(!rdma_wait_event(&e.dev, IBV_EVENT_COMM_EST, e.b.qp, QP_QUIET_MS),
	      "it comes once");
	qp_close(&e);
}

void qp_state_cases(void)
{
	ktap_add("ibv_query_qp(3)", query, 0, 0, "state.query");
	ktap_add("ibv_modify_qp(3): RTS", modify_in_rts, 0, 0,
		 "state.modify-in-rts");
	ktap_add("ibv_post_send(3): before RTS", post_too_early, IBV_QPS_RESET,
		 0, "state.post-in-reset");
	ktap_add("ibv_post_send(3): before RTS", post_too_early, IBV_QPS_INIT,
		 0, "state.post-in-init");
	ktap_add("ibv_post_send(3): before RTS", post_too_early, IBV_QPS_RTR,
		 0, "state.post-in-rtr");
	ktap_add("ibv_post_recv(3): before RTR", recv_before_rtr, 0, 0,
		 "state.recv-before-rtr");
	ktap_add("ibv_modify_qp(3): SQD", drain, 0, 0, "state.drain");
	ktap_add("ibv_modify_qp(3): IBV_QP_EN_SQD_ASYNC_NOTIFY", drain_again, 0, 0,
		 "state.drain-again");
	ktap_add("ibv_query_qp(3): sq_draining", draining_told, 0, 0, "state.draining");
	ktap_add("ibv_modify_qp(3): IBV_QP_MAX_QP_RD_ATOMIC", depth_gone, 0, 0,
		 "state.depth-gone");
	ktap_add("ibv_get_async_event(3): IBV_EVENT_COMM_EST", established, QP_WRITE, 0,
		 "state.established-by-write");
	ktap_add("ibv_get_async_event(3): IBV_EVENT_COMM_EST", established, QP_READ, 0,
		 "state.established-by-read");
}
