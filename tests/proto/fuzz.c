// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Any bytes as a packet, as a run of opcodes, as the facts of a check. The first
 * byte says which. What must hold whatever comes in is ensured, the rules of
 * windows against a second reading of them written down here; the sanitizers
 * watch the rest.
 *
 * libFuzzer calls fuzz_one() with bytes of its own making (make fuzz),
 * fuzz_replay.c with those that are kept in corpus/ (make corpus).
 */
#include "fuzz.h"

#include <smw/packet.h>

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdlib.h>
#include <string.h>

#include <smw/icrc.h>
#include <smw/psn.h>
#include <smw/respond.h>
#include <smw/retry.h>
#include <smw/window.h>

#define ENSURE(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

/* Input as numbers, little endian whatever the machine; zeros behind its end.
 * Taken by statements of their own: in an initializer any order would do.
 */
struct input {
	const u8 *bytes;
	size_t len;
};

static u64 take(struct input *in, unsigned int bytes)
{
	u64 value = 0;
	unsigned int i;

	for (i = 0; i < bytes && in->len; i++, in->bytes++, in->len--)
		value |= (u64)*in->bytes << (8 * i);
	return value;
}

/* ---- packets ---- */

/* Little enough that a length read wrongly runs into the sanitizer. */
static void *copy_of(const u8 *bytes, size_t len)
{
	void *copy = malloc(len);

	ENSURE(copy || !len);
	return len ? memcpy(copy, bytes, len) : copy;
}

static void judge(const struct smw_packet *packet)
{
	u32 mtu;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		if (smw_respond_length(packet, mtu) == SMW_OK)
			ENSURE(packet->payload_len <= packet->span * mtu);
		ENSURE((u64)smw_packet_count(packet->length, mtu) * mtu >= packet->length);
	}
	smw_rnr_timer_ns(packet->syndrome);
	smw_ack_timeout_ns(packet->syndrome);
}

/* IBTA A19.4.1 read a second time. */
static bool is_flush(const struct smw_packet *packet)
{
	switch (packet->selectivity << 4 | packet->placement) {
	case 0x01:
	case 0x02:
	case 0x03:
		return !(packet->length & BIT(31));
	case 0x11:
	case 0x12:
	case 0x13:
		return true;
	default:
		return false;
	}
}

/* The first byte says how much of the packet is not at hand. */
static void packet(struct input *in)
{
	u32 beyond = take(in, 1);
	void *header = copy_of(in->bytes, in->len);
	u8 built[SMW_HEADER_MAX];
	struct smw_packet packet;
	struct smw_packet again;

	if (smw_packet_parse(&packet, header, in->len, in->len + beyond) == SMW_OK) {
		ENSURE(packet.op && packet.span == 1);
		ENSURE(packet.payload_len <= in->len + beyond);
		ENSURE(in->len + beyond == packet.header_len + packet.payload_len +
		       packet.pad + SMW_ICRC_LEN);
		judge(&packet);
		ENSURE(smw_flush_exists(packet.placement, packet.selectivity,
					packet.length) == is_flush(&packet));
		again = packet;
		ENSURE(smw_packet_build(&again, built) == packet.header_len);
		ENSURE(again.pad == packet.pad);
		ENSURE(smw_packet_parse(&again, built, packet.header_len,
					in->len + beyond) == SMW_OK);
		ENSURE(!memcmp(&again, &packet, sizeof(packet)));
	}
	free(header);
}

/* Each byte an opcode: what is let through is whole messages of one kind. */
static void order(struct input *in)
{
	const struct smw_opcode_info *op;
	u8 message = SMW_MESSAGE_NONE;
	u8 kind = 0;

	while (in->len) {
		op = smw_opcode_lookup(take(in, 1));
		if (!op || smw_respond_order(message, op) != SMW_OK)
			continue;
		ENSURE(op->flags & SMW_OP_REQUEST);
		ENSURE(!(op->flags & SMW_OP_START) == (message != SMW_MESSAGE_NONE));
		ENSURE(message == SMW_MESSAGE_NONE || op->kind == kind);
		kind = op->kind;
		if (op->flags & SMW_OP_END)
			message = SMW_MESSAGE_NONE;
		else
			message = kind == SMW_KIND_SEND ? SMW_MESSAGE_SEND :
							  SMW_MESSAGE_WRITE;
	}
}

