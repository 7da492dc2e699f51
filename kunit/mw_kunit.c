// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Windows, regions and the owner of type 2 windows as real objects: who counts
 * on whom, what a bind changes and what a failed one does not, and revocation
 * as a fence. The link is one that was never registered; the regions are pinned
 * memory of the test's own address space.
 */
#include <smw/mw.h>

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include <smw/key.h>
#include <smw/link.h>

#define REGION_LENGTH	(2 * PAGE_SIZE)
#define REGION_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)
#define ALL_RIGHTS	SMW_WINDOW_RIGHTS

/* Bytes of a region that windows are bound to here. */
#define WINDOW_OFFSET	0x100
#define WINDOW_LENGTH	0x200

/**
 * struct mw_world - what every case has
 * @link: a link of its own
 * @pd: a PD
 * @other_pd: another
 * @owner: the windows of a queue pair of @pd
 * @other_owner: those of another queue pair of @pd
 * @memory: user address of the memory behind every region
 */
struct mw_world {
	struct smw_link link;
	struct ib_pd pd;
	struct ib_pd other_pd;
	struct smw_window_owner owner;
	struct smw_window_owner other_owner;
	unsigned long memory;
};

static void owner_init(struct smw_window_owner *owner)
{
	spin_lock_init(&owner->lock);
	INIT_LIST_HEAD(&owner->windows);
}

static int mw_world_init(struct kunit *test)
{
	struct mw_world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	struct smw_link *link;

	KUNIT_ASSERT_NOT_NULL(test, world);
	link = &world->link;
	KUNIT_ASSERT_EQ(test, 0, smw_keytab_init(&link->keys, SMW_KEY_INDEX_BITS));
	link->counters = alloc_percpu(struct smw_counters);
	KUNIT_ASSERT_TRUE(test, !!link->counters);
	spin_lock_init(&link->windows_lock);
	INIT_LIST_HEAD(&link->windows);
	world->pd.device = &link->ibdev;
	world->other_pd.device = &link->ibdev;
	owner_init(&world->owner);
	owner_init(&world->other_owner);
	world->memory = kunit_vm_mmap(test, NULL, 0, REGION_LENGTH,
				      PROT_READ | PROT_WRITE,
				      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, world->memory, 0);
	test->priv = world;
	return 0;
}

/* Every case gives back what it took. */
static void mw_world_exit(struct kunit *test)
{
	struct mw_world *world = test->priv;
	u32 slot;

	if (!world)
		return;
	KUNIT_EXPECT_EQ(test, atomic_read(&world->link.objects[0][SMW_OBJECT_MW]), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&world->link.objects[0][SMW_OBJECT_MR]), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&world->link.windows));
	KUNIT_EXPECT_TRUE(test, list_empty(&world->owner.windows));
	KUNIT_EXPECT_TRUE(test, list_empty(&world->other_owner.windows));
	for (slot = 0; slot < SMW_HOLD_SLOTS; slot++)
		KUNIT_EXPECT_NULL(test, smw_hold_peek(slot));
	smw_keytab_destroy(&world->link.keys);
	free_percpu(world->link.counters);
}

static struct smw_mr *region_make(struct kunit *test, int access)
{
	struct mw_world *world = test->priv;
	struct ib_mr *ibmr = smw_mr_reg_user(&world->pd, world->memory, REGION_LENGTH,
					     world->memory, access, NULL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	return smw_mr_of(ibmr);
}

static int region_free(struct smw_mr *mr)
{
	return smw_mr_dereg(&mr->ibmr, NULL);
}

static struct smw_mw *window_alloc(struct kunit *test, enum ib_mw_type type)
{
	struct mw_world *world = test->priv;
	struct smw_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->ibmw.device = &world->link.ibdev;
	mw->ibmw.pd = &world->pd;
	mw->ibmw.type = type;
	KUNIT_ASSERT_EQ(test, smw_mw_alloc(&mw->ibmw, NULL), 0);
	return mw;
}

static void window_free(struct kunit *test, struct smw_mw *mw)
{
	KUNIT_EXPECT_EQ(test, smw_mw_dealloc(&mw->ibmw), 0);
}

/* A bind of the usual bytes that succeeds as it is. */
static struct smw_bind bind_of(const struct smw_mw *mw, const struct smw_mr *mr,
			       u32 new_key)
{
	struct smw_bind bind = {
		.addr = mr ? mr->iova + WINDOW_OFFSET : 0,
		.length = mr ? WINDOW_LENGTH : 0,
		.lkey = mr ? mr->key : 0,
		.window_key = mw->window->key,
		.new_key = new_key,
		.rights = ALL_RIGHTS,
	};

	return bind;
}

static enum smw_reason bind_post(struct kunit *test, const struct smw_bind *bind)
{
	struct mw_world *world = test->priv;
	enum smw_reason reason;

