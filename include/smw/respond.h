/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder's judgement of a request's place in the stream, as pure
 * functions: sequence, opcode order, payload length.
 */
#ifndef SMW_RESPOND_H
#define SMW_RESPOND_H

#include <linux/types.h>
#include <smw/packet.h>
#include <smw/reason.h>

/* What message the responder is in the middle of. */
enum smw_message {
	SMW_MESSAGE_NONE,
	SMW_MESSAGE_SEND,
	SMW_MESSAGE_WRITE,
};

/**
 * smw_respond_psn() - where does a request's PSN stand?
 * @psn: PSN of the packet
 * @expected: the responder's next expected PSN
 *
 * Return: SMW_OK, SMW_DUPLICATE or SMW_OUT_OF_SEQUENCE (IBTA 9.7.1).
 */
enum smw_reason smw_respond_psn(u32 psn, u32 expected);

/**
 * smw_respond_order() - may this opcode come now?
 * @message: the message in progress, enum smw_message
 * @op: facts of the packet's opcode, a request
 *
 * Return: SMW_OK or SMW_BAD_ORDER (C9-43 .. C9-52: a MIDDLE or LAST without
 * its FIRST, another kind inside a message, a FIRST or ONLY inside a message).
 */
enum smw_reason smw_respond_order(u8 message, const struct smw_opcode_info *op);

/**
 * smw_respond_length() - is this payload as long as its opcode demands?
 * @packet: a request with payload or without; its @span and @payload_len
 * @mtu: path MTU, bytes
 *
 * FIRST and MIDDLE: span * mtu exactly. LAST: 1 to mtu in its last packet.
 * ONLY: 0 to mtu. Opcodes without payload: 0.
 *
 * Return: SMW_OK or SMW_BAD_LENGTH.
 */
enum smw_reason smw_respond_length(const struct smw_packet *packet, u32 mtu);

/**
 * smw_flush_exists() - is there a FLUSH of this kind? (A19.4.1)
 * @placement: placement type, any byte
 * @selectivity: selectivity level, any byte
 * @length: bytes of its range, where @selectivity is SMW_SELECT_RANGE
 *
 * What asks for a guarantee that nobody can give must not be answered with success
 * (oA19-1), and what asks for none needs no right, so that none would be checked.
 *
 * Return: true where the values are neither reserved nor empty.
 */
bool smw_flush_exists(u8 placement, u8 selectivity, u32 length);

/**
 * smw_packet_count() - packets that a message of a length takes
 * @length: message bytes
 * @mtu: path MTU, a power of two from 256 to 4096
 *
 * Return: at least 1.
 */
u32 smw_packet_count(u32 length, u32 mtu);

#endif /* SMW_RESPOND_H */
