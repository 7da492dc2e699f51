// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast registration: regions of kernel memory that work requests make and unmake.
 */
#include <kunit/test.h>
#include <linux/scatterlist.h>

#include <smw/mr.h>

#include "verbs_env.h"

#define FAST_PAGES	4
#define FAST_OFFSET	100
#define FAST_LENGTH	9001
#define FAST_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)
/* Elsewhere in the buffer, and in its page. */
#define NEXT_OFFSET	(PAGE_SIZE + 2000)

/* Map it to FAST_LENGTH bytes of an end's buffer. */
static void fast_map(struct kunit *test, struct ib_mr *mr, struct verbs_end *end, u32 offset)
{
	struct verbs_world *world = test->priv;
	struct scatterlist sg;

	sg_init_one(&sg, end->buffer + offset, FAST_LENGTH);
	KUNIT_ASSERT_EQ(test, 1, ib_dma_map_sg(world->device, &sg, 1, DMA_BIDIRECTIONAL));
	KUNIT_ASSERT_EQ(test, 1, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, mr->length, FAST_LENGTH);
}

/* A region for fast registration, mapped to most of an end's buffer. */
static struct ib_mr *fast_make(struct kunit *test, struct verbs_end *end)
{
	struct verbs_world *world = test->priv;
	struct ib_mr *mr = ib_alloc_mr(world->pd, IB_MR_TYPE_MEM_REG, FAST_PAGES);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	fast_map(test, mr, end, FAST_OFFSET);
	return mr;
}

static int post_reg(struct verbs_end *end, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return ib_post_send(end->qp, &wr.wr, NULL);
}

static int post_local(struct verbs_end *end, enum ib_wr_opcode opcode, struct ib_mr *mr)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = mr->rkey,
	};

	if (opcode == IB_WR_REG_MR)
		return post_reg(end, mr, FAST_ACCESS);
	return ib_post_send(end->qp, &wr, NULL);
}

static void do_local(struct kunit *test, struct verbs_end *end, enum ib_wr_opcode opcode,
		     struct ib_mr *mr)
{
	KUNIT_ASSERT_EQ(test, 0, post_local(end, opcode, mr));
	verbs_expect_done(test, end, 0, opcode == IB_WR_REG_MR ? IB_WC_REG_MR : IB_WC_LOCAL_INV);
}

/* A WRITE from the first end's buffer by the region's key. */
static enum ib_wc_status write_fast(struct kunit *test, struct verbs_end *ends, u64 va,
				    u32 rkey)
{
	struct ib_sge sge = verbs_sge(test, &ends[0], MESSAGE_LENGTH);
	struct ib_rdma_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = va,
		.rkey = rkey,
	};

	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr.wr, NULL));
	return verbs_expect_wc(test, &ends[0]).status;
}

static void fast_reg__by_key(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);
	u32 old_key;

	verbs_fill(&ends[0], 2);
	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer, ends[1].buffer + FAST_OFFSET,
			   MESSAGE_LENGTH);
	/* Again, by another key and to the last byte. */
	do_local(test, &ends[1], IB_WR_LOCAL_INV, mr);
	old_key = mr->rkey;
	ib_update_fast_reg_key(mr, old_key + 1);
	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	verbs_fill(&ends[0], 7);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova + FAST_LENGTH - MESSAGE_LENGTH,
					 mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer,
			   ends[1].buffer + FAST_OFFSET + FAST_LENGTH - MESSAGE_LENGTH,
			   MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, old_key), IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

static void fast_reg__ends(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);

	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	do_local(test, &ends[1], IB_WR_LOCAL_INV, mr);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, mr->rkey), IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

/*
 * As storage stacks do: map what comes next while the region is registered, then post
 * the invalidate and the registration together. Until then the old pages count.
 */
static void fast_reg__mapped_in_use(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);
	u64 old_iova = mr->iova;
	u32 old_key = mr->rkey;

	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	fast_map(test, mr, &ends[1], NEXT_OFFSET);
	verbs_fill(&ends[0], 3);
	memset(ends[1].buffer, 0, BUFFER_LENGTH);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, old_iova, old_key), IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer, ends[1].buffer + FAST_OFFSET,
			   MESSAGE_LENGTH);
	KUNIT_ASSERT_EQ(test, 0, post_local(&ends[1], IB_WR_LOCAL_INV, mr));
	ib_update_fast_reg_key(mr, old_key + 1);
	KUNIT_ASSERT_EQ(test, 0, post_local(&ends[1], IB_WR_REG_MR, mr));
	verbs_expect_done(test, &ends[1], 0, IB_WC_LOCAL_INV);
	verbs_expect_done(test, &ends[1], 0, IB_WC_REG_MR);
	memset(ends[1].buffer, 0, BUFFER_LENGTH);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer, ends[1].buffer + NEXT_OFFSET,
			   MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, old_iova, old_key), IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

