// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ranges, most of them at the edges of 2^64 (C10-75).
 */
#include <smw/range.h>

#include <kunit/test.h>

#define TOP 0xffffffffffffffffULL

struct range_row {
	const char *desc;
	u64 start;
	u64 size;
	u64 addr;
	u64 len;
	bool want;
};

static const struct range_row range_rows[] = {
	{ "whole", 0x1000, 0x100, 0x1000, 0x100, true },
	{ "first byte", 0x1000, 0x100, 0x1000, 1, true },
	{ "last byte", 0x1000, 0x100, 0x10ff, 1, true },
	{ "byte before", 0x1000, 0x100, 0xfff, 1, false },
	{ "byte after", 0x1000, 0x100, 0x1100, 1, false },
	{ "starts a byte early", 0x1000, 0x100, 0xfff, 0x10, false },
	{ "ends a byte late", 0x1000, 0x100, 0x10f1, 0x10, false },
	{ "one longer than the range", 0x1000, 0x100, 0x1000, 0x101, false },
	{ "around the range", 0x1000, 0x100, 0xfff, 0x102, false },
	{ "empty at the start", 0x1000, 0x100, 0x1000, 0, true },
	{ "empty at the end", 0x1000, 0x100, 0x1100, 0, true },
	{ "empty before", 0x1000, 0x100, 0xfff, 0, false },
	{ "empty after the end", 0x1000, 0x100, 0x1101, 0, false },
	{ "empty range, empty access", 0x1000, 0, 0x1000, 0, true },
	{ "empty range, one byte", 0x1000, 0, 0x1000, 1, false },
	{ "sum wraps to 0", 0x1000, 0x100, 0x1000, TOP - 0xfff, false },
	{ "sum wraps into the range", 0x1000, 0x100, 0x1080, TOP, false },
	{ "sum wraps just to the start", 0x1000, 0x100, 0x1001, TOP, false },
	{ "address just below 2^64, wraps in", 0x0, 0x100, TOP, 2, false },
	{ "longest length from the start", 0, 0x100, 0, TOP, false },
	{ "range ends at 2^64: whole", TOP - 0xff, 0x100, TOP - 0xff, 0x100, true },
	{ "range ends at 2^64: last byte", TOP - 0xff, 0x100, TOP, 1, true },
	{ "range ends at 2^64: past it", TOP - 0xff, 0x100, TOP, 2, false },
	{ "range ends at 2^64: address 0", TOP - 0xff, 0x100, 0, 1, false },
	{ "range ends at 2^64: empty at 0", TOP - 0xff, 0x100, 0, 0, false },
	{ "range ends below 2^64: the last address", TOP - 0x100, 0x100, TOP, 1, false },
	{ "all but one byte: whole", 0, TOP, 0, TOP, true },
	{ "all but one byte: the one", 0, TOP, TOP, 1, false },
	{ "all but one byte: empty at its end", 0, TOP, TOP, 0, true },
	{ "last byte of all", TOP, 1, TOP, 1, true },
	{ "last byte of all, two", TOP, 1, TOP, 2, false },
	{ "sign bit of the address", 0x7fffffffffffffffULL, 2,
	  0x8000000000000000ULL, 1, true },
	{ "sign bit of the length", 0, 0x8000000000000000ULL,
	  0, 0x8000000000000001ULL, false },
};

KUNIT_ARRAY_PARAM_DESC(range, range_rows, desc);

static void smw_range_within__rows(struct kunit *test)
{
	const struct range_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, row->want,
			smw_range_within(row->start, row->size, row->addr, row->len));
}

/*
 * All ranges of a space of eight addresses moved to both ends of the real one,
 * against counting byte by byte.
 */
static bool every_byte_within(u64 start, u64 size, u64 addr, u64 len)
{
	while (len--)
		if (addr + len < start || addr + len >= start + size)
			return false;
	return addr >= start && addr <= start + size;
}

static void smw_range_within__agrees_with_counting(struct kunit *test)
{
	static const u64 bases[] = { 0, 0x1000, TOP - 7 };
	u64 base;
	u32 i, start, size, addr, len;

	for (i = 0; i < ARRAY_SIZE(bases) * 4096; i++) {
		base = bases[i / 4096];
		start = i & 7;
		size = (i >> 3) & 7;
		addr = (i >> 6) & 7;
		len = (i >> 9) & 7;
		if (start + size > 8 || addr + len > 8)
			continue; /* past 2^64 the counting wraps */
		KUNIT_EXPECT_EQ_MSG(test,
				    smw_range_within(base + start, size, base + addr, len),
				    every_byte_within(start, size, addr, len),
				    "base %llx start %u size %u addr %u len %u",
				    base, start, size, addr, len);
	}
}

static struct kunit_case range_cases[] = {
	KUNIT_CASE_PARAM(smw_range_within__rows, range_gen_params),
	KUNIT_CASE(smw_range_within__agrees_with_counting),
	{}
};

static struct kunit_suite range_suite = {
	.name = "smw_range",
	.test_cases = range_cases,
};

kunit_test_suite(range_suite);