	local_bh_disable();
	reason = smw_window_bind(&world->link, &world->pd, &world->owner, bind);
	local_bh_enable();
	return reason;
}

static enum smw_reason window_bind(struct kunit *test, struct smw_mw *mw,
				   const struct smw_mr *mr, u32 new_key)
{
	struct smw_bind bind = bind_of(mw, mr, new_key);

	return bind_post(test, &bind);
}

static enum smw_reason window_invalidate(struct kunit *test, u32 key,
					 struct smw_window_owner *owner)
{
	struct mw_world *world = test->priv;
	enum smw_reason reason;

	local_bh_disable();
	reason = smw_window_invalidate(&world->link, &world->pd, owner, key);
	local_bh_enable();
	return reason;
}

static struct smw_access access_of(struct kunit *test, u32 rkey, u64 va)
{
	struct mw_world *world = test->priv;
	struct smw_access access = {
		.pd = &world->pd,
		.owner = &world->owner,
		.qp_rights = ALL_RIGHTS,
		.needed = SMW_REMOTE_WRITE,
		.rkey = rkey,
		.va = va,
		.bytes = 1,
	};

	return access;
}

/**
 * access_try() - one remote access from begin to end
 * @test: the case
 * @access: the access
 * @mr: the region it must reach, where it is granted
 * @at: byte of the region it must reach, where it is granted
 *
 * Return: why not, or SMW_OK.
 */
static enum smw_reason access_try(struct kunit *test, const struct smw_access *access,
				  const struct smw_mr *mr, u64 at)
{
	struct mw_world *world = test->priv;
	enum smw_reason reason = SMW_REASON_COUNT;
	struct smw_mr *got;
	u64 offset = 0;

	local_bh_disable();
	got = smw_access_begin(&world->link, access, &offset, &reason);
	if (got)
		smw_access_end();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, !got, reason != SMW_OK);
	if (got) {
		KUNIT_EXPECT_PTR_EQ(test, (const struct smw_mr *)got, mr);
		KUNIT_EXPECT_EQ(test, offset, at);
	}
	return reason;
}

/* One byte by key, at the start of the usual bytes. */
static enum smw_reason key_try(struct kunit *test, u32 rkey, const struct smw_mr *mr)
{
	struct smw_access access = access_of(test, rkey, mr->iova + WINDOW_OFFSET);

	return access_try(test, &access, mr, WINDOW_OFFSET);
}

static void smw_mw_alloc__bad_type(struct kunit *test)
{
	static const int types[] = { 0, 3, 129, 255 };
	struct mw_world *world = test->priv;
	struct smw_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->ibmw.device = &world->link.ibdev;
	mw->ibmw.pd = &world->pd;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		mw->ibmw.type = types[i];
		KUNIT_EXPECT_EQ_MSG(test, smw_mw_alloc(&mw->ibmw, NULL), -EINVAL,
				    "type %d", types[i]);
	}
}

static void smw_mw_alloc__no_room(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	atomic_t *count = &world->link.objects[0][SMW_OBJECT_MW];

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->ibmw.device = &world->link.ibdev;
	mw->ibmw.pd = &world->pd;
	mw->ibmw.type = IB_MW_TYPE_2;
	atomic_set(count, SMW_MAX_MW);
	KUNIT_EXPECT_EQ(test, smw_mw_alloc(&mw->ibmw, NULL), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_read(count), SMW_MAX_MW);
	atomic_set(count, SMW_MAX_MW - 1);
	KUNIT_EXPECT_EQ(test, smw_mw_alloc(&mw->ibmw, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(count), SMW_MAX_MW);
	window_free(test, mw);
	atomic_set(count, 0);
}

static void smw_mw_alloc__unbound_grants_nothing(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *one = window_alloc(test, IB_MW_TYPE_1);
	struct smw_mw *two = window_alloc(test, IB_MW_TYPE_2);

	KUNIT_EXPECT_EQ(test, one->ibmw.rkey, one->window->key);
	KUNIT_EXPECT_EQ(test, key_try(test, one->ibmw.rkey, mr), SMW_ACCESS_UNBOUND);
	KUNIT_EXPECT_EQ(test, key_try(test, two->ibmw.rkey, mr), SMW_ACCESS_UNBOUND);
	window_free(test, one);
	window_free(test, two);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/* A window's use, as Documentation/memory-windows.rst tells it. */
static void smw_window_bind__a_window_counts_on_its_region(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
	u32 key = smw_key_compose(mw->window->entry.index, 0x17);

	KUNIT_EXPECT_EQ(test, mr->bound, 0);
	KUNIT_EXPECT_EQ(test, window_bind(test, mw, mr, 0x17), SMW_OK);
	KUNIT_EXPECT_EQ(test, mr->bound, 1);
	KUNIT_EXPECT_EQ(test, mw->window->key, key);
	KUNIT_EXPECT_EQ(test, region_free(mr), -EBUSY);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_OK);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key, &world->owner), SMW_OK);
	KUNIT_EXPECT_EQ(test, mr->bound, 0);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_ACCESS_UNBOUND);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
	window_free(test, mw);
}

