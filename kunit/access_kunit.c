// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rules of an access through a key, one row per rule of
 * Documentation/memory-windows.rst.
 */
#include <smw/window.h>

#include <kunit/test.h>

#define KEY		0x00567801
#define START		0x10000ULL
#define LENGTH		0x100ULL
#define TOP		0xffffffffffffffffULL

#define WINDOW_1	BIT(0)
#define WINDOW_2	BIT(1)
#define REGION		BIT(2)

/**
 * struct access_row - how one access differs from one that is granted
 * @desc: clause and rule
 * @want: the answer
 * @kinds: what the key names, a set; 0 for all three
 * @used_key: key in the packet; 0 for the right one
 * @not_live: unbound window, or region being deregistered
 * @other_pd: the QP is of another PD
 * @other_qp: the QP is not the one that a type 2 window is bound to
 * @no_rights: nothing granted by window or region
 * @qp_no_rights: nothing granted by the QP
 */
struct access_row {
	const char *desc;
	enum smw_reason want;
	u8 kinds;
	u32 used_key;
	bool not_live;
	bool other_pd;
	bool other_qp;
	bool no_rights;
	bool qp_no_rights;
};

static const struct access_row access_rows[] = {
	{ "2: current key of something live", SMW_OK },
	{ "2: key byte one less", SMW_ACCESS_OLD_KEY, .used_key = KEY - 1 },
	{ "2: key byte one more", SMW_ACCESS_OLD_KEY, .used_key = KEY + 1 },
	{ "2: right key byte, another index", SMW_ACCESS_OLD_KEY,
	  .used_key = KEY + 0x100 },
	{ "2: only the top bit differs", SMW_ACCESS_OLD_KEY,
	  .used_key = KEY | BIT(31) },
	{ "2: not bound", SMW_ACCESS_UNBOUND, .not_live = true },
	{ "6: region being deregistered", SMW_ACCESS_UNBOUND, REGION,
	  .not_live = true },

	{ "3: another PD", SMW_ACCESS_PD, .other_pd = true },
	{ "3: type 2B on its QP, but another PD", SMW_ACCESS_PD, WINDOW_2,
	  .other_pd = true },
	{ "3: type 2B, another QP of the PD", SMW_ACCESS_QP, WINDOW_2,
	  .other_qp = true },
	{ "3: type 1, any QP of the PD", SMW_OK, WINDOW_1, .other_qp = true },
	{ "3: region, any QP of the PD", SMW_OK, REGION, .other_qp = true },

	{ "4: right not granted by window or region", SMW_ACCESS_RIGHT,
	  .no_rights = true },
	{ "4: right not granted by the QP", SMW_ACCESS_QP_RIGHT,
	  .qp_no_rights = true },
	{ "4: granted by neither", SMW_ACCESS_RIGHT, .no_rights = true,
	  .qp_no_rights = true },
};

KUNIT_ARRAY_PARAM_DESC(access, access_rows, desc);

static struct smw_access_facts access_facts(const struct access_row *row, u8 kind,
					    u32 needed)
{
	struct smw_access_facts facts = {
		.is_window = kind != REGION,
		.type = kind == WINDOW_2 ? SMW_WINDOW_TYPE_2 : SMW_WINDOW_TYPE_1,
		.live = !row->not_live,
		.key = KEY,
		.used_key = row->used_key ? row->used_key : KEY,
		.same_pd = !row->other_pd,
		.same_qp = !row->other_qp,
		.rights = row->no_rights ? 0 : needed,
		.qp_rights = row->qp_no_rights ? 0 : needed,
		.needed = needed,
		.start = START,
		.length = LENGTH,
		.va = START,
		.bytes = LENGTH,
	};

	return facts;
}

