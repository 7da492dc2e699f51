// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What libibverbs offers and the device does not have, or has in another measure. Where
 * a manual page names no errno, the kernel's practice: EOPNOTSUPP for what is not there.
 */
#include "answers.h"

#include <infiniband/tm_types.h>
#include <unistd.h>

/* --- objects that the device does not have --- */

static int open_xrcd(struct answers_env *e)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = 0100,
	};

	return answers_made(ibv_open_xrcd(e->dev.ctx, &attr));
}

static int alloc_dm(struct answers_env *e)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	return answers_made(ibv_alloc_dm(e->dev.ctx, &attr));
}

static int alloc_td(struct answers_env *e)
{
	struct ibv_td_init_attr attr = { 0 };

	return answers_made(ibv_alloc_td(e->dev.ctx, &attr));
}

static int alloc_parent_domain(struct answers_env *e)
{
	struct ibv_parent_domain_init_attr attr = { .pd = e->end.pd };

	return answers_made(ibv_alloc_parent_domain(e->dev.ctx, &attr));
}

static int alloc_null_mr(struct answers_env *e)
{
	return answers_made(ibv_alloc_null_mr(e->end.pd));
}

static int create_counters(struct answers_env *e)
{
	struct ibv_counters_init_attr attr = { 0 };

	return answers_made(ibv_create_counters(e->dev.ctx, &attr));
}

static int create_flow(struct answers_env *e)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.size = sizeof(attr),
		.port = 1,
	};

	return answers_made(ibv_create_flow(e->end.qp, &attr));
}

static int create_flow_action(struct answers_env *e)
{
	struct ibv_flow_action_esp_attr attr = { 0 };

	return answers_made(ibv_create_flow_action_esp(e->dev.ctx, &attr));
}

static int create_wq(struct answers_env *e)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 1,
		.max_sge = 1,
		.pd = e->end.pd,
		.cq = e->end.rcq,
	};

	return answers_made(ibv_create_wq(e->dev.ctx, &attr));
}

static int create_rwq_ind_table(struct answers_env *e)
{
	struct ibv_wq *none[1] = { NULL };
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = none };

	return answers_made(ibv_create_rwq_ind_table(e->dev.ctx, &attr));
}

static int srq_of_type(struct answers_env *e, uint32_t type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = (enum ibv_srq_type)type,
		.pd = e->end.pd,
		.cq = e->end.rcq,
		.tm_cap = { .max_num_tags = 1, .max_ops = 1 },
	};

	return answers_made(ibv_create_srq_ex(e->dev.ctx, &attr));
}

static int ask_srq(struct answers_env *e, int (*ask)(struct ibv_srq *srq, uint32_t of),
		   uint32_t of)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(e->end.pd, &init);
	int err;

	check(srq, "ibv_create_srq: %s", strerror(errno));
	err = ask(srq, of);
	check_errno(ibv_destroy_srq(srq), 0, "ibv_destroy_srq");
	return err;
}

static int ask_modify(struct ibv_srq *srq, uint32_t mask)
{
	struct ibv_srq_attr attr = { .max_wr = 1 };

	return ibv_modify_srq(srq, &attr, (int)mask);
}

static int modify_srq(struct answers_env *e, uint32_t mask)
{
	return ask_srq(e, ask_modify, mask);
}

static int ask_number(struct ibv_srq *srq, uint32_t number)
{
	return ibv_get_srq_num(srq, &number);
}

/* By which XRC names it. */
static int get_srq_num(struct answers_env *e)
{
	return ask_srq(e, ask_number, 0);
}

static int ask_ops(struct ibv_srq *srq, uint32_t opcode)
{
	struct ibv_ops_wr wr = { .opcode = (enum ibv_ops_wr_opcode)opcode }, *bad;

	return ibv_post_srq_ops(srq, &wr, &bad);
}

static int post_srq_ops(struct answers_env *e, uint32_t opcode)
{
	return ask_srq(e, ask_ops, opcode);
}

/* --- objects of other processes --- */

static int open_qp(struct answers_env *e)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = e->end.qp->qp_num,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return answers_made(ibv_open_qp(e->dev.ctx, &attr));
}

static int import_device(struct answers_env *e)
{
	int fd = dup(e->dev.ctx->cmd_fd);
	int err = answers_made(ibv_import_device(fd));

	close(fd);
	return err;
}

static int import_pd(struct answers_env *e)
{
	return answers_made(ibv_import_pd(e->dev.ctx, e->end.pd->handle));
}

static int import_mr(struct answers_env *e)
{
	return answers_made(ibv_import_mr(e->end.pd, e->buf.mr->handle));
}

static int import_dm(struct answers_env *e)
{
	return answers_made(ibv_import_dm(e->dev.ctx, 0));
}

/* --- queue pairs --- */