/* A message of the first end's, whose invalidate the second end executes. */
static void send_invalidate(struct kunit *test, struct verbs_end *ends, u32 rkey)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 1));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr, NULL));
	verbs_expect_done(test, &ends[0], 0, IB_WC_SEND);
	wc = verbs_expect_wc(test, &ends[1]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, rkey);
}

/* A peer may have invalidated what its owner is about to, or the reverse: no harm is done. */
static void fast_reg__invalid_already(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);

	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	send_invalidate(test, ends, mr->rkey);
	do_local(test, &ends[1], IB_WR_LOCAL_INV, mr);
	send_invalidate(test, ends, mr->rkey);
	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	verbs_fill(&ends[0], 4);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, mr->rkey), IB_WC_SUCCESS);
	ib_dereg_mr(mr);
}

static void fast_reg__range(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);

	do_local(test, &ends[1], IB_WR_REG_MR, mr);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends,
					 mr->iova + FAST_LENGTH - MESSAGE_LENGTH + 1,
					 mr->rkey), IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

/* It costs the queue pair its connection. */
static void expect_refused(struct kunit *test, struct ib_mr *mr, int access)
{
	struct verbs_end *ends = verbs_ends_make(test);

	KUNIT_EXPECT_EQ(test, 0, post_reg(&ends[0], mr, access));
	KUNIT_EXPECT_EQ(test, verbs_expect_wc(test, &ends[0]).status, IB_WC_MW_BIND_ERR);
	verbs_ends_free(test);
}

/* What a region says it is before it is registered must be so. */
static void fast_reg__refused(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *empty = ib_alloc_mr(world->pd, IB_MR_TYPE_MEM_REG, FAST_PAGES);
	struct ib_mr *moved = fast_make(test, &ends[1]);

	KUNIT_ASSERT_FALSE(test, IS_ERR(empty));
	verbs_ends_free(test);
	expect_refused(test, empty, FAST_ACCESS);
	expect_refused(test, moved, FAST_ACCESS | IB_ACCESS_MW_BIND);
	expect_refused(test, moved, FAST_ACCESS | IB_ZERO_BASED);
	/* So far into its first page that its pages do not suffice. */
	moved->iova |= PAGE_SIZE - 1;
	moved->length = FAST_PAGES * PAGE_SIZE;
	expect_refused(test, moved, FAST_ACCESS);
	ib_dereg_mr(moved);
	ib_dereg_mr(empty);
}

static void fast_reg__other_domain(struct kunit *test)
{
	struct verbs_world *world = test->priv;
	struct ib_pd *other = ib_alloc_pd(world->device, 0);
	struct ib_mr *mr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	mr = ib_alloc_mr(other, IB_MR_TYPE_MEM_REG, FAST_PAGES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	fast_map(test, mr, &verbs_ends_make(test)[1], FAST_OFFSET);
	verbs_ends_free(test);
	expect_refused(test, mr, FAST_ACCESS);
	ib_dereg_mr(mr);
	ib_dealloc_pd(other);
}

static void fast_reg__once(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[1]);
	struct ib_wc wc;

	do_local(test, &ends[0], IB_WR_REG_MR, mr);
	KUNIT_EXPECT_EQ(test, 0, post_local(&ends[0], IB_WR_REG_MR, mr));
	wc = verbs_expect_wc(test, &ends[0]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_MW_BIND_ERR);
	ib_dereg_mr(mr);
}

