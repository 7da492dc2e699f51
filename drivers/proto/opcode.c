// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The tables of BTH opcodes (IBTA 9.2.1, table 38), by their lower five bits: what
 * they mean is the same for every transport service that has them, but UD's have a
 * header more.
 */
#include <smw/opcode.h>

#include <linux/array_size.h>
#include <linux/stddef.h>

#include <smw/kunit.h>
#include <smw/packet.h>

#define OPCODE(opcode, label, operation, bits, extension_bytes) \
	[opcode] = { \
		.name = label, \
		.flags = (bits), \
		.kind = operation, \
		.header_len = SMW_BTH_LEN + (extension_bytes), \
	}

/* Place in a message, for requests and for responses. */
#define FIRST	(SMW_OP_REQUEST | SMW_OP_START | SMW_OP_PAYLOAD)
#define MIDDLE	(SMW_OP_REQUEST | SMW_OP_PAYLOAD)
#define LAST	(SMW_OP_REQUEST | SMW_OP_END | SMW_OP_PAYLOAD)
#define ONLY	(SMW_OP_REQUEST | SMW_OP_START | SMW_OP_END | SMW_OP_PAYLOAD)
#define SINGLE	(SMW_OP_REQUEST | SMW_OP_START | SMW_OP_END)
#define RESPONSE_FIRST	(SMW_OP_START | SMW_OP_PAYLOAD | SMW_OP_AETH)
#define RESPONSE_MIDDLE	(SMW_OP_PAYLOAD)
#define RESPONSE_LAST	(SMW_OP_END | SMW_OP_PAYLOAD | SMW_OP_AETH)
#define RESPONSE_ONLY	(SMW_OP_START | SMW_OP_END | SMW_OP_PAYLOAD | SMW_OP_AETH)
#define RESPONSE_SINGLE	(SMW_OP_START | SMW_OP_END | SMW_OP_AETH)

