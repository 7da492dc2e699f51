// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of opcodes, all 256 of them.
 */
#include <smw/opcode.h>

#include <kunit/test.h>

/* Flags by the letter, in the order of SMW_OP_*. */
#define REQ	SMW_OP_REQUEST
#define START	SMW_OP_START
#define END	SMW_OP_END
#define RETH	SMW_OP_RETH
#define ATOMIC	SMW_OP_ATOMICETH
#define AETH	SMW_OP_AETH
#define ACKED	SMW_OP_ATOMICACKETH
#define IMM	SMW_OP_IMM
#define IETH	SMW_OP_IETH
#define DATA	SMW_OP_PAYLOAD
#define RECV	SMW_OP_RECV
#define DETH	SMW_OP_DETH
#define FETH	SMW_OP_FETH

struct opcode_row {
	const char *desc;
	u8 opcode;
	u8 kind;
	u8 header_len;
	u16 flags;
};

/* IBTA table 38, written down a second time, in bytes. */
static const struct opcode_row opcode_rows[] = {
	{ "RC SEND First", 0x00, SMW_KIND_SEND, 12, REQ | START | DATA },
	{ "RC SEND Middle", 0x01, SMW_KIND_SEND, 12, REQ | DATA },
	{ "RC SEND Last", 0x02, SMW_KIND_SEND, 12, REQ | END | DATA | RECV },
	{ "RC SEND Last with Immediate", 0x03, SMW_KIND_SEND, 16,
	  REQ | END | IMM | DATA | RECV },
	{ "RC SEND Only", 0x04, SMW_KIND_SEND, 12, REQ | START | END | DATA | RECV },
	{ "RC SEND Only with Immediate", 0x05, SMW_KIND_SEND, 16,
	  REQ | START | END | IMM | DATA | RECV },
	{ "RC RDMA WRITE First", 0x06, SMW_KIND_WRITE, 28, REQ | START | RETH | DATA },
	{ "RC RDMA WRITE Middle", 0x07, SMW_KIND_WRITE, 12, REQ | DATA },
	{ "RC RDMA WRITE Last", 0x08, SMW_KIND_WRITE, 12, REQ | END | DATA },
	{ "RC RDMA WRITE Last with Immediate", 0x09, SMW_KIND_WRITE, 16,
	  REQ | END | IMM | DATA | RECV },
	{ "RC RDMA WRITE Only", 0x0a, SMW_KIND_WRITE, 28,
	  REQ | START | END | RETH | DATA },
	{ "RC RDMA WRITE Only with Immediate", 0x0b, SMW_KIND_WRITE, 32,
	  REQ | START | END | RETH | IMM | DATA | RECV },
	{ "RC RDMA READ Request", 0x0c, SMW_KIND_READ, 28, REQ | START | END | RETH },
	{ "RC RDMA READ Response First", 0x0d, SMW_KIND_READ_RESPONSE, 16,
	  START | AETH | DATA },
	{ "RC RDMA READ Response Middle", 0x0e, SMW_KIND_READ_RESPONSE, 12, DATA },
	{ "RC RDMA READ Response Last", 0x0f, SMW_KIND_READ_RESPONSE, 16,
	  END | AETH | DATA },
	{ "RC RDMA READ Response Only", 0x10, SMW_KIND_READ_RESPONSE, 16,
	  START | END | AETH | DATA },
	{ "RC Acknowledge", 0x11, SMW_KIND_ACK, 16, START | END | AETH },
	{ "RC ATOMIC Acknowledge", 0x12, SMW_KIND_ATOMIC_ACK, 24,
	  START | END | AETH | ACKED },
	{ "RC CmpSwap", 0x13, SMW_KIND_ATOMIC, 40, REQ | START | END | ATOMIC },
	{ "RC FetchAdd", 0x14, SMW_KIND_ATOMIC, 40, REQ | START | END | ATOMIC },
	{ "RC SEND Last with Invalidate", 0x16, SMW_KIND_SEND, 16,
	  REQ | END | IETH | DATA | RECV },
	{ "RC SEND Only with Invalidate", 0x17, SMW_KIND_SEND, 16,
	  REQ | START | END | IETH | DATA | RECV },
	{ "RC FLUSH", 0x1c, SMW_KIND_FLUSH, 32, REQ | START | END | FETH | RETH },
	{ "RC ATOMIC WRITE", 0x1d, SMW_KIND_ATOMIC_WRITE, 28,
	  REQ | START | END | RETH | DATA },
	{ "UC SEND First", 0x20, SMW_KIND_SEND, 12, REQ | START | DATA },
	{ "UC SEND Middle", 0x21, SMW_KIND_SEND, 12, REQ | DATA },
	{ "UC SEND Last", 0x22, SMW_KIND_SEND, 12, REQ | END | DATA | RECV },
	{ "UC SEND Last with Immediate", 0x23, SMW_KIND_SEND, 16,
	  REQ | END | IMM | DATA | RECV },
	{ "UC SEND Only", 0x24, SMW_KIND_SEND, 12, REQ | START | END | DATA | RECV },
	{ "UC SEND Only with Immediate", 0x25, SMW_KIND_SEND, 16,
	  REQ | START | END | IMM | DATA | RECV },
	{ "UC RDMA WRITE First", 0x26, SMW_KIND_WRITE, 28, REQ | START | RETH | DATA },
	{ "UC RDMA WRITE Middle", 0x27, SMW_KIND_WRITE, 12, REQ | DATA },
	{ "UC RDMA WRITE Last", 0x28, SMW_KIND_WRITE, 12, REQ | END | DATA },
	{ "UC RDMA WRITE Last with Immediate", 0x29, SMW_KIND_WRITE, 16,
	  REQ | END | IMM | DATA | RECV },
	{ "UC RDMA WRITE Only", 0x2a, SMW_KIND_WRITE, 28,
	  REQ | START | END | RETH | DATA },
	{ "UC RDMA WRITE Only with Immediate", 0x2b, SMW_KIND_WRITE, 32,
	  REQ | START | END | RETH | IMM | DATA | RECV },
	{ "UD SEND Only", 0x64, SMW_KIND_SEND, 20,
	  REQ | START | END | DETH | DATA | RECV },
	{ "UD SEND Only with Immediate", 0x65, SMW_KIND_SEND, 24,
	  REQ | START | END | DETH | IMM | DATA | RECV },
};

