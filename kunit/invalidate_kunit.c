// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rules of an invalidate, one row per rule of
 * Documentation/memory-windows.rst. LOCAL_INV and SEND_WITH_INV share them.
 */
#include <smw/window.h>

#include <kunit/test.h>

#define KEY 0x009abc42

/**
 * struct invalidate_row - how one invalidate differs from one that succeeds
 * @desc: clause and rule
 * @want: the answer
 * @region: the key names a region
 * @fast: one for fast registration
 * @type_1: it names a type 1 window
 * @is_free: the window is not bound, or the region not registered
 * @used_key: key in the request; 0 for the right one
 * @other_pd: the QP is of another PD
 * @other_qp: the window is bound to another QP
 */
struct invalidate_row {
	const char *desc;
	enum smw_reason want;
	bool region;
	bool fast;
	bool type_1;
	bool is_free;
	u32 used_key;
	bool other_pd;
	bool other_qp;
};

static const struct invalidate_row invalidate_rows[] = {
	{ "a Valid type 2 window of this QP", SMW_OK },
	{ "wrong key: key byte one less", SMW_INV_KEY, .used_key = KEY - 1 },
	{ "wrong key: key byte one more", SMW_INV_KEY, .used_key = KEY + 1 },
	{ "wrong key: right key byte, another index", SMW_INV_KEY,
	  .used_key = KEY ^ 0x100 },
	{ "wrong key of a region", SMW_INV_KEY, .region = true, .used_key = KEY - 1 },
	{ "o10-37.2.26: a type 1 window", SMW_INV_TYPE_1, .type_1 = true },
	{ "o10-37.2.26: a type 1 window, unbound", SMW_INV_TYPE_1, .type_1 = true,
	  .is_free = true },
	{ "a user's region", SMW_INV_REGION, .region = true },
	{ "a user's region, whatever else matches", SMW_INV_REGION, .region = true,
	  .other_pd = true, .other_qp = true },
	{ "a kernel's region", SMW_OK, .region = true, .fast = true },
	{ "a kernel's region, invalid already", SMW_OK, .region = true, .fast = true,
	  .is_free = true },
	{ "a kernel's region of another PD", SMW_INV_PD, .region = true, .fast = true,
	  .other_pd = true },
	{ "wrong key of a kernel's region", SMW_INV_KEY, .region = true, .fast = true,
	  .used_key = KEY - 1 },
	{ "a Free window (documented choice)", SMW_INV_FREE, .is_free = true },
	{ "a Free window belongs to no QP", SMW_INV_FREE, .is_free = true,
	  .other_qp = true },
	{ "C10-72: another PD", SMW_INV_PD, .other_pd = true },
	{ "C10-72: another PD and QP", SMW_INV_PD, .other_pd = true,
	  .other_qp = true },
	{ "another QP's window", SMW_INV_QP, .other_qp = true },
};

KUNIT_ARRAY_PARAM_DESC(invalidate, invalidate_rows, desc);

static void smw_invalidate_check__rows(struct kunit *test)
{
	const struct invalidate_row *row = test->param_value;
	struct smw_invalidate_facts facts = {
		.is_window = !row->region,
		.is_fast = row->fast,
		.type = row->type_1 ? SMW_WINDOW_TYPE_1 : SMW_WINDOW_TYPE_2,
		.state = row->is_free ? SMW_WINDOW_FREE : SMW_WINDOW_VALID,
		.key = KEY,
		.used_key = row->used_key ? row->used_key : KEY,
		.same_pd = !row->other_pd,
		.same_qp = !row->other_qp,
	};

	KUNIT_EXPECT_EQ(test, smw_invalidate_check(&facts), row->want);
}

/* Of all 64 sets of facts exactly one is enough. */
static void smw_invalidate_check__one_way_to_succeed(struct kunit *test)
{
	u32 set, granted = 0;

	for (set = 0; set < 64; set++) {
		struct smw_invalidate_facts facts = {
			.is_window = set & BIT(0),
			.type = set & BIT(1) ? SMW_WINDOW_TYPE_2 : SMW_WINDOW_TYPE_1,
			.state = set & BIT(2) ? SMW_WINDOW_VALID : SMW_WINDOW_FREE,
			.key = KEY,
			.used_key = set & BIT(3) ? KEY : KEY + 1,
			.same_pd = set & BIT(4),
			.same_qp = set & BIT(5),
		};

		granted += smw_invalidate_check(&facts) == SMW_OK;
	}
	KUNIT_EXPECT_EQ(test, granted, 1u);
}

static struct kunit_case invalidate_cases[] = {
	KUNIT_CASE_PARAM(smw_invalidate_check__rows, invalidate_gen_params),
	KUNIT_CASE(smw_invalidate_check__one_way_to_succeed),
	{}
};

static struct kunit_suite invalidate_suite = {
	.name = "smw_invalidate",
	.test_cases = invalidate_cases,
};

kunit_test_suite(invalidate_suite);