static struct ibv_qp_init_attr_ex qp_init(struct answers_env *e, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = e->end.scq,
		.recv_cq = e->end.rcq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->end.pd,
	};
}

static int qp_of_type(struct answers_env *e, uint32_t type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->end.scq,
		.recv_cq = e->end.rcq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = (enum ibv_qp_type)type,
	};

	return answers_made(ibv_create_qp(e->end.pd, &attr));
}

static int qp_ex_xrc_send(struct answers_env *e)
{
	struct ibv_qp_init_attr_ex attr = qp_init(e, IBV_QPT_XRC_SEND);

	return answers_made(ibv_create_qp_ex(e->dev.ctx, &attr));
}

static int qp_ex_create_flags(struct answers_env *e)
{
	struct ibv_qp_init_attr_ex attr = qp_init(e, IBV_QPT_UD);

	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	return answers_made(ibv_create_qp_ex(e->dev.ctx, &attr));
}

static int qp_ex_tso(struct answers_env *e)
{
	struct ibv_qp_init_attr_ex attr = qp_init(e, IBV_QPT_UD);

	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	attr.max_tso_header = 64;
	return answers_made(ibv_create_qp_ex(e->dev.ctx, &attr));
}

static int qp_ex_send_ops(struct answers_env *e, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = qp_init(e, type);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = ops;
	return answers_made(ibv_create_qp_ex(e->dev.ctx, &attr));
}

static int qp_ex_send_tso(struct answers_env *e)
{
	return qp_ex_send_ops(e, IBV_QPT_RC, IBV_QP_EX_WITH_TSO);
}

static int qp_ex_send_unknown(struct answers_env *e)
{
	return qp_ex_send_ops(e, IBV_QPT_RC, 1ULL << 60);
}

/* UD sends, and does nothing else. */
static int qp_ex_ud_write(struct answers_env *e)
{
	return qp_ex_send_ops(e, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE);
}

static int qp_ex_uc_read(struct answers_env *e)
{
	return qp_ex_send_ops(e, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ);
}

/* --- ibv_modify_qp(3) and what else changes a queue pair --- */

static int modify(struct answers_env *e, struct ibv_qp_attr attr, unsigned int mask)
{
	return ibv_modify_qp(e->end.qp, &attr, (int)mask);
}

/* The kernel knows alternate paths between InfiniBand ports only. */
static int modify_alt_path(struct answers_env *e)
{
	struct ibv_qp_attr attr = {
		.alt_ah_attr = { .is_global = 1, .port_num = 1, .grh = {
			.dgid = e->dev.gid,
			.sgid_index = (uint8_t)e->dev.gid_index,
		} },
		.alt_port_num = 1,
	};

	return modify(e, attr, IBV_QP_ALT_PATH);
}

static int modify_path_mig_state(struct answers_env *e, uint32_t state)
{
	struct ibv_qp_attr attr = { .path_mig_state = (enum ibv_mig_state)state };

	return modify(e, attr, IBV_QP_PATH_MIG_STATE);
}

static int modify_rate_limit(struct answers_env *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .rate_limit = 1000 };

	return modify(e, attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
}

static int modify_qp_rate_limit(struct answers_env *e)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000 };

	return ibv_modify_qp_rate_limit(e->end.qp, &attr);
}

static int modify_unknown_mask(struct answers_env *e)
{
	return modify(e, (struct ibv_qp_attr){ 0 }, 1U << 29);
}

static int modify_unknown_state(struct answers_env *e)
{
	return modify(e, (struct ibv_qp_attr){ .qp_state = (enum ibv_qp_state)9 },
		      IBV_QP_STATE);
}

/* Requests of what has been set already: not in RTS. */
static int modify_wrong_mask(struct answers_env *e)
{
	return modify(e, (struct ibv_qp_attr){ .path_mtu = IBV_MTU_256 },
		      IBV_QP_PATH_MTU);
}

static int set_ece(struct answers_env *e)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 1 };

	return ibv_set_ece(e->end.qp, &ece);
}

static int query_ece(struct answers_env *e)
{
	struct ibv_ece ece;

	return ibv_query_ece(e->end.qp, &ece);
}

/* --- completion queues --- */

static int cq_vector(struct answers_env *e, uint32_t vector)
{
	return answers_made(ibv_create_cq(e->dev.ctx, 1, NULL, NULL, (int)vector));
}

static int cq_vector_beyond(struct answers_env *e)
{
	return cq_vector(e, (uint32_t)e->dev.ctx->num_comp_vectors);
}

static int cq_ex(struct answers_env *e, struct ibv_cq_init_attr_ex attr)
{
	struct ibv_cq_ex *cq;

	attr.cqe = 1;
	cq = ibv_create_cq_ex(e->dev.ctx, &attr);
	return cq ? ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) : errno;
}