static void smw_window_bind__old_key_dies(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);
	u32 old;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	old = mw->window->key;
	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 2), SMW_OK);
	KUNIT_EXPECT_EQ(test, key_try(test, old, mr), SMW_ACCESS_OLD_KEY);
	KUNIT_EXPECT_EQ(test, key_try(test, mw->window->key, mr), SMW_OK);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_bind__uses_low_8_bits_of_the_new_key(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 0xfedcba98), SMW_OK);
	KUNIT_EXPECT_EQ(test, mw->window->key,
			smw_key_compose(mw->window->entry.index, 0x98));
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_bind__type_1_moves_its_count(struct kunit *test)
{
	struct smw_mr *from = region_make(test, REGION_ACCESS);
	struct smw_mr *to = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, from, 1), SMW_OK);
	KUNIT_ASSERT_EQ(test, window_bind(test, mw, to, 2), SMW_OK);
	KUNIT_EXPECT_EQ(test, from->bound, 0);
	KUNIT_EXPECT_EQ(test, to->bound, 1);
	KUNIT_EXPECT_EQ(test, region_free(from), 0);
	KUNIT_EXPECT_EQ(test, region_free(to), -EBUSY);
	/* The same region once more: still one window. */
	KUNIT_ASSERT_EQ(test, window_bind(test, mw, to, 3), SMW_OK);
	KUNIT_EXPECT_EQ(test, to->bound, 1);
	/* Length 0 unbinds, and the key goes with it. */
	KUNIT_ASSERT_EQ(test, window_bind(test, mw, NULL, 4), SMW_OK);
	KUNIT_EXPECT_EQ(test, to->bound, 0);
	KUNIT_EXPECT_EQ(test, key_try(test, mw->window->key, to), SMW_ACCESS_UNBOUND);
	KUNIT_EXPECT_EQ(test, region_free(to), 0);
	window_free(test, mw);
}

