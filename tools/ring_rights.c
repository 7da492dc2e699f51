// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a process may ask for by commands that no library sends, and what one
 * without privileges may not.
 */
#include "ring.h"

#include "fail_netlink.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define NOBODY		65534
#define LOCKED		((size_t)1 << 20)
#define GSI_QPN		1
#define GSI_QKEY	0x80010000U
#define TYPE_SMI	0	/* of kernel consumers alone, as 1 is */

/* --- commands that are for the kernel's own consumers --- */

struct command {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		struct ib_uverbs_poll_cq poll;
		struct ib_uverbs_post_recv recv;
		struct ib_uverbs_post_srq_recv srq;
		struct ib_uverbs_post_send send;
	};
	struct ib_uverbs_send_wr wr;
	struct ib_uverbs_sge sge;
};

static int ask(struct ring_env *e, uint32_t number, struct command *cmd)
{
	uint64_t resp[64] = {};

	return ring_command(e->dev.ctx->cmd_fd, number, cmd, sizeof(*cmd), resp,
			    sizeof(resp));
}

/*
 * A user's completion queue is polled in its memory: the kernel's way to poll would
 * trust what the user writes there.
 */
static void poll_cq(long arg)
{
	struct command cmd = {};
	struct ring_env e;

	(void)arg;
	ring_open(&e);
	memset(e.scq.q->data, 0x55, e.scq.slot_len * 8);
	cmd.poll.cq_handle = e.a.scq->handle;
	cmd.poll.ne = 1;
	e.scq.q->producer_index = 4;
	check(ask(&e, IB_USER_VERBS_CMD_POLL_CQ, &cmd), "POLL_CQ is refused");
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* The addresses of such a list are the user's word. */
static void posts(long arg)
{
	struct command cmd = {};
	struct ring_env e;

	(void)arg;
	ring_open_shared(&e);
	cmd.send.qp_handle = e.a.qp->handle;
	cmd.send.wr_count = 1;
	cmd.send.sge_count = 1;
	cmd.send.wqe_size = sizeof(cmd.wr);
	cmd.wr.num_sge = 1;
	cmd.wr.opcode = IBV_WR_SEND;
	cmd.wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	cmd.sge.addr = 0xffffffff80000000ULL;
	cmd.sge.length = 64;
	check(ask(&e, IB_USER_VERBS_CMD_POST_SEND, &cmd), "POST_SEND of a list");
	memset(&cmd, 0, sizeof(cmd));
	cmd.recv.qp_handle = e.b.qp->handle;
	cmd.recv.wr_count = 1;
	cmd.recv.wqe_size = sizeof(struct ib_uverbs_recv_wr);
	check(ask(&e, IB_USER_VERBS_CMD_POST_RECV, &cmd), "POST_RECV");
	memset(&cmd, 0, sizeof(cmd));
	cmd.srq.srq_handle = e.srq->handle;
	cmd.srq.wr_count = 1;
	cmd.srq.wqe_size = sizeof(struct ib_uverbs_recv_wr);
	check(ask(&e, IB_USER_VERBS_CMD_POST_SRQ_RECV, &cmd), "POST_SRQ_RECV");
	check_eq(ring_settle(&e), IBV_WC_SUCCESS, "nothing was posted");
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* --- a process without privileges --- */

/* What opened the device says who it is, so everything is opened by it. */
static void drop_privileges(void)
{
	check(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	      !setresuid(NOBODY, NOBODY, NOBODY), "to be nobody");
}

/* Queue pairs 0 and 1 are the RDMA core's. */
static void special_qps(struct rdma_end *end)
{
	for (uint8_t type = TYPE_SMI; type <= GSI_QPN; type++) {
		struct {
			struct ib_uverbs_cmd_hdr hdr;
			struct ib_uverbs_create_qp core;
		} cmd = {
			.core = {
				.pd_handle = end->pd->handle,
				.send_cq_handle = end->scq->handle,
				.recv_cq_handle = end->rcq->handle,
				.max_send_wr = 1,
				.max_recv_wr = 1,
				.qp_type = type,
			},
		};
		struct {
			struct ib_uverbs_create_qp_resp core;
			struct rxe_create_qp_resp driver;
		} resp;

		check(ring_command(end->dev->ctx->cmd_fd, IB_USER_VERBS_CMD_CREATE_QP,
				   &cmd, sizeof(cmd), &resp, sizeof(resp)),
		      "no queue pair of type %u", type);
	}
}

/* Controlled Q_Keys, those with the top bit set, are for the privileged (10.2.4). */
static void controlled_qkeys(struct rdma_end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = GSI_QKEY };
	uint32_t own = end->conf.qkey;

	check_errno(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), EPERM,
		    "a controlled Q_Key in RTS");
	check_errno(rdma_to_state(end, IBV_QPS_RESET), 0, "to RESET");
	end->conf.qkey = GSI_QKEY;
	check_errno(rdma_to_init(end), EPERM, "a controlled Q_Key in INIT");
	end->conf.qkey = own;
	rdma_connect(end, end);
}

