// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Times of retransmission.
 */
#include <smw/retry.h>

#include <kunit/test.h>

/* IBTA table 45 as it is printed: hundredths of a millisecond. */
static const u32 rnr_timer_rows[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
	512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
	32768, 49152,
};

static void smw_rnr_timer_ns__every_code(struct kunit *test)
{
	u32 code;

	for (code = 0; code < ARRAY_SIZE(rnr_timer_rows); code++)
		KUNIT_EXPECT_EQ_MSG(test, smw_rnr_timer_ns(code),
				    rnr_timer_rows[code] * 10000ULL, "code %u", code);
}

static void smw_rnr_timer_ns__grows_after_0(struct kunit *test)
{
	u32 code;

	for (code = 2; code < ARRAY_SIZE(rnr_timer_rows); code++)
		KUNIT_EXPECT_LT(test, smw_rnr_timer_ns(code - 1),
				smw_rnr_timer_ns(code));
	KUNIT_EXPECT_GT(test, smw_rnr_timer_ns(0), smw_rnr_timer_ns(31));
}

static void smw_rnr_timer_ns__ignores_high_bits(struct kunit *test)
{
	u32 code;

	for (code = 32; code < 256; code++)
		KUNIT_EXPECT_EQ_MSG(test, smw_rnr_timer_ns(code),
				    smw_rnr_timer_ns(code % 32), "code %u", code);
}

/* Never less than asked for; from one to the next at most doubled; 8 ms at the end. */
static void smw_rnr_wait_ns__grows_to_a_bound(struct kunit *test)
{
	const u64 bound = 8000000;
	u32 code, repeated;

	for (code = 0; code < 32; code++) {
		u64 asked = smw_rnr_timer_ns(code);
		u64 before = asked;

		KUNIT_EXPECT_EQ_MSG(test, smw_rnr_wait_ns(code, 0), asked, "code %u", code);
		for (repeated = 1; repeated < 70; repeated++) {
			u64 wait = smw_rnr_wait_ns(code, repeated);

			KUNIT_EXPECT_LE(test, before, wait);
			KUNIT_EXPECT_LE(test, wait, 2 * before);
			before = wait;
		}
		KUNIT_EXPECT_EQ_MSG(test, before, asked > bound ? asked : bound,
				    "code %u", code);
		KUNIT_EXPECT_EQ(test, smw_rnr_wait_ns(code, ~0U), before);
	}
}

static void smw_ack_timeout_ns__every_exponent(struct kunit *test)
{
	u64 want = 4096;
	u32 timeout;

	KUNIT_EXPECT_EQ(test, smw_ack_timeout_ns(0), 0ULL);
	for (timeout = 1; timeout < 32; timeout++) {
		want *= 2;
		KUNIT_EXPECT_EQ_MSG(test, smw_ack_timeout_ns(timeout), want,
				    "timeout %u", timeout);
	}
	/* The longest is about two hours and twenty minutes. */
	KUNIT_EXPECT_EQ(test, smw_ack_timeout_ns(31), 8796093022208ULL);
}

static void smw_ack_timeout_ns__ignores_high_bits(struct kunit *test)
{
	u32 timeout;

	for (timeout = 32; timeout < 256; timeout++)
		KUNIT_EXPECT_EQ_MSG(test, smw_ack_timeout_ns(timeout),
				    smw_ack_timeout_ns(timeout % 32),
				    "timeout %u", timeout);
}

static struct kunit_case retry_cases[] = {
	KUNIT_CASE(smw_rnr_timer_ns__every_code),
	KUNIT_CASE(smw_rnr_timer_ns__grows_after_0),
	KUNIT_CASE(smw_rnr_timer_ns__ignores_high_bits),
	KUNIT_CASE(smw_rnr_wait_ns__grows_to_a_bound),
	KUNIT_CASE(smw_ack_timeout_ns__every_exponent),
	KUNIT_CASE(smw_ack_timeout_ns__ignores_high_bits),
	{}
};

static struct kunit_suite retry_suite = {
	.name = "smw_retry",
	.test_cases = retry_cases,
};

kunit_test_suite(retry_suite);