static void smw_window_bind__windows_share_a_region(struct kunit *test)
{
	static const u32 many = 32;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw[32];
	u32 i;

	for (i = 0; i < many; i++) {
		mw[i] = window_alloc(test, i % 2 ? IB_MW_TYPE_1 : IB_MW_TYPE_2);
		KUNIT_ASSERT_EQ(test, window_bind(test, mw[i], mr, i), SMW_OK);
		KUNIT_EXPECT_EQ(test, mr->bound, i + 1);
	}
	for (i = 0; i < many; i++) {
		KUNIT_EXPECT_EQ(test, key_try(test, mw[i]->window->key, mr), SMW_OK);
		KUNIT_EXPECT_EQ(test, region_free(mr), -EBUSY);
		window_free(test, mw[i]);
		KUNIT_EXPECT_EQ(test, mr->bound, many - 1 - i);
	}
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/**
 * struct failed_bind_row - a bind that is refused
 * @desc: clause and rule
 * @want: the answer
 * @type: of the window, which is bound before where it is of type 1
 * @access: access flags of the region
 * @change: turns a good bind into the refused one
 */
struct failed_bind_row {
	const char *desc;
	enum smw_reason want;
	enum ib_mw_type type;
	int access;
	void (*change)(struct kunit *test, struct smw_bind *bind);
};

static void change_window(struct kunit *test, struct smw_bind *bind)
{
	bind->window_key ^= 0x100;
}

static void change_key(struct kunit *test, struct smw_bind *bind)
{
	bind->window_key ^= 1;
}

static void change_lkey(struct kunit *test, struct smw_bind *bind)
{
	bind->lkey ^= 1;
}

static void change_lkey_to_window(struct kunit *test, struct smw_bind *bind)
{
	bind->lkey = bind->window_key;
}

static void change_addr(struct kunit *test, struct smw_bind *bind)
{
	bind->addr -= WINDOW_OFFSET + 1;
}

static void change_length(struct kunit *test, struct smw_bind *bind)
{
	bind->length = REGION_LENGTH - WINDOW_OFFSET + 1;
}

static void change_length_to_wrap(struct kunit *test, struct smw_bind *bind)
{
	bind->length = -bind->addr + 1;
}

static void change_flags(struct kunit *test, struct smw_bind *bind)
{
	bind->rights |= SMW_MW_BIND;
}

static void change_to_zero_based(struct kunit *test, struct smw_bind *bind)
{
	bind->rights |= SMW_ZERO_BASED;
}

static void change_to_empty(struct kunit *test, struct smw_bind *bind)
{
	bind->length = 0;
}

static void change_nothing(struct kunit *test, struct smw_bind *bind)
{
}

static const struct failed_bind_row failed_bind_rows[] = {
	{ "no such window", SMW_BIND_NO_WINDOW, IB_MW_TYPE_1, REGION_ACCESS,
	  change_window },
	{ "wrong key", SMW_BIND_KEY, IB_MW_TYPE_1, REGION_ACCESS, change_key },
	{ "wrong lkey", SMW_BIND_REGION, IB_MW_TYPE_1, REGION_ACCESS, change_lkey },
	{ "lkey is a window's", SMW_BIND_REGION, IB_MW_TYPE_1, REGION_ACCESS,
	  change_lkey_to_window },
	{ "C10-73", SMW_BIND_REGION_RIGHT, IB_MW_TYPE_2,
	  REGION_ACCESS & ~IB_ACCESS_MW_BIND, change_nothing },
	{ "C10-74", SMW_BIND_LOCAL_WRITE, IB_MW_TYPE_2, IB_ACCESS_MW_BIND,
	  change_nothing },
	{ "IW: zero-based region", SMW_BIND_ZERO_BASED_REGION, IB_MW_TYPE_2,
	  REGION_ACCESS | IB_ZERO_BASED, change_nothing },
	{ "C10-75: before", SMW_BIND_RANGE, IB_MW_TYPE_1, REGION_ACCESS, change_addr },
	{ "C10-75: too long", SMW_BIND_RANGE, IB_MW_TYPE_1, REGION_ACCESS,
	  change_length },
	{ "C10-75: wraps", SMW_BIND_RANGE, IB_MW_TYPE_2, REGION_ACCESS,
	  change_length_to_wrap },
	{ "flags", SMW_BIND_FLAGS, IB_MW_TYPE_2, REGION_ACCESS, change_flags },
	{ "o10-36.2.2", SMW_BIND_FLAGS, IB_MW_TYPE_1, REGION_ACCESS,
	  change_to_zero_based },
	{ "o10-37.2.40", SMW_BIND_LENGTH, IB_MW_TYPE_2, REGION_ACCESS,
	  change_to_empty },
};

KUNIT_ARRAY_PARAM_DESC(failed_bind, failed_bind_rows, desc);

static void smw_window_bind__failure_changes_nothing(struct kunit *test)
{
	const struct failed_bind_row *row = test->param_value;
	struct smw_mr *good = region_make(test, REGION_ACCESS);
	struct smw_mr *mr = region_make(test, row->access);
	struct smw_mw *mw = window_alloc(test, row->type);
	struct smw_window before;
	struct smw_bind bind;

	if (row->type == IB_MW_TYPE_1)
		KUNIT_ASSERT_EQ(test, window_bind(test, mw, good, 1), SMW_OK);
	bind = bind_of(mw, mr, 2);
	bind.addr = mr->iova + WINDOW_OFFSET;
	row->change(test, &bind);
	memcpy(&before, mw->window, sizeof(before));
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), row->want);
	/* What follows the lock, which lockdep writes to. */
	KUNIT_EXPECT_MEMEQ(test, &before.pd, &mw->window->pd,
			   sizeof(before) - offsetof(struct smw_window, pd));
	KUNIT_EXPECT_EQ(test, mr->bound, 0);
	KUNIT_EXPECT_EQ(test, good->bound, row->type == IB_MW_TYPE_1);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(good), 0);
}

