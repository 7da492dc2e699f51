// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A request's place in the stream.
 */
#include <smw/respond.h>

#include <kunit/test.h>

#include <smw/psn.h>

struct psn_place_row {
	const char *desc;
	u32 psn;
	u32 expected;
	enum smw_reason want;
};

static const struct psn_place_row psn_place_rows[] = {
	{ "9.7.1: the expected one", 100, 100, SMW_OK },
	{ "9.7.1: the one before is a duplicate", 99, 100, SMW_DUPLICATE },
	{ "9.7.1: the one after is out of sequence", 101, 100, SMW_OUT_OF_SEQUENCE },
	{ "9.7.1: the oldest duplicate", 0x800000, 0, SMW_DUPLICATE },
	{ "9.7.1: the farthest out of sequence", 0x7fffff, 0, SMW_OUT_OF_SEQUENCE },
	{ "9.7.1: duplicate across the wrap", 0xffffff, 0, SMW_DUPLICATE },
	{ "9.7.1: out of sequence across the wrap", 0, 0xffffff, SMW_OUT_OF_SEQUENCE },
	{ "9.7.1: expected at the wrap", 0, 0, SMW_OK },
};

KUNIT_ARRAY_PARAM_DESC(psn_place, psn_place_rows, desc);

static void smw_respond_psn__rows(struct kunit *test)
{
	const struct psn_place_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, smw_respond_psn(row->psn, row->expected), row->want);
}

/* For each opcode the messages in which it may come: None, Send, Write. */
struct order_row {
	const char *desc;
	u8 opcode;
	const char *within;
};

static const struct order_row order_rows[] = {
	{ "SEND First starts", SMW_RC_SEND_FIRST, "N" },
	{ "SEND Middle goes on", SMW_RC_SEND_MIDDLE, "S" },
	{ "SEND Last ends", SMW_RC_SEND_LAST, "S" },
	{ "SEND Last with Immediate ends", SMW_RC_SEND_LAST_IMM, "S" },
	{ "SEND Last with Invalidate ends", SMW_RC_SEND_LAST_INV, "S" },
	{ "SEND Only stands alone", SMW_RC_SEND_ONLY, "N" },
	{ "SEND Only with Immediate stands alone", SMW_RC_SEND_ONLY_IMM, "N" },
	{ "SEND Only with Invalidate stands alone", SMW_RC_SEND_ONLY_INV, "N" },
	{ "WRITE First starts", SMW_RC_WRITE_FIRST, "N" },
	{ "WRITE Middle goes on", SMW_RC_WRITE_MIDDLE, "W" },
	{ "WRITE Last ends", SMW_RC_WRITE_LAST, "W" },
	{ "WRITE Last with Immediate ends", SMW_RC_WRITE_LAST_IMM, "W" },
	{ "WRITE Only stands alone", SMW_RC_WRITE_ONLY, "N" },
	{ "WRITE Only with Immediate stands alone", SMW_RC_WRITE_ONLY_IMM, "N" },
	{ "READ Request stands alone", SMW_RC_READ_REQUEST, "N" },
	{ "CmpSwap stands alone", SMW_RC_COMPARE_SWAP, "N" },
	{ "FetchAdd stands alone", SMW_RC_FETCH_ADD, "N" },
	{ "FLUSH stands alone", SMW_RC_FLUSH, "N" },
	{ "ATOMIC WRITE stands alone", SMW_RC_ATOMIC_WRITE, "N" },
	{ "READ Response First is no request", SMW_RC_READ_RESPONSE_FIRST, "" },
	{ "READ Response Middle is no request", SMW_RC_READ_RESPONSE_MIDDLE, "" },
	{ "READ Response Last is no request", SMW_RC_READ_RESPONSE_LAST, "" },
	{ "READ Response Only is no request", SMW_RC_READ_RESPONSE_ONLY, "" },
	{ "Acknowledge is no request", SMW_RC_ACKNOWLEDGE, "" },
	{ "ATOMIC Acknowledge is no request", SMW_RC_ATOMIC_ACKNOWLEDGE, "" },
};

KUNIT_ARRAY_PARAM_DESC(order, order_rows, desc);

static void smw_respond_order__rows(struct kunit *test)
{
	static const struct {
		u8 message;
		char letter;
	} messages[] = {
		{ SMW_MESSAGE_NONE, 'N' },
		{ SMW_MESSAGE_SEND, 'S' },
		{ SMW_MESSAGE_WRITE, 'W' },
	};
	const struct order_row *row = test->param_value;
	const struct smw_opcode_info *op = smw_opcode_lookup(row->opcode);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, op);
	for (i = 0; i < ARRAY_SIZE(messages); i++) {
		bool may = strchr(row->within, messages[i].letter);

		KUNIT_EXPECT_EQ_MSG(test, smw_respond_order(messages[i].message, op),
				    may ? SMW_OK : SMW_BAD_ORDER,
				    "message %c", messages[i].letter);
	}
}

