// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Kernel verbs, as a kernel consumer calls them through the RDMA core: two queue
 * pairs, RC unless the case says UD, on link smw0, which has to be there and active.
 */
#include <smw/post.h>

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <net/ipv6.h>

#include <smw/cq.h>
#include <smw/link.h>

#include "verbs_env.h"

#define QKEY		0x11111111
#define GRH_LENGTH	40
#define MANY		700	/* some turns of a driver that looks at completions in turns */

static int post_send(struct kunit *test, struct verbs_end *end, u64 id, u32 length)
{
	struct ib_sge sge = verbs_sge(test, end, length);
	struct ib_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND_WITH_IMM, .send_flags = IB_SEND_SIGNALED,
		.ex.imm_data = cpu_to_be32(0x12345678),
	};

	return ib_post_send(end->qp, &wr, NULL);
}

/* One message from the first end to the second, in all its particulars. */
static void send_one(struct kunit *test, struct verbs_end *ends)
{
	struct ib_wc wc;

	verbs_fill(&ends[0], 1);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 7));
	KUNIT_ASSERT_EQ(test, 0, post_send(test, &ends[0], 3, MESSAGE_LENGTH));
	verbs_expect_done(test, &ends[0], 3, IB_WC_SEND);
	wc = verbs_expect_wc(test, &ends[1]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 7);
	KUNIT_EXPECT_EQ(test, wc.byte_len, MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0x12345678);
	KUNIT_EXPECT_EQ(test, wc.src_qp, ends[0].qp->qp_num);
	KUNIT_EXPECT_EQ(test, wc.port_num, SMW_PORT);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, ends[1].qp);
	verbs_expect_same(test, ends, MESSAGE_LENGTH);
}

static void verbs__send(struct kunit *test)
{
	send_one(test, verbs_ends_make(test));
}

static void verbs__send_by_packets(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	smw_link_of(world->device)->same_host = false;
	send_one(test, verbs_ends_make(test));
}

static void verbs__send_to_a_shared_queue(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	verbs_end_make(test, &world->ends[0], IB_QPT_RC, false);
	verbs_end_make(test, &world->ends[1], IB_QPT_RC, true);
	verbs_connect(test);
	KUNIT_EXPECT_NE(test, 0, ib_post_recv(world->ends[1].qp,
					      &(struct ib_recv_wr) {}, NULL));
	send_one(test, world->ends);
}

static void verbs__send_inline(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_sge sge[] = {
		{ .addr = (uintptr_t)ends[0].buffer, .length = 10 },
		{ .addr = (uintptr_t)ends[0].buffer + 10, .length = INLINE_LENGTH - 10 },
	};
	struct ib_send_wr wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
	};
	u32 room;

	verbs_fill(&ends[0], 9);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 1));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr, NULL));
	verbs_expect_done(test, &ends[0], 0, IB_WC_SEND);
	verbs_expect_done(test, &ends[1], 1, IB_WC_RECV);
	verbs_expect_same(test, ends, INLINE_LENGTH);

	room = smw_qp_of(ends[0].qp)->cap.max_inline_data;
	sge[1].length = room;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(ends[0].qp, &wr, NULL));
}

static void verbs__write_and_read(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);

	verbs_fill(&ends[0], 3);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_rdma(test, &ends[0], IB_WR_RDMA_WRITE,
						 &ends[1], MESSAGE_LENGTH));
	verbs_expect_done(test, &ends[0], 0, IB_WC_RDMA_WRITE);
	verbs_expect_same(test, ends, MESSAGE_LENGTH);
	verbs_fill(&ends[1], 4);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_rdma(test, &ends[0], IB_WR_RDMA_READ,
						 &ends[1], MESSAGE_LENGTH));
	verbs_expect_done(test, &ends[0], 0, IB_WC_RDMA_READ);
	verbs_expect_same(test, ends, MESSAGE_LENGTH);
}

static void verbs__global_key_grants_no_atomics(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_sge sge = verbs_sge(test, &ends[0], sizeof(u64));
	struct ib_atomic_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1, .send_flags = IB_SEND_SIGNALED,
			.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
		},
		.remote_addr = ends[1].dma,
		.compare_add = 5,
		.rkey = world->pd->unsafe_global_rkey,
	};
	struct ib_wc wc;

	/* The global rkey grants no atomics: the core asks for none. */
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr.wr, NULL));
	wc = verbs_expect_wc(test, &ends[0]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, *(u64 *)ends[1].buffer, 0);
}

