/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What each BTH opcode is: its kind, its place in a message, its headers.
 */
#ifndef SMW_OPCODE_H
#define SMW_OPCODE_H

#include <linux/bits.h>
#include <linux/types.h>

/*
 * RC opcodes (IBTA 9.2.1, table 38). The transport service is in the top three
 * bits; UC has the SENDs and WRITEs of RC, up to SMW_RC_WRITE_ONLY_IMM; UD has the
 * SENDs of one packet, with a header of its own.
 */
enum smw_opcode {
	SMW_RC_SEND_FIRST = 0x00,
	SMW_RC_SEND_MIDDLE = 0x01,
	SMW_RC_SEND_LAST = 0x02,
	SMW_RC_SEND_LAST_IMM = 0x03,
	SMW_RC_SEND_ONLY = 0x04,
	SMW_RC_SEND_ONLY_IMM = 0x05,
	SMW_RC_WRITE_FIRST = 0x06,
	SMW_RC_WRITE_MIDDLE = 0x07,
	SMW_RC_WRITE_LAST = 0x08,
	SMW_RC_WRITE_LAST_IMM = 0x09,
	SMW_RC_WRITE_ONLY = 0x0a,
	SMW_RC_WRITE_ONLY_IMM = 0x0b,
	SMW_RC_READ_REQUEST = 0x0c,
	SMW_RC_READ_RESPONSE_FIRST = 0x0d,
	SMW_RC_READ_RESPONSE_MIDDLE = 0x0e,
	SMW_RC_READ_RESPONSE_LAST = 0x0f,
	SMW_RC_READ_RESPONSE_ONLY = 0x10,
	SMW_RC_ACKNOWLEDGE = 0x11,
	SMW_RC_ATOMIC_ACKNOWLEDGE = 0x12,
	SMW_RC_COMPARE_SWAP = 0x13,
	SMW_RC_FETCH_ADD = 0x14,
	SMW_RC_SEND_LAST_INV = 0x16,
	SMW_RC_SEND_ONLY_INV = 0x17,
	SMW_RC_FLUSH = 0x1c,
	SMW_RC_ATOMIC_WRITE = 0x1d,
};

#define SMW_OPCODE_TRANSPORT_MASK 0xe0
#define SMW_OPCODE_RC 0x00
#define SMW_OPCODE_UC 0x20
#define SMW_OPCODE_UD 0x60

/* Kind of operation: exactly one per opcode. */
enum smw_op_kind {
	SMW_KIND_SEND,
	SMW_KIND_WRITE,
	SMW_KIND_READ,
	SMW_KIND_ATOMIC,
	SMW_KIND_ATOMIC_WRITE,
	SMW_KIND_FLUSH,
	SMW_KIND_READ_RESPONSE,
	SMW_KIND_ACK,
	SMW_KIND_ATOMIC_ACK,
};

/* Flags of struct smw_opcode_info. */
#define SMW_OP_REQUEST	BIT(0)	/* for the responder; otherwise for the requester */
#define SMW_OP_START	BIT(1)	/* first packet of its message: FIRST or ONLY */
#define SMW_OP_END	BIT(2)	/* last packet of its message: LAST or ONLY */
#define SMW_OP_RETH	BIT(3)
#define SMW_OP_ATOMICETH BIT(4)
#define SMW_OP_AETH	BIT(5)
#define SMW_OP_ATOMICACKETH BIT(6)
#define SMW_OP_IMM	BIT(7)
#define SMW_OP_IETH	BIT(8)
#define SMW_OP_PAYLOAD	BIT(9)	/* may carry payload */
#define SMW_OP_RECV	BIT(10)	/* consumes a receive work request at its end */
#define SMW_OP_DETH	BIT(11)
#define SMW_OP_FETH	BIT(12)

/**
 * struct smw_opcode_info - constant facts about one opcode
 * @name: IBTA name without its transport service, for tests
 * @flags: SMW_OP_*
 * @kind: enum smw_op_kind
 * @header_len: bytes of BTH and all extension headers; never 0 for a known one
 */
struct smw_opcode_info {
	const char *name;
	u16 flags;
	u8 kind;
	u8 header_len;
};

/**
 * smw_opcode_lookup() - facts about an opcode
 * @opcode: BTH opcode, any byte
 *
 * Return: the row, or NULL for an opcode that this device does not implement.
 */
const struct smw_opcode_info *smw_opcode_lookup(u8 opcode);

#endif /* SMW_OPCODE_H */
