// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of reasons: no row is missing, and each says what the contract says.
 */
#include <smw/reason.h>

#include <kunit/test.h>

#include <smw/retry.h>

static void smw_reason_info__no_row_is_missing(struct kunit *test)
{
	u32 i;

	for (i = 0; i < SMW_REASON_COUNT; i++) {
		const struct smw_reason_info *info = smw_reason_info(i);

		KUNIT_ASSERT_NOT_NULL_MSG(test, info->name, "reason %u", i);
		KUNIT_ASSERT_NOT_NULL_MSG(test, info->text, "reason %u", i);
		KUNIT_EXPECT_NE_MSG(test, info->name[0], '\0', "reason %u", i);
		KUNIT_EXPECT_NE_MSG(test, info->text[0], '\0', "reason %u", i);
	}
}

static void smw_reason_info__names_are_unique(struct kunit *test)
{
	u32 a, b;

	for (a = 0; a < SMW_REASON_COUNT; a++)
		for (b = 0; b < a; b++)
			KUNIT_EXPECT_TRUE_MSG(test,
					      strcmp(smw_reason_info(a)->name,
						     smw_reason_info(b)->name),
					      "reasons %u and %u", a, b);
}

static void smw_reason_info__names_are_identifiers(struct kunit *test)
{
	u32 i;

	for (i = 0; i < SMW_REASON_COUNT; i++) {
		const char *name = smw_reason_info(i)->name;
		const char *text = smw_reason_info(i)->text;

		KUNIT_EXPECT_EQ_MSG(test, strlen(name),
				    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"),
				    "%s", name);
		KUNIT_EXPECT_NE_MSG(test, text[strlen(text) - 1], '.', "%s", name);
	}
}

static void smw_reason_info__out_of_range_is_ok(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, smw_reason_info(SMW_REASON_COUNT),
			    smw_reason_info(SMW_OK));
	KUNIT_EXPECT_PTR_EQ(test, smw_reason_info((enum smw_reason)-1),
			    smw_reason_info(SMW_OK));
}

/* enum ibv_wc_status, written down a second time */
#define LOC_LEN		1
#define LOC_QP_OP	2
#define LOC_PROT	4
#define MW_BIND		6
#define REM_INV_REQ	9

/**
 * struct reason_row - what reasons @first to @last have in common
 * @desc: the family
 * @first: its first reason
 * @last: its last
 * @info: what each means; @info.name and ->text are not compared
 */
struct reason_row {
	const char *desc;
	enum smw_reason first;
	enum smw_reason last;
	struct smw_reason_info info;
};

#define NAK(code, what, count) \
	{ .answer = SMW_ANSWER_NAK, .nak = (code), .event = (what), .counter = (count) }