/* A PD's key for local use opens nothing to a peer. */
static void verbs__local_key_is_local(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *ends;
	struct ib_wc wc;

	ib_dealloc_pd(world->pd);
	world->pd = ib_alloc_pd(world->device, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(world->pd));
	/* What verbs_post_rdma() takes. */
	world->pd->unsafe_global_rkey = world->pd->local_dma_lkey;
	ends = verbs_ends_make(test);
	KUNIT_EXPECT_EQ(test, 0, verbs_post_rdma(test, &ends[0], IB_WR_RDMA_WRITE, &ends[1], 8));
	wc = verbs_expect_wc(test, &ends[0]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_REM_ACCESS_ERR);
}

static u64 dropped(struct verbs_world *world)
{
	struct smw_link *link = smw_link_of(world->device);
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += per_cpu_ptr(link->counters, cpu)->value[SMW_COUNT_DROPPED];
	return total;
}

/* What the sender cannot read is no packet, and so none that the peer drops. */
static void verbs__other_domain(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	u64 before = dropped(world);
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_pd *pd = ib_alloc_pd(world->device, 0);
	struct ib_sge sge = verbs_sge(test, &ends[0], 8);
	struct ib_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND };
	struct ib_wc wc;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 0));
	sge.lkey = pd->local_dma_lkey;
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(ends[0].qp, &wr, NULL));
	wc = verbs_expect_wc(test, &ends[0]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, dropped(world), before);
	ib_dealloc_pd(pd);
}

static void verbs__interrupts_off(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_wc wc;
	unsigned long irqs;
	int received, sent, asked;

	verbs_fill(&ends[0], 5);
	local_irq_save(irqs);
	received = verbs_post_receive(test, &ends[1], 1);
	sent = post_send(test, &ends[0], 2, MESSAGE_LENGTH);
	/* Nothing is executed before interrupts are on again. */
	asked = ib_poll_cq(ends[0].cq, 1, &wc);
	ib_req_notify_cq(ends[0].cq, IB_CQ_SOLICITED);
	local_irq_restore(irqs);
	KUNIT_EXPECT_EQ(test, received, 0);
	KUNIT_EXPECT_EQ(test, sent, 0);
	KUNIT_EXPECT_EQ(test, asked, 0);
	verbs_expect_done(test, &ends[0], 2, IB_WC_SEND);
	verbs_expect_done(test, &ends[1], 1, IB_WC_RECV);
	verbs_expect_same(test, ends, MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, atomic_read(&ends[0].called), 0);
}

/**
 * struct hard_irq - work requests posted by a hard interrupt
 * @work: the interrupt
 * @test: the case
 * @err: what posting said
 * @polled: what polling found
 */
struct hard_irq {
	struct irq_work work;
	struct kunit *test;
	int err;
	int polled;
};

static void hard_irq_post(struct irq_work *work)
{
	struct hard_irq *irq = container_of(work, struct hard_irq, work);
	struct verbs_world *world = irq->test->priv;
	struct verbs_end *ends = world->ends;
	struct ib_wc wc;

	irq->err = verbs_post_receive(irq->test, &ends[1], 1) ?:
		   post_send(irq->test, &ends[0], 2, MESSAGE_LENGTH);
	irq->polled = ib_poll_cq(ends[1].cq, 1, &wc);
	ib_req_notify_cq(ends[1].cq, IB_CQ_NEXT_COMP);
}

static void verbs__hard_interrupt(struct kunit *test)
{
	struct hard_irq irq = {
		.work = IRQ_WORK_INIT_HARD(hard_irq_post), .test = test,
	};
	struct verbs_end *ends = verbs_ends_make(test);

	verbs_fill(&ends[0], 6);
	irq_work_queue(&irq.work);
	irq_work_sync(&irq.work);
	KUNIT_EXPECT_EQ(test, irq.err, 0);
	KUNIT_EXPECT_EQ(test, irq.polled, 0);
	verbs_expect_done(test, &ends[0], 2, IB_WC_SEND);
	verbs_expect_done(test, &ends[1], 1, IB_WC_RECV);
	verbs_expect_same(test, ends, MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, atomic_read(&ends[0].called), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ends[1].called), 1);
}