/* UC's are some of RC's again. */
static void smw_respond_order__covers_every_rc_opcode(struct kunit *test)
{
	u32 opcode, i, known = 0;

	for (opcode = SMW_OPCODE_RC; opcode < SMW_OPCODE_UC; opcode++)
		known += !!smw_opcode_lookup(opcode);
	KUNIT_EXPECT_EQ(test, known, (u32)ARRAY_SIZE(order_rows));
	for (i = 0; i < ARRAY_SIZE(order_rows); i++)
		KUNIT_EXPECT_EQ(test, SMW_BAD_ORDER,
				smw_respond_order(99, smw_opcode_lookup(order_rows[i].opcode)));
}

struct length_row {
	const char *desc;
	u8 opcode;
	u32 span;
	u32 least;
	u32 most;
};

/* What is allowed at an MTU of 1024. */
static const struct length_row length_rows[] = {
	{ "SEND First is full", SMW_RC_SEND_FIRST, 1, 1024, 1024 },
	{ "SEND Middle is full", SMW_RC_SEND_MIDDLE, 1, 1024, 1024 },
	{ "SEND Last is not empty", SMW_RC_SEND_LAST, 1, 1, 1024 },
	{ "SEND Last with Immediate is not empty", SMW_RC_SEND_LAST_IMM, 1, 1, 1024 },
	{ "SEND Last with Invalidate is not empty", SMW_RC_SEND_LAST_INV, 1, 1, 1024 },
	{ "SEND Only may be empty", SMW_RC_SEND_ONLY, 1, 0, 1024 },
	{ "SEND Only with Immediate may be empty", SMW_RC_SEND_ONLY_IMM, 1, 0, 1024 },
	{ "SEND Only with Invalidate may be empty", SMW_RC_SEND_ONLY_INV, 1, 0, 1024 },
	{ "WRITE First is full", SMW_RC_WRITE_FIRST, 1, 1024, 1024 },
	{ "WRITE Middle is full", SMW_RC_WRITE_MIDDLE, 1, 1024, 1024 },
	{ "WRITE Last is not empty", SMW_RC_WRITE_LAST, 1, 1, 1024 },
	{ "WRITE Last with Immediate is not empty", SMW_RC_WRITE_LAST_IMM, 1, 1, 1024 },
	{ "WRITE Only may be empty", SMW_RC_WRITE_ONLY, 1, 0, 1024 },
	{ "WRITE Only with Immediate may be empty", SMW_RC_WRITE_ONLY_IMM, 1, 0, 1024 },
	{ "READ Request carries nothing", SMW_RC_READ_REQUEST, 1, 0, 0 },
	{ "FLUSH carries nothing", SMW_RC_FLUSH, 1, 0, 0 },
	/* That it is eight bytes is the responder's to know. */
	{ "ATOMIC WRITE is one packet", SMW_RC_ATOMIC_WRITE, 1, 0, 1024 },
	{ "CmpSwap carries nothing", SMW_RC_COMPARE_SWAP, 1, 0, 0 },
	{ "FetchAdd carries nothing", SMW_RC_FETCH_ADD, 1, 0, 0 },
	{ "run of three: Middle is full", SMW_RC_WRITE_MIDDLE, 3, 3072, 3072 },
	{ "run of three: Last has its third packet", SMW_RC_WRITE_LAST, 3, 2049, 3072 },
	{ "run of three: Only has its third packet", SMW_RC_SEND_ONLY, 3, 2049, 3072 },
	{ "run of 2^21: span * MTU is past 2^31 - 1", SMW_RC_SEND_MIDDLE, 0x200000,
	  0x80000000, 0x80000000 },
};

KUNIT_ARRAY_PARAM_DESC(length, length_rows, desc);

static enum smw_reason judge_length(const struct length_row *row, u32 span, u32 len)
{
	struct smw_packet packet = {
		.op = smw_opcode_lookup(row->opcode),
		.opcode = row->opcode,
		.span = span,
		.payload_len = len,
	};

	return smw_respond_length(&packet, 1024);
}

static void smw_respond_length__rows(struct kunit *test)
{
	const struct length_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, judge_length(row, row->span, row->least), SMW_OK);
	KUNIT_EXPECT_EQ(test, judge_length(row, row->span, row->most), SMW_OK);
	KUNIT_EXPECT_EQ(test, judge_length(row, row->span, row->most + 1),
			SMW_BAD_LENGTH);
	if (row->least)
		KUNIT_EXPECT_EQ(test, judge_length(row, row->span, row->least - 1),
				SMW_BAD_LENGTH);
}

static void smw_respond_length__span_of_nothing(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(length_rows); i++)
		KUNIT_EXPECT_EQ(test, judge_length(&length_rows[i], 0, 0),
				SMW_BAD_LENGTH);
}