static void smw_access_check__rows(struct kunit *test)
{
	static const u32 operations[] = {
		SMW_REMOTE_WRITE, SMW_REMOTE_READ, SMW_REMOTE_ATOMIC,
		SMW_FLUSH_GLOBAL, SMW_FLUSH_PERSISTENT, SMW_FLUSH_RIGHTS,
	};
	const struct access_row *row = test->param_value;
	u8 kinds = row->kinds ? row->kinds : WINDOW_1 | WINDOW_2 | REGION;
	u32 i, kind;

	for (kind = WINDOW_1; kind <= REGION; kind <<= 1)
		for (i = 0; i < ARRAY_SIZE(operations); i++) {
			struct smw_access_facts facts =
				access_facts(row, kind, operations[i]);

			if (kinds & kind)
				KUNIT_EXPECT_EQ_MSG(test, smw_access_check(&facts),
						    row->want,
						    "kind %u operation %#x",
						    kind, operations[i]);
		}
}

/* 4: every set of rights of the window against every set of the QP. */
static void smw_access_check__every_right(struct kunit *test)
{
	static const struct access_row good;
	struct smw_access_facts facts = access_facts(&good, WINDOW_2, 0);
	enum smw_reason want;

	for (facts.needed = SMW_REMOTE_WRITE; facts.needed <= SMW_REMOTE_ATOMIC;
	     facts.needed <<= 1)
		for (facts.rights = 0; facts.rights < 64; facts.rights++)
			for (facts.qp_rights = 0; facts.qp_rights < 64; facts.qp_rights++) {
				want = SMW_OK;
				if (!(facts.qp_rights & facts.needed))
					want = SMW_ACCESS_QP_RIGHT;
				if (!(facts.rights & facts.needed))
					want = SMW_ACCESS_RIGHT;
				KUNIT_EXPECT_EQ_MSG(test, smw_access_check(&facts), want,
						    "needed %#x rights %#x QP %#x",
						    facts.needed, facts.rights,
						    facts.qp_rights);
			}
}

/* 4: a FLUSH that asks for two guarantees needs both rights, of both. */
static void smw_access_check__all_that_is_needed(struct kunit *test)
{
	static const struct access_row good;
	struct smw_access_facts facts = access_facts(&good, WINDOW_2, SMW_FLUSH_RIGHTS);
	enum smw_reason want;
	u32 rights, qp_rights;

	for (rights = 0; rights < 4; rights++)
		for (qp_rights = 0; qp_rights < 4; qp_rights++) {
			want = SMW_OK;
			if (qp_rights != 3)
				want = SMW_ACCESS_QP_RIGHT;
			if (rights != 3)
				want = SMW_ACCESS_RIGHT;
			facts.rights = rights * SMW_FLUSH_GLOBAL;
			facts.qp_rights = qp_rights * SMW_FLUSH_GLOBAL;
			KUNIT_EXPECT_EQ_MSG(test, smw_access_check(&facts), want,
					    "rights %#x QP %#x", facts.rights,
					    facts.qp_rights);
		}
}

/* An operation that needs no right is no operation. */
static void smw_access_check__nothing_needed(struct kunit *test)
{
	static const struct access_row good;
	struct smw_access_facts facts = access_facts(&good, WINDOW_1, 0);

	facts.rights = 0xffffffff;
	facts.qp_rights = 0xffffffff;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_RIGHT);
}

struct access_range_row {
	const char *desc;
	u64 start;
	u64 length;
	u64 va;
	u64 bytes;
	enum smw_reason want;
};

