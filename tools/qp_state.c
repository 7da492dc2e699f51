// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_modify_qp(3) and ibv_query_qp(3): the table of states and masks. */
#include "qp_env.h"

#define INIT_MASK	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | \
			 IBV_QP_ACCESS_FLAGS)
#define RTR_MASK	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | \
			 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | \
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_MAX_QP_RD_ATOMIC)

/* Good attributes for any transition. */
static struct ibv_qp_attr good(const struct qp_env *e, enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = e->dev.port,
		.qp_access_flags = RDMA_ALL_REMOTE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e->b.qp->qp_num,
		.rq_psn = 0x123456,
		.sq_psn = 0x654321,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 5,
		.min_rnr_timer = 17,
		.timeout = 13,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.ah_attr = {
			.is_global = 1,
			.port_num = e->dev.port,
			.grh = {
				.dgid = e->dev.gid,
				.sgid_index = (uint8_t)e->dev.gid_index,
				.hop_limit = 33,
				.traffic_class = 0x48,
			},
		},
	};
}

/* Bring a to @state by the good way. */
static void bring_to(struct qp_env *e, enum ibv_qp_state state)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{ IBV_QPS_INIT, INIT_MASK },
		{ IBV_QPS_RTR, RTR_MASK },
		{ IBV_QPS_RTS, RTS_MASK },
	};
	struct ibv_qp_attr attr;

	check_errno(rdma_to_state(&e->a, IBV_QPS_RESET), 0, "to RESET");
	if (state == IBV_QPS_RESET)
		return;
	if (state == IBV_QPS_ERR) {
		bring_to(e, IBV_QPS_INIT);
		check_errno(rdma_to_state(&e->a, IBV_QPS_ERR), 0, "to ERR");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		attr = good(e, steps[i].state);
		check_errno(ibv_modify_qp(e->a.qp, &attr, steps[i].mask), 0,
			    "a good transition");
		if (steps[i].state == state)
			return;
	}
}

/* --- which transitions there are --- */

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
	int mask;
	bool allowed;
} moves[] = {
	{ "reset-reset", IBV_QPS_RESET, IBV_QPS_RESET, IBV_QP_STATE, true },
	{ "reset-init", IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK, true },
	{ "reset-rtr", IBV_QPS_RESET, IBV_QPS_RTR, RTR_MASK, false },
	{ "reset-rts", IBV_QPS_RESET, IBV_QPS_RTS, RTS_MASK, false },
	{ "reset-err", IBV_QPS_RESET, IBV_QPS_ERR, IBV_QP_STATE, false },
	{ "init-init", IBV_QPS_INIT, IBV_QPS_INIT, INIT_MASK, true },
	{ "init-rtr", IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK, true },
	{ "init-rts", IBV_QPS_INIT, IBV_QPS_RTS, RTS_MASK, false },
	{ "init-reset", IBV_QPS_INIT, IBV_QPS_RESET, IBV_QP_STATE, true },
	{ "init-err", IBV_QPS_INIT, IBV_QPS_ERR, IBV_QP_STATE, true },
	{ "rtr-init", IBV_QPS_RTR, IBV_QPS_INIT, INIT_MASK, false },
	{ "rtr-rtr", IBV_QPS_RTR, IBV_QPS_RTR, RTR_MASK, false },
	{ "rtr-rts", IBV_QPS_RTR, IBV_QPS_RTS, RTS_MASK, true },
	{ "rtr-reset", IBV_QPS_RTR, IBV_QPS_RESET, IBV_QP_STATE, true },
	{ "rtr-err", IBV_QPS_RTR, IBV_QPS_ERR, IBV_QP_STATE, true },
	{ "rts-init", IBV_QPS_RTS, IBV_QPS_INIT, INIT_MASK, false },
	{ "rts-rtr", IBV_QPS_RTS, IBV_QPS_RTR, RTR_MASK, false },
	{ "rts-rts", IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE, true },
	{ "rts-sqd", IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE, true },
	{ "rts-reset", IBV_QPS_RTS, IBV_QPS_RESET, IBV_QP_STATE, true },
	{ "rts-err", IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE, true },
	{ "err-err", IBV_QPS_ERR, IBV_QPS_ERR, IBV_QP_STATE, true },
	{ "err-reset", IBV_QPS_ERR, IBV_QPS_RESET, IBV_QP_STATE, true },
	{ "err-init", IBV_QPS_ERR, IBV_QPS_INIT, INIT_MASK, false },
	{ "err-rts", IBV_QPS_ERR, IBV_QPS_RTS, RTS_MASK, false },
};

