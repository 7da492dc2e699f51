// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Times of retransmission.
 */
#include <smw/retry.h>

#include <linux/bits.h>
#include <linux/minmax.h>

#include <smw/kunit.h>

#define TIMER_CODE_MASK		GENMASK(4, 0)
#define ACK_TIMEOUT_UNIT_NS	4096
#define NS_PER_US		1000

/* A wait that was not asked for is no longer than this; 10 us doubled ten times. */
#define RNR_WAIT_MAX_NS		8000000ULL
#define RNR_DOUBLINGS_MAX	10

/* IBTA table 45, in microseconds. */
static const u32 smw_rnr_timer_us[] = {
	[0] = 655360,
	[1] = 10,
	[2] = 20,
	[3] = 30,
	[4] = 40,
	[5] = 60,
	[6] = 80,
	[7] = 120,
	[8] = 160,
	[9] = 240,
	[10] = 320,
	[11] = 480,
	[12] = 640,
	[13] = 960,
	[14] = 1280,
	[15] = 1920,
	[16] = 2560,
	[17] = 3840,
	[18] = 5120,
	[19] = 7680,
	[20] = 10240,
	[21] = 15360,
	[22] = 20480,
	[23] = 30720,
	[24] = 40960,
	[25] = 61440,
	[26] = 81920,
	[27] = 122880,
	[28] = 163840,
	[29] = 245760,
	[30] = 327680,
	[31] = 491520,
};

u64 smw_rnr_timer_ns(u8 code)
{
	return (u64)smw_rnr_timer_us[code & TIMER_CODE_MASK] * NS_PER_US;
}
EXPORT_SYMBOL_IF_KUNIT(smw_rnr_timer_ns);

u64 smw_rnr_wait_ns(u8 code, u32 repeated)
{
	u64 asked = smw_rnr_timer_ns(code);
	u64 grown = asked << min_t(u32, repeated, RNR_DOUBLINGS_MAX);

	return max(asked, min(grown, RNR_WAIT_MAX_NS));
}
EXPORT_SYMBOL_IF_KUNIT(smw_rnr_wait_ns);

u64 smw_ack_timeout_ns(u8 timeout)
{
	timeout &= TIMER_CODE_MASK;
	return timeout ? (u64)ACK_TIMEOUT_UNIT_NS << timeout : 0;
}
EXPORT_SYMBOL_IF_KUNIT(smw_ack_timeout_ns);
