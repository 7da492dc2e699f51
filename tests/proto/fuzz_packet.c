// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer: any bytes as a packet, any bytes as the facts of a check. What
 * must hold whatever comes in is asserted; the sanitizers watch the rest.
 */
#include <smw/packet.h>

#include <stdlib.h>
#include <string.h>

#include <smw/respond.h>
#include <smw/retry.h>
#include <smw/window.h>

#define ENSURE(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

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
	u8 message;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		if (smw_respond_length(packet, mtu) == SMW_OK)
			ENSURE(packet->payload_len <= packet->span * mtu);
		ENSURE((u64)smw_packet_count(packet->length, mtu) * mtu >= packet->length);
	}
	for (message = SMW_MESSAGE_NONE; message <= SMW_MESSAGE_WRITE; message++)
		smw_respond_order(message, packet->op);
	smw_rnr_timer_ns(packet->syndrome);
	smw_ack_timeout_ns(packet->syndrome);
}

static void parse(const u8 *bytes, size_t len, u32 beyond)
{
	void *header = copy_of(bytes, len);
	u8 built[SMW_HEADER_MAX];
	struct smw_packet packet;
	struct smw_packet again;

	if (smw_packet_parse(&packet, header, len, len + beyond) == SMW_OK) {
		ENSURE(packet.op && packet.span == 1);
		ENSURE(len + beyond == packet.header_len + packet.payload_len +
		       packet.pad + SMW_ICRC_LEN);
		judge(&packet);
		again = packet;
		ENSURE(smw_packet_build(&again, built) == packet.header_len);
		ENSURE(again.pad == packet.pad);
		ENSURE(smw_packet_parse(&again, built, packet.header_len,
					len + beyond) == SMW_OK);
		ENSURE(!memcmp(&again, &packet, sizeof(packet)));
	}
	free(header);
}

/* Granted means inside, computed in 128 bits, where nothing wraps. */
static bool inside(u64 start, u64 size, u64 addr, u64 len)
{
	return addr >= start && (__uint128_t)addr + len <= (__uint128_t)start + size;
}

/* Any byte is not a bool. */
static void tame(bool *field)
{
	u8 *byte = (u8 *)field;

	*byte &= 1;
}

static void check(const u8 *bytes, size_t len)
{
	struct smw_invalidate_facts invalidate = {};
	struct smw_access_facts access = {};
	struct smw_bind_facts bind = {};

	memcpy(&invalidate, bytes, len < sizeof(invalidate) ? len : sizeof(invalidate));
	memcpy(&access, bytes, len < sizeof(access) ? len : sizeof(access));
	memcpy(&bind, bytes, len < sizeof(bind) ? len : sizeof(bind));
	tame(&invalidate.is_window);
	tame(&invalidate.same_pd);
	tame(&invalidate.same_qp);
	tame(&access.is_window);
	tame(&access.live);
	tame(&access.same_pd);
	tame(&access.same_qp);
	tame(&bind.same_pd);
	tame(&bind.region_live);
	tame(&bind.region_zero_based);

	if (smw_invalidate_check(&invalidate) == SMW_OK)
		ENSURE(invalidate.is_window && invalidate.type == SMW_WINDOW_TYPE_2 &&
		       invalidate.state == SMW_WINDOW_VALID);
	if (smw_access_check(&access) == SMW_OK)
		ENSURE(access.live && access.same_pd && access.key == access.used_key &&
		       inside(access.start, access.length, access.va, access.bytes));
	if (smw_bind_check(&bind) == SMW_OK && bind.length)
		ENSURE(bind.region_live && bind.region_rights & SMW_MW_BIND &&
		       inside(bind.region_start, bind.region_length, bind.addr,
			      bind.length));
}

/* Under the name by which libFuzzer calls it. */
int fuzz_one(const u8 *bytes, size_t len) __asm__("LLVMFuzzerTestOneInput");

int fuzz_one(const u8 *bytes, size_t len)
{
	if (!len)
		return 0;
	/* The first byte says how much of the packet is not at hand. */
	parse(bytes + 1, len - 1, bytes[0]);
	check(bytes + 1, len - 1);
	return 0;
}
