// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rules of a bind, one row per rule of Documentation/memory-windows.rst.
 */
#include <smw/window.h>

#include <kunit/test.h>

#include <smw/key.h>

#define REGION_START	0x10000ULL
#define REGION_LENGTH	0x2000ULL
#define TOP		0xffffffffffffffffULL

#define ALLOC_KEY	0x00123400
#define WINDOW_KEY	0x001234a5
#define OLD_KEY		0x001234a4
#define OTHER_KEY	0x001235a5
#define NEW_KEY		0x00123477

/* The region's rights where a row takes none away. */
#define REGION_RIGHTS	(SMW_LOCAL_WRITE | SMW_REMOTE_READ | SMW_MW_BIND)

enum posted {
	POSTED_WINDOW_KEY,
	POSTED_ALLOC_KEY,
	POSTED_OLD_KEY,
	POSTED_OTHER_KEY,
	POSTED_NEW_KEY,
};

static const u32 posted_keys[] = {
	[POSTED_WINDOW_KEY] = WINDOW_KEY,
	[POSTED_ALLOC_KEY] = ALLOC_KEY,
	[POSTED_OLD_KEY] = OLD_KEY,
	[POSTED_OTHER_KEY] = OTHER_KEY,
	[POSTED_NEW_KEY] = NEW_KEY,
};

enum where {
	WHOLE_REGION,
	EMPTY,
	EMPTY_ELSEWHERE,
};

/**
 * struct bind_row - how one bind differs from one that succeeds
 * @desc: clause and rule
 * @want: the answer
 * @types: BIT() of each enum smw_window_type it is for; 0 for both
 * @bound: the window is bound already
 * @posted: the window key in the work request
 * @other_pd: window, region and QP are not of one PD
 * @region_gone: the lkey names nothing
 * @region_zero_based: the region is zero based
 * @region_lacks: SMW_* rights that the region has not
 * @region_rights: SMW_* rights that it has beyond the usual
 * @rights: access flags as posted
 * @where: the range as posted
 */
struct bind_row {
	const char *desc;
	enum smw_reason want;
	u8 types;
	bool bound;
	enum posted posted;
	bool other_pd;
	bool region_gone;
	bool region_zero_based;
	u32 region_lacks;
	u32 region_rights;
	u32 rights;
	enum where where;
};

#define TYPE_1 BIT(SMW_WINDOW_TYPE_1)
#define TYPE_2 BIT(SMW_WINDOW_TYPE_2)

