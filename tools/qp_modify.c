// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_modify_qp(3): which transitions there are, which attributes each needs and
 * may have, and that a call changes all that it names or nothing.
 */
#include "qp_modify.h"
#include "ud_env.h"

#define STATES	(IBV_QPS_ERR + 1)
#define BIT(n)	(1 << (n))

enum { RC, UC, UD, TYPES };

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[TYPES] = {
	[RC] = { "rc", IBV_QPT_RC },
	[UC] = { "uc", IBV_QPT_UC },
	[UD] = { "ud", IBV_QPT_UD },
};

static const char *const state_name[STATES] = {
	[IBV_QPS_RESET] = "reset",
	[IBV_QPS_INIT] = "init",
	[IBV_QPS_RTR] = "rtr",
	[IBV_QPS_RTS] = "rts",
	[IBV_QPS_SQD] = "sqd",
	[IBV_QPS_SQE] = "sqe",
	[IBV_QPS_ERR] = "err",
};

/* By bit of the mask. */
static const char *const attr_name[] = {
	"qp_state", "cur_qp_state", "en_sqd_async_notify", "qp_access_flags", "pkey_index",
	"port_num", "qkey", "ah_attr", "path_mtu", "timeout", "retry_cnt", "rnr_retry",
	"rq_psn", "max_rd_atomic", "alt_ah_attr", "min_rnr_timer", "sq_psn",
	"max_dest_rd_atomic", "path_mig_state", "cap", "dest_qp_num",
};

#define MASK_BITS ((int)ARRAY_SIZE(attr_name))

/* The manual page's tables: what the way from RESET to RTS needs. */
#define INIT_CONNECTED	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_DATAGRAM	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC		(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC		(RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC		(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static const int needed[STATES][TYPES] = {
	[IBV_QPS_INIT] = { INIT_CONNECTED, INIT_CONNECTED, INIT_DATAGRAM },
	[IBV_QPS_RTR] = { RTR_RC, RTR_UC, 0 },
	[IBV_QPS_RTS] = { RTS_RC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
};

struct ibv_qp_attr qp_good(const struct qp_env *e, enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = e->dev.port,
		.qp_access_flags = RDMA_ALL_REMOTE,
		.qkey = e->a.conf.qkey,
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
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

static int type_of(const struct qp_env *e)
{
	int type = 0;

	while (types[type].type != e->a.conf.type)
		type++;
	return type;
}

/* A UD send without memory of its own. */
static void fail_send(struct qp_env *e)
{
	struct ibv_ah *ah = ud_ah(&e->a);
	struct rdma_wr w;

	rdma_wr_send(&w, e->abuf.addr, 8, e->abuf.mr->lkey ^ 0x100);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = e->b.qp->qp_num;
	w.wr.wr.ud.remote_qkey = e->a.conf.qkey;
	check_eq(rdma_do(&e->a, &w, NULL), IBV_WC_LOC_PROT_ERR, "a send that fails");
	check(rdma_wait_state(e->a.qp, IBV_QPS_SQE), "the queue pair is in SQE");
	check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
}

void qp_bring_to(struct qp_env *e, enum ibv_qp_state state)
{
	static const enum ibv_qp_state steps[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
	};
	int type = type_of(e);

	check_errno(rdma_to_state(&e->a, IBV_QPS_RESET), 0, "to RESET");
	for (size_t i = 0; state != IBV_QPS_RESET && i < ARRAY_SIZE(steps); i++) {
		struct ibv_qp_attr attr = qp_good(e, steps[i]);

		check_errno(ibv_modify_qp(e->a.qp, &attr,
					  IBV_QP_STATE | needed[steps[i]][type]), 0,
			    "a good transition");
		if (steps[i] == state)
			return;
	}
	if (state == IBV_QPS_SQE)
		fail_send(e);
	else if (state != IBV_QPS_RESET)
		check_errno(rdma_to_state(&e->a, state), 0, "to SQD or ERR");
}

static void open_typed(struct qp_env *e, int type)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = types[type].type;
	qp_open_unconnected(e, &conf, 4096);
}

static void expect_path(const struct ibv_ah_attr *got, const struct ibv_ah_attr *want)
{
	check_eq(got->is_global, 1, "is_global");
	check_eq(got->grh.sgid_index, want->grh.sgid_index, "sgid_index");
	/* the hop limit is the route's */
	check_eq(got->grh.traffic_class, want->grh.traffic_class, "traffic_class");
	check_eq(got->grh.flow_label, want->grh.flow_label, "flow_label");
	check(!memcmp(&got->grh.dgid, &want->grh.dgid, sizeof(got->grh.dgid)), "dgid");
}

