// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A region for fast registration is made, taken back and made of other memory, again and
 * again, while a peer writes by its keys, old and new. Over UC, where a refused write ends
 * no connection.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include <smw/link.h>

#include "verbs_env.h"

#define PLACE_LENGTH	SZ_8K
#define WRITE_LENGTH	7000	/* some packets */
#define ROUNDS		400
/* Nothing may come any more: this long is looked on. */
#define LOOK_US		100

/**
 * struct writer - the peer, in a thread of its own
 * @test: the case
 * @end: its queue pair
 * @va: where it writes; changes with the memory
 * @key: the newest key; it uses the one before now and then
 * @written: requests that were carried out, or dropped
 */
struct writer {
	struct kunit *test;
	struct verbs_end *end;
	u64 va;
	u32 key;
	unsigned long written;
};

/* Each write brings other bytes, so that a late one is seen. */
static void write_once(struct writer *writer)
{
	struct ib_sge sge = verbs_sge(writer->test, writer->end, WRITE_LENGTH);
	struct ib_rdma_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = READ_ONCE(writer->va),
		.rkey = READ_ONCE(writer->key) - (writer->written % 5 == 0),
	};
	struct ib_wc wc;

	memset(writer->end->buffer, 1 + writer->written % 255, WRITE_LENGTH);
	if (ib_post_send(writer->end->qp, &wr.wr, NULL))
		return;
	while (!ib_poll_cq(writer->end->cq, 1, &wc) && !kthread_should_stop())
		cond_resched();
	writer->written++;
}

static int write_on(void *data)
{
	struct writer *writer = data;

	while (!kthread_should_stop()) {
		write_once(writer);
		cond_resched();
	}
	return 0;
}

/* No assertion ends the case while the other thread runs. */
static bool do_local(struct verbs_end *end, struct ib_reg_wr *wr, enum ib_wr_opcode opcode)
{
	unsigned long deadline = jiffies + DEADLINE;
	struct ib_wc wc = { .status = IB_WC_GENERAL_ERR };

	wr->wr.opcode = opcode;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	if (ib_post_send(end->qp, &wr->wr, NULL))
		return false;
	while (!ib_poll_cq(end->cq, 1, &wc) && time_before(jiffies, deadline))
		cond_resched();
	return wc.status == IB_WC_SUCCESS;
}

static bool is_written(const u8 *place)
{
	return READ_ONCE(place[0]) || READ_ONCE(place[WRITE_LENGTH - 1]);
}

/* The memory is the peer's until the invalidation is complete, and then nobody's. */
static bool lend(struct kunit *test, struct writer *writer, struct ib_mr *mr, u8 *place,
		 u8 *copy)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *owner = &world->ends[1];
	unsigned long deadline = jiffies + DEADLINE / 100;
	struct ib_reg_wr wr = {
		.mr = mr, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	struct scatterlist sg;
	bool written;

	memset(place, 0, PLACE_LENGTH);
	sg_init_one(&sg, place, PLACE_LENGTH);
	ib_dma_map_sg(world->device, &sg, 1, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, 1, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE));
	ib_update_fast_reg_key(mr, mr->rkey + 1);
	wr.key = mr->rkey;
	WRITE_ONCE(writer->va, mr->iova);
	WRITE_ONCE(writer->key, mr->rkey);
	KUNIT_EXPECT_TRUE(test, do_local(owner, &wr, IB_WR_REG_MR));
	while (!is_written(place) && time_before(jiffies, deadline))
		cond_resched();
	written = is_written(place);
	udelay(get_random_u32_below(LOOK_US));
	wr.wr.ex.invalidate_rkey = mr->rkey;
	KUNIT_EXPECT_TRUE(test, do_local(owner, &wr, IB_WR_LOCAL_INV));
	memcpy(copy, place, PLACE_LENGTH);
	udelay(LOOK_US);
	cond_resched();
	KUNIT_EXPECT_MEMEQ(test, copy, place, PLACE_LENGTH);
	return written;
}

static void lend_again(struct kunit *test, struct writer *writer)
{
	struct verbs_world *world = test->priv;
	struct task_struct *thread;
	u8 *places, *copy;
	struct ib_mr *mr;
	int i, used = 0;

	places = kunit_kzalloc(test, 2 * PLACE_LENGTH, GFP_KERNEL);
	copy = kunit_kzalloc(test, PLACE_LENGTH, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, places);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	mr = ib_alloc_mr(world->pd, IB_MR_TYPE_MEM_REG, PLACE_LENGTH / PAGE_SIZE + 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	thread = kthread_run(write_on, writer, "smw_kunit_writer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	for (i = 0; i < ROUNDS && test->status != KUNIT_FAILURE; i++)
		used += lend(test, writer, mr, places + i % 2 * PLACE_LENGTH, copy);
	kthread_stop(thread);
	kunit_info(test, "%d of %d loans used, %lu writes", used, ROUNDS, writer->written);
	KUNIT_EXPECT_GT(test, used, ROUNDS / 10);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
}

static void fast_reg_race__direct(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct writer writer = { .test = test, .end = &world->ends[0] };

	verbs_end_make(test, &world->ends[0], IB_QPT_UC, false);
	verbs_end_make(test, &world->ends[1], IB_QPT_UC, false);
	verbs_connect(test);
	lend_again(test, &writer);
}

static void fast_reg_race__by_packets(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	smw_link_of(world->device)->same_host = false;
	fast_reg_race__direct(test);
}

static struct kunit_case fast_reg_race_cases[] = {
	KUNIT_CASE_SLOW(fast_reg_race__direct),
	KUNIT_CASE_SLOW(fast_reg_race__by_packets),
	{}
};

static struct kunit_suite fast_reg_race_suite = {
	.name = "smw_fast_reg_race",
	.init = verbs_world_init,
	.exit = verbs_world_exit,
	.test_cases = fast_reg_race_cases,
};

kunit_test_suite(fast_reg_race_suite);