/* One of before, here and behind; and a step forth and back is none. */
static void psn(struct input *in)
{
	u32 expected = take(in, 4) & SMW_PSN_MASK;
	u32 psn = take(in, 4) & SMW_PSN_MASK;
	enum smw_reason reason = smw_respond_psn(psn, expected);
	u32 ahead = (psn - expected) & SMW_PSN_MASK;

	if (!ahead)
		ENSURE(reason == SMW_OK);
	else
		ENSURE(reason == (ahead < BIT(23) ? SMW_OUT_OF_SEQUENCE : SMW_DUPLICATE));
	ENSURE(smw_psn_add(expected, ahead) == psn);
}

static __le32 icrc_of(const u8 *bytes, bool ipv6)
{
	const u8 *udp = bytes + (ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	const u8 *bth = udp + sizeof(struct udphdr);

	return smw_icrc_finish(ipv6 ?
			       smw_icrc_start_ipv6((const void *)bytes, (const void *)udp, bth) :
			       smw_icrc_start_ipv4((const void *)bytes, (const void *)udp, bth));
}

/* Bits of a header that may change on the way, as a mask of its byte. */
static u8 variant_bits(size_t at, bool ipv6)
{
	size_t udp = ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	size_t bth = udp + sizeof(struct udphdr);

	if (at == udp + 6 || at == udp + 7 || at == bth + 4)
		return 0xff;
	if (ipv6)
		return at == 0 ? 0x0f : at <= 3 || at == 7 ? 0xff : 0;
	return at == 1 || at == 8 || at == 10 || at == 11 ? 0xff : 0;
}

/* A changed bit changes the ICRC, but where routers may change it. */
static void icrc(struct input *in)
{
	u8 bytes[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + SMW_BTH_LEN]
		__attribute__((aligned(8))) = {};
	bool ipv6 = take(in, 1) & 1;
	size_t bit = take(in, 2);
	size_t len = sizeof(bytes);
	__le32 before;

	if (!ipv6)
		len -= sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	memcpy(bytes, in->bytes, in->len < len ? in->len : len);
	bit %= 8 * len;
	before = icrc_of(bytes, ipv6);
	bytes[bit / 8] ^= 1 << bit % 8;
	ENSURE((before == icrc_of(bytes, ipv6)) ==
	       !!(variant_bits(bit / 8, ipv6) & 1 << bit % 8));
}

/* ---- keys and windows ---- */

/* Computed in 128 bits, where nothing wraps. */
static bool inside(u64 start, u64 size, u64 addr, u64 len)
{
	return addr >= start && (__uint128_t)addr + len <= (__uint128_t)start + size;
}

static void access_by_key(struct input *in)
{
	u8 bits = take(in, 1);
	struct smw_access_facts facts = {
		.is_window = bits & BIT(0),
		.type = bits & BIT(1) ? SMW_WINDOW_TYPE_2 : SMW_WINDOW_TYPE_1,
		.live = bits & BIT(2),
		.same_pd = bits & BIT(3),
		.same_qp = bits & BIT(4),
	};
	bool tied, allowed;

	facts.rights = take(in, 1);
	facts.qp_rights = take(in, 1);
	facts.needed = take(in, 1);
	facts.key = take(in, 4);
	facts.used_key = take(in, 4);
	facts.start = take(in, 8);
	facts.length = take(in, 8);
	facts.va = take(in, 8);
	facts.bytes = take(in, 8);
	/* Rights beyond the first byte came later: where older inputs have ended. */
	facts.rights |= take(in, 1) << 8;
	facts.qp_rights |= take(in, 1) << 8;
	facts.needed |= take(in, 1) << 8;
	tied = facts.is_window && facts.type == SMW_WINDOW_TYPE_2;
	allowed = facts.key == facts.used_key && facts.live && facts.same_pd &&
		  (!tied || facts.same_qp) && facts.needed &&
		  (facts.rights & facts.qp_rights & facts.needed) == facts.needed &&
		  inside(facts.start, facts.length, facts.va, facts.bytes);
	ENSURE((smw_access_check(&facts) == SMW_OK) == allowed);
}

static bool bind_key_fits(const struct smw_bind_facts *facts)
{
	u8 low = facts->posted_key;

	return facts->posted_key == facts->window_key ||
	       (facts->type == SMW_WINDOW_TYPE_2 &&
		(facts->posted_key == facts->alloc_key || low == (u8)facts->new_key));
}

static bool bind_region_fits(const struct smw_bind_facts *facts)
{
	u32 flushes = SMW_FLUSH_GLOBAL | SMW_FLUSH_PERSISTENT;
	u32 may = SMW_WINDOW_RIGHTS | SMW_LOCAL_WRITE | (facts->region_rights & flushes);
	u32 writing = SMW_REMOTE_WRITE | SMW_REMOTE_ATOMIC;

	if (facts->type == SMW_WINDOW_TYPE_2)
		may |= SMW_ZERO_BASED;
	return facts->region_live && !facts->region_zero_based &&
	       facts->region_rights & SMW_MW_BIND && !(facts->rights & ~may) &&
	       (!(facts->rights & writing) || facts->region_rights & SMW_LOCAL_WRITE) &&
	       facts->length && inside(facts->region_start, facts->region_length,
				       facts->addr, facts->length);
}

static void bind(struct input *in)
{
	u8 bits = take(in, 1);
	struct smw_bind_facts facts = {
		.type = bits & BIT(0) ? SMW_WINDOW_TYPE_2 : SMW_WINDOW_TYPE_1,
		.state = bits & BIT(1) ? SMW_WINDOW_VALID : SMW_WINDOW_FREE,
		.same_pd = bits & BIT(2),
		.region_live = bits & BIT(3),
		.region_zero_based = bits & BIT(4),
	};
	bool type_2, allowed;

	facts.region_rights = take(in, 1);
	facts.rights = take(in, 4);
	facts.window_key = take(in, 4);
	facts.alloc_key = take(in, 4);
	facts.posted_key = take(in, 4);
	facts.new_key = take(in, 4);
	facts.region_start = take(in, 8);
	facts.region_length = take(in, 8);
	facts.addr = take(in, 8);
	facts.length = take(in, 8);
	facts.region_rights |= take(in, 1) << 8;
	type_2 = facts.type == SMW_WINDOW_TYPE_2;
	allowed = bind_key_fits(&facts) && facts.same_pd &&
		  (!type_2 || facts.state == SMW_WINDOW_FREE) &&
		  ((!type_2 && !facts.length) || bind_region_fits(&facts));
	ENSURE((smw_bind_check(&facts) == SMW_OK) == allowed);
}

static void invalidate(struct input *in)
{
	u8 bits = take(in, 1);
	struct smw_invalidate_facts facts = {
		.is_window = bits & BIT(0),
		.type = bits & BIT(1) ? SMW_WINDOW_TYPE_2 : SMW_WINDOW_TYPE_1,
		.state = bits & BIT(2) ? SMW_WINDOW_VALID : SMW_WINDOW_FREE,
		.same_pd = bits & BIT(3),
		.same_qp = bits & BIT(4),
		.is_fast = bits & BIT(5),
	};
	bool allowed;

	facts.key = take(in, 4);
	facts.used_key = take(in, 4);
	allowed = facts.key == facts.used_key && facts.same_pd &&
		  (facts.is_window ? facts.type == SMW_WINDOW_TYPE_2 &&
				     facts.state == SMW_WINDOW_VALID && facts.same_qp :
				     facts.is_fast);
	ENSURE((smw_invalidate_check(&facts) == SMW_OK) == allowed);
}

/* The order is that of the corpus: new ones go to the end. */
static void (*const targets[])(struct input *in) = {
	packet, order, psn, icrc, access_by_key, bind, invalidate,
};

int fuzz_one(const u8 *bytes, size_t len)
{
	struct input in = { .bytes = bytes, .len = len };
	size_t target = take(&in, 1);

	if (target < sizeof(targets) / sizeof(*targets))
		targets[target](&in);
	return 0;
}