/* What ibv_query_qp(3) has one number of; 0 of others. */
static long number(const struct ibv_qp_attr *attr, int bit)
{
	switch (BIT(bit)) {
	case IBV_QP_STATE:
		return attr->qp_state;
	case IBV_QP_ACCESS_FLAGS:
		return attr->qp_access_flags;
	case IBV_QP_PKEY_INDEX:
		return attr->pkey_index;
	case IBV_QP_PORT:
		return attr->port_num;
	case IBV_QP_QKEY:
		return attr->qkey;
	case IBV_QP_PATH_MTU:
		return attr->path_mtu;
	case IBV_QP_TIMEOUT:
		return attr->timeout;
	case IBV_QP_RETRY_CNT:
		return attr->retry_cnt;
	case IBV_QP_RNR_RETRY:
		return attr->rnr_retry;
	case IBV_QP_RQ_PSN:
		return attr->rq_psn;
	case IBV_QP_MAX_QP_RD_ATOMIC:
		return attr->max_rd_atomic;
	case IBV_QP_MIN_RNR_TIMER:
		return attr->min_rnr_timer;
	case IBV_QP_SQ_PSN:
		return attr->sq_psn;
	case IBV_QP_MAX_DEST_RD_ATOMIC:
		return attr->max_dest_rd_atomic;
	case IBV_QP_PATH_MIG_STATE:
		return attr->path_mig_state;
	case IBV_QP_DEST_QPN:
		return attr->dest_qp_num;
	default:
		return 0;
	}
}

void qp_expect_attr(const struct qp_env *e, const struct ibv_qp_attr *want, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	check_errno(ibv_query_qp(e->a.qp, &got, mask, &init), 0, "ibv_query_qp");
	for (int bit = 0; bit < MASK_BITS; bit++)
		if (mask & BIT(bit))
			check_eq(number(&got, bit), number(want, bit), attr_name[bit]);
	if (mask & IBV_QP_AV)
		expect_path(&got.ah_attr, &want->ah_attr);
}

/* --- which transitions there are --- */

static const int next_states[STATES] = {
	[IBV_QPS_RESET] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_INIT),
	[IBV_QPS_INIT] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_INIT) | BIT(IBV_QPS_RTR) |
			 BIT(IBV_QPS_ERR),
	[IBV_QPS_RTR] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_ERR),
	[IBV_QPS_RTS] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD) |
			BIT(IBV_QPS_ERR),
	[IBV_QPS_SQD] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD) |
			BIT(IBV_QPS_ERR),
	[IBV_QPS_SQE] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_RTS) | BIT(IBV_QPS_ERR),
	[IBV_QPS_ERR] = BIT(IBV_QPS_RESET) | BIT(IBV_QPS_ERR),
};

/* What has been set once need not be set again. */
static int mask_to(int type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	bool again = from == to ||
		     (to == IBV_QPS_RTS && (from == IBV_QPS_SQD || from == IBV_QPS_SQE));

	return IBV_QP_STATE | (again ? 0 : needed[to][type]);
}

static void moves_from(struct qp_env *e, int type, enum ibv_qp_state from)
{
	for (int to = 0; to < STATES; to++) {
		bool allowed = next_states[from] & BIT(to);
		struct ibv_qp_attr attr = qp_good(e, (enum ibv_qp_state)to);

		qp_bring_to(e, from);
		check_errno(ibv_modify_qp(e->a.qp, &attr,
					  mask_to(type, from, attr.qp_state)),
			    allowed ? 0 : EINVAL, state_name[to]);
		check_eq(rdma_state(e->a.qp), allowed ? attr.qp_state : from,
			 state_name[to]);
	}
}

#define MOVES(type, from)	((type) * STATES + (from))

static void moves(long arg)
{
	int type = (int)arg / STATES;
	struct qp_env e;

	open_typed(&e, type);
	moves_from(&e, type, (enum ibv_qp_state)(arg % STATES));
	qp_close(&e);
}

/* --- a call that fails changes nothing --- */

/* Attributes as good as the others, and different. */
static void vary(struct ibv_qp_attr *attr)
{
	attr->qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr->qkey++;
	attr->path_mtu--;
	attr->dest_qp_num ^= 1;
	attr->rq_psn++;
	attr->sq_psn++;
	attr->max_dest_rd_atomic--;
	attr->max_rd_atomic--;
	attr->min_rnr_timer--;
	attr->timeout--;
	attr->retry_cnt--;
	attr->rnr_retry--;
	attr->ah_attr.grh.traffic_class ^= 0x10;
	attr->ah_attr.grh.flow_label++;
	attr->en_sqd_async_notify = 1;
}