/* Echo what came, from the completion handler itself. */
static void echo(struct ib_cq *cq, void *context)
{
	struct kunit *test = context;
	struct verbs_world *world = test->priv;
	struct verbs_end *end = &world->ends[cq == world->ends[1].cq];
	struct ib_wc wc;

	if (atomic_inc_return(&end->running) != 1)
		end->overlapped = true;
	atomic_inc(&end->called);
	do {
		while (ib_poll_cq(cq, 1, &wc) > 0) {
			if (wc.opcode != IB_WC_RECV || !end->echo)
				continue;
			verbs_post_receive(test, end, 0);
			post_send(test, end, 0, 8);
			WRITE_ONCE(end->echo, end->echo - 1);
		}
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
	atomic_dec(&end->running);
}

static void verbs__handler_posts(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	unsigned long deadline = jiffies + DEADLINE;
	int i, k;

	for (i = 0; i < 2; i++) {
		ends[i].echo = 200;
		ends[i].cq->cq_context = test;
		ends[i].cq->comp_handler = echo;
		for (k = 0; k < 4; k++)
			KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[i], 0));
		ib_req_notify_cq(ends[i].cq, IB_CQ_NEXT_COMP);
	}
	for (k = 0; k < 3; k++)
		KUNIT_ASSERT_EQ(test, 0, post_send(test, &ends[0], 0, 8));
	while ((READ_ONCE(ends[0].echo) || READ_ONCE(ends[1].echo)) &&
	       time_before(jiffies, deadline))
		usleep_range(100, 500);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, READ_ONCE(ends[i].echo), 0);
		KUNIT_EXPECT_FALSE(test, ends[i].overlapped);
		KUNIT_EXPECT_GT(test, atomic_read(&ends[i].called), 0);
	}
	/* The handlers use what the ends have, and the rest of the messages comes. */
	for (i = 0; i < 2; i++) {
		ib_destroy_qp(ends[i].qp);
		ends[i].qp = NULL;
	}
}

/* A list is posted up to the first request for which there is no room. */
static void verbs__full_queue(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	u32 room = smw_qp_of(ends[0].qp)->cap.max_send_wr;
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr *wr;
	u32 i;

	wr = kunit_kcalloc(test, room + 2, sizeof(*wr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	for (i = 0; i < room + 2; i++) {
		wr[i].wr_id = i;
		wr[i].opcode = IB_WR_SEND;
		wr[i].send_flags = IB_SEND_SIGNALED;
		wr[i].next = i < room + 1 ? &wr[i + 1] : NULL;
	}
	/* Nobody receives, so nothing gets complete meanwhile. */
	KUNIT_EXPECT_EQ(test, -ENOMEM, ib_post_send(ends[0].qp, wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_send_wr *)&wr[room]);
	for (i = 0; i < room; i++) {
		KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], i));
		verbs_expect_done(test, &ends[0], i, IB_WC_SEND);
		verbs_expect_done(test, &ends[1], i, IB_WC_RECV);
	}
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(ends[0].cq, 1, &(struct ib_wc) {}));
}

/* RDS has a BUG_ON() for a pointer that was written though all was posted. */
static void verbs__success_names_no_request(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *ends = world->ends;
	const struct ib_send_wr *bad_send = NULL, send = { .opcode = IB_WR_SEND };
	const struct ib_recv_wr *bad_receive = NULL, receive = {};

	verbs_end_make(test, &ends[0], IB_QPT_RC, false);
	verbs_end_make(test, &ends[1], IB_QPT_RC, true);
	verbs_connect(test);
	KUNIT_EXPECT_EQ(test, 0, ib_post_recv(ends[0].qp, &receive, &bad_receive));
	KUNIT_EXPECT_EQ(test, 0, ib_post_srq_recv(ends[1].srq, &receive, &bad_receive));
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(ends[0].qp, &send, &bad_send));
	KUNIT_EXPECT_NULL(test, bad_receive);
	KUNIT_EXPECT_NULL(test, bad_send);
}