static int cq_with(struct answers_env *e, uint32_t wc_flags)
{
	return cq_ex(e, (struct ibv_cq_init_attr_ex){ .wc_flags = wc_flags });
}

static int cq_ignore_overrun(struct answers_env *e)
{
	return cq_ex(e, (struct ibv_cq_init_attr_ex){
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN });
}

static int modify_cq(struct answers_env *e)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 1, .cq_period = 1 },
	};

	return ibv_modify_cq(e->end.scq, &attr);
}

const struct answers_row answers_verbs[] = {
	UNSUPPORTED("open-xrcd", open_xrcd),
	UNSUPPORTED("alloc-dm", alloc_dm),
	UNSUPPORTED("alloc-td", alloc_td),
	UNSUPPORTED("alloc-parent-domain", alloc_parent_domain),
	UNSUPPORTED("alloc-null-mr", alloc_null_mr),
	UNSUPPORTED("create-counters", create_counters),
	UNSUPPORTED("create-flow", create_flow),
	UNSUPPORTED("create-flow-action", create_flow_action),
	UNSUPPORTED("create-wq", create_wq),
	UNSUPPORTED("create-rwq-ind-table", create_rwq_ind_table),
	UNSUPPORTED_OF("srq-tag-matching", srq_of_type, IBV_SRQT_TM),
	/* in an XRC domain, of which there can be none */
	NONSENSE_OF("srq-xrc", srq_of_type, IBV_SRQT_XRC),
	NONSENSE_OF("modify-srq-unknown-mask", modify_srq, 1U << 20),
	UNSUPPORTED("get-srq-num", get_srq_num),
	UNSUPPORTED_OF("post-srq-ops-add", post_srq_ops, IBV_WR_TAG_ADD),
	UNSUPPORTED_OF("post-srq-ops-sync", post_srq_ops, IBV_WR_TAG_SYNC),
	UNSUPPORTED("open-qp", open_qp),
	UNSUPPORTED("import-device", import_device),
	UNSUPPORTED("import-pd", import_pd),
	UNSUPPORTED("import-mr", import_mr),
	UNSUPPORTED("import-dm", import_dm),
	UNSUPPORTED_OF("qp-raw-packet", qp_of_type, IBV_QPT_RAW_PACKET),
	UNSUPPORTED_OF("qp-driver", qp_of_type, IBV_QPT_DRIVER),
	UNSUPPORTED_OF("qp-xrc-send", qp_of_type, IBV_QPT_XRC_SEND),
	UNSUPPORTED("qp-ex-xrc-send", qp_ex_xrc_send),
	NONSENSE_OF("qp-type-unknown", qp_of_type, 77),
	UNSUPPORTED("qp-ex-create-flags", qp_ex_create_flags),
	UNSUPPORTED("qp-ex-tso-header", qp_ex_tso),
	UNSUPPORTED("qp-ex-send-tso", qp_ex_send_tso),
	UNSUPPORTED("qp-ex-send-unknown", qp_ex_send_unknown),
	UNSUPPORTED("qp-ex-ud-write", qp_ex_ud_write),
	UNSUPPORTED("qp-ex-uc-read", qp_ex_uc_read),
	NONSENSE("modify-alternate-path", modify_alt_path),
	/* the one state that there is */
	FINE_OF("modify-migrated", modify_path_mig_state, IBV_MIG_MIGRATED),
	UNSUPPORTED_OF("modify-rearm", modify_path_mig_state, IBV_MIG_REARM),
	/* where a device goes by itself */
	NONSENSE_OF("modify-armed", modify_path_mig_state, IBV_MIG_ARMED),
	NONSENSE_OF("modify-migration-unknown", modify_path_mig_state, 3),
	UNSUPPORTED("modify-rate-limit", modify_rate_limit),
	UNSUPPORTED("modify-qp-rate-limit", modify_qp_rate_limit),
	UNSUPPORTED("modify-unknown-mask", modify_unknown_mask),
	NONSENSE("modify-unknown-state", modify_unknown_state),
	NONSENSE("modify-wrong-mask", modify_wrong_mask),
	UNSUPPORTED("set-ece", set_ece),
	UNSUPPORTED("query-ece", query_ece),
	NONSENSE("cq-vector-beyond", cq_vector_beyond),
	NONSENSE_OF("cq-vector-negative", cq_vector, UINT32_MAX),
	FINE_OF("cq-ex-standard", cq_with, IBV_WC_STANDARD_FLAGS),
	UNSUPPORTED_OF("cq-ex-timestamp", cq_with, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP),
	UNSUPPORTED_OF("cq-ex-wallclock", cq_with,
		       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK),
	UNSUPPORTED("cq-ex-ignore-overrun", cq_ignore_overrun),
	UNSUPPORTED("modify-cq", modify_cq),
};

const size_t answers_verbs_count = ARRAY_SIZE(answers_verbs);
