// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC against packets whose ICRC is known: captured from
 * hardware, or computed by a program that shares no code with the module.
 */
#include <smw/icrc.h>

#include <kunit/test.h>
#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>

#include <smw/packet.h>

/**
 * struct icrc_row - a whole packet
 * @desc: what it is
 * @bytes: IP header to ICRC
 * @len: how many
 */
struct icrc_row {
	const char *desc;
	const u8 *bytes;
	u32 len;
};

#include "icrc_vectors.h"

KUNIT_ARRAY_PARAM_DESC(icrc, icrc_rows, desc);

static u32 icrc_ip_len(const u8 *bytes)
{
	return bytes[0] >> 4 == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

static __le32 icrc_of(const u8 *bytes, u32 len)
{
	u32 ip_len = icrc_ip_len(bytes);
	const u8 *bth = bytes + ip_len + sizeof(struct udphdr);
	const u8 *rest = bth + SMW_BTH_LEN;
	const u8 *end = bytes + len - SMW_ICRC_LEN;
	struct ipv6hdr ipv6;
	struct udphdr udp;
	struct iphdr ipv4;
	u32 state;

	memcpy(&udp, bytes + ip_len, sizeof(udp));
	if (ip_len == sizeof(ipv4)) {
		memcpy(&ipv4, bytes, sizeof(ipv4));
		state = smw_icrc_start_ipv4(&ipv4, &udp, bth);
	} else {
		memcpy(&ipv6, bytes, sizeof(ipv6));
		state = smw_icrc_start_ipv6(&ipv6, &udp, bth);
	}
	return smw_icrc_finish(crc32_le(state, rest, end - rest));
}

static void smw_icrc__rows(struct kunit *test)
{
	const struct icrc_row *row = test->param_value;
	__le32 got = icrc_of(row->bytes, row->len);

	KUNIT_EXPECT_MEMEQ(test, (const u8 *)&got,
			   row->bytes + row->len - SMW_ICRC_LEN, SMW_ICRC_LEN);
}

/* Is this bit of the headers one that routers and links may change? */
static bool icrc_bit_is_variant(const u8 *bytes, u32 byte, u8 bit)
{
	u32 udp = icrc_ip_len(bytes);

	if (byte == udp + 6 || byte == udp + 7) /* UDP checksum */
		return true;
	if (byte == udp + sizeof(struct udphdr) + 4) /* FECN, BECN, reserved */
		return true;
	if (udp == sizeof(struct iphdr)) /* TOS, TTL, checksum */
		return byte == 1 || byte == 8 || byte == 10 || byte == 11;
	/* traffic class, flow label, hop limit */
	return (byte == 0 && bit < 4) || (byte >= 1 && byte <= 3) || byte == 7;
}

/* Every bit before the ICRC turned over: it counts unless it is variant. */
static void smw_icrc__every_bit(struct kunit *test)
{
	const struct icrc_row *row = test->param_value;
	u8 *bytes = kunit_kmalloc(test, row->len, GFP_KERNEL);
	__le32 whole = icrc_of(row->bytes, row->len);
	u32 byte;
	u8 bit;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	memcpy(bytes, row->bytes, row->len);
	for (byte = 0; byte < row->len - SMW_ICRC_LEN; byte++)
		for (bit = 0; bit < 8; bit++) {
			bool variant = icrc_bit_is_variant(bytes, byte, bit);

			/* The IP version is what the bytes are read by. */
			if (byte == 0 && bit >= 4)
				continue;
			bytes[byte] ^= BIT(bit);
			KUNIT_EXPECT_EQ_MSG(test, variant,
					    icrc_of(bytes, row->len) == whole,
					    "byte %u bit %u", byte, bit);
			bytes[byte] ^= BIT(bit);
		}
}

static struct kunit_case icrc_cases[] = {
	KUNIT_CASE_PARAM(smw_icrc__rows, icrc_gen_params),
	KUNIT_CASE_PARAM(smw_icrc__every_bit, icrc_gen_params),
	{}
};

static struct kunit_suite icrc_suite = {
	.name = "smw_icrc",
	.test_cases = icrc_cases,
};

kunit_test_suite(icrc_suite);
