// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The key table's contract: exhaustion, no index twice, none again soon, none
 * to be guessed.
 */
#include <smw/keytab.h>

#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include <smw/key.h>

/* A table small enough to be filled: index 0 is never given. */
#define SMALL_BITS	4
#define SMALL_INDICES	(BIT(SMALL_BITS) - 1)

/* Allocations at full width; few against 2^24, many against what one guesses. */
#define MANY 20000

static struct smw_keytab *keytab_make(struct kunit *test, u8 bits)
{
	struct smw_keytab *tab = kunit_kzalloc(test, sizeof(*tab), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, tab);
	KUNIT_ASSERT_EQ(test, smw_keytab_init(tab, bits), 0);
	return tab;
}

static struct smw_key_entry *keytab_entries(struct kunit *test, u32 count)
{
	struct smw_key_entry *entries =
		kunit_kcalloc(test, count, sizeof(*entries), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, entries);
	return entries;
}

static struct smw_key_entry *keytab_find(struct smw_keytab *tab, u32 index)
{
	struct smw_key_entry *entry;

	rcu_read_lock();
	entry = smw_keytab_find(tab, index);
	rcu_read_unlock();
	return entry;
}

static u8 keytab_kind(u32 i)
{
	return i % 2 ? SMW_KEY_WINDOW : SMW_KEY_REGION;
}

/* Windows and regions in turn, until the table is full. */
static void keytab_fill(struct kunit *test, struct smw_keytab *tab,
			struct smw_key_entry *entries)
{
	u32 i;

	for (i = 0; i < SMALL_INDICES; i++)
		KUNIT_ASSERT_EQ(test, 0,
				smw_keytab_insert(tab, &entries[i], keytab_kind(i)));
}

static void keytab_empty(struct smw_keytab *tab, struct smw_key_entry *entries)
{
	u32 i;

	for (i = 0; i < SMALL_INDICES; i++)
		smw_keytab_remove(tab, &entries[i]);
	smw_keytab_destroy(tab);
}

static void smw_keytab_insert__gives_every_index_once(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMALL_BITS);
	struct smw_key_entry *entries = keytab_entries(test, SMALL_INDICES);
	DECLARE_BITMAP(seen, BIT(SMALL_BITS)) = {};
	u32 i;

	keytab_fill(test, tab, entries);
	for (i = 0; i < SMALL_INDICES; i++) {
		KUNIT_EXPECT_NE(test, entries[i].index, 0);
		KUNIT_ASSERT_LE(test, entries[i].index, SMALL_INDICES);
		KUNIT_EXPECT_FALSE(test, test_and_set_bit(entries[i].index, seen));
	}
	keytab_empty(tab, entries);
}

static void smw_keytab_insert__windows_and_regions_never_collide(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMALL_BITS);
	struct smw_key_entry *entries = keytab_entries(test, SMALL_INDICES);
	u32 i;

	keytab_fill(test, tab, entries);
	for (i = 0; i < SMALL_INDICES; i++) {
		KUNIT_EXPECT_PTR_EQ(test, keytab_find(tab, entries[i].index),
				    &entries[i]);
		KUNIT_EXPECT_EQ(test, entries[i].kind, keytab_kind(i));
	}
	keytab_empty(tab, entries);
}

static void smw_keytab_insert__exhaustion(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMALL_BITS);
	struct smw_key_entry *entries = keytab_entries(test, SMALL_INDICES + 1);
	struct smw_key_entry *last = &entries[SMALL_INDICES];
	u32 i, freed;

	keytab_fill(test, tab, entries);
	/* Again and again: a refusal must not use anything up. */
	for (i = 0; i < 3 * SMALL_INDICES; i++)
		KUNIT_ASSERT_EQ(test, -ENOSPC,
				smw_keytab_insert(tab, last, SMW_KEY_WINDOW));
	for (i = 0; i < SMALL_INDICES; i++) {
		freed = entries[i].index;
		smw_keytab_remove(tab, &entries[i]);
		KUNIT_ASSERT_EQ(test, 0, smw_keytab_insert(tab, last, SMW_KEY_WINDOW));
		KUNIT_EXPECT_EQ(test, last->index, freed);
		KUNIT_EXPECT_EQ(test, -ENOSPC,
				smw_keytab_insert(tab, &entries[i], SMW_KEY_REGION));
		smw_keytab_remove(tab, last);
		KUNIT_ASSERT_EQ(test, 0,
				smw_keytab_insert(tab, &entries[i], keytab_kind(i)));
	}
	keytab_empty(tab, entries);
}

static void smw_keytab_insert__no_reuse_before_all_went_by(struct kunit *test)
{
	static const u8 bits = 12;
	struct smw_keytab *tab = keytab_make(test, bits);
	struct smw_key_entry *entry = keytab_entries(test, 1);
	unsigned long *seen = kunit_kcalloc(test, BITS_TO_LONGS(BIT(bits)),
					    sizeof(*seen), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 1; i < BIT(bits); i++) {
		KUNIT_ASSERT_EQ(test, 0, smw_keytab_insert(tab, entry, SMW_KEY_WINDOW));
		KUNIT_EXPECT_FALSE(test, test_and_set_bit(entry->index, seen));
		smw_keytab_remove(tab, entry);
	}
	KUNIT_EXPECT_EQ(test, bitmap_weight(seen, BIT(bits)), BIT(bits) - 1);
	smw_keytab_destroy(tab);
}