/* What the receiver asked for, what the message said, and how often its handler ran. */
static void verbs__notify(struct kunit *test)
{
	static const struct { int asked; int flags; int called; } rows[] = {
		{ 0, IB_SEND_SOLICITED, 0 },
		{ IB_CQ_SOLICITED, 0, 0 },
		/* Asked again: any completion covers a solicited one. */
		{ IB_CQ_NEXT_COMP, 0, 1 },
		{ IB_CQ_SOLICITED, IB_SEND_SOLICITED, 1 },
		/* SMC asks for both, by the mask of them. */
		{ IB_CQ_SOLICITED_MASK, 0, 1 },
		{ IB_CQ_SOLICITED_MASK, IB_SEND_SOLICITED, 1 },
	};
	struct verbs_end *ends = verbs_ends_make(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ib_send_wr wr = {
			.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED | rows[i].flags,
		};

		atomic_set(&ends[1].called, 0);
		KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], i));
		if (rows[i].asked)
			ib_req_notify_cq(ends[1].cq, rows[i].asked);
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr, NULL));
		verbs_expect_done(test, &ends[0], 0, IB_WC_SEND);
		verbs_expect_done(test, &ends[1], i, IB_WC_RECV);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&ends[1].called), rows[i].called,
				    "row %d", i);
	}
}

static void verbs__bad_requests(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_sge sge[3] = {};
	struct ib_send_wr send = { .sg_list = sge, .opcode = IB_WR_SEND };
	struct ib_recv_wr receive = { .sg_list = sge };

	send.num_sge = 3;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(ends[0].qp, &send, NULL));
	send.num_sge = -1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(ends[0].qp, &send, NULL));
	receive.num_sge = 3;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(ends[0].qp, &receive, NULL));
	receive.num_sge = -1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(ends[0].qp, &receive, NULL));
	send.num_sge = 0;
	send.opcode = IB_WR_RDMA_READ_WITH_INV;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_post_send(ends[0].qp, &send, NULL));
	send.opcode = IB_WR_BIND_MW;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_post_send(ends[0].qp, &send, NULL));
	/* None of them was posted, and none spoilt the queue. */
	send_one(test, ends);
}

static void verbs__states(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *end = &world->ends[0];

	verbs_end_make(test, end, IB_QPT_RC, false);
	KUNIT_EXPECT_EQ(test, -EINVAL, verbs_post_receive(test, end, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, post_send(test, end, 0, 8));
	verbs_to_init(test, end->qp);
	KUNIT_EXPECT_EQ(test, 0, verbs_post_receive(test, end, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, post_send(test, end, 0, 8));
	verbs_to_rtr(test, end->qp, end->qp->qp_num);
	KUNIT_EXPECT_EQ(test, -EINVAL, post_send(test, end, 0, 8));
	verbs_to_rts(test, end->qp);
	KUNIT_EXPECT_EQ(test, 0, post_send(test, end, 1, 8));
	/* To itself: both completions are in the one queue, the receive's first. */
	verbs_expect_done(test, end, 0, IB_WC_RECV);
	verbs_expect_done(test, end, 1, IB_WC_SEND);
}

/* What is posted in ERR is flushed; the core's drain helpers count on it. */
static void verbs__flush(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct verbs_end *ends = verbs_ends_make(test);
	u64 i;

	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[0], 0));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(ends[0].qp, &attr, IB_QP_STATE));
	for (i = 0; i < 3; i++) {
		struct ib_wc wc = verbs_expect_wc(test, &ends[0]);

		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, wc.wr_id, i);
		if (i == 0)
			KUNIT_EXPECT_EQ(test, 0, verbs_post_receive(test, &ends[0], 1));
		if (i == 1)
			KUNIT_EXPECT_EQ(test, 0, post_send(test, &ends[0], 2, 8));
	}
}

static void note_state(struct ib_cq *cq, void *context)
{
	struct verbs_end *end = context;

	end->seen = smw_qp_state(smw_qp_of(end->qp));
	atomic_inc(&end->called);
}

/* The next completion's handler is to look which state it finds. */
static void note_next_state(struct verbs_end *end)
{
	end->cq->comp_handler = note_state;
	ib_req_notify_cq(end->cq, IB_CQ_NEXT_COMP);
}

/* Who sees an error's completion finds the state that the error leads to. */
static void expect_error(struct kunit *test, struct verbs_end *end, enum ib_wc_status status,
			 enum ib_qp_state state)
{
	unsigned long deadline = jiffies + DEADLINE;
	struct ib_wc wc = verbs_expect_wc(test, end);

