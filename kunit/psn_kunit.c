// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packet sequence numbers at the edges of 24 bits.
 */
#include <smw/psn.h>

#include <kunit/test.h>

struct psn_row {
	const char *desc;
	u32 a;
	u32 b;
	s32 want;
};

static const struct psn_row psn_add_rows[] = {
	{ "nothing", 5, 0, 5 },
	{ "one", 5, 1, 6 },
	{ "to the last", 0xfffffe, 1, 0xffffff },
	{ "past the last", 0xffffff, 1, 0 },
	{ "once around", 7, 0x1000000, 7 },
	{ "2^31 bytes of 256", 0xffffff, 0x800000, 0x7fffff },
	{ "high bits of the PSN are ignored", 0xab000001, 1, 2 },
	{ "32-bit sum wraps", 0xffffffff, 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(psn_add, psn_add_rows, desc);

static void smw_psn_add__rows(struct kunit *test)
{
	const struct psn_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, smw_psn_add(row->a, row->b), (u32)row->want);
}

static const struct psn_row psn_diff_rows[] = {
	{ "equal", 9, 9, 0 },
	{ "newer", 10, 9, 1 },
	{ "older", 9, 10, -1 },
	{ "newer across the wrap", 0, 0xffffff, 1 },
	{ "older across the wrap", 0xffffff, 0, -1 },
	{ "newest", 0x7fffff, 0, 0x7fffff },
	{ "oldest", 0x800000, 0, -0x800000 },
	{ "oldest, the other way", 0, 0x800000, -0x800000 },
	{ "newest across the wrap", 0x7ffffe, 0xffffff, 0x7fffff },
	{ "high bits are ignored", 0xff000001, 0x12000000, 1 },
};

KUNIT_ARRAY_PARAM_DESC(psn_diff, psn_diff_rows, desc);

static void smw_psn_diff__rows(struct kunit *test)
{
	const struct psn_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, smw_psn_diff(row->a, row->b), row->want);
}

/* Strides that are prime, so that the walk meets every kind of low bits. */
#define PSN_STRIDE	65521
#define STEP_STRIDE	32749

static void smw_psn_diff__undoes_add(struct kunit *test)
{
	u32 psn;
	s32 step;

	for (psn = 0; psn <= SMW_PSN_MASK; psn += PSN_STRIDE)
		for (step = -0x800000; step < 0x800000; step += STEP_STRIDE)
			KUNIT_EXPECT_EQ(test, step,
					smw_psn_diff(smw_psn_add(psn, step), psn));
}

static struct kunit_case psn_cases[] = {
	KUNIT_CASE_PARAM(smw_psn_add__rows, psn_add_gen_params),
	KUNIT_CASE_PARAM(smw_psn_diff__rows, psn_diff_gen_params),
	KUNIT_CASE(smw_psn_diff__undoes_add),
	{}
};

static struct kunit_suite psn_suite = {
	.name = "smw_psn",
	.test_cases = psn_cases,
};

kunit_test_suite(psn_suite);
