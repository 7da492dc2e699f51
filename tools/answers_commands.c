// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What providers do not pass on, asked of the kernel itself: the device must not count on
 * the library in front of it.
 */
#include "answers.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RESPONSE_LEN	256

static int send_command(struct answers_env *e, const void *command, size_t len)
{
	return write(e->dev.ctx->cmd_fd, command, len) == (ssize_t)len ? 0 : errno;
}

/* A command that none is; the kernel looks at no more than its number. */
static int absent(struct answers_env *e, uint32_t number)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t core[16];
	} cmd = { .hdr = {
		.command = number,
		.in_words = sizeof(cmd) / 4,
		.out_words = RESPONSE_LEN / 4,
	} };
	uint8_t response[RESPONSE_LEN];

	cmd.core[0] = (uintptr_t)response;
	return send_command(e, &cmd, sizeof(cmd));
}

/* Of the extended commands, @len bytes of which are the core's. */
static int extended(struct answers_env *e, uint32_t number, const void *core, size_t len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint64_t core[16];
	} cmd = {
		.hdr = {
			.command = number | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = (uint16_t)(len / 8),
			.out_words = RESPONSE_LEN / 8,
		},
		.ex = { .provider_out_words = RESPONSE_LEN / 8 },
	};
	uint8_t response[2 * RESPONSE_LEN];

	check(len % 8 == 0 && len <= sizeof(cmd.core), "the command has room");
	cmd.ex.response = (uintptr_t)response;
	memcpy(cmd.core, core, len);
	return send_command(e, &cmd, sizeof(cmd.hdr) + sizeof(cmd.ex) + len);
}

static int absent_extended(struct answers_env *e, uint32_t number)
{
	static const uint64_t zeros[8];

	return extended(e, number, zeros, sizeof(zeros));
}

static int query_device_mask(struct answers_env *e)
{
	struct ib_uverbs_ex_query_device core = { .comp_mask = 1 };

	return extended(e, IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &core, sizeof(core));
}

/* --- shared receive queues --- */

static int create_xsrq(struct answers_env *e, uint32_t type)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_xsrq core;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_CREATE_XSRQ,
			.in_words = sizeof(cmd) / 4,
			.out_words = RESPONSE_LEN / 4,
		},
		.core = {
			.srq_type = type,
			.pd_handle = e->end.pd->handle,
			.max_wr = 1,
			.max_sge = 1,
			.max_num_tags = 1,
			.cq_handle = e->end.rcq->handle,
		},
	};
	uint8_t response[RESPONSE_LEN];

	cmd.core.response = (uintptr_t)response;
	return send_command(e, &cmd, sizeof(cmd));
}

/* --- completion queues --- */

static int create_cq(struct answers_env *e, uint32_t flags, uint32_t comp_mask)
{
	struct ib_uverbs_ex_create_cq core = {
		.cqe = 1,
		.comp_channel = -1,
		.flags = flags,
		.comp_mask = comp_mask,
	};

	return extended(e, IB_USER_VERBS_EX_CMD_CREATE_CQ, &core, sizeof(core));
}

static int cq_flag(struct answers_env *e, uint32_t flag)
{
	return create_cq(e, flag, 0);
}

static int cq_mask(struct answers_env *e, uint32_t mask)
{
	return create_cq(e, 0, mask);
}

/* --- queue pairs --- */

static int create_qp(struct answers_env *e, uint8_t type, uint32_t flags,
		     uint32_t comp_mask)
{
	struct ib_uverbs_ex_create_qp core = {
		.pd_handle = e->end.pd->handle,
		.send_cq_handle = e->end.scq->handle,
		.recv_cq_handle = e->end.rcq->handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = type,
		.comp_mask = comp_mask,
		.create_flags = flags,
	};

	return extended(e, IB_USER_VERBS_EX_CMD_CREATE_QP, &core, sizeof(core));
}

static int qp_type(struct answers_env *e, uint32_t type)
{
	return create_qp(e, (uint8_t)type, 0, 0);
}

static int qp_flag(struct answers_env *e, uint32_t flag)
{
	return create_qp(e, IBV_QPT_UD, flag, 0);
}

static int qp_mask(struct answers_env *e, uint32_t mask)
{
	return create_qp(e, IBV_QPT_RC, 0, mask);
}

static int modify_rate_limit(struct answers_env *e)
{
	struct ib_uverbs_ex_modify_qp core = {
		.base = {
			.qp_handle = e->end.qp->handle,
			.attr_mask = IBV_QP_RATE_LIMIT,
		},
		.rate_limit = 1000,
	};

	return extended(e, IB_USER_VERBS_EX_CMD_MODIFY_QP, &core, sizeof(core));
}

/* --- objects and methods that are known by ioctl() only --- */

#define METHOD(object, number)	((uint32_t)(object) << 16 | (number))