static void move(long arg)
{
	struct ibv_qp_attr attr;
	struct qp_env e;

	qp_open_unconnected(&e, NULL, 4096);
	bring_to(&e, moves[arg].from);
	attr = good(&e, moves[arg].to);
	check_errno(ibv_modify_qp(e.a.qp, &attr, moves[arg].mask),
		    moves[arg].allowed ? 0 : EINVAL, moves[arg].name);
	check_eq(rdma_state(e.a.qp), moves[arg].allowed ? moves[arg].to :
		 moves[arg].from, "the state after it");
	qp_close(&e);
}

/* --- masks: every bit that is needed, and one that may not be there --- */

static void masks(enum ibv_qp_state from, enum ibv_qp_state to, int needed,
		  int not_allowed)
{
	struct ibv_qp_attr attr;
	struct qp_env e;

	qp_open_unconnected(&e, NULL, 4096);
	bring_to(&e, from);
	attr = good(&e, to);
	for (int bit = 0; bit < 21; bit++) {
		int mask = 1 << bit;

		if (mask != IBV_QP_STATE && needed & mask)
			check_errno(ibv_modify_qp(e.a.qp, &attr,
						  needed & ~mask), EINVAL,
				    "a needed attribute is missing");
		if (not_allowed & mask)
			check_errno(ibv_modify_qp(e.a.qp, &attr, needed | mask),
				    EINVAL, "an attribute not allowed");
		check_eq(rdma_state(e.a.qp), from, "the state");
	}
	check_errno(ibv_modify_qp(e.a.qp, &attr, needed), 0, "the right mask");
	qp_close(&e);
}

static void masks_init(long arg)
{
	(void)arg;
	masks(IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK,
	      IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
	      IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN);
}