static const struct bind_row bind_rows[] = {
	{ "a plain bind succeeds", SMW_OK },

	{ "key: not the current one", SMW_BIND_KEY, .posted = POSTED_OLD_KEY },
	{ "key: of another window", SMW_BIND_KEY, .posted = POSTED_OTHER_KEY },
	{ "key: a type 1 window's first one is dead", SMW_BIND_KEY, TYPE_1,
	  .posted = POSTED_ALLOC_KEY },
	{ "key: a type 2 window's first one still names it (documented choice)",
	  SMW_OK, TYPE_2, .posted = POSTED_ALLOC_KEY },
	{ "key: a type 1 window's next one is not yet alive", SMW_BIND_KEY, TYPE_1,
	  .posted = POSTED_NEW_KEY },
	{ "key: a type 2 window's next one names it too (documented choice)",
	  SMW_OK, TYPE_2, .posted = POSTED_NEW_KEY },
	{ "o10-37.2.30: nor by its next key", SMW_BIND_NOT_FREE, TYPE_2,
	  .bound = true, .posted = POSTED_NEW_KEY },
	{ "key: checked before an unbind too", SMW_BIND_KEY, TYPE_1,
	  .bound = true, .posted = POSTED_OLD_KEY, .where = EMPTY },

	{ "o10-37.2.30: a bound type 2 window", SMW_BIND_NOT_FREE, TYPE_2,
	  .bound = true },
	{ "o10-37.2.30: nor by its first key", SMW_BIND_NOT_FREE, TYPE_2,
	  .bound = true, .posted = POSTED_ALLOC_KEY },
	{ "o10-37.2.30: nor to unbind it", SMW_BIND_NOT_FREE, TYPE_2,
	  .bound = true, .where = EMPTY },
	{ "type 1: binding a bound window replaces", SMW_OK, TYPE_1, .bound = true },

	{ "C10-72: another PD", SMW_BIND_PD, .other_pd = true },
	{ "C10-72: another PD, bound type 1 window", SMW_BIND_PD, TYPE_1,
	  .bound = true, .other_pd = true },
	{ "C10-72: unbinding from another PD", SMW_BIND_PD, TYPE_1,
	  .bound = true, .other_pd = true, .where = EMPTY },

	{ "lkey: names nothing", SMW_BIND_REGION, .region_gone = true },
	{ "lkey: names nothing, so there is no PD to compare", SMW_BIND_REGION,
	  .region_gone = true, .other_pd = true },
	{ "IW: a zero-based region", SMW_BIND_ZERO_BASED_REGION,
	  .region_zero_based = true },

	{ "C10-73: a region without MW_BIND", SMW_BIND_REGION_RIGHT,
	  .region_lacks = SMW_MW_BIND },
	{ "C10-73: remote rights of the region do not stand in",
	  SMW_BIND_REGION_RIGHT, .region_lacks = SMW_MW_BIND,
	  .region_rights = SMW_WINDOW_RIGHTS },

	{ "C10-74: REMOTE_WRITE needs LOCAL_WRITE", SMW_BIND_LOCAL_WRITE,
	  .region_lacks = SMW_LOCAL_WRITE, .rights = SMW_REMOTE_WRITE },
	{ "C10-74: REMOTE_ATOMIC needs LOCAL_WRITE", SMW_BIND_LOCAL_WRITE,
	  .region_lacks = SMW_LOCAL_WRITE, .rights = SMW_REMOTE_ATOMIC },
	{ "C10-74: so do all three together", SMW_BIND_LOCAL_WRITE,
	  .region_lacks = SMW_LOCAL_WRITE, .rights = SMW_WINDOW_RIGHTS },
	{ "C10-74: the region's REMOTE_WRITE does not stand in",
	  SMW_BIND_LOCAL_WRITE, .region_lacks = SMW_LOCAL_WRITE,
	  .region_rights = SMW_REMOTE_WRITE, .rights = SMW_REMOTE_WRITE },
	{ "IW: REMOTE_READ needs only MW_BIND", SMW_OK,
	  .region_lacks = SMW_LOCAL_WRITE | SMW_REMOTE_READ,
	  .rights = SMW_REMOTE_READ },
	{ "IW: window rights may exceed the region's remote rights", SMW_OK,
	  .region_lacks = SMW_REMOTE_READ, .rights = SMW_WINDOW_RIGHTS },
	{ "IW: no rights at all is legal", SMW_OK, .rights = 0 },
	{ "IW: no rights on a read-only region", SMW_OK,
	  .region_lacks = SMW_LOCAL_WRITE },

	{ "FLUSH: of a region that has it", SMW_OK,
	  .region_rights = SMW_FLUSH_GLOBAL, .rights = SMW_FLUSH_GLOBAL },
	{ "FLUSH: needs no LOCAL_WRITE", SMW_OK, .region_lacks = SMW_LOCAL_WRITE,
	  .region_rights = SMW_FLUSH_GLOBAL, .rights = SMW_FLUSH_GLOBAL },
	{ "FLUSH: of a region that has it not", SMW_BIND_FLUSH,
	  .rights = SMW_FLUSH_GLOBAL },
	{ "FLUSH: all other rights do not stand in", SMW_BIND_FLUSH,
	  .region_rights = SMW_WINDOW_RIGHTS, .rights = SMW_FLUSH_GLOBAL },
	{ "FLUSH: persistent of a region that is not", SMW_BIND_FLUSH,
	  .region_rights = SMW_FLUSH_GLOBAL, .rights = SMW_FLUSH_PERSISTENT },
	{ "FLUSH: both of a region that is not persistent", SMW_BIND_FLUSH,
	  .region_rights = SMW_FLUSH_GLOBAL, .rights = SMW_FLUSH_RIGHTS },
	{ "FLUSH: both of a region that has both", SMW_OK,
	  .region_rights = SMW_FLUSH_RIGHTS, .rights = SMW_FLUSH_RIGHTS },
	{ "FLUSH: the region's alone gives the window none", SMW_OK,
	  .region_rights = SMW_FLUSH_RIGHTS, .rights = SMW_REMOTE_READ },

	{ "flags: LOCAL_WRITE is allowed and grants nothing", SMW_OK,
	  .rights = SMW_LOCAL_WRITE },
	{ "flags: MW_BIND is no window right", SMW_BIND_FLAGS,
	  .rights = SMW_MW_BIND },
	{ "flags: one unknown bit among good ones", SMW_BIND_FLAGS,
	  .rights = SMW_WINDOW_RIGHTS | BIT(6) },
	{ "flags: the highest bit", SMW_BIND_FLAGS, .rights = BIT(31) },
	{ "o10-36.2.2: type 1 is never zero based", SMW_BIND_FLAGS, TYPE_1,
	  .rights = SMW_ZERO_BASED },
	{ "o10-36.2.2: type 2 may be", SMW_OK, TYPE_2,
	  .rights = SMW_ZERO_BASED | SMW_REMOTE_READ },

	{ "o10-37.2.40: type 2 of length 0", SMW_BIND_LENGTH, TYPE_2, .where = EMPTY },
	{ "o10-37.2.40: even at an address outside", SMW_BIND_LENGTH, TYPE_2,
	  .where = EMPTY_ELSEWHERE },
	{ "type 1 of length 0 unbinds", SMW_OK, TYPE_1, .bound = true, .where = EMPTY },
	{ "type 1 of length 0, unbound already", SMW_OK, TYPE_1, .where = EMPTY },
	{ "unbind: its address is not looked at", SMW_OK, TYPE_1, .bound = true,
	  .where = EMPTY_ELSEWHERE },
	{ "unbind: its region is not looked at", SMW_OK, TYPE_1, .bound = true,
	  .region_gone = true, .region_zero_based = true,
	  .region_lacks = REGION_RIGHTS, .where = EMPTY },
	{ "unbind: its rights are not looked at", SMW_OK, TYPE_1, .bound = true,
	  .rights = 0xffffffff, .where = EMPTY },
};