static void look(const struct qp_env *e, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	memset(attr, 0, sizeof(*attr));
	check_errno(ibv_query_qp(e->a.qp, attr, 0, &init), 0, "ibv_query_qp");
	/* That one goes by what was sent. */
	attr->sq_draining = 0;
}

static void expect_refused(struct qp_env *e, struct ibv_qp_attr *attr, int mask,
			   const char *what)
{
	struct ibv_qp_attr before, after;
	int err;

	look(e, &before);
	err = ibv_modify_qp(e->a.qp, attr, mask);
	/* an entry of the GID table that is empty */
	if (err == ENODATA && mask & IBV_QP_AV)
		err = EINVAL;
	check_errno(err, EINVAL, what);
	look(e, &after);
	check(!memcmp(&before, &after, sizeof(before)),
	      "%s: no attribute is changed, nor the state", what);
}

/* --- masks: every bit that is needed, and every one that may not be there --- */

#define RESUME_UD	(IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define RESUME_UC	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define RESUME_RC	(RESUME_UC | IBV_QP_MIN_RNR_TIMER)
#define RTR_MAY		(IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)
/*
 * IBTA has the address vector here for UC, too: the kernel adds the port to the mask,
 * and then has no port for UC.
 */
#define DRAINED_UC	(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define DRAINED_RC	(DRAINED_UC | IBV_QP_AV | IBV_QP_PORT | IBV_QP_TIMEOUT | \
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER | \
			 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC)
#define NOTIFY		IBV_QP_EN_SQD_ASYNC_NOTIFY