/* The counter wraps at 2^32: an index that is in use is stepped over. */
static void smw_keytab_insert__counter_wraps(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMALL_BITS);
	struct smw_key_entry *entries = keytab_entries(test, SMALL_INDICES);

	tab->next = U32_MAX - SMALL_INDICES / 2;
	keytab_fill(test, tab, entries);
	keytab_empty(tab, entries);
}

static void smw_keytab_find__only_what_is_there(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMW_KEY_INDEX_BITS);
	struct smw_key_entry *entry = keytab_entries(test, 1);

	KUNIT_EXPECT_NULL(test, keytab_find(tab, 0));
	KUNIT_EXPECT_NULL(test, keytab_find(tab, SMW_KEY_INDEX_MAX));
	KUNIT_ASSERT_EQ(test, 0, smw_keytab_insert(tab, entry, SMW_KEY_WINDOW));
	KUNIT_EXPECT_PTR_EQ(test, keytab_find(tab, entry->index), entry);
	KUNIT_EXPECT_NULL(test, keytab_find(tab, entry->index ^ 1));
	KUNIT_EXPECT_NULL(test, keytab_find(tab, entry->index | BIT(24)));
	KUNIT_EXPECT_NULL(test, keytab_find(tab, 0));
	smw_keytab_remove(tab, entry);
	KUNIT_EXPECT_NULL(test, keytab_find(tab, entry->index));
	smw_keytab_destroy(tab);
}

/* The next @count indices of a table, each given back at once. */
static u32 *keytab_sequence(struct kunit *test, struct smw_keytab *tab, u32 count)
{
	struct smw_key_entry *entry = keytab_entries(test, 1);
	u32 *indices = kunit_kcalloc(test, count, sizeof(*indices), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, indices);
	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_EQ(test, 0, smw_keytab_insert(tab, entry, SMW_KEY_WINDOW));
		indices[i] = entry->index;
		smw_keytab_remove(tab, entry);
	}
	return indices;
}

/*
 * Over the whole space: each of its 256 equal parts gets its share, which is
 * 78 on average. By chance one is outside of these bounds in less than one of
 * a million runs.
 */
static void smw_keytab_insert__spreads(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMW_KEY_INDEX_BITS);
	u32 *indices = keytab_sequence(test, tab, MANY);
	u32 *high = kunit_kcalloc(test, 256, sizeof(*high), GFP_KERNEL);
	u32 *low = kunit_kcalloc(test, 256, sizeof(*low), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, high);
	KUNIT_ASSERT_NOT_NULL(test, low);
	for (i = 0; i < MANY; i++) {
		KUNIT_ASSERT_LE(test, indices[i], SMW_KEY_INDEX_MAX);
		high[indices[i] >> 16]++;
		low[indices[i] & 0xff]++;
	}
	for (i = 0; i < 256; i++) {
		KUNIT_EXPECT_GT(test, high[i], 25);
		KUNIT_EXPECT_LT(test, high[i], 145);
		KUNIT_EXPECT_GT(test, low[i], 25);
		KUNIT_EXPECT_LT(test, low[i], 145);
	}
	smw_keytab_destroy(tab);
}

/* No index lies near the one before it, nor as far as the one before did. */
static void smw_keytab_insert__steps_say_nothing(struct kunit *test)
{
	struct smw_keytab *tab = keytab_make(test, SMW_KEY_INDEX_BITS);
	u32 *indices = keytab_sequence(test, tab, MANY);
	u32 i, near = 0, same_step = 0;

	for (i = 2; i < MANY; i++) {
		u32 step = indices[i] - indices[i - 1];

		near += step + 256 <= 512;
		same_step += step == indices[i - 1] - indices[i - 2];
	}
	/* By chance: 0.6 and 0.001 on average. */
	KUNIT_EXPECT_LE(test, near, 12);
	KUNIT_EXPECT_LE(test, same_step, 2);
	smw_keytab_destroy(tab);
}

static void smw_keytab_init__every_table_has_its_secret(struct kunit *test)
{
	struct smw_keytab *one = keytab_make(test, SMW_KEY_INDEX_BITS);
	struct smw_keytab *two = keytab_make(test, SMW_KEY_INDEX_BITS);
	u32 *first = keytab_sequence(test, one, 1000);
	u32 *second = keytab_sequence(test, two, 1000);
	u32 i, same = 0;

	for (i = 0; i < 1000; i++)
		same += first[i] == second[i];
	KUNIT_EXPECT_LE(test, same, 3);
	smw_keytab_destroy(one);
	smw_keytab_destroy(two);
}

static struct kunit_case keytab_cases[] = {
	KUNIT_CASE(smw_keytab_init__every_table_has_its_secret),
	KUNIT_CASE(smw_keytab_insert__gives_every_index_once),
	KUNIT_CASE(smw_keytab_insert__windows_and_regions_never_collide),
	KUNIT_CASE(smw_keytab_insert__exhaustion),
	KUNIT_CASE(smw_keytab_insert__no_reuse_before_all_went_by),
	KUNIT_CASE(smw_keytab_insert__counter_wraps),
	KUNIT_CASE(smw_keytab_insert__spreads),
	KUNIT_CASE(smw_keytab_insert__steps_say_nothing),
	KUNIT_CASE(smw_keytab_find__only_what_is_there),
	{}
};

static struct kunit_suite keytab_suite = {
	.name = "smw_keytab",
	.test_cases = keytab_cases,
};

kunit_test_suite(keytab_suite);