static int method(struct answers_env *e, uint32_t of)
{
	struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(hdr),
		.object_id = (uint16_t)(of >> 16),
		.method_id = (uint16_t)of,
		.driver_id = RDMA_DRIVER_RXE,
	};

	return ioctl(e->dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &hdr) ? errno : 0;
}

/* Its object is there, so the device is asked. */
static int advise_mr(struct answers_env *e)
{
	struct ib_uverbs_sge sge = {
		.addr = (uintptr_t)e->buf.addr,
		.length = 64,
		.lkey = e->buf.mr->lkey,
	};
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_ADVISE_MR,
			.num_attrs = ARRAY_SIZE(cmd.attrs),
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = e->end.pd->handle },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY,
			  .data = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST, .len = sizeof(sge),
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)&sge },
		},
	};

	return ioctl(e->dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

#define NO_METHOD(name, object, number)	\
	{ name, EPROTONOSUPPORT, NULL, method, METHOD(object, number) }

const struct answers_row answers_commands[] = {
	UNSUPPORTED_OF("open-xrcd", absent, IB_USER_VERBS_CMD_OPEN_XRCD),
	/* what librxe does in the rings that it shares with the device */
	UNSUPPORTED_OF("poll-cq", absent, IB_USER_VERBS_CMD_POLL_CQ),
	UNSUPPORTED_OF("post-recv", absent, IB_USER_VERBS_CMD_POST_RECV),
	UNSUPPORTED_OF("post-srq-recv", absent, IB_USER_VERBS_CMD_POST_SRQ_RECV),
	/* numbers that were given out and never used, and some that were not */
	UNSUPPORTED_OF("peek-cq", absent, IB_USER_VERBS_CMD_PEEK_CQ),
	UNSUPPORTED_OF("unknown", absent, 60),
	UNSUPPORTED_OF("extended-unknown", absent_extended, 63),
	UNSUPPORTED_OF("create-flow", absent_extended, IB_USER_VERBS_EX_CMD_CREATE_FLOW),
	UNSUPPORTED_OF("create-wq", absent_extended, IB_USER_VERBS_EX_CMD_CREATE_WQ),
	UNSUPPORTED_OF("modify-wq", absent_extended, IB_USER_VERBS_EX_CMD_MODIFY_WQ),
	UNSUPPORTED_OF("create-rwq-ind-table", absent_extended,
		       IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL),
	UNSUPPORTED_OF("modify-cq", absent_extended, IB_USER_VERBS_EX_CMD_MODIFY_CQ),
	NONSENSE("query-device-mask", query_device_mask),
	UNSUPPORTED_OF("srq-tag-matching", create_xsrq, IB_UVERBS_SRQT_TM),
	UNSUPPORTED_OF("srq-unknown", create_xsrq, 9),
	UNSUPPORTED_OF("cq-timestamp", cq_flag, IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION),
	UNSUPPORTED_OF("cq-ignore-overrun", cq_flag, IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN),
	UNSUPPORTED_OF("cq-flag-unknown", cq_flag, 1U << 30),
	NONSENSE_OF("cq-mask", cq_mask, 1),
	UNSUPPORTED_OF("qp-raw-packet", qp_type, IBV_QPT_RAW_PACKET),
	UNSUPPORTED_OF("qp-xrc-send", qp_type, IBV_QPT_XRC_SEND),
	/* the kernel misses its XRC domain before it asks the device */
	NONSENSE_OF("qp-xrc-recv", qp_type, IBV_QPT_XRC_RECV),
	/* the kernel's own */
	NONSENSE_OF("qp-smi", qp_type, 0),
	NONSENSE_OF("qp-gsi", qp_type, 1),
	UNSUPPORTED_OF("qp-block-loopback", qp_flag, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB),
	UNSUPPORTED_OF("qp-scatter-fcs", qp_flag, IBV_QP_CREATE_SCATTER_FCS),
	UNSUPPORTED_OF("qp-end-padding", qp_flag, IBV_QP_CREATE_PCI_WRITE_END_PADDING),
	NONSENSE_OF("qp-flag-unknown", qp_flag, 1U << 30),
	NONSENSE_OF("qp-mask-unknown", qp_mask, 1U << 30),
	UNSUPPORTED("modify-rate-limit", modify_rate_limit),
	UNSUPPORTED("advise-mr", advise_mr),
	NO_METHOD("method-alloc-dm", UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC),
	NO_METHOD("method-create-counters", UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE),
	NO_METHOD("method-flow-action", UVERBS_OBJECT_FLOW_ACTION,
		  UVERBS_METHOD_FLOW_ACTION_ESP_CREATE),
	NO_METHOD("method-create-wq", UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE),
};

const size_t answers_commands_count = ARRAY_SIZE(answers_commands);