/* What may be there besides, by type; there are no alternate paths. */
static const struct {
	enum ibv_qp_state from, to;
	int may[TYPES];
} mask_rows[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { 0, 0, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, { INIT_CONNECTED, INIT_CONNECTED, INIT_DATAGRAM } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { RTR_MAY, RTR_MAY,
				       IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, { RESUME_RC, RESUME_UC, RESUME_UD } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { RESUME_RC, RESUME_UC, RESUME_UD } },
	{ IBV_QPS_RTS, IBV_QPS_SQD, { NOTIFY, NOTIFY, NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { RESUME_RC, RESUME_UC, RESUME_UD } },
	{ IBV_QPS_SQD, IBV_QPS_SQD, { DRAINED_RC, DRAINED_UC,
				      IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ IBV_QPS_SQE, IBV_QPS_RTS, { 0, 0, RESUME_UD } },
};

static void masks_of_row(struct qp_env *e, int type, size_t row)
{
	enum ibv_qp_state from = mask_rows[row].from, to = mask_rows[row].to;
	int must = mask_to(type, from, to), may = mask_rows[row].may[type];
	struct ibv_qp_attr attr = qp_good(e, to);

	vary(&attr);
	attr.cur_qp_state = from;
	qp_bring_to(e, from);
	for (int bit = 1; bit < MASK_BITS; bit++) {
		char what[64];

		if (may & BIT(bit))
			continue;
		snprintf(what, sizeof(what), "%s to %s %s %s", state_name[from],
			 state_name[to], must & BIT(bit) ? "without" : "with",
			 attr_name[bit]);
		expect_refused(e, &attr, must ^ BIT(bit), what);
	}
	check_errno(ibv_modify_qp(e->a.qp, &attr, must), 0, "what is needed");
	qp_expect_attr(e, &attr, must);
	qp_bring_to(e, from);
	check_errno(ibv_modify_qp(e->a.qp, &attr, must | may), 0, "and what may be there");
	qp_expect_attr(e, &attr, must | may);
}

static void masks(long type)
{
	struct qp_env e;

	open_typed(&e, (int)type);
	for (size_t i = 0; i < ARRAY_SIZE(mask_rows); i++)
		if (type == UD || mask_rows[i].from != IBV_QPS_SQE)
			masks_of_row(&e, (int)type, i);
	qp_close(&e);
}

/* The current state, when it is named, must be the current state. */
static void current_state(long arg)
{
	int mask = mask_to(RC, IBV_QPS_RTR, IBV_QPS_RTS) | IBV_QP_CUR_STATE;
	struct ibv_qp_attr attr;
	struct qp_env e;

	(void)arg;
	open_typed(&e, RC);
	qp_bring_to(&e, IBV_QPS_RTR);
	attr = qp_good(&e, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTS;
	expect_refused(&e, &attr, mask, "another state is named");
	attr.cur_qp_state = IBV_QPS_RTR;
	check_errno(ibv_modify_qp(e.a.qp, &attr, mask), 0, "the current state is named");
	qp_close(&e);
}

/* --- values --- */

enum value { BAD_PORT, BAD_PKEY, BAD_SGID, BAD_MTU, BIG_MTU, BIG_DEST_QPN, BIG_DEST_RD,
	     BIG_RD, BIG_TIMEOUT, BIG_RNR_TIMER, BIG_RETRY_CNT, BIG_RNR_RETRY, BAD_STATE };

static const struct {
	const char *name;
	enum value value;
	enum ibv_qp_state from, to;
	int may;	/* beside what is needed */
} values[] = {
	{ "port", BAD_PORT, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "pkey-index", BAD_PKEY, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "state", BAD_STATE, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "sgid-index", BAD_SGID, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "mtu-0", BAD_MTU, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "mtu-of-port", BIG_MTU, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "dest-qpn", BIG_DEST_QPN, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "dest-rd-atomic", BIG_DEST_RD, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "min-rnr-timer", BIG_RNR_TIMER, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MAY },
	{ "rd-atomic", BIG_RD, IBV_QPS_RTR, IBV_QPS_RTS, RESUME_RC },
	{ "timeout", BIG_TIMEOUT, IBV_QPS_RTR, IBV_QPS_RTS, RESUME_RC },
	{ "retry-cnt", BIG_RETRY_CNT, IBV_QPS_RTR, IBV_QPS_RTS, RESUME_RC },
	{ "rnr-retry", BIG_RNR_RETRY, IBV_QPS_RTR, IBV_QPS_RTS, RESUME_RC },
	{ "min-rnr-timer-in-rts", BIG_RNR_TIMER, IBV_QPS_RTS, IBV_QPS_RTS, RESUME_RC },
	{ "sgid-index-in-sqd", BAD_SGID, IBV_QPS_SQD, IBV_QPS_SQD, DRAINED_RC },
	{ "rd-atomic-in-sqd", BIG_RD, IBV_QPS_SQD, IBV_QPS_SQD, DRAINED_RC },
	{ "dest-rd-atomic-in-sqd", BIG_DEST_RD, IBV_QPS_SQD, IBV_QPS_SQD, DRAINED_RC },
	{ "rnr-retry-in-sqd", BIG_RNR_RETRY, IBV_QPS_SQD, IBV_QPS_SQD, DRAINED_RC },
};

static uint8_t more_than(int most, const char *name)
{
	if (most >= 255)
		ktap_skip("%s is %d", name, most);
	return (uint8_t)(most + 1);
}

static void spoil(const struct qp_env *e, enum value value, struct ibv_qp_attr *attr)
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
		attr->max_dest_rd_atomic = more_than(e->dev.attr.max_qp_rd_atom,
						     "max_qp_rd_atom");
		break;
	case BIG_RD:
		attr->max_rd_atomic = more_than(e->dev.attr.max_qp_init_rd_atom,
						"max_qp_init_rd_atom");
		break;
	case BIG_TIMEOUT:
		attr->timeout = 32;
		break;
	case BIG_RNR_TIMER:
		attr->min_rnr_timer = 32;
		break;
	case BIG_RETRY_CNT:
		attr->retry_cnt = 8;
		break;
	case BIG_RNR_RETRY:
		attr->rnr_retry = 8;
		break;
	default:
		attr->qp_state = (enum ibv_qp_state)77;
		break;
	}
}

static void bad_value(long arg)
{
	enum ibv_qp_state from = values[arg].from, to = values[arg].to;
	int mask = mask_to(RC, from, to) | values[arg].may;
	struct ibv_qp_attr attr, spoiled;
	struct qp_env e;

	open_typed(&e, RC);
	qp_bring_to(&e, from);
	attr = qp_good(&e, to);
	vary(&attr);
	attr.cur_qp_state = from;
	spoiled = attr;
	spoil(&e, values[arg].value, &spoiled);
	expect_refused(&e, &spoiled, mask, "a value out of range");
	check_errno(ibv_modify_qp(e.a.qp, &attr, mask), 0, "the good values");
	qp_expect_attr(&e, &attr, mask);
	qp_close(&e);
}

void qp_modify_cases(void)
{
	for (int type = 0; type < TYPES; type++) {
		for (int from = 0; from < STATES; from++)
			if (type == UD || from != IBV_QPS_SQE)
				ktap_add("ibv_modify_qp(3): states", moves,
					 MOVES(type, from), 0, "state.from-%s.%s",
					 state_name[from], types[type].name);
		ktap_add("ibv_modify_qp(3): masks", masks, type, 0, "state.mask.%s",
			 types[type].name);
	}
	ktap_add("ibv_modify_qp(3): IBV_QP_CUR_STATE", current_state, 0, 0,
		 "state.current");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		ktap_add("ibv_modify_qp(3): values", bad_value, (long)i, 0,
			 "state.bad-%s", values[i].name);
}
