// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Transport headers from and to bytes (IBTA 9.2 and 9.3). Every field is
 * named by its offset in its header; multi-byte fields are big endian and
 * need no alignment.
 */
#include <smw/packet.h>

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <smw/kunit.h>
#include <smw/psn.h>

/* BTH */
#define BTH_OPCODE	0
#define BTH_FLAGS	1
#define BTH_PKEY	2
#define BTH_QPN		4	/* with eight variant bits above */
#define BTH_PSN		8	/* with AckReq and seven reserved bits above */

#define BTH_FLAGS_SOLICITED	BIT(7)
#define BTH_FLAGS_MIGRATED	BIT(6)
#define BTH_FLAGS_PAD		GENMASK(5, 4)
#define BTH_FLAGS_VERSION	GENMASK(3, 0)
#define BTH_QPN_MASK		GENMASK(23, 0)
#define BTH_PSN_ACK_REQUEST	BIT(31)

/* DETH */
#define DETH_QKEY	0
#define DETH_QPN	4	/* with eight reserved bits above */

/* FETH, with 26 reserved bits above */
#define FETH_PLACEMENT		GENMASK(3, 0)
#define FETH_SELECTIVITY	GENMASK(5, 4)

/* RETH */
#define RETH_VA		0
#define RETH_RKEY	8
#define RETH_LENGTH	12

/* AtomicETH */
#define ATOMICETH_VA		0
#define ATOMICETH_RKEY		8
#define ATOMICETH_SWAP_ADD	12
#define ATOMICETH_COMPARE	20

/* AETH */
#define AETH_SYNDROME	GENMASK(31, 24)
#define AETH_MSN	GENMASK(23, 0)

static void smw_bth_read(struct smw_packet *packet, const u8 *bth)
{
	u32 psn = get_unaligned_be32(bth + BTH_PSN);

	packet->opcode = bth[BTH_OPCODE];
	packet->solicited = FIELD_GET(BTH_FLAGS_SOLICITED, bth[BTH_FLAGS]);
	packet->pad = FIELD_GET(BTH_FLAGS_PAD, bth[BTH_FLAGS]);
	packet->pkey = get_unaligned_be16(bth + BTH_PKEY);
	packet->qpn = FIELD_GET(BTH_QPN_MASK, get_unaligned_be32(bth + BTH_QPN));
	packet->ack_request = FIELD_GET(BTH_PSN_ACK_REQUEST, psn);
	packet->psn = psn & SMW_PSN_MASK;
	packet->span = 1;
}

static void smw_extensions_read(struct smw_packet *packet, const u8 *from)
{
	u16 flags = packet->op->flags;

	if (flags & SMW_OP_DETH) {
		packet->qkey = get_unaligned_be32(from + DETH_QKEY);
		packet->source_qpn = FIELD_GET(BTH_QPN_MASK,
					       get_unaligned_be32(from + DETH_QPN));
		from += SMW_DETH_LEN;
	}
	if (flags & SMW_OP_FETH) {
		u32 feth = get_unaligned_be32(from);

		packet->placement = FIELD_GET(FETH_PLACEMENT, feth);
		packet->selectivity = FIELD_GET(FETH_SELECTIVITY, feth);
		from += SMW_FETH_LEN;
	}
	if (flags & SMW_OP_RETH) {
		packet->va = get_unaligned_be64(from + RETH_VA);
		packet->rkey = get_unaligned_be32(from + RETH_RKEY);
		packet->length = get_unaligned_be32(from + RETH_LENGTH);
		from += SMW_RETH_LEN;
	}
	if (flags & SMW_OP_ATOMICETH) {
		packet->va = get_unaligned_be64(from + ATOMICETH_VA);
		packet->rkey = get_unaligned_be32(from + ATOMICETH_RKEY);
		packet->swap_add = get_unaligned_be64(from + ATOMICETH_SWAP_ADD);
		packet->compare = get_unaligned_be64(from + ATOMICETH_COMPARE);
		from += SMW_ATOMICETH_LEN;
	}
	if (flags & SMW_OP_AETH) {
		u32 aeth = get_unaligned_be32(from);

		packet->syndrome = FIELD_GET(AETH_SYNDROME, aeth);
		packet->msn = FIELD_GET(AETH_MSN, aeth);
		from += SMW_AETH_LEN;
	}
	if (flags & SMW_OP_ATOMICACKETH) {
		packet->original = get_unaligned_be64(from);
		from += SMW_ATOMICACKETH_LEN;
	}
	if (flags & SMW_OP_IMM) {
		memcpy(&packet->imm, from, SMW_IMM_LEN);
		from += SMW_IMM_LEN;
	}
	if (flags & SMW_OP_IETH)
		packet->invalidate = get_unaligned_be32(from);
}