/* The window's bounds: what its region holds beyond them does not count. */
static const struct access_range_row access_range_rows[] = {
	{ "5: the whole window", 0x10000, 0x100, 0x10000, 0x100, SMW_OK },
	{ "5: its first byte", 0x10000, 0x100, 0x10000, 1, SMW_OK },
	{ "5: its last byte", 0x10000, 0x100, 0x100ff, 1, SMW_OK },
	{ "5: a byte before", 0x10000, 0x100, 0xffff, 1, SMW_ACCESS_RANGE },
	{ "5: a byte after", 0x10000, 0x100, 0x10100, 1, SMW_ACCESS_RANGE },
	{ "5: starts a byte early", 0x10000, 0x100, 0xffff, 8, SMW_ACCESS_RANGE },
	{ "5: ends a byte late", 0x10000, 0x100, 0x100f9, 8, SMW_ACCESS_RANGE },
	{ "5: a byte longer", 0x10000, 0x100, 0x10000, 0x101, SMW_ACCESS_RANGE },
	{ "5: sum wraps to 0", 0x10000, 0x100, 0x10000, TOP - 0xffff,
	  SMW_ACCESS_RANGE },
	{ "5: sum wraps into the window", 0x10000, 0x100, 0x10080, TOP,
	  SMW_ACCESS_RANGE },
	{ "5: from below 2^64 around into it", 0, 0x100, TOP, 2, SMW_ACCESS_RANGE },
	{ "5: 4 GiB and a byte", 0x10000, 0x100, 0x10000, 0x100000001ULL,
	  SMW_ACCESS_RANGE },
	{ "5: address 4 GiB above", 0x10000, 0x100, 0x100010000ULL, 1,
	  SMW_ACCESS_RANGE },
	{ "5: window that ends at 2^64: its last byte", TOP - 0xff, 0x100, TOP, 1,
	  SMW_OK },
	{ "5: window that ends at 2^64: past it", TOP - 0xff, 0x100, TOP, 2,
	  SMW_ACCESS_RANGE },
	{ "5: a FLUSH of no bytes", 0x10000, 0x100, 0x10080, 0, SMW_OK },
	{ "5: a FLUSH of no bytes at the end", 0x10000, 0x100, 0x10100, 0, SMW_OK },
	{ "5: a FLUSH of no bytes before", 0x10000, 0x100, 0xffff, 0, SMW_ACCESS_RANGE },
	{ "5: a FLUSH of no bytes behind", 0x10000, 0x100, 0x10101, 0, SMW_ACCESS_RANGE },
	{ "5: zero based: offset 0", 0, 0x100, 0, 0x100, SMW_OK },
	{ "5: zero based: last byte", 0, 0x100, 0xff, 1, SMW_OK },
	{ "5: zero based: past the end", 0, 0x100, 0x100, 1, SMW_ACCESS_RANGE },
	{ "5: zero based: a virtual address is no offset", 0, 0x100, 0x10000, 1,
	  SMW_ACCESS_RANGE },
	{ "5: zero based: offset -1", 0, 0x100, TOP, 1, SMW_ACCESS_RANGE },
};

KUNIT_ARRAY_PARAM_DESC(access_range, access_range_rows, desc);

static void smw_access_check__range(struct kunit *test)
{
	static const struct access_row good;
	const struct access_range_row *row = test->param_value;
	u32 kind;

	for (kind = WINDOW_1; kind <= REGION; kind <<= 1) {
		struct smw_access_facts facts =
			access_facts(&good, kind, SMW_REMOTE_WRITE);

		facts.start = row->start;
		facts.length = row->length;
		facts.va = row->va;
		facts.bytes = row->bytes;
		KUNIT_EXPECT_EQ_MSG(test, smw_access_check(&facts), row->want,
				    "kind %u", kind);
	}
}

/* Everything is wrong; mended one by one, the next rule of the order speaks. */
static void smw_access_check__order(struct kunit *test)
{
	static const struct access_row bad = {
		.used_key = KEY + 1,
		.not_live = true,
		.other_pd = true,
		.other_qp = true,
		.no_rights = true,
		.qp_no_rights = true,
	};
	struct smw_access_facts facts = access_facts(&bad, WINDOW_2, SMW_REMOTE_READ);

	facts.va = START + LENGTH;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_OLD_KEY);
	facts.used_key = facts.key;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_UNBOUND);
	facts.live = true;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_PD);
	facts.same_pd = true;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_QP);
	facts.same_qp = true;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_RIGHT);
	facts.rights = SMW_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_QP_RIGHT);
	facts.qp_rights = SMW_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_ACCESS_RANGE);
	facts.va = START;
	KUNIT_EXPECT_EQ(test, smw_access_check(&facts), SMW_OK);
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE_PARAM(smw_access_check__rows, access_gen_params),
	KUNIT_CASE(smw_access_check__every_right),
	KUNIT_CASE(smw_access_check__all_that_is_needed),
	KUNIT_CASE(smw_access_check__nothing_needed),
	KUNIT_CASE_PARAM(smw_access_check__range, access_range_gen_params),
	KUNIT_CASE(smw_access_check__order),
	{}
};

static struct kunit_suite access_suite = {
	.name = "smw_access",
	.test_cases = access_cases,
};

kunit_test_suite(access_suite);