/* o10-37.2.30, and the key that stock librxe posts is the first one. */
static void smw_window_bind__type_2_must_be_free(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
	struct smw_bind bind = bind_of(mw, mr, 5);
	u32 key;

	KUNIT_ASSERT_EQ(test, bind_post(test, &bind), SMW_OK);
	key = mw->window->key;
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), SMW_BIND_NOT_FREE);
	bind.window_key = key;
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), SMW_BIND_NOT_FREE);
	KUNIT_EXPECT_EQ(test, mr->bound, 1);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_OK);
	KUNIT_ASSERT_EQ(test, window_invalidate(test, key, &world->owner), SMW_OK);
	bind.window_key = mw->ibmw.rkey;
	bind.new_key = 6;
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), SMW_OK);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_ACCESS_OLD_KEY);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_bind__other_pd(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);
	struct smw_bind bind = bind_of(mw, mr, 1);

	local_bh_disable();
	KUNIT_EXPECT_EQ(test, SMW_BIND_PD,
			smw_window_bind(&world->link, &world->other_pd,
					&world->owner, &bind));
	local_bh_enable();
	/* Window and QP agree, the region is of another PD. */
	mr->ibmr.pd = &world->other_pd;
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), SMW_BIND_PD);
	mr->ibmr.pd = &world->pd;
	KUNIT_EXPECT_EQ(test, bind_post(test, &bind), SMW_OK);
	/* Nor can a stranger unbind it. */
	bind = bind_of(mw, NULL, 2);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, SMW_BIND_PD,
			smw_window_bind(&world->link, &world->other_pd,
					&world->owner, &bind));
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, key_try(test, mw->window->key, mr), SMW_OK);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_invalidate__only_by_its_owner(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *one = window_alloc(test, IB_MW_TYPE_1);
	struct smw_mw *two = window_alloc(test, IB_MW_TYPE_2);
	u32 key;

	KUNIT_ASSERT_EQ(test, window_bind(test, one, mr, 1), SMW_OK);
	KUNIT_ASSERT_EQ(test, window_bind(test, two, mr, 1), SMW_OK);
	key = two->window->key;
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key, &world->other_owner),
			SMW_INV_QP);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key ^ 1, &world->owner),
			SMW_INV_KEY);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key ^ 0x100, &world->owner),
			SMW_INV_NO_KEY);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, one->window->key, &world->owner),
			SMW_INV_TYPE_1);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, mr->key, &world->owner),
			SMW_INV_REGION);
	KUNIT_EXPECT_EQ(test, mr->bound, 2);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_OK);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key, &world->owner), SMW_OK);
	KUNIT_EXPECT_EQ(test, window_invalidate(test, key, &world->owner),
			SMW_INV_FREE);
	KUNIT_EXPECT_EQ(test, mr->bound, 1);
	window_free(test, one);
	window_free(test, two);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/* o10-2.2.5: the QP goes, its type 2 windows are Free, type 1 lives on. */