	KUNIT_EXPECT_EQ(test, wc.status, status);
	while (!atomic_read(&end->called) && time_before(jiffies, deadline))
		usleep_range(50, 200);
	KUNIT_EXPECT_EQ(test, atomic_read(&end->called), 1);
	KUNIT_EXPECT_EQ(test, end->seen, state);
}

/* A message too long for its receive is an error on both sides. */
static void too_long(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_sge sge = verbs_sge(test, &ends[1], 8);
	struct ib_recv_wr receive = { .sg_list = &sge, .num_sge = 1 };

	note_next_state(&ends[0]);
	note_next_state(&ends[1]);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(ends[1].qp, &receive, NULL));
	KUNIT_ASSERT_EQ(test, 0, post_send(test, &ends[0], 0, MESSAGE_LENGTH));
	expect_error(test, &ends[0], IB_WC_REM_INV_REQ_ERR, IB_QPS_ERR);
	expect_error(test, &ends[1], IB_WC_LOC_LEN_ERR, IB_QPS_ERR);
}

static void verbs__error_after_state(struct kunit *test)
{
	too_long(test);
}

static void verbs__error_after_state_by_packets(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	smw_link_of(world->device)->same_host = false;
	too_long(test);
}

/* Completions of a queue pair that is gone are not polled any more. */
static void verbs__destroy_forgets(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, verbs_post_rdma(test, &ends[0], IB_WR_RDMA_WRITE, &ends[1], 8));
	KUNIT_ASSERT_EQ(test, 0, verbs_post_rdma(test, &ends[0], IB_WR_RDMA_WRITE, &ends[1], 8));
	verbs_expect_done(test, &ends[0], 0, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(ends[0].qp));
	ends[0].qp = NULL;
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(ends[0].cq, 1, &wc));
}

/* A queue pair with MANY receives in a completion queue of others' too, flushed. */
static struct ib_qp *flushed_qp(struct kunit *test, struct ib_cq *cq)
{
	struct verbs_world *world = test->priv;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = MANY },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_qp *qp = ib_create_qp(world->pd, &init);
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	verbs_to_init(test, qp);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(qp, &(struct ib_recv_wr) { .wr_id = i },
						      NULL));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, IB_QP_STATE));
	return qp;
}

/* Completions that wait in a queue, once there are so many. */
static void await_completions(struct kunit *test, struct ib_cq *cq, int count)
{
	unsigned long deadline = jiffies + DEADLINE;
	const struct smw_ring *ring = &smw_cq_of(cq)->ring;

	while (((READ_ONCE(ring->index) - smw_ring_user_consumer(ring)) & ring->mask) < count &&
	       time_before(jiffies, deadline))
		usleep_range(100, 500);
}

/* More than are looked at in one go: of the first one none is left, of the other one all. */
static void verbs__destroy_forgets_many(struct kunit *test)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 2 * MANY };
	struct verbs_world *world = test->priv;
	struct ib_qp *first, *second;
	struct ib_wc *wc;
	struct ib_cq *cq;
	int i;

	wc = kunit_kcalloc(test, 2 * MANY, sizeof(*wc), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wc);
	cq = ib_create_cq(world->device, NULL, NULL, NULL, &cq_attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	first = flushed_qp(test, cq);
	await_completions(test, cq, MANY);
	second = flushed_qp(test, cq);
	await_completions(test, cq, 2 * MANY);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(first));
	KUNIT_EXPECT_EQ(test, MANY, ib_poll_cq(cq, 2 * MANY, wc));
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_PTR_EQ(test, wc[i].qp, second);
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, i);
	}
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(cq, 1, wc));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(second));
	ib_destroy_cq(cq);
}

/* Each step of a datagram queue pair to RTS, or back to it from SQE. */
static void datagram_to(struct kunit *test, struct ib_qp *qp, enum ib_qp_state state,
			int mask)
{
	struct ib_qp_attr attr = {
		.qp_state = state, .cur_qp_state = IB_QPS_SQE,
		.port_num = SMW_PORT, .qkey = QKEY,
	};

	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, IB_QP_STATE | mask));
}

static struct verbs_end *datagram_ends_make(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	int i;

	for (i = 0; i < 2; i++) {
		verbs_end_make(test, &world->ends[i], IB_QPT_UD, false);
		datagram_to(test, world->ends[i].qp, IB_QPS_INIT,
			    IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_QKEY);
		datagram_to(test, world->ends[i].qp, IB_QPS_RTR, 0);
		datagram_to(test, world->ends[i].qp, IB_QPS_RTS, IB_QP_SQ_PSN);
	}
	return world->ends;
}