static const struct reason_row reason_rows[] = {
	{ "nothing wrong", SMW_OK, SMW_OK, { .counter = SMW_COUNTERS } },
	{ "malformed: dropped", SMW_DROP_TRUNCATED, SMW_DROP_PAD,
	  { .counter = SMW_COUNT_MALFORMED } },
	{ "wrong ICRC: dropped", SMW_DROP_ICRC, SMW_DROP_ICRC,
	  { .counter = SMW_COUNT_ICRC_ERROR } },
	{ "wrong Q_Key: dropped", SMW_DROP_QKEY, SMW_DROP_QKEY,
	  { .counter = SMW_COUNT_QKEY_VIOLATION } },
	{ "wrong address: dropped", SMW_DROP_ADDRESS, SMW_DROP_ADDRESS,
	  { .counter = SMW_COUNT_DROPPED } },
	{ "wrong P_Key: dropped", SMW_DROP_PKEY, SMW_DROP_PKEY,
	  { .counter = SMW_COUNT_PKEY_VIOLATION } },
	{ "not for us: dropped", SMW_DROP_STATE, SMW_DROP_NO_RESOURCE,
	  { .counter = SMW_COUNT_DROPPED } },
	{ "never sent: no packet", SMW_DROP_UNSENT, SMW_DROP_UNSENT,
	  { .counter = SMW_COUNTERS } },
	{ "duplicate: answered again", SMW_DUPLICATE, SMW_DUPLICATE,
	  { .counter = SMW_COUNT_DUPLICATE_REQUEST } },
	{ "out of sequence", SMW_OUT_OF_SEQUENCE, SMW_OUT_OF_SEQUENCE,
	  NAK(0, SMW_EVENT_NONE, SMW_COUNT_OUT_OF_SEQUENCE) },
	{ "invalid request", SMW_BAD_ORDER, SMW_BAD_MESSAGE,
	  NAK(1, SMW_EVENT_QP_REQUEST, SMW_COUNT_INVALID_REQUEST) },
	{ "receiver not ready", SMW_RNR, SMW_RNR,
	  { .answer = SMW_ANSWER_RNR, .counter = SMW_COUNT_RNR_NAK_SENT } },
	{ "receive too short", SMW_RECV_TOO_SHORT, SMW_RECV_TOO_SHORT,
	  { .answer = SMW_ANSWER_NAK, .nak = 1, .recv_status = LOC_LEN,
	    .counter = SMW_COUNT_INVALID_REQUEST } },
	{ "receive's memory", SMW_RECV_PROTECTION, SMW_RECV_PROTECTION,
	  { .answer = SMW_ANSWER_NAK, .nak = 3, .recv_status = LOC_PROT,
	    .counter = SMW_COUNTERS } },
	{ "access: NAK remote access, IBV_EVENT_QP_ACCESS_ERR",
	  SMW_ACCESS_NO_KEY, SMW_ACCESS_RANGE,
	  NAK(2, SMW_EVENT_QP_ACCESS, SMW_COUNT_ACCESS_REFUSED) },
	{ "local access", SMW_LOCAL_NO_KEY, SMW_LOCAL_RANGE,
	  { .send_status = LOC_PROT, .counter = SMW_COUNTERS } },
	{ "bind: IBV_WC_MW_BIND_ERR", SMW_BIND_NO_WINDOW, SMW_BIND_LENGTH,
	  { .send_status = MW_BIND, .counter = SMW_COUNTERS } },
	{ "class J: receive IBV_WC_REM_INV_REQ_ERR, no answer",
	  SMW_INV_NO_KEY, SMW_INV_QP,
	  { .answer = SMW_ANSWER_SILENT_ERROR, .recv_status = REM_INV_REQ,
	    .send_status = MW_BIND, .counter = SMW_COUNTERS } },
	{ "fast registration", SMW_REG_REGION, SMW_REG_RANGE,
	  { .send_status = MW_BIND, .counter = SMW_COUNTERS } },
	{ "work request", SMW_WQE_OPCODE, SMW_WQE_AH,
	  { .send_status = LOC_QP_OP, .counter = SMW_COUNTERS } },
	{ "work request's length", SMW_WQE_LENGTH, SMW_WQE_LENGTH,
	  { .send_status = LOC_LEN, .counter = SMW_COUNTERS } },
};

KUNIT_ARRAY_PARAM_DESC(reason, reason_rows, desc);

static void smw_reason_info__rows(struct kunit *test)
{
	const struct reason_row *row = test->param_value;
	u32 i;

	for (i = row->first; i <= row->last; i++) {
		const struct smw_reason_info *info = smw_reason_info(i);

		KUNIT_EXPECT_EQ_MSG(test, info->answer, row->info.answer,
				    "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->nak, row->info.nak,
				    "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->recv_status, row->info.recv_status,
				    "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->send_status, row->info.send_status,
				    "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->event, row->info.event,
				    "%s", info->name);
		KUNIT_EXPECT_EQ_MSG(test, info->counter, row->info.counter,
				    "%s", info->name);
	}
}

/* The rows above are back to back, so no reason escapes them. */
static void smw_reason_info__families_are_complete(struct kunit *test)
{
	u32 i, next = SMW_OK;

	for (i = 0; i < ARRAY_SIZE(reason_rows); i++) {
		KUNIT_EXPECT_EQ_MSG(test, reason_rows[i].first, next, "%s",
				    reason_rows[i].desc);
		next = reason_rows[i].last + 1;
	}
	KUNIT_EXPECT_EQ(test, next, (u32)SMW_REASON_COUNT);
}

static struct kunit_case reason_cases[] = {
	KUNIT_CASE(smw_reason_info__no_row_is_missing),
	KUNIT_CASE(smw_reason_info__names_are_unique),
	KUNIT_CASE(smw_reason_info__names_are_identifiers),
	KUNIT_CASE(smw_reason_info__out_of_range_is_ok),
	KUNIT_CASE_PARAM(smw_reason_info__rows, reason_gen_params),
	KUNIT_CASE(smw_reason_info__families_are_complete),
	{}
};

static struct kunit_suite reason_suite = {
	.name = "smw_reason",
	.test_cases = reason_cases,
};

kunit_test_suite(reason_suite);