KUNIT_ARRAY_PARAM_DESC(bind, bind_rows, desc);

static struct smw_bind_facts bind_facts(const struct bind_row *row, u8 type)
{
	struct smw_bind_facts facts = {
		.type = type,
		.state = row->bound ? SMW_WINDOW_VALID : SMW_WINDOW_FREE,
		.window_key = WINDOW_KEY,
		.alloc_key = type == SMW_WINDOW_TYPE_2 ? ALLOC_KEY : WINDOW_KEY,
		.posted_key = posted_keys[row->posted],
		.new_key = NEW_KEY,
		.same_pd = !row->other_pd,
		.region_live = !row->region_gone,
		.region_zero_based = row->region_zero_based,
		.region_rights = (REGION_RIGHTS & ~row->region_lacks) | row->region_rights,
		.region_start = REGION_START,
		.region_length = REGION_LENGTH,
		.addr = row->where == EMPTY_ELSEWHERE ? TOP : REGION_START,
		.length = row->where == WHOLE_REGION ? REGION_LENGTH : 0,
		.rights = row->rights,
	};

	return facts;
}

static void smw_bind_check__rows(struct kunit *test)
{
	const struct bind_row *row = test->param_value;
	u8 types = row->types ? row->types : TYPE_1 | TYPE_2;
	u8 type;

	for (type = SMW_WINDOW_TYPE_1; type <= SMW_WINDOW_TYPE_2; type++) {
		struct smw_bind_facts facts = bind_facts(row, type);

		if (types & BIT(type))
			KUNIT_EXPECT_EQ_MSG(test, smw_bind_check(&facts), row->want,
					    "type %u", type);
	}
}

struct bind_range_row {
	const char *desc;
	u64 region_start;
	u64 region_length;
	u64 addr;
	u64 length;
	enum smw_reason want;
};

/* For both types, and for type 2 zero based too: addr stays a virtual address. */
static const struct bind_range_row bind_range_rows[] = {
	{ "C10-75: the whole region", 0x10000, 0x2000, 0x10000, 0x2000, SMW_OK },
	{ "C10-75: one byte at its start", 0x10000, 0x2000, 0x10000, 1, SMW_OK },
	{ "C10-75: one byte at its end", 0x10000, 0x2000, 0x11fff, 1, SMW_OK },
	{ "C10-75: odd address, odd length", 0x10000, 0x2000, 0x10003, 0xffb, SMW_OK },
	{ "C10-75: a byte before", 0x10000, 0x2000, 0xffff, 1, SMW_BIND_RANGE },
	{ "C10-75: a byte after", 0x10000, 0x2000, 0x12000, 1, SMW_BIND_RANGE },
	{ "C10-75: starts a byte early", 0x10000, 0x2000, 0xffff, 0x2000,
	  SMW_BIND_RANGE },
	{ "C10-75: ends a byte late", 0x10000, 0x2000, 0x10001, 0x2000,
	  SMW_BIND_RANGE },
	{ "C10-75: a byte longer than the region", 0x10000, 0x2000, 0x10000, 0x2001,
	  SMW_BIND_RANGE },
	{ "C10-75: sum wraps to 0", 0x10000, 0x2000, 0x10000, TOP - 0xffff,
	  SMW_BIND_RANGE },
	{ "C10-75: sum wraps into the region", 0x10000, 0x2000, 0x11000, TOP,
	  SMW_BIND_RANGE },
	{ "C10-75: the highest address and the highest length", 0x10000, 0x2000,
	  TOP, TOP, SMW_BIND_RANGE },
	{ "C10-75: an offset is no address, zero based or not", 0x10000, 0x2000,
	  0, 0x1000, SMW_BIND_RANGE },
	{ "C10-75: a region at iova 0", 0, 0x2000, 0, 0x2000, SMW_OK },
	{ "C10-75: a region that ends at 2^64", TOP - 0xfff, 0x1000, TOP - 0xfff,
	  0x1000, SMW_OK },
	{ "C10-75: past 2^64", TOP - 0xfff, 0x1000, TOP - 0xffe, 0x1000,
	  SMW_BIND_RANGE },
	{ "C10-75: a region of 4 GiB and more", 0x10000, 0x200000000ULL, 0x10000,
	  0x200000000ULL, SMW_OK },
	{ "C10-75: 4 GiB more than the region", 0x10000, 0x2000, 0x10000,
	  0x100001000ULL, SMW_BIND_RANGE },
};

