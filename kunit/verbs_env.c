// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs_env.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#define LINK_NAME "smw0"

static bool find_gid(struct verbs_world *world)
{
	const struct ib_gid_attr *attr;
	bool found = false;
	int i;

	for (i = 0; i < 16 && !found; i++) {
		attr = rdma_get_gid_attr(world->device, SMW_PORT, i);
		if (IS_ERR(attr))
			continue;
		found = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP;
		world->gid_index = i;
		world->gid = attr->gid;
		rdma_put_gid_attr(attr);
	}
	return found;
}

static void count_call(struct ib_cq *cq, void *context)
{
	struct verbs_end *end = context;

	atomic_inc(&end->called);
}

void verbs_end_make(struct kunit *test, struct verbs_end *end, enum ib_qp_type type,
		    bool shared)
{
	struct ib_cq_init_attr cq_attr = { .cqe = CQ_DEPTH };
	struct ib_srq_init_attr srq_attr = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = DEPTH, .max_sge = 2 },
	};
	struct verbs_world *world = test->priv;
	struct ib_qp_init_attr attr = {
		.qp_type = type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = DEPTH, .max_send_sge = 2,
			.max_recv_wr = DEPTH, .max_recv_sge = 2,
			.max_inline_data = INLINE_LENGTH,
		},
	};

	end->buffer = kunit_kzalloc(test, BUFFER_LENGTH, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end->buffer);
	end->dma = ib_dma_map_single(world->device, end->buffer, BUFFER_LENGTH,
				     DMA_BIDIRECTIONAL);
	end->cq = ib_create_cq(world->device, count_call, NULL, end, &cq_attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->cq));
	if (shared) {
		end->srq = ib_create_srq(world->pd, &srq_attr);
		KUNIT_ASSERT_FALSE(test, IS_ERR(end->srq));
	}
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	attr.srq = end->srq;
	end->qp = ib_create_qp(world->pd, &attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->qp));
}

static void end_free(struct verbs_end *end)
{
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->srq))
		ib_destroy_srq(end->srq);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_destroy_cq(end->cq);
	end->qp = NULL;
	end->srq = NULL;
	end->cq = NULL;
}

void verbs_ends_free(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	end_free(&world->ends[0]);
	end_free(&world->ends[1]);
}

void verbs_to_init(struct kunit *test, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = SMW_PORT,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	KUNIT_ASSERT_EQ(test, 0,
			ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT |
				     IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS));
}

void verbs_to_rtr(struct kunit *test, struct ib_qp *qp, u32 peer)
{
	struct verbs_world *world = test->priv;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = 0xfffffe,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {
			.type = RDMA_AH_ATTR_TYPE_ROCE,
			.port_num = SMW_PORT,
			.ah_flags = IB_AH_GRH,
		},
	};

	int mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;

	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	rdma_ah_set_grh(&attr.ah_attr, &world->gid, 0, world->gid_index, 1, 0);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, mask));
}

void verbs_to_rts(struct kunit *test, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = 0xfffffe,
		.max_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, mask));
}

void verbs_connect(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	int i;

	for (i = 0; i < 2; i++)
		verbs_to_init(test, world->ends[i].qp);
	for (i = 0; i < 2; i++)
		verbs_to_rtr(test, world->ends[i].qp, world->ends[!i].qp->qp_num);
	for (i = 0; i < 2; i++)
		verbs_to_rts(test, world->ends[i].qp);
}

int verbs_world_init(struct kunit *test)
{
	struct verbs_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, world);
	test->priv = world;
	world->device = ib_device_get_by_name(LINK_NAME, RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_NOT_NULL_MSG(test, world->device, "no link " LINK_NAME);
	KUNIT_ASSERT_TRUE(test, find_gid(world));
	world->pd = ib_alloc_pd(world->device, IB_PD_UNSAFE_GLOBAL_RKEY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(world->pd));
	return 0;
}

void verbs_world_exit(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	if (!world || !world->device)
		return;
	smw_link_of(world->device)->same_host = true;
	verbs_ends_free(test);
	if (!IS_ERR_OR_NULL(world->pd))
		ib_dealloc_pd(world->pd);
	ib_device_put(world->device);
}

/* The usual ends, for all cases that need no others. */
struct verbs_end *verbs_ends_make(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	verbs_end_make(test, &world->ends[0], IB_QPT_RC, false);
	verbs_end_make(test, &world->ends[1], IB_QPT_RC, false);
	verbs_connect(test);
	return world->ends;
}

struct ib_sge verbs_sge(struct kunit *test, const struct verbs_end *end, u32 length)
{
	struct verbs_world *world = test->priv;

	return (struct ib_sge) {
		.addr = end->dma, .length = length, .lkey = world->pd->local_dma_lkey,
	};
}

int verbs_post_receive(struct kunit *test, struct verbs_end *end, u64 id)
{
	struct ib_sge sge = verbs_sge(test, end, BUFFER_LENGTH);
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	if (end->srq)
		return ib_post_srq_recv(end->srq, &wr, NULL);
	return ib_post_recv(end->qp, &wr, NULL);
}

int verbs_post_rdma(struct kunit *test, struct verbs_end *end, enum ib_wr_opcode opcode,
		    const struct verbs_end *peer, u32 length)
{
	struct verbs_world *world = test->priv;
	struct ib_sge sge = verbs_sge(test, end, length);
	struct ib_rdma_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1,
			.opcode = opcode, .send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = peer->dma,
		.rkey = world->pd->unsafe_global_rkey,
	};

	return ib_post_send(end->qp, &wr.wr, NULL);
}

/* Poll one completion, with a deadline. */
struct ib_wc verbs_expect_wc(struct kunit *test, struct verbs_end *end)
{
	unsigned long deadline = jiffies + DEADLINE;
	struct ib_wc wc = {};
	int polled;

	while (!(polled = ib_poll_cq(end->cq, 1, &wc)) && time_before(jiffies, deadline))
		usleep_range(50, 200);
	KUNIT_ASSERT_EQ_MSG(test, polled, 1, "no completion");
	return wc;
}

void verbs_expect_done(struct kunit *test, struct verbs_end *end, u64 id,
		       enum ib_wc_opcode opcode)
{
	struct ib_wc wc = verbs_expect_wc(test, end);

	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, opcode);
	KUNIT_EXPECT_EQ(test, wc.wr_id, id);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, end->qp);
}

void verbs_fill(struct verbs_end *end, u8 seed)
{
	u32 i;

	for (i = 0; i < BUFFER_LENGTH; i++)
		end->buffer[i] = seed + i % 251;
}

void verbs_expect_same(struct kunit *test, const struct verbs_end *ends, u32 length)
{
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer, ends[1].buffer, length);
}