static void masks_rtr(long arg)
{
	(void)arg;
	masks(IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK,
	      IBV_QP_QKEY | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
	      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void masks_rts(long arg)
{
	(void)arg;
	masks(IBV_QPS_RTR, IBV_QPS_RTS, RTS_MASK,
	      IBV_QP_QKEY | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU |
	      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC);
}

/* The current state, when it is named, must be the current state. */
static void current_state(long arg)
{
	struct ibv_qp_attr attr;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	bring_to(&e, IBV_QPS_RTR);
	attr = good(&e, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTS;
	check_errno(ibv_modify_qp(e.a.qp, &attr, RTS_MASK | IBV_QP_CUR_STATE),
		    EINVAL, "another state is named");
	attr.cur_qp_state = IBV_QPS_RTR;
	check_errno(ibv_modify_qp(e.a.qp, &attr, RTS_MASK | IBV_QP_CUR_STATE),
		    0, "the current state is named");
	qp_close(&e);
}

/* --- values --- */

enum value { BAD_PORT, BAD_PKEY, BAD_SGID, BAD_MTU, BIG_MTU, BIG_DEST_QPN,
	     BIG_DEST_RD, BIG_RD, BAD_STATE, VALUES };

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
	int mask;
} values[VALUES] = {
	[BAD_PORT] = { "port", IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK },
	[BAD_PKEY] = { "pkey-index", IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK },
	[BAD_SGID] = { "sgid-index", IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK },
	[BAD_MTU] = { "mtu-0", IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK },
	[BIG_MTU] = { "mtu-of-port", IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK },
	[BIG_DEST_QPN] = { "dest-qpn", IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK },
	[BIG_DEST_RD] = { "dest-rd-atomic", IBV_QPS_INIT, IBV_QPS_RTR,
			  RTR_MASK },
	[BIG_RD] = { "rd-atomic", IBV_QPS_RTR, IBV_QPS_RTS, RTS_MASK },
	[BAD_STATE] = { "state", IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK },
};

static void spoil(const struct qp_env *e, enum value value,
		  struct ibv_qp_attr *attr)
{
	switch (value) {
	case BAD_PORT:
		attr->port_num = e->dev.attr.phys_port_cnt + 1;
		break;
	case BAD_PKEY:
		attr->pkey_index = e->dev.attr.max_pkeys;
		break;
	case BAD_SGID:
		attr->ah_attr.grh.sgid_index = 255;
		break;
	case BAD_MTU:
		attr->path_mtu = (enum ibv_mtu)0;
		break;
	case BIG_MTU:
		attr->path_mtu = (enum ibv_mtu)(e->dev.port_attr.active_mtu + 1);
		break;
	case BIG_DEST_QPN:
		attr->dest_qp_num |= 1 << 24;
		break;
	case BIG_DEST_RD:
		if (e->dev.attr.max_qp_rd_atom >= 255)
			ktap_skip("max_qp_rd_atom is %d",
				  e->dev.attr.max_qp_rd_atom);
		attr->max_dest_rd_atomic =
			(uint8_t)(e->dev.attr.max_qp_rd_atom + 1);
		break;
	case BIG_RD:
		if (e->dev.attr.max_qp_init_rd_atom >= 255)
			ktap_skip("max_qp_init_rd_atom is %d",
				  e->dev.attr.max_qp_init_rd_atom);
		attr->max_rd_atomic =
			(uint8_t)(e->dev.attr.max_qp_init_rd_atom + 1);
		break;
	default:
		attr->qp_state = (enum ibv_qp_state)77;
		break;
	}
}

static void bad_value(long arg)
{
	struct ibv_qp_attr attr;
	struct qp_env e;
	int err;

	qp_open_unconnected(&e, NULL, 4096);
	bring_to(&e, values[arg].from);
	attr = good(&e, values[arg].to);
	spoil(&e, (enum value)arg, &attr);
	err = ibv_modify_qp(e.a.qp, &attr, values[arg].mask);
	if (arg == BAD_SGID && err == ENODATA)
		err = EINVAL;	/* an entry of the table that is empty */
	check_errno(err, EINVAL, "a value out of range");
	check_eq(rdma_state(e.a.qp), values[arg].from, "the state");
	attr = good(&e, values[arg].to);
	check_errno(ibv_modify_qp(e.a.qp, &attr, values[arg].mask), 0,
		    "the good values");
	qp_close(&e);
}

/* --- query --- */

static void query(long arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr want, got;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	bring_to(&e, IBV_QPS_RTS);
	want = good(&e, IBV_QPS_RTS);
	check_errno(ibv_query_qp(e.a.qp, &got, INIT_MASK | RTR_MASK | RTS_MASK |
				 IBV_QP_CAP, &init), 0, "ibv_query_qp");
	check_eq(got.qp_state, IBV_QPS_RTS, "qp_state");
	check_eq(got.cur_qp_state, IBV_QPS_RTS, "cur_qp_state");
	check_eq(got.port_num, want.port_num, "port_num");
	check_eq(got.pkey_index, 0, "pkey_index");
	check_eq(got.qp_access_flags, want.qp_access_flags, "qp_access_flags");
	check_eq(got.path_mtu, want.path_mtu, "path_mtu");
	check_eq(got.dest_qp_num, want.dest_qp_num, "dest_qp_num");
	check_eq(got.rq_psn, want.rq_psn, "rq_psn");
	check_eq(got.sq_psn, want.sq_psn, "sq_psn");
	check_eq(got.max_dest_rd_atomic, want.max_dest_rd_atomic,
		 "max_dest_rd_atomic");
	check_eq(got.max_rd_atomic, want.max_rd_atomic, "max_rd_atomic");
	check_eq(got.min_rnr_timer, want.min_rnr_timer, "min_rnr_timer");
	check_eq(got.timeout, want.timeout, "timeout");
	check_eq(got.retry_cnt, want.retry_cnt, "retry_cnt");
	check_eq(got.rnr_retry, want.rnr_retry, "rnr_retry");
	check_eq(got.ah_attr.is_global, 1, "is_global");
	check_eq(got.ah_attr.grh.sgid_index, want.ah_attr.grh.sgid_index,
		 "sgid_index");
	/* the hop limit is the route's */
	check_eq(got.ah_attr.grh.traffic_class, want.ah_attr.grh.traffic_class,
		 "traffic_class");
	check(!memcmp(&got.ah_attr.grh.dgid, &want.ah_attr.grh.dgid, 16),
	      "dgid");
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
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr, got;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	attr = good(&e, IBV_QPS_RTS);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr.min_rnr_timer = 9;
	check_errno(ibv_modify_qp(e.a.qp, &attr, IBV_QP_ACCESS_FLAGS |
				  IBV_QP_MIN_RNR_TIMER), 0, "in RTS");
	check_errno(ibv_query_qp(e.a.qp, &got, IBV_QP_ACCESS_FLAGS |
				 IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MTU,
				 &init), 0, "ibv_query_qp");
	check_eq(got.qp_access_flags, IBV_ACCESS_REMOTE_READ,
		 "qp_access_flags");
	check_eq(got.min_rnr_timer, 9, "min_rnr_timer");
	check_eq(got.path_mtu, e.a.conf.mtu, "path_mtu");
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
	bring_to(&e, state);
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

/* Bring a to SQD, and wait for the event that is asked for. */
static void to_drained(struct qp_env *e)
{
	struct ibv_qp_attr attr = good(e, IBV_QPS_SQD);

	attr.en_sqd_async_notify = 1;
	check_errno(ibv_modify_qp(e->a.qp, &attr, IBV_QP_STATE |
				  IBV_QP_EN_SQD_ASYNC_NOTIFY), 0, "to SQD");
	check(rdma_wait_event(&e->dev, IBV_EVENT_SQ_DRAINED, e->a.qp,
			      RDMA_WAIT_MS), "IBV_EVENT_SQ_DRAINED comes");
}

/* SQD: what is on its way ends, what is posted waits for RTS. */
static void drain(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	to_drained(&e);
	qp_build(&e, &w, QP_WRITE, 0, 64);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	qp_expect_none(e.a.scq, "a request posted in SQD");
	check_errno(rdma_to_state(&e.a, IBV_QPS_RTS), 0, "back to RTS");
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the request");
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
	to_drained(&e);
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
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		ktap_add("ibv_modify_qp(3): states", move, (long)i, 0,
			 "state.%s", moves[i].name);
	ktap_add("ibv_modify_qp(3): masks", masks_init, 0, 0,
		 "state.mask-init");
	ktap_add("ibv_modify_qp(3): masks", masks_rtr, 0, 0, "state.mask-rtr");
	ktap_add("ibv_modify_qp(3): masks", masks_rts, 0, 0, "state.mask-rts");
	ktap_add("ibv_modify_qp(3): IBV_QP_CUR_STATE", current_state, 0, 0,
		 "state.current");
	for (size_t i = 0; i < VALUES; i++)
		ktap_add("ibv_modify_qp(3): values", bad_value, (long)i, 0,
			 "state.bad-%s", values[i].name);
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
	ktap_add("ibv_modify_qp(3): IBV_QP_MAX_QP_RD_ATOMIC", depth_gone, 0, 0,
		 "state.depth-gone");
	ktap_add("ibv_get_async_event(3): IBV_EVENT_COMM_EST", established, QP_WRITE, 0,
		 "state.established-by-write");
	ktap_add("ibv_get_async_event(3): IBV_EVENT_COMM_EST", established, QP_READ, 0,
		 "state.established-by-read");
}