/* Set the payload length from what lies between the headers and the ICRC. */
static enum smw_reason smw_payload_measure(struct smw_packet *packet, u32 rest)
{
	if (packet->pad > rest || rest % 4)
		return SMW_DROP_PAD;
	if (rest && !(packet->op->flags & SMW_OP_PAYLOAD))
		return SMW_DROP_PAD;
	packet->payload_len = rest - packet->pad;
	return SMW_OK;
}

enum smw_reason smw_packet_parse(struct smw_packet *packet, const void *header,
				 u32 available, u32 total)
{
	const struct smw_opcode_info *op;
	const u8 *bth = header;

	memset(packet, 0, sizeof(*packet));
	available = min(available, total);
	if (available < SMW_BTH_LEN)
		return SMW_DROP_TRUNCATED;
	smw_bth_read(packet, bth);
	if (FIELD_GET(BTH_FLAGS_VERSION, bth[BTH_FLAGS]))
		return SMW_DROP_VERSION;
	op = smw_opcode_lookup(packet->opcode);
	if (!op)
		return SMW_DROP_OPCODE;
	if (available < op->header_len || total - op->header_len < SMW_ICRC_LEN)
		return SMW_DROP_TRUNCATED;
	packet->op = op;
	packet->header_len = op->header_len;
	smw_extensions_read(packet, bth + SMW_BTH_LEN);
	return smw_payload_measure(packet, total - op->header_len - SMW_ICRC_LEN);
}
EXPORT_SYMBOL_IF_KUNIT(smw_packet_parse);

static void smw_bth_write(const struct smw_packet *packet, u8 *bth)
{
	bth[BTH_OPCODE] = packet->opcode;
	/* Without path migration a queue pair is always in state Migrated. */
	bth[BTH_FLAGS] = BTH_FLAGS_MIGRATED |
			 FIELD_PREP(BTH_FLAGS_SOLICITED, packet->solicited) |
			 FIELD_PREP(BTH_FLAGS_PAD, packet->pad);
	put_unaligned_be16(packet->pkey, bth + BTH_PKEY);
	put_unaligned_be32(packet->qpn & BTH_QPN_MASK, bth + BTH_QPN);
	put_unaligned_be32((packet->psn & SMW_PSN_MASK) |
			   FIELD_PREP(BTH_PSN_ACK_REQUEST, packet->ack_request),
			   bth + BTH_PSN);
}

static void smw_extensions_write(const struct smw_packet *packet, u8 *to)
{
	u16 flags = packet->op->flags;

	if (flags & SMW_OP_DETH) {
		put_unaligned_be32(packet->qkey, to + DETH_QKEY);
		put_unaligned_be32(packet->source_qpn & BTH_QPN_MASK, to + DETH_QPN);
		to += SMW_DETH_LEN;
	}
	if (flags & SMW_OP_FETH) {
		put_unaligned_be32(FIELD_PREP(FETH_PLACEMENT, packet->placement) |
				   FIELD_PREP(FETH_SELECTIVITY, packet->selectivity), to);
		to += SMW_FETH_LEN;
	}
	if (flags & SMW_OP_RETH) {
		put_unaligned_be64(packet->va, to + RETH_VA);
		put_unaligned_be32(packet->rkey, to + RETH_RKEY);
		put_unaligned_be32(packet->length, to + RETH_LENGTH);
		to += SMW_RETH_LEN;
	}
	if (flags & SMW_OP_ATOMICETH) {
		put_unaligned_be64(packet->va, to + ATOMICETH_VA);
		put_unaligned_be32(packet->rkey, to + ATOMICETH_RKEY);
		put_unaligned_be64(packet->swap_add, to + ATOMICETH_SWAP_ADD);
		put_unaligned_be64(packet->compare, to + ATOMICETH_COMPARE);
		to += SMW_ATOMICETH_LEN;
	}
	if (flags & SMW_OP_AETH) {
		put_unaligned_be32(FIELD_PREP(AETH_SYNDROME, packet->syndrome) |
				   (packet->msn & AETH_MSN), to);
		to += SMW_AETH_LEN;
	}
	if (flags & SMW_OP_ATOMICACKETH) {
		put_unaligned_be64(packet->original, to);
		to += SMW_ATOMICACKETH_LEN;
	}
	if (flags & SMW_OP_IMM) {
		memcpy(to, &packet->imm, SMW_IMM_LEN);
		to += SMW_IMM_LEN;
	}
	if (flags & SMW_OP_IETH)
		put_unaligned_be32(packet->invalidate, to);
}

u32 smw_packet_build(struct smw_packet *packet, void *header)
{
	const struct smw_opcode_info *op = smw_opcode_lookup(packet->opcode);
	u8 *bth = header;

	if (!op)
		return 0;
	packet->op = op;
	packet->header_len = op->header_len;
	packet->pad = -packet->payload_len % 4;
	smw_bth_write(packet, bth);
	smw_extensions_write(packet, bth + SMW_BTH_LEN);
	return op->header_len;
}
EXPORT_SYMBOL_IF_KUNIT(smw_packet_build);