static void smw_window_release_all__frees_type_2_alone(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *one = window_alloc(test, IB_MW_TYPE_1);
	struct smw_mw *mine[8];
	struct smw_mw *other = window_alloc(test, IB_MW_TYPE_2);
	struct smw_bind bind;
	u32 i;

	KUNIT_ASSERT_EQ(test, window_bind(test, one, mr, 1), SMW_OK);
	for (i = 0; i < ARRAY_SIZE(mine); i++) {
		mine[i] = window_alloc(test, IB_MW_TYPE_2);
		KUNIT_ASSERT_EQ(test, window_bind(test, mine[i], mr, 1), SMW_OK);
	}
	bind = bind_of(other, mr, 1);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, SMW_OK, smw_window_bind(&world->link, &world->pd,
						      &world->other_owner, &bind));
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, mr->bound, ARRAY_SIZE(mine) + 2);
	smw_window_release_all(&world->owner);
	KUNIT_EXPECT_TRUE(test, list_empty(&world->owner.windows));
	KUNIT_EXPECT_EQ(test, mr->bound, 2);
	KUNIT_EXPECT_EQ(test, key_try(test, one->window->key, mr), SMW_OK);
	KUNIT_EXPECT_TRUE(test, other->window->live);
	for (i = 0; i < ARRAY_SIZE(mine); i++) {
		KUNIT_EXPECT_EQ(test, key_try(test, mine[i]->window->key, mr),
				SMW_ACCESS_UNBOUND);
		/* Free means free: it can be bound again. */
		KUNIT_EXPECT_EQ(test, window_bind(test, mine[i], mr, 2), SMW_OK);
		window_free(test, mine[i]);
	}
	window_free(test, one);
	window_free(test, other);
	smw_window_release_all(&world->owner);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_mw_dealloc__unbinds(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	enum ib_mw_type type;

	for (type = IB_MW_TYPE_1; type <= IB_MW_TYPE_2; type++) {
		struct smw_mw *mw = window_alloc(test, type);
		u32 key;

		KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
		key = mw->window->key;
		window_free(test, mw);
		KUNIT_EXPECT_EQ(test, mr->bound, 0);
		KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_ACCESS_NO_KEY);
	}
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_mr_rereg_user__busy_while_bound(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);
	struct ib_mr *got;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	got = smw_mr_rereg_user(&mr->ibmr, IB_MR_REREG_ACCESS, 0, 0, 0,
				IB_ACCESS_MW_BIND, &world->pd, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(got), -EBUSY);
	KUNIT_EXPECT_EQ(test, mr->rights, REGION_ACCESS);
	KUNIT_EXPECT_EQ(test, key_try(test, mw->window->key, mr), SMW_OK);
	window_free(test, mw);
	got = smw_mr_rereg_user(&mr->ibmr, IB_MR_REREG_ACCESS, 0, 0, 0,
				IB_ACCESS_MW_BIND, &world->pd, NULL);
	KUNIT_EXPECT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, mr->rights, SMW_MW_BIND);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_access_begin__no_such_key(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS | IB_ACCESS_REMOTE_WRITE);
	u32 key = mr->key;

	KUNIT_EXPECT_EQ(test, key_try(test, 0, mr), SMW_ACCESS_NO_KEY);
	KUNIT_EXPECT_EQ(test, key_try(test, key ^ 0x100, mr), SMW_ACCESS_NO_KEY);
	KUNIT_EXPECT_EQ(test, key_try(test, key ^ 1, mr), SMW_ACCESS_OLD_KEY);
	KUNIT_EXPECT_EQ(test, key_try(test, key, mr), SMW_OK);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/**
 * struct window_edge_row - one access at an edge of a bound window
 * @desc: the edge
 * @va: distance from the window's first byte
 * @bytes: how many
 * @want: the answer
 */
struct window_edge_row {
	const char *desc;
	s64 va;
	u64 bytes;
	enum smw_reason want;
};

static const struct window_edge_row window_edge_rows[] = {
	{ "whole window", 0, WINDOW_LENGTH, SMW_OK },
	{ "first byte", 0, 1, SMW_OK },
	{ "last byte", WINDOW_LENGTH - 1, 1, SMW_OK },
	{ "byte before", -1, 1, SMW_ACCESS_RANGE },
	{ "byte after", WINDOW_LENGTH, 1, SMW_ACCESS_RANGE },
	{ "a byte longer", 0, WINDOW_LENGTH + 1, SMW_ACCESS_RANGE },
	{ "starts a byte early", -1, WINDOW_LENGTH, SMW_ACCESS_RANGE },
	{ "whole region", -WINDOW_OFFSET, REGION_LENGTH, SMW_ACCESS_RANGE },
	{ "wraps", 1, U64_MAX, SMW_ACCESS_RANGE },
};

KUNIT_ARRAY_PARAM_DESC(window_edge, window_edge_rows, desc);