KUNIT_ARRAY_PARAM_DESC(bind_range, bind_range_rows, desc);

static void smw_bind_check__range(struct kunit *test)
{
	static const struct {
		u8 type;
		u32 rights;
	} kinds[] = {
		{ SMW_WINDOW_TYPE_1, SMW_REMOTE_READ },
		{ SMW_WINDOW_TYPE_2, SMW_REMOTE_READ },
		{ SMW_WINDOW_TYPE_2, SMW_REMOTE_READ | SMW_ZERO_BASED },
	};
	static const struct bind_row good;
	const struct bind_range_row *row = test->param_value;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct smw_bind_facts facts = bind_facts(&good, kinds[i].type);

		facts.rights = kinds[i].rights;
		facts.region_start = row->region_start;
		facts.region_length = row->region_length;
		facts.addr = row->addr;
		facts.length = row->length;
		KUNIT_EXPECT_EQ_MSG(test, smw_bind_check(&facts), row->want,
				    "type %u rights %#x", kinds[i].type,
				    kinds[i].rights);
	}
}

/* Every value of the low 16 flag bits, and each higher bit by itself. */
static void smw_bind_check__every_flag(struct kunit *test)
{
	static const struct bind_row good;
	u32 allowed, flags, bit;
	u8 type;

	for (type = SMW_WINDOW_TYPE_1; type <= SMW_WINDOW_TYPE_2; type++) {
		struct smw_bind_facts facts = bind_facts(&good, type);

		facts.region_rights |= SMW_FLUSH_RIGHTS;
		/* local write, which grants nothing; write, read, atomic; flushes */
		allowed = BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(8) | BIT(9);
		if (type == SMW_WINDOW_TYPE_2)
			allowed |= BIT(5); /* zero based */
		for (flags = 0; flags < 0x10000; flags++) {
			facts.rights = flags;
			KUNIT_EXPECT_EQ_MSG(test, smw_bind_check(&facts),
					    flags & ~allowed ? SMW_BIND_FLAGS : SMW_OK,
					    "type %u flags %#x", type, flags);
		}
		for (bit = 16; bit < 32; bit++) {
			facts.rights = BIT(bit);
			KUNIT_EXPECT_EQ_MSG(test, smw_bind_check(&facts),
					    SMW_BIND_FLAGS, "type %u bit %u",
					    type, bit);
		}
	}
}

/* Users bind with a bare number; the index is the window's. */
static void smw_key_compose__uses_the_low_8_bits(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, smw_key_compose(0x001234, 7), 0x00123407u);
	KUNIT_EXPECT_EQ(test, smw_key_compose(0x001234, 0xabcdef07), 0x00123407u);
	KUNIT_EXPECT_EQ(test, smw_key_compose(0xffffff, 0xffffffff), 0xffffffffu);
	KUNIT_EXPECT_EQ(test, smw_key_index(0xffffff07), 0xffffffu);
	KUNIT_EXPECT_EQ(test, smw_key_index(smw_key_compose(0x800000, 0)), 0x800000u);
}

static struct kunit_case bind_cases[] = {
	KUNIT_CASE_PARAM(smw_bind_check__rows, bind_gen_params),
	KUNIT_CASE_PARAM(smw_bind_check__range, bind_range_gen_params),
	KUNIT_CASE(smw_bind_check__every_flag),
	KUNIT_CASE(smw_key_compose__uses_the_low_8_bits),
	{}
};

static struct kunit_suite bind_suite = {
	.name = "smw_bind",
	.test_cases = bind_cases,
};

kunit_test_suite(bind_suite);