/* The peer invalidates the very region that its message comes from. */
static void fast_reg__remote_invalidate(struct kunit *test)
{
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *mr = fast_make(test, &ends[0]);
	struct ib_sge sge = { .addr = mr->iova, .length = MESSAGE_LENGTH, .lkey = mr->lkey };
	struct ib_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED, .ex.invalidate_rkey = mr->rkey,
	};
	struct ib_wc wc;

	verbs_fill(&ends[0], 6);
	do_local(test, &ends[0], IB_WR_REG_MR, mr);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 1));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[0].qp, &wr, NULL));
	verbs_expect_done(test, &ends[0], 0, IB_WC_SEND);
	wc = verbs_expect_wc(test, &ends[1]);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, mr->rkey);
	KUNIT_EXPECT_MEMEQ(test, ends[0].buffer + FAST_OFFSET, ends[1].buffer,
			   MESSAGE_LENGTH);
	KUNIT_EXPECT_EQ(test, write_fast(test, ends, mr->iova, mr->rkey), IB_WC_REM_ACCESS_ERR);
	ib_dereg_mr(mr);
}

/* Keys that no request of a queue pair's may invalidate, its own region aside. */
enum wrong_key {
	WRONG_BYTE,
	WRONG_INDEX,
	OTHER_DOMAIN,
	ALL_MEMORY,
	ALL_MEMORY_FOR_PEERS,
	WRONG_KEYS
};

static u32 wrong_key(struct kunit *test, enum wrong_key which, const struct ib_mr *good,
		     const struct ib_pd *other)
{
	struct verbs_world *world = test->priv;

	switch (which) {
	case WRONG_BYTE:
		return good->rkey ^ 1;
	case WRONG_INDEX:
		return good->rkey ^ 0x5a5a00;
	case OTHER_DOMAIN:
		return other->local_dma_lkey;
	case ALL_MEMORY:
		return world->pd->local_dma_lkey;
	default:
		return world->pd->unsafe_global_rkey;
	}
}

static void invalidate_wrong(struct kunit *test, enum wrong_key which, bool by_peer)
{
	struct verbs_world *world = test->priv;
	struct verbs_end *ends = verbs_ends_make(test);
	struct ib_mr *good = fast_make(test, &ends[1]);
	struct ib_pd *other = ib_alloc_pd(world->device, 0);
	struct ib_send_wr wr = {
		.opcode = by_peer ? IB_WR_SEND_WITH_INV : IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	do_local(test, &ends[1], IB_WR_REG_MR, good);
	wr.ex.invalidate_rkey = wrong_key(test, which, good, other);
	KUNIT_ASSERT_EQ(test, 0, verbs_post_receive(test, &ends[1], 1));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(ends[!by_peer].qp, &wr, NULL));
	wc = verbs_expect_wc(test, &ends[1]);
	KUNIT_EXPECT_EQ_MSG(test, wc.status,
			    by_peer ? IB_WC_REM_INV_REQ_ERR : IB_WC_MW_BIND_ERR,
			    "key %d", which);
	/* All that was usable still is. */
	KUNIT_EXPECT_TRUE(test, smw_mr_of(good)->live);
	KUNIT_EXPECT_TRUE(test, smw_mr_of(other->__internal_mr)->live);
	KUNIT_EXPECT_TRUE(test, smw_mr_of(world->pd->__internal_mr)->live);
	ib_dereg_mr(good);
	ib_dealloc_pd(other);
	verbs_ends_free(test);
}

static void fast_reg__wrong_keys(struct kunit *test)
{
	int which;

	for (which = 0; which < WRONG_KEYS; which++) {
		invalidate_wrong(test, which, false);
		invalidate_wrong(test, which, true);
	}
}

static void fast_reg__wrong_keys_by_packets(struct kunit *test)
{
	struct verbs_world *world = test->priv;

	smw_link_of(world->device)->same_host = false;
	fast_reg__wrong_keys(test);
}

static struct kunit_case fast_reg_cases[] = {
	KUNIT_CASE(fast_reg__by_key),
	KUNIT_CASE(fast_reg__ends),
	KUNIT_CASE(fast_reg__mapped_in_use),
	KUNIT_CASE(fast_reg__invalid_already),
	KUNIT_CASE(fast_reg__range),
	KUNIT_CASE(fast_reg__refused),
	KUNIT_CASE(fast_reg__other_domain),
	KUNIT_CASE(fast_reg__once),
	KUNIT_CASE(fast_reg__remote_invalidate),
	KUNIT_CASE(fast_reg__wrong_keys),
	KUNIT_CASE(fast_reg__wrong_keys_by_packets),
	{}
};

static struct kunit_suite fast_reg_suite = {
	.name = "smw_fast_reg",
	.init = verbs_world_init,
	.exit = verbs_world_exit,
	.test_cases = fast_reg_cases,
};

kunit_test_suite(fast_reg_suite);