static struct ib_ah *ah_create(struct verbs_world *world, u32 flags)
{
	struct rdma_ah_attr attr = {
		.type = RDMA_AH_ATTR_TYPE_ROCE,
		.port_num = SMW_PORT,
		.ah_flags = IB_AH_GRH,
	};

	rdma_ah_set_grh(&attr, &world->gid, 0, world->gid_index, 1, 0);
	return rdma_create_ah(world->pd, &attr, flags);
}

static struct ib_ah *ah_make(struct kunit *test)
{
	struct ib_ah *ah = ah_create(test->priv, RDMA_CREATE_AH_SLEEPABLE);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	return ah;
}

static int post_datagram(struct kunit *test, const struct verbs_end *ends,
			 enum ib_wr_opcode opcode, struct ib_ah *ah)
{
	struct ib_sge sge = verbs_sge(test, &ends[0], INLINE_LENGTH);
	struct ib_ud_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.ah = ah,
		.remote_qpn = ends[1].qp->qp_num,
		.remote_qkey = QKEY,
	};

	return ib_post_send(ends[0].qp, &wr.wr, NULL);
}

static void send_datagram(struct kunit *test, struct verbs_end *ends, struct ib_ah *ah)
{
	struct ib_wc wc;

	verbs_fill(&ends[0], 8);
	KUNIT_EXPECT_EQ(test, 0, verbs_post_receive(test, &ends[1], 4));
	KUNIT_EXPECT_EQ(test, 0, post_datagram(test, ends, IB_WR_SEND, ah));
	verbs_expect_done(test, &ends[0], 0, IB_WC_SEND);
	wc = verbs_expect_wc(test, &ends[1]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_GRH);
	KUNIT_EXPECT_EQ(test, wc.byte_len, GRH_LENGTH + INLINE_LENGTH);
	KUNIT_EXPECT_EQ(test, wc.src_qp, ends[0].qp->qp_num);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer, ends[1].buffer + GRH_LENGTH,
			   INLINE_LENGTH);
}