KUNIT_ARRAY_PARAM_DESC(opcode, opcode_rows, desc);

static void smw_opcode_lookup__row(struct kunit *test)
{
	const struct opcode_row *row = test->param_value;
	const struct smw_opcode_info *op = smw_opcode_lookup(row->opcode);

	KUNIT_ASSERT_NOT_NULL(test, op);
	/* The transport service is none of the operation's. */
	KUNIT_EXPECT_STREQ(test, op->name, row->desc + strlen("RC "));
	KUNIT_EXPECT_EQ(test, op->kind, row->kind);
	KUNIT_EXPECT_EQ(test, op->header_len, row->header_len);
	KUNIT_EXPECT_EQ(test, op->flags, row->flags);
}

static bool is_known(u32 opcode)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(opcode_rows); i++)
		if (opcode_rows[i].opcode == opcode)
			return true;
	return false;
}

static void smw_opcode_lookup__every_other_byte_is_unknown(struct kunit *test)
{
	u32 opcode, known = 0;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct smw_opcode_info *op = smw_opcode_lookup(opcode);

		KUNIT_EXPECT_EQ_MSG(test, !!op, is_known(opcode), "opcode %#x", opcode);
		known += !!op;
	}
	KUNIT_EXPECT_EQ(test, known, (u32)ARRAY_SIZE(opcode_rows));
}

static struct kunit_case opcode_cases[] = {
	KUNIT_CASE_PARAM(smw_opcode_lookup__row, opcode_gen_params),
	KUNIT_CASE(smw_opcode_lookup__every_other_byte_is_unknown),
	{}
};

static struct kunit_suite opcode_suite = {
	.name = "smw_opcode",
	.test_cases = opcode_cases,
};

kunit_test_suite(opcode_suite);