/* The window's bounds, by address and zero based; never the region's. */
static void smw_access_begin__window_edges(struct kunit *test)
{
	const struct window_edge_row *row = test->param_value;
	struct smw_mr *mr = region_make(test, REGION_ACCESS | IB_ACCESS_REMOTE_WRITE);
	u32 zero_based;

	for (zero_based = 0; zero_based < 2; zero_based++) {
		struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
		struct smw_bind bind = bind_of(mw, mr, 1);
		struct smw_access access;

		if (zero_based)
			bind.rights |= SMW_ZERO_BASED;
		KUNIT_ASSERT_EQ(test, bind_post(test, &bind), SMW_OK);
		access = access_of(test, mw->window->key,
				   (zero_based ? 0 : bind.addr) + row->va);
		access.bytes = row->bytes;
		KUNIT_EXPECT_EQ(test, access_try(test, &access, mr, WINDOW_OFFSET + row->va),
				row->want);
		window_free(test, mw);
	}
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/* All that a key names, whatever the address and length beside it. */
static void expect_whole(struct kunit *test, u32 rkey, u64 at, const struct smw_mr *mr)
{
	struct smw_access access = access_of(test, rkey, 0x1234567890abcdefULL);

	access.needed = SMW_FLUSH_GLOBAL;
	access.qp_rights = SMW_FLUSH_GLOBAL;
	access.bytes = U64_MAX;
	KUNIT_EXPECT_EQ(test, access_try(test, &access, mr, at), SMW_ACCESS_RANGE);
	access.whole = true;
	KUNIT_EXPECT_EQ(test, access_try(test, &access, mr, at), SMW_OK);
	access.needed = SMW_FLUSH_RIGHTS;
	KUNIT_EXPECT_EQ(test, access_try(test, &access, mr, at), SMW_ACCESS_RIGHT);
}

static void smw_access_begin__whole(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS | IB_ACCESS_FLUSH_GLOBAL);
	u32 zero_based;

	expect_whole(test, mr->key, 0, mr);
	for (zero_based = 0; zero_based < 2; zero_based++) {
		struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
		struct smw_bind bind = bind_of(mw, mr, 1);

		bind.rights = SMW_FLUSH_GLOBAL | (zero_based ? SMW_ZERO_BASED : 0);
		KUNIT_ASSERT_EQ(test, bind_post(test, &bind), SMW_OK);
		expect_whole(test, mw->window->key, WINDOW_OFFSET, mr);
		window_free(test, mw);
	}
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/* Memory is visible to all, and does not outlive the power. */
static void smw_mr_reg_user__flush(struct kunit *test)
{
	static const int refused[] = {
		IB_ACCESS_FLUSH_PERSISTENT,
		IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_FLUSH_GLOBAL,
	};
	struct smw_mr *mr = region_make(test, IB_ACCESS_FLUSH_GLOBAL);
	struct mw_world *world = test->priv;
	u32 i;

	KUNIT_EXPECT_EQ(test, mr->rights, SMW_FLUSH_GLOBAL);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		struct ib_mr *ibmr = smw_mr_reg_user(&world->pd, world->memory,
						     REGION_LENGTH, world->memory,
						     refused[i], NULL);

		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ibmr), -EOPNOTSUPP);
	}
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_access_begin__counts(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);
	struct smw_access access;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	access = access_of(test, mw->window->key, mr->iova);
	access_try(test, &access, mr, 0);
	access.va += WINDOW_OFFSET;
	access_try(test, &access, mr, WINDOW_OFFSET);
	KUNIT_EXPECT_EQ(test, smw_window_accesses(mw->window), 1);
	KUNIT_EXPECT_EQ(test, mw->window->refusals, 1);
	KUNIT_EXPECT_EQ(test, mw->window->last_refusal, SMW_ACCESS_RANGE);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

/**
 * struct fence - an access that another CPU is in the middle of
 * @test: the case
 * @access: the access
 * @began: the access was granted
 * @over: its last byte has moved
 */
struct fence {
	struct kunit *test;
	struct smw_access access;
	bool began;
	bool over;
};

#define FENCE_ACCESS_MS 20

static int fence_access(void *argument)
{
	struct fence *fence = argument;
	struct mw_world *world = fence->test->priv;
	enum smw_reason reason;
	u64 offset;

	local_bh_disable();
	if (smw_access_begin(&world->link, &fence->access, &offset, &reason)) {
		WRITE_ONCE(fence->began, true);
		mdelay(FENCE_ACCESS_MS);
		WRITE_ONCE(fence->over, true);
		smw_access_end();
	}
	local_bh_enable();
	while (!kthread_should_stop())
		usleep_range(100, 200);
	return 0;
}

/* Start an access on another CPU and return while it is going on. */
static struct task_struct *fence_begin(struct kunit *test, struct fence *fence, u32 key,
				       const struct smw_mr *mr)
{
	struct task_struct *task;
	unsigned int cpu, tries = 2000;

	fence->test = test;
	fence->access = access_of(test, key, mr->iova + WINDOW_OFFSET);
	fence->began = false;
	fence->over = false;
	cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	task = kthread_create(fence_access, fence, "smw-fence");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, cpu);
	wake_up_process(task);
	while (!READ_ONCE(fence->began) && tries--)
		usleep_range(50, 100);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(fence->began));
	return task;
}

/* What every revocation must have waited for. */
static void fence_end(struct kunit *test, struct fence *fence, struct task_struct *task)
{
	KUNIT_EXPECT_TRUE(test, READ_ONCE(fence->over));
	kthread_stop(task);
}