/* span * mtu is 2^32: it must not be taken for 0. */
static void smw_respond_length__span_beyond_32_bits(struct kunit *test)
{
	static const struct length_row row = {
		.opcode = SMW_RC_WRITE_MIDDLE,
	};

	KUNIT_EXPECT_EQ(test, judge_length(&row, 0x400000, 0), SMW_BAD_LENGTH);
}

struct flush_row {
	const char *desc;
	u8 placement;
	u8 selectivity;
	u32 length;
	bool want;
};

static const struct flush_row flush_rows[] = {
	{ "A19.4.1: global, of a range", 1, 0, 4096, true },
	{ "A19.4.1: persistent, of a range", 2, 0, 4096, true },
	{ "A19.4.1: both at once", 3, 0, 4096, true },
	{ "A19.4.1: of the whole region", 1, 1, 0, true },
	{ "A19.4.1: a range of no bytes", 1, 0, 0, true },
	{ "A19.4.1: the longest range", 1, 0, 0x7fffffff, true },
	{ "A19.4.1: a byte longer", 1, 0, 0x80000000, false },
	{ "A19.4.1: the longest that a RETH can say", 1, 0, 0xffffffff, false },
	{ "A19.4.1: of the whole region the length is ignored", 1, 1, 0xffffffff, true },
	{ "no placement", 0, 0, 4096, false },
	{ "no placement, of the whole region", 0, 1, 0, false },
};

KUNIT_ARRAY_PARAM_DESC(flush, flush_rows, desc);

static void smw_flush_exists__rows(struct kunit *test)
{
	const struct flush_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, smw_flush_exists(row->placement, row->selectivity, row->length),
			row->want);
}

/* Reserved values, up to those that have no room on the wire. */
static void smw_flush_exists__every_byte(struct kunit *test)
{
	u32 placement, selectivity;

	for (placement = 0; placement < 256; placement++)
		for (selectivity = 0; selectivity < 256; selectivity++)
			KUNIT_EXPECT_EQ_MSG(test, smw_flush_exists(placement, selectivity, 1),
					    placement >= 1 && placement <= 3 &&
					    selectivity <= 1,
					    "placement %u selectivity %u", placement,
					    selectivity);
}

struct count_row {
	const char *desc;
	u32 length;
	u32 mtu;
	u32 want;
};

static const struct count_row count_rows[] = {
	{ "an empty message is a packet", 0, 256, 1 },
	{ "one byte", 1, 256, 1 },
	{ "a byte less than the MTU", 255, 256, 1 },
	{ "the MTU", 256, 256, 1 },
	{ "a byte more", 257, 256, 2 },
	{ "twice the MTU", 512, 256, 2 },
	{ "MTU 4096", 4096, 4096, 1 },
	{ "MTU 4096 and a byte", 4097, 4096, 2 },
	{ "2^31 - 1", 0x7fffffff, 4096, 0x80000 },
	{ "2^31, the longest message", 0x80000000, 4096, 0x80000 },
	{ "2^31 at the smallest MTU", 0x80000000, 256, 0x800000 },
	{ "2^31 and a byte", 0x80000001, 4096, 0x80001 },
	{ "2^32 - 1 does not wrap", 0xffffffff, 4096, 0x100000 },
};

KUNIT_ARRAY_PARAM_DESC(count, count_rows, desc);

static void smw_packet_count__rows(struct kunit *test)
{
	const struct count_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, smw_packet_count(row->length, row->mtu), row->want);
}

/* A message's PSNs stay within the half of the space that counts as new. */
static void smw_packet_count__fits_the_psn_window(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, smw_packet_count(0x80000000, 256),
			(SMW_PSN_MASK + 1) / 2);
}

static struct kunit_case respond_cases[] = {
	KUNIT_CASE_PARAM(smw_respond_psn__rows, psn_place_gen_params),
	KUNIT_CASE_PARAM(smw_respond_order__rows, order_gen_params),
	KUNIT_CASE(smw_respond_order__covers_every_rc_opcode),
	KUNIT_CASE_PARAM(smw_respond_length__rows, length_gen_params),
	KUNIT_CASE(smw_respond_length__span_of_nothing),
	KUNIT_CASE(smw_respond_length__span_beyond_32_bits),
	KUNIT_CASE_PARAM(smw_flush_exists__rows, flush_gen_params),
	KUNIT_CASE(smw_flush_exists__every_byte),
	KUNIT_CASE_PARAM(smw_packet_count__rows, count_gen_params),
	KUNIT_CASE(smw_packet_count__fits_the_psn_window),
	{}
};

static struct kunit_suite respond_suite = {
	.name = "smw_respond",
	.test_cases = respond_cases,
};

kunit_test_suite(respond_suite);