static uint32_t violations(struct rdma_dev *dev)
{
	struct ibv_port_attr attr;

	check_errno(ibv_query_port(dev->ctx, dev->port, &attr), 0, "ibv_query_port");
	return attr.qkey_viol_cntr;
}

/* And what is sent with one has the sender's own: no management datagram. */
static void management(struct ring_env *e)
{
	uint32_t before = violations(&e->dev);
	union {
		struct rxe_send_wqe wqe;
		uint8_t bytes[RING_SLOT_MAX];
	} s;

	for (int i = 0; i < 8; i++) {
		ring_good_wqe(e, &s.wqe);
		s.wqe.wr.wr.ud.remote_qpn = i & 1 ? GSI_QPN : GSI_QPN | 0xff000000;
		s.wqe.wr.wr.ud.remote_qkey = GSI_QKEY;
		ring_put(e, &s, sizeof(s));
	}
	ring_doorbell(e);
	check_eq(ring_settle(e), IBV_WC_SUCCESS, "datagrams to queue pair 1");
	for (int tries = 0; violations(&e->dev) - before < 8; tries++) {
		check(tries < 1000 * (int)ktap_opt.scale, "Q_Key violations: %u of 8",
		      violations(&e->dev) - before);
		usleep(1000);
	}
}

static void links(struct rdma_dev *dev)
{
	const char *name = ibv_get_device_name(dev->ctx->device);
	uint32_t index;
	int err;

	check(netlink_index(name, &index), "the device is seen");
	err = netlink_delete_link(index);
	check(err == EPERM, "a link is not deleted by nobody: %s", strerror(err));
	err = netlink_add_link("smw99", "smw", "lo");
	check(err == EPERM, "nor made: %s", strerror(err));
}

static void nobody(long arg)
{
	struct ring_env e;

	(void)arg;
	if (geteuid())
		ktap_skip("not run by root");
	drop_privileges();
	ring_open_datagrams(&e);
	special_qps(&e.a);
	controlled_qkeys(&e.a);
	management(&e);
	links(&e.dev);
	ring_close(&e);
}

/* --- locked memory --- */

/* What a region counts as, it gives back, also where it changed meanwhile. */
static void locked_memory(long arg)
{
	const struct rlimit limit = { LOCKED, LOCKED };
	struct ibv_mr *mr, *all;
	struct ring_env e;
	uint8_t *memory;

	(void)arg;
	if (geteuid())
		ktap_skip("not run by root");
	memory = aligned_alloc(4096, LOCKED * 2);
	check(memory, "memory");
	drop_privileges();
	check(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
	rdma_dev_open(&e.dev, ktap_opt.device, ktap_opt.gid_index);
	e.a.pd = ibv_alloc_pd(e.dev.ctx);
	check(e.a.pd, "a PD");
	check(!ibv_reg_mr(e.a.pd, memory, LOCKED + 1, 0) && errno == ENOMEM,
	      "a byte too many");
	mr = ibv_reg_mr(e.a.pd, memory, LOCKED / 4, IBV_ACCESS_LOCAL_WRITE);
	check(mr, "a region: %s", strerror(errno));
	for (size_t i = 1; i < 100; i++)
		check_errno(rdma_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
					  memory + i % 4 * (LOCKED / 4), LOCKED / 4, 0), 0,
			    "other memory");
	check_errno(rdma_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
				  LOCKED, 0), ENOMEM, "too much besides the old one");
	check(!ibv_reg_mr(e.a.pd, memory, LOCKED, 0) && errno == ENOMEM,
	      "both at once");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	for (int i = 0; i < 3; i++) {
		all = ibv_reg_mr(e.a.pd, memory, LOCKED, 0);
		check(all, "all of it: %s", strerror(errno));
		check_errno(ibv_dereg_mr(all), 0, "ibv_dereg_mr");
	}
	check_errno(ibv_dealloc_pd(e.a.pd), 0, "ibv_dealloc_pd");
	rdma_dev_close(&e.dev);
}

void ring_rights_cases(void)
{
	ktap_add("POLL_CQ", poll_cq, 0, 0, "rights.poll-cq");
	ktap_add("POST_SEND, POST_RECV, POST_SRQ_RECV", posts, 0, 0, "rights.posts");
	ktap_add("10.2.4, RDMA_NL_ADMIN_PERM", nobody, 0, 0, "rights.nobody");
	ktap_add("RLIMIT_MEMLOCK", locked_memory, 0, 0, "rights.locked-memory");
}