static void smw_window_invalidate__is_a_fence(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
	struct task_struct *task;
	struct fence fence;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	task = fence_begin(test, &fence, mw->window->key, mr);
	KUNIT_EXPECT_EQ(test, SMW_OK,
			window_invalidate(test, mw->window->key, &world->owner));
	fence_end(test, &fence, task);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_bind__rebind_is_a_fence(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_1);
	struct task_struct *task;
	struct fence fence;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	task = fence_begin(test, &fence, mw->window->key, mr);
	KUNIT_EXPECT_EQ(test, window_bind(test, mw, mr, 2), SMW_OK);
	fence_end(test, &fence, task);
	task = fence_begin(test, &fence, mw->window->key, mr);
	KUNIT_EXPECT_EQ(test, window_bind(test, mw, NULL, 3), SMW_OK);
	fence_end(test, &fence, task);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_mw_dealloc__is_a_fence(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
	struct task_struct *task;
	struct fence fence;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	task = fence_begin(test, &fence, mw->window->key, mr);
	window_free(test, mw);
	fence_end(test, &fence, task);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_window_release_all__is_a_fence(struct kunit *test)
{
	struct mw_world *world = test->priv;
	struct smw_mr *mr = region_make(test, REGION_ACCESS);
	struct smw_mw *mw = window_alloc(test, IB_MW_TYPE_2);
	struct task_struct *task;
	struct fence fence;

	KUNIT_ASSERT_EQ(test, window_bind(test, mw, mr, 1), SMW_OK);
	task = fence_begin(test, &fence, mw->window->key, mr);
	smw_window_release_all(&world->owner);
	fence_end(test, &fence, task);
	window_free(test, mw);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
}

static void smw_mr_dereg__is_a_fence(struct kunit *test)
{
	struct smw_mr *mr = region_make(test, REGION_ACCESS | IB_ACCESS_REMOTE_WRITE);
	struct task_struct *task;
	struct fence fence;

	task = fence_begin(test, &fence, mr->key, mr);
	KUNIT_EXPECT_EQ(test, region_free(mr), 0);
	fence_end(test, &fence, task);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(smw_mw_alloc__bad_type),
	KUNIT_CASE(smw_mw_alloc__no_room),
	KUNIT_CASE(smw_mw_alloc__unbound_grants_nothing),
	KUNIT_CASE(smw_window_bind__a_window_counts_on_its_region),
	KUNIT_CASE(smw_window_bind__old_key_dies),
	KUNIT_CASE(smw_window_bind__uses_low_8_bits_of_the_new_key),
	KUNIT_CASE(smw_window_bind__type_1_moves_its_count),
	KUNIT_CASE(smw_window_bind__windows_share_a_region),
	KUNIT_CASE_PARAM(smw_window_bind__failure_changes_nothing,
			 failed_bind_gen_params),
	KUNIT_CASE(smw_window_bind__type_2_must_be_free),
	KUNIT_CASE(smw_window_bind__other_pd),
	KUNIT_CASE(smw_window_invalidate__only_by_its_owner),
	KUNIT_CASE(smw_window_release_all__frees_type_2_alone),
	KUNIT_CASE(smw_mw_dealloc__unbinds),
	KUNIT_CASE(smw_mr_rereg_user__busy_while_bound),
	KUNIT_CASE(smw_access_begin__no_such_key),
	KUNIT_CASE_PARAM(smw_access_begin__window_edges, window_edge_gen_params),
	KUNIT_CASE(smw_access_begin__whole),
	KUNIT_CASE(smw_access_begin__counts),
	KUNIT_CASE(smw_mr_reg_user__flush),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "smw_mw",
	.init = mw_world_init,
	.exit = mw_world_exit,
	.test_cases = mw_cases,
};

/* An access goes on while the case revokes it. */
static int fence_init(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	return mw_world_init(test);
}

static struct kunit_case fence_cases[] = {
	KUNIT_CASE(smw_window_bind__rebind_is_a_fence),
	KUNIT_CASE(smw_window_invalidate__is_a_fence),
	KUNIT_CASE(smw_window_release_all__is_a_fence),
	KUNIT_CASE(smw_mw_dealloc__is_a_fence),
	KUNIT_CASE(smw_mr_dereg__is_a_fence),
	{}
};

static struct kunit_suite fence_suite = {
	.name = "smw_fence",
	.init = fence_init,
	.exit = mw_world_exit,
	.test_cases = fence_cases,
};

kunit_test_suites(&mw_suite, &fence_suite);