static const struct smw_opcode_info smw_opcodes[] = {
	OPCODE(SMW_RC_SEND_FIRST, "SEND First",
	       SMW_KIND_SEND, FIRST,
	       0),
	OPCODE(SMW_RC_SEND_MIDDLE, "SEND Middle",
	       SMW_KIND_SEND, MIDDLE,
	       0),
	OPCODE(SMW_RC_SEND_LAST, "SEND Last",
	       SMW_KIND_SEND, LAST | SMW_OP_RECV,
	       0),
	OPCODE(SMW_RC_SEND_LAST_IMM, "SEND Last with Immediate",
	       SMW_KIND_SEND, LAST | SMW_OP_RECV | SMW_OP_IMM,
	       SMW_IMM_LEN),
	OPCODE(SMW_RC_SEND_ONLY, "SEND Only",
	       SMW_KIND_SEND, ONLY | SMW_OP_RECV,
	       0),
	OPCODE(SMW_RC_SEND_ONLY_IMM, "SEND Only with Immediate",
	       SMW_KIND_SEND, ONLY | SMW_OP_RECV | SMW_OP_IMM,
	       SMW_IMM_LEN),
	OPCODE(SMW_RC_WRITE_FIRST, "RDMA WRITE First",
	       SMW_KIND_WRITE, FIRST | SMW_OP_RETH,
	       SMW_RETH_LEN),
	OPCODE(SMW_RC_WRITE_MIDDLE, "RDMA WRITE Middle",
	       SMW_KIND_WRITE, MIDDLE,
	       0),
	OPCODE(SMW_RC_WRITE_LAST, "RDMA WRITE Last",
	       SMW_KIND_WRITE, LAST,
	       0),
	OPCODE(SMW_RC_WRITE_LAST_IMM, "RDMA WRITE Last with Immediate",
	       SMW_KIND_WRITE, LAST | SMW_OP_RECV | SMW_OP_IMM,
	       SMW_IMM_LEN),
	OPCODE(SMW_RC_WRITE_ONLY, "RDMA WRITE Only",
	       SMW_KIND_WRITE, ONLY | SMW_OP_RETH,
	       SMW_RETH_LEN),
	OPCODE(SMW_RC_WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate",
	       SMW_KIND_WRITE, ONLY | SMW_OP_RETH | SMW_OP_RECV | SMW_OP_IMM,
	       SMW_RETH_LEN + SMW_IMM_LEN),
	OPCODE(SMW_RC_READ_REQUEST, "RDMA READ Request",
	       SMW_KIND_READ, SINGLE | SMW_OP_RETH,
	       SMW_RETH_LEN),
	OPCODE(SMW_RC_READ_RESPONSE_FIRST, "RDMA READ Response First",
	       SMW_KIND_READ_RESPONSE, RESPONSE_FIRST,
	       SMW_AETH_LEN),
	OPCODE(SMW_RC_READ_RESPONSE_MIDDLE, "RDMA READ Response Middle",
	       SMW_KIND_READ_RESPONSE, RESPONSE_MIDDLE,
	       0),
	OPCODE(SMW_RC_READ_RESPONSE_LAST, "RDMA READ Response Last",
	       SMW_KIND_READ_RESPONSE, RESPONSE_LAST,
	       SMW_AETH_LEN),
	OPCODE(SMW_RC_READ_RESPONSE_ONLY, "RDMA READ Response Only",
	       SMW_KIND_READ_RESPONSE, RESPONSE_ONLY,
	       SMW_AETH_LEN),
	OPCODE(SMW_RC_ACKNOWLEDGE, "Acknowledge",
	       SMW_KIND_ACK, RESPONSE_SINGLE,
	       SMW_AETH_LEN),
	OPCODE(SMW_RC_ATOMIC_ACKNOWLEDGE, "ATOMIC Acknowledge",
	       SMW_KIND_ATOMIC_ACK, RESPONSE_SINGLE | SMW_OP_ATOMICACKETH,
	       SMW_AETH_LEN + SMW_ATOMICACKETH_LEN),
	OPCODE(SMW_RC_COMPARE_SWAP, "CmpSwap",
	       SMW_KIND_ATOMIC, SINGLE | SMW_OP_ATOMICETH,
	       SMW_ATOMICETH_LEN),
	OPCODE(SMW_RC_FETCH_ADD, "FetchAdd",
	       SMW_KIND_ATOMIC, SINGLE | SMW_OP_ATOMICETH,
	       SMW_ATOMICETH_LEN),
	OPCODE(SMW_RC_SEND_LAST_INV, "SEND Last with Invalidate",
	       SMW_KIND_SEND, LAST | SMW_OP_RECV | SMW_OP_IETH,
	       SMW_IETH_LEN),
	OPCODE(SMW_RC_SEND_ONLY_INV, "SEND Only with Invalidate",
	       SMW_KIND_SEND, ONLY | SMW_OP_RECV | SMW_OP_IETH,
	       SMW_IETH_LEN),
	OPCODE(SMW_RC_FLUSH, "FLUSH",
	       SMW_KIND_FLUSH, SINGLE | SMW_OP_FETH | SMW_OP_RETH,
	       SMW_FETH_LEN + SMW_RETH_LEN),
	OPCODE(SMW_RC_ATOMIC_WRITE, "ATOMIC WRITE",
	       SMW_KIND_ATOMIC_WRITE, ONLY | SMW_OP_RETH,
	       SMW_RETH_LEN),
};

static const struct smw_opcode_info smw_datagram_opcodes[] = {
	OPCODE(SMW_RC_SEND_ONLY, "SEND Only",
	       SMW_KIND_SEND, ONLY | SMW_OP_DETH | SMW_OP_RECV,
	       SMW_DETH_LEN),
	OPCODE(SMW_RC_SEND_ONLY_IMM, "SEND Only with Immediate",
	       SMW_KIND_SEND, ONLY | SMW_OP_DETH | SMW_OP_RECV | SMW_OP_IMM,
	       SMW_DETH_LEN + SMW_IMM_LEN),
};

/* How many rows a transport service has: all of its opcodes are among them. */
static u8 smw_opcode_rows(u8 transport, const struct smw_opcode_info **table)
{
	*table = smw_opcodes;
	switch (transport) {
	case SMW_OPCODE_RC:
		return ARRAY_SIZE(smw_opcodes);
	case SMW_OPCODE_UC:
		return SMW_RC_WRITE_ONLY_IMM + 1;
	case SMW_OPCODE_UD:
		*table = smw_datagram_opcodes;
		return ARRAY_SIZE(smw_datagram_opcodes);
	default:
		return 0;
	}
}

const struct smw_opcode_info *smw_opcode_lookup(u8 opcode)
{
	u8 operation = opcode & ~SMW_OPCODE_TRANSPORT_MASK;
	const struct smw_opcode_info *table;

	if (operation >= smw_opcode_rows(opcode & SMW_OPCODE_TRANSPORT_MASK, &table))
		return NULL;
	return table[operation].header_len ? &table[operation] : NULL;
}
EXPORT_SYMBOL_IF_KUNIT(smw_opcode_lookup);