static void verbs__datagram(struct kunit *test)
{
	struct verbs_end *ends = datagram_ends_make(test);
	struct verbs_world *world = test->priv;
	struct ib_ah *ah = ah_make(test);
	int version;

	send_datagram(test, ends, ah);
	/* From these bytes the core learns where a management datagram is from. */
	version = ib_get_rdma_header_version((union rdma_network_hdr *)ends[1].buffer);
	KUNIT_EXPECT_EQ(test, version, ipv6_addr_v4mapped((void *)&world->gid) ? 4 : 6);
	KUNIT_EXPECT_EQ(test, -EINVAL, post_datagram(test, ends, IB_WR_SEND, NULL));
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

/* What fails takes the send queue to SQE, where posts are flushed, and no further. */
static void verbs__datagram_error(struct kunit *test)
{
	struct verbs_end *ends = datagram_ends_make(test);
	struct ib_ah *ah = ah_make(test);
	struct ib_wc wc;

	note_next_state(&ends[0]);
	KUNIT_EXPECT_EQ(test, 0, post_datagram(test, ends, IB_WR_RDMA_WRITE, ah));
	expect_error(test, &ends[0], IB_WC_LOC_QP_OP_ERR, IB_QPS_SQE);
	KUNIT_EXPECT_EQ(test, 0, post_datagram(test, ends, IB_WR_SEND, ah));
	wc = verbs_expect_wc(test, &ends[0]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_WR_FLUSH_ERR);
	datagram_to(test, ends[0].qp, IB_QPS_RTS, IB_QP_CUR_STATE);
	send_datagram(test, ends, ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static void hard_irq_handle(struct irq_work *work)
{
	struct hard_irq *irq = container_of(work, struct hard_irq, work);
	struct ib_ah *ah = ah_create(irq->test->priv, 0);

	irq->err = PTR_ERR_OR_ZERO(ah);
	if (!irq->err)
		rdma_destroy_ah(ah, 0);
}

/* Handles come and go in any context; destroy waits for nobody. */
static void verbs__handle_in_hard_interrupt(struct kunit *test)
{
	struct hard_irq irq = {
		.work = IRQ_WORK_INIT_HARD(hard_irq_handle), .test = test,
	};

	irq_work_queue(&irq.work);
	irq_work_sync(&irq.work);
	KUNIT_EXPECT_EQ(test, irq.err, 0);
}

static void add_of_users(struct smw_link *link, int more)
{
	unsigned int i;

	for (i = 0; i < SMW_OBJECTS; i++)
		atomic_add(more, &link->objects[0][i]);
}

static void make_of_each(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct ib_mr *mr = ib_alloc_mr(world->pd, IB_MR_TYPE_MEM_REG, 1);
	struct ib_pd *pd = ib_alloc_pd(world->device, IB_PD_UNSAFE_GLOBAL_RKEY);

	KUNIT_EXPECT_FALSE(test, IS_ERR(pd));
	KUNIT_EXPECT_FALSE(test, IS_ERR(mr));
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
	if (!IS_ERR(mr))
		ib_dereg_mr(mr);
	datagram_ends_make(test);
	rdma_destroy_ah(ah_make(test), RDMA_DESTROY_AH_SLEEPABLE);
	verbs_ends_free(test);
	verbs_end_make(test, &world->ends[0], IB_QPT_RC, true);
	verbs_ends_free(test);
}

/* However many objects users have made, the kernel can make its own, and takes no place. */
static void verbs__kernel_objects(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct smw_link *link = smw_link_of(world->device);
	atomic_t *users = &link->objects[0][SMW_OBJECT_AH];
	int before = atomic_read(users);

	add_of_users(link, SMW_MAX_MR);
	make_of_each(test);
	KUNIT_EXPECT_EQ(test, atomic_read(users), before + SMW_MAX_MR);
	KUNIT_EXPECT_EQ(test, smw_link_claim(link, SMW_OBJECT_AH, false, before + SMW_MAX_MR),
			-ENOMEM);
	add_of_users(link, -SMW_MAX_MR);
}

/* The link has one queue pair 1, and the core's MAD layer has it. */
static void verbs__one_management_qp(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *end = datagram_ends_make(test);
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_GSI, .send_cq = end->cq, .recv_cq = end->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 }, .port_num = SMW_PORT,
	};
	struct smw_link *link = smw_link_of(world->device);
	struct smw_qp *gsi = link->gsi;

	KUNIT_ASSERT_NOT_NULL(test, gsi);
	KUNIT_EXPECT_EQ(test, gsi->ibqp.qp_num, SMW_GSI_QPN);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_create_qp(world->pd, &attr)), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, link->gsi, gsi);
}

static struct kunit_case verbs_cases[] = {
	KUNIT_CASE(verbs__send),
	KUNIT_CASE(verbs__send_by_packets),
	KUNIT_CASE(verbs__send_to_a_shared_queue),
	KUNIT_CASE(verbs__send_inline),
	KUNIT_CASE(verbs__write_and_read),
	KUNIT_CASE(verbs__global_key_grants_no_atomics),
	KUNIT_CASE(verbs__local_key_is_local),
	KUNIT_CASE(verbs__other_domain),
	KUNIT_CASE(verbs__interrupts_off),
	KUNIT_CASE(verbs__hard_interrupt),
	KUNIT_CASE(verbs__handler_posts),
	KUNIT_CASE(verbs__full_queue),
	KUNIT_CASE(verbs__success_names_no_request),
	KUNIT_CASE(verbs__notify),
	KUNIT_CASE(verbs__bad_requests),
	KUNIT_CASE(verbs__states),
	KUNIT_CASE(verbs__flush),
	KUNIT_CASE(verbs__error_after_state),
	KUNIT_CASE(verbs__error_after_state_by_packets),
	KUNIT_CASE(verbs__destroy_forgets),
	KUNIT_CASE(verbs__destroy_forgets_many),
	KUNIT_CASE(verbs__datagram),
	KUNIT_CASE(verbs__datagram_error),
	KUNIT_CASE(verbs__handle_in_hard_interrupt),
	KUNIT_CASE(verbs__kernel_objects),
	KUNIT_CASE(verbs__one_management_qp),
	{}
};

static struct kunit_suite verbs_suite = {
	.name = "smw_verbs",
	.init = verbs_world_init,
	.exit = verbs_world_exit,
	.test_cases = verbs_cases,
};

kunit_test_suite(verbs_suite);
