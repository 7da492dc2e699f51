/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One transport packet in host order, and its way from and to bytes.
 */
#ifndef SMW_PACKET_H
#define SMW_PACKET_H

#include <linux/bits.h>
#include <linux/types.h>
#include <smw/opcode.h>
#include <smw/reason.h>

/* Bytes of the headers (IBTA 9.2 and 9.3) and of what follows the payload. */
#define SMW_BTH_LEN 12
#define SMW_DETH_LEN 8
#define SMW_FETH_LEN 4
#define SMW_RETH_LEN 16
#define SMW_ATOMICETH_LEN 28
#define SMW_AETH_LEN 4
#define SMW_ATOMICACKETH_LEN 8
#define SMW_IMM_LEN 4
#define SMW_IETH_LEN 4
#define SMW_ICRC_LEN 4
/* The longest header of all is BTH + AtomicETH. */
#define SMW_HEADER_MAX (SMW_BTH_LEN + SMW_ATOMICETH_LEN)

/* FETH placement type: what a FLUSH guarantees; one of these or both (A19.4.1). */
#define SMW_PLACE_GLOBAL	BIT(0)	/* visible to all */
#define SMW_PLACE_PERSISTENT	BIT(1)

/* FETH selectivity level: of which memory. */
#define SMW_SELECT_RANGE	0	/* what the RETH names */
#define SMW_SELECT_REGION	1	/* all of what the key names */

/* The longest range, bytes. */
#define SMW_FLUSH_RANGE_MAX	(BIT(31) - 1)

/* What a datagram's receiver finds in front of the payload. */
#define SMW_GRH_LEN 40
/* No VLAN's identifier. */
#define SMW_VLAN_NONE 0xffff

/**
 * struct smw_packet - a transport packet, or several consecutive ones, in host order
 * @op: facts about @opcode; never NULL after a successful parse
 * @opcode: BTH opcode
 * @solicited: BTH SE bit
 * @ack_request: BTH AckReq bit
 * @syndrome: AETH syndrome byte
 * @pad: BTH pad count, 0 to 3; set by the parser, computed by the builder
 * @placement: FETH placement type, 4 bits
 * @selectivity: FETH selectivity level, 2 bits
 * @pkey: BTH partition key
 * @qpn: destination QP number, 24 bits
 * @psn: PSN of the first packet covered, 24 bits
 * @span: number of consecutive PSNs covered: 1 on the wire, more where a
 *        carrier hands over a run of packets of one message as one. A run that
 *        is not the message's end has a payload of exactly @span * path MTU.
 * @qkey: DETH queue key
 * @source_qpn: DETH source QP number, 24 bits
 * @grh: of a datagram for the responder: the SMW_GRH_LEN bytes that go in front of
 *       its payload; set by the carrier
 * @vlan_id: of a datagram for a kernel consumer: the VLAN that its target address is on,
 *           or SMW_VLAN_NONE; set by the carrier
 * @va: RETH or AtomicETH remote virtual address
 * @rkey: RETH or AtomicETH remote key
 * @length: RETH DMA length, bytes; of a FLUSH, those of its range
 * @swap_add: AtomicETH swap or add operand
 * @compare: AtomicETH compare operand
 * @original: AtomicAckETH original data
 * @msn: AETH message sequence number, 24 bits
 * @imm: immediate data, network order as the application gave it
 * @invalidate: IETH rkey
 * @payload_len: payload bytes, without padding and ICRC
 * @header_len: bytes of BTH and extension headers
 */
struct smw_packet {
	const struct smw_opcode_info *op;
	u8 opcode;
	bool solicited;
	bool ack_request;
	u8 syndrome;
	u8 pad;
	u8 placement;
	u8 selectivity;
	u16 pkey;
	u32 qpn;
	u32 psn;
	u32 span;
	u32 qkey;
	u32 source_qpn;
	const u8 *grh;
	u16 vlan_id;
	u64 va;
	u32 rkey;
	u32 length;
	u64 swap_add;
	u64 compare;
	u64 original;
	u32 msn;
	__be32 imm;
	u32 invalidate;
	u32 payload_len;
	u32 header_len;
};

/**
 * smw_packet_parse() - read the headers of one packet
 * @packet: filled on success; on failure @packet->qpn and ->opcode are valid
 *          where the BTH itself was whole, the rest is not
 * @header: the first bytes of the UDP payload, contiguous
 * @available: bytes readable at @header
 * @total: bytes of the whole UDP payload, ICRC included; @available <= @total
 *
 * Return: SMW_OK, or SMW_DROP_TRUNCATED (BTH, extension headers or ICRC do not
 * fit in @total, or the headers not in @available), SMW_DROP_VERSION (transport
 * header version not 0), SMW_DROP_OPCODE (unknown), SMW_DROP_PAD (padding
 * longer than what follows the headers, payload and padding no multiple of four
 * bytes, or either of them on an opcode that carries none).
 */
enum smw_reason smw_packet_parse(struct smw_packet *packet, const void *header,
				 u32 available, u32 total);

/**
 * smw_packet_build() - write the headers of one packet
 * @packet: opcode and the fields its headers need; @packet->pad and
 *          ->header_len are set here from ->payload_len and ->opcode
 * @header: room for SMW_HEADER_MAX bytes
 *
 * Return: bytes written; 0 for an opcode that smw_opcode_lookup() does not know.
 */
u32 smw_packet_build(struct smw_packet *packet, void *header);

#endif /* SMW_PACKET_H */
