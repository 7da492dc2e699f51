// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request's place in the stream (IBTA 9.7.1 to 9.7.4).
 */
#include <smw/respond.h>

#include <smw/kunit.h>
#include <smw/psn.h>

enum smw_reason smw_respond_psn(u32 psn, u32 expected)
{
	s32 ahead = smw_psn_diff(psn, expected);

	if (ahead < 0)
		return SMW_DUPLICATE;
	return ahead ? SMW_OUT_OF_SEQUENCE : SMW_OK;
}
EXPORT_SYMBOL_IF_KUNIT(smw_respond_psn);

static bool smw_respond_continues(u8 message, const struct smw_opcode_info *op)
{
	switch (message) {
	case SMW_MESSAGE_SEND:
		return op->kind == SMW_KIND_SEND;
	case SMW_MESSAGE_WRITE:
		return op->kind == SMW_KIND_WRITE;
	default:
		return false;
	}
}

enum smw_reason smw_respond_order(u8 message, const struct smw_opcode_info *op)
{
	bool start = op->flags & SMW_OP_START;

	if (!(op->flags & SMW_OP_REQUEST))
		return SMW_BAD_ORDER;
	if (message == SMW_MESSAGE_NONE)
		return start ? SMW_OK : SMW_BAD_ORDER;
	if (start || !smw_respond_continues(message, op))
		return SMW_BAD_ORDER;
	return SMW_OK;
}
EXPORT_SYMBOL_IF_KUNIT(smw_respond_order);

enum smw_reason smw_respond_length(const struct smw_packet *packet, u32 mtu)
{
	u16 flags = packet->op->flags;
	u64 most = (u64)packet->span * mtu;
	u64 least = most;

	if (!packet->span)
		return SMW_BAD_LENGTH;
	if (!(flags & SMW_OP_PAYLOAD))
		return packet->payload_len ? SMW_BAD_LENGTH : SMW_OK;
	if (flags & SMW_OP_END) {
		least = most - mtu + 1; /* no empty last packet ... */
		if ((flags & SMW_OP_START) && packet->span == 1)
			least = 0; /* ... unless it is the only one */
	}
	if (packet->payload_len < least || packet->payload_len > most)
		return SMW_BAD_LENGTH;
	return SMW_OK;
}
EXPORT_SYMBOL_IF_KUNIT(smw_respond_length);

bool smw_flush_exists(u8 placement, u8 selectivity, u32 length)
{
	if (!placement || placement & ~(SMW_PLACE_GLOBAL | SMW_PLACE_PERSISTENT))
		return false;
	switch (selectivity) {
	case SMW_SELECT_RANGE:
		return length <= SMW_FLUSH_RANGE_MAX;
	case SMW_SELECT_REGION:
		return true;
	default:
		return false;
	}
}
EXPORT_SYMBOL_IF_KUNIT(smw_flush_exists);

u32 smw_packet_count(u32 length, u32 mtu)
{
	return length ? (length - 1) / mtu + 1 : 1;
}
EXPORT_SYMBOL_IF_KUNIT(smw_packet_count);
