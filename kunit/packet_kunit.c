// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Transport headers: bytes written down by hand, every truncation of every
 * opcode, every malformed BTH, and there and back again.
 *
 * Every buffer is exactly as long as the packet, so KASAN (and ASan in user
 * space) sees a read beyond it.
 */
#include <smw/packet.h>

#include <kunit/test.h>
#include <linux/slab.h>
#include <asm/byteorder.h>

/* Longest packet of these tests: headers, some payload, ICRC. */
#define PAYLOAD_MAX	9
#define PACKET_MAX	(SMW_HEADER_MAX + PAYLOAD_MAX + 3 + SMW_ICRC_LEN)

/* Bytes of the BTH */
#define BTH_FLAGS	1
#define BTH_VARIANT	4
#define BTH_PSN_FLAGS	8

/* A different value in every field, with its top and its bottom bit set. */
static struct smw_packet packet_sample(u8 opcode, u32 payload_len)
{
	struct smw_packet packet = {
		.opcode = opcode,
		.solicited = true,
		.ack_request = true,
		.syndrome = 0x61,
		.pkey = 0x8001,
		.qpn = 0x812345,
		.psn = 0x8abcdf,
		.span = 1,
		.qkey = 0x8fedcba1,
		.source_qpn = 0x8765cd,
		.placement = 0x9,
		.selectivity = 0x3,
		.va = 0x8123456789abcdefULL,
		.rkey = 0x90abcd01,
		.length = 0x80000001,
		.swap_add = 0xa1b2c3d4e5f60719ULL,
		.compare = 0xb1c2d3e4f506172bULL,
		.original = 0xc1d2e3f40516273dULL,
		.msn = 0x8fedcb,
		.imm = cpu_to_be32(0xd0e1f203),
		.invalidate = 0xe1f20317,
		.payload_len = payload_len,
	};

	return packet;
}

/**
 * struct bytes_row - one packet in both forms
 * @desc: what it shows
 * @opcode: of packet_sample()
 * @payload_len: of packet_sample()
 * @len: header bytes
 * @bytes: the headers as they are on the wire, and the end of a string
 */
struct bytes_row {
	const char *desc;
	u8 opcode;
	u8 payload_len;
	u8 len;
	u8 bytes[SMW_HEADER_MAX + 1];
};

/* What follows the first two bytes of the BTH. */
#define BTH_BYTES "\x80\x01\x00\x81\x23\x45\x80\x8a\xbc\xdf"
#define DETH_BYTES "\x8f\xed\xcb\xa1\x00\x87\x65\xcd"
#define FETH_BYTES "\x00\x00\x00\x39"
#define RETH_BYTES \
	"\x81\x23\x45\x67\x89\xab\xcd\xef\x90\xab\xcd\x01\x80\x00\x00\x01"
#define ATOMICETH_BYTES \
	"\x81\x23\x45\x67\x89\xab\xcd\xef\x90\xab\xcd\x01" \
	"\xa1\xb2\xc3\xd4\xe5\xf6\x07\x19\xb1\xc2\xd3\xe4\xf5\x06\x17\x2b"
#define AETH_BYTES "\x61\x8f\xed\xcb"
#define ATOMICACKETH_BYTES "\xc1\xd2\xe3\xf4\x05\x16\x27\x3d"
#define IMM_BYTES "\xd0\xe1\xf2\x03"
#define IETH_BYTES "\xe1\xf2\x03\x17"

static const struct bytes_row bytes_rows[] = {
	{ "BTH", 0x04, 0, 12, "\x04\xc0" BTH_BYTES },
	{ "BTH, pad 1", 0x04, 7, 12, "\x04\xd0" BTH_BYTES },
	{ "BTH, pad 2", 0x04, 6, 12, "\x04\xe0" BTH_BYTES },
	{ "BTH, pad 3", 0x04, 5, 12, "\x04\xf0" BTH_BYTES },
	{ "BTH, ImmDt", 0x05, 0, 16, "\x05\xc0" BTH_BYTES IMM_BYTES },
	{ "BTH, IETH", 0x17, 0, 16, "\x17\xc0" BTH_BYTES IETH_BYTES },
	{ "BTH, RETH", 0x0c, 0, 28, "\x0c\xc0" BTH_BYTES RETH_BYTES },
	{ "BTH, RETH, ImmDt", 0x0b, 8, 32,
	  "\x0b\xc0" BTH_BYTES RETH_BYTES IMM_BYTES },
	{ "BTH, FETH, RETH", 0x1c, 0, 32, "\x1c\xc0" BTH_BYTES FETH_BYTES RETH_BYTES },
	{ "BTH, DETH", 0x64, 1, 20, "\x64\xf0" BTH_BYTES DETH_BYTES },
	{ "BTH, DETH, ImmDt", 0x65, 0, 24, "\x65\xc0" BTH_BYTES DETH_BYTES IMM_BYTES },
	{ "BTH, AtomicETH", 0x13, 0, 40, "\x13\xc0" BTH_BYTES ATOMICETH_BYTES },
	{ "BTH, AETH", 0x11, 0, 16, "\x11\xc0" BTH_BYTES AETH_BYTES },
	{ "BTH, AETH, AtomicAckETH", 0x12, 0, 24,
	  "\x12\xc0" BTH_BYTES AETH_BYTES ATOMICACKETH_BYTES },
};

KUNIT_ARRAY_PARAM_DESC(bytes, bytes_rows, desc);

static void smw_packet_build__bytes(struct kunit *test)
{
	const struct bytes_row *row = test->param_value;
	struct smw_packet packet = packet_sample(row->opcode, row->payload_len);
	u8 *header = kunit_kzalloc(test, row->len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, header);
	KUNIT_EXPECT_EQ(test, smw_packet_build(&packet, header), (u32)row->len);
	KUNIT_EXPECT_MEMEQ(test, header, row->bytes, row->len);
	KUNIT_EXPECT_EQ(test, packet.header_len, (u32)row->len);
	KUNIT_EXPECT_EQ(test, packet.pad, (row->bytes[BTH_FLAGS] >> 4) & 3);
}

static void smw_packet_build__unknown_opcode(struct kunit *test)
{
	u32 opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		struct smw_packet packet = packet_sample(opcode, 0);
		u8 header[SMW_HEADER_MAX];

		if (!smw_opcode_lookup(opcode))
			KUNIT_EXPECT_EQ_MSG(test, smw_packet_build(&packet, header),
					    0u, "opcode %#x", opcode);
	}
}

/* Fields wider than they are on the wire do not run over their neighbours. */
static void build_masks_wide_fields(struct kunit *test, u8 opcode)
{
	struct smw_packet narrow = packet_sample(opcode, 0);
	struct smw_packet wide = narrow;
	u8 want[SMW_HEADER_MAX] = {};
	u8 got[SMW_HEADER_MAX] = {};

	narrow.ack_request = false;
	wide.ack_request = false;
	wide.qpn |= 0xff000000;
	wide.psn |= 0xff000000;
	wide.msn |= 0xff000000;
	wide.source_qpn |= 0xff000000;
	wide.placement |= 0xf0;
	wide.selectivity |= 0xfc;
	smw_packet_build(&narrow, want);
	smw_packet_build(&wide, got);
	KUNIT_EXPECT_MEMEQ(test, got, want, sizeof(got));
}

static void smw_packet_build__masks_wide_fields(struct kunit *test)
{
	build_masks_wide_fields(test, SMW_RC_ACKNOWLEDGE);
	build_masks_wide_fields(test, SMW_OPCODE_UD | SMW_RC_SEND_ONLY);
	build_masks_wide_fields(test, SMW_RC_FLUSH);
}

static void expect_same_fields(struct kunit *test, const struct smw_packet *got,
			       const struct smw_packet *want)
{
	u16 flags = want->op->flags;

	KUNIT_EXPECT_PTR_EQ(test, got->op, want->op);
	KUNIT_EXPECT_EQ(test, got->opcode, want->opcode);
	KUNIT_EXPECT_EQ(test, got->solicited, want->solicited);
	KUNIT_EXPECT_EQ(test, got->ack_request, want->ack_request);
	KUNIT_EXPECT_EQ(test, got->pad, want->pad);
	KUNIT_EXPECT_EQ(test, got->pkey, want->pkey);
	KUNIT_EXPECT_EQ(test, got->qpn, want->qpn);
	KUNIT_EXPECT_EQ(test, got->psn, want->psn);
	KUNIT_EXPECT_EQ(test, got->span, 1u);
	KUNIT_EXPECT_EQ(test, got->payload_len, want->payload_len);
	KUNIT_EXPECT_EQ(test, got->header_len, want->header_len);
	if (flags & SMW_OP_DETH) {
		KUNIT_EXPECT_EQ(test, got->qkey, want->qkey);
		KUNIT_EXPECT_EQ(test, got->source_qpn, want->source_qpn);
	}
	if (flags & SMW_OP_FETH) {
		KUNIT_EXPECT_EQ(test, got->placement, want->placement);
		KUNIT_EXPECT_EQ(test, got->selectivity, want->selectivity);
	}
	if (flags & (SMW_OP_RETH | SMW_OP_ATOMICETH)) {
		KUNIT_EXPECT_EQ(test, got->va, want->va);
		KUNIT_EXPECT_EQ(test, got->rkey, want->rkey);
	}
	if (flags & SMW_OP_RETH)
		KUNIT_EXPECT_EQ(test, got->length, want->length);
	if (flags & SMW_OP_ATOMICETH) {
		KUNIT_EXPECT_EQ(test, got->swap_add, want->swap_add);
		KUNIT_EXPECT_EQ(test, got->compare, want->compare);
	}
	if (flags & SMW_OP_AETH) {
		KUNIT_EXPECT_EQ(test, got->syndrome, want->syndrome);
		KUNIT_EXPECT_EQ(test, got->msn, want->msn);
	}
	if (flags & SMW_OP_ATOMICACKETH)
		KUNIT_EXPECT_EQ(test, got->original, want->original);
	if (flags & SMW_OP_IMM)
		KUNIT_EXPECT_TRUE(test, got->imm == want->imm);
	if (flags & SMW_OP_IETH)
		KUNIT_EXPECT_EQ(test, got->invalidate, want->invalidate);
}

static void smw_packet_parse__bytes(struct kunit *test)
{
	const struct bytes_row *row = test->param_value;
	struct smw_packet want = packet_sample(row->opcode, row->payload_len);
	u32 total = row->len + row->payload_len + 3;
	struct smw_packet got;
	u8 *header = kunit_kmalloc(test, row->len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, header);
	memcpy(header, row->bytes, row->len);
	want.op = smw_opcode_lookup(row->opcode);
	want.header_len = row->len;
	want.pad = (row->bytes[BTH_FLAGS] >> 4) & 3;
	total = total / 4 * 4 + SMW_ICRC_LEN;
	KUNIT_EXPECT_EQ(test, smw_packet_parse(&got, header, row->len, total), SMW_OK);
	expect_same_fields(test, &got, &want);
}

/* Packet of an opcode in memory of exactly its size; its payload is zeros. */
static u8 *packet_bytes(struct kunit *test, struct smw_packet *packet, u32 *total)
{
	u8 header[SMW_HEADER_MAX];
	u8 *bytes;

	smw_packet_build(packet, header);
	*total = packet->header_len + packet->payload_len + packet->pad + SMW_ICRC_LEN;
	bytes = kunit_kzalloc(test, *total, GFP_KERNEL);
	if (bytes)
		memcpy(bytes, header, packet->header_len);
	return bytes;
}

static bool carries_payload(u32 opcode)
{
	return smw_opcode_lookup(opcode)->flags & SMW_OP_PAYLOAD;
}

static void smw_packet_parse__build_and_back(struct kunit *test)
{
	u32 opcode, len, total;

	for (opcode = 0; opcode < 256; opcode++) {
		if (!smw_opcode_lookup(opcode))
			continue;
		for (len = 0; len <= (carries_payload(opcode) ? PAYLOAD_MAX : 0); len++) {
			struct smw_packet want = packet_sample(opcode, len);
			u8 *bytes = packet_bytes(test, &want, &total);
			struct smw_packet got;

			KUNIT_ASSERT_NOT_NULL(test, bytes);
			KUNIT_EXPECT_EQ(test, total % 4, 0u);
			KUNIT_ASSERT_EQ(test, SMW_OK,
					smw_packet_parse(&got, bytes, total, total));
			expect_same_fields(test, &got, &want);
		}
	}
}

/* The first @len bytes of a packet, in memory of exactly that size. */
static enum smw_reason parse_cut(struct kunit *test, const u8 *bytes, u32 len,
				 u32 total)
{
	struct smw_packet packet;
	u8 *cut = kunit_kmalloc(test, len, GFP_KERNEL);

	memcpy(cut, bytes, len);
	return smw_packet_parse(&packet, cut, len, total);
}

/* A packet cut short anywhere, which is what its UDP length says too. */
static void smw_packet_parse__every_truncation(struct kunit *test)
{
	u32 opcode, len, total;

	for (opcode = 0; opcode < 256; opcode++) {
		struct smw_packet packet;
		enum smw_reason reason;
		u8 *bytes;

		if (!smw_opcode_lookup(opcode))
			continue;
		packet = packet_sample(opcode, carries_payload(opcode) ? 5 : 0);
		bytes = packet_bytes(test, &packet, &total);
		KUNIT_ASSERT_NOT_NULL(test, bytes);
		for (len = 0; len < total; len++) {
			reason = parse_cut(test, bytes, len, len);
			if (len < packet.header_len + SMW_ICRC_LEN)
				KUNIT_EXPECT_EQ_MSG(test, reason, SMW_DROP_TRUNCATED,
						    "opcode %#x of %u bytes", opcode, len);
			else if (len < packet.header_len + SMW_ICRC_LEN + 4)
				KUNIT_EXPECT_EQ_MSG(test, reason, SMW_DROP_PAD,
						    "opcode %#x of %u bytes", opcode, len);
		}
	}
}

/* The packet is whole, but only its first bytes are readable. */
static void smw_packet_parse__every_available(struct kunit *test)
{
	u32 opcode, len, total;

	for (opcode = 0; opcode < 256; opcode++) {
		struct smw_packet packet;
		u8 *bytes;

		if (!smw_opcode_lookup(opcode))
			continue;
		packet = packet_sample(opcode, carries_payload(opcode) ? 5 : 0);
		bytes = packet_bytes(test, &packet, &total);
		KUNIT_ASSERT_NOT_NULL(test, bytes);
		for (len = 0; len <= total; len++)
			KUNIT_EXPECT_EQ_MSG(test, parse_cut(test, bytes, len, total),
					    len < packet.header_len ?
					    SMW_DROP_TRUNCATED : SMW_OK,
					    "opcode %#x, %u bytes", opcode, len);
	}
}

static void smw_packet_parse__available_beyond_total(struct kunit *test)
{
	struct smw_packet packet = packet_sample(SMW_RC_READ_REQUEST, 0);
	u32 total;
	u8 *bytes = packet_bytes(test, &packet, &total);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	KUNIT_EXPECT_EQ(test, smw_packet_parse(&packet, bytes, total, 0),
			SMW_DROP_TRUNCATED);
	KUNIT_EXPECT_EQ(test, smw_packet_parse(&packet, bytes, total, total - 1),
			SMW_DROP_TRUNCATED);
}

static void smw_packet_parse__unknown_opcode(struct kunit *test)
{
	struct smw_packet sample = packet_sample(SMW_RC_SEND_ONLY, 0);
	struct smw_packet packet;
	u32 opcode, total;
	u8 *bytes = packet_bytes(test, &sample, &total);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (opcode = 0; opcode < 256; opcode++) {
		bytes[0] = opcode;
		if (smw_opcode_lookup(opcode))
			continue;
		KUNIT_EXPECT_EQ_MSG(test, smw_packet_parse(&packet, bytes, total, total),
				    SMW_DROP_OPCODE, "opcode %#x", opcode);
		/* Enough to count it and to find whom it was for. */
		KUNIT_EXPECT_EQ(test, packet.opcode, opcode);
		KUNIT_EXPECT_EQ(test, packet.qpn, sample.qpn);
		KUNIT_EXPECT_NULL(test, packet.op);
	}
}

static void smw_packet_parse__unknown_version(struct kunit *test)
{
	struct smw_packet sample = packet_sample(SMW_RC_SEND_ONLY, 0);
	struct smw_packet packet;
	u32 version, total;
	u8 *bytes = packet_bytes(test, &sample, &total);
	u8 flags;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	flags = bytes[BTH_FLAGS];
	for (version = 0; version < 16; version++) {
		bytes[BTH_FLAGS] = flags | version;
		KUNIT_EXPECT_EQ_MSG(test, smw_packet_parse(&packet, bytes, total, total),
				    version ? SMW_DROP_VERSION : SMW_OK,
				    "version %u", version);
		KUNIT_EXPECT_EQ(test, packet.qpn, sample.qpn);
	}
}

/* Every pad count against every length after the headers, for every opcode. */
static void smw_packet_parse__every_pad(struct kunit *test)
{
	u32 opcode, pad, rest;

	for (opcode = 0; opcode < 256; opcode++) {
		struct smw_packet packet = packet_sample(opcode, 0);
		u8 bytes[PACKET_MAX] = {};
		u32 header_len;

		if (!smw_opcode_lookup(opcode))
			continue;
		header_len = smw_packet_build(&packet, bytes);
		for (pad = 0; pad < 4; pad++)
			for (rest = 0; rest <= 12; rest++) {
				enum smw_reason reason;
				bool good;

				bytes[BTH_FLAGS] = (bytes[BTH_FLAGS] & 0xcf) | pad << 4;
				reason = smw_packet_parse(&packet, bytes, header_len,
							  header_len + rest + SMW_ICRC_LEN);
				good = carries_payload(opcode) ?
				       rest % 4 == 0 && pad <= rest : !rest && !pad;
				KUNIT_EXPECT_EQ_MSG(test, reason,
						    good ? SMW_OK : SMW_DROP_PAD,
						    "opcode %#x pad %u rest %u",
						    opcode, pad, rest);
				if (good)
					KUNIT_EXPECT_EQ(test, packet.payload_len,
							rest - pad);
			}
	}
}

/* FECN, BECN, MigReq and the reserved bits are whatever they are. */
static void smw_packet_parse__ignores_variant_bits(struct kunit *test)
{
	struct smw_packet sample = packet_sample(SMW_RC_ACKNOWLEDGE, 0);
	struct smw_packet packet;
	u32 total;
	u8 *bytes = packet_bytes(test, &sample, &total);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	bytes[BTH_FLAGS] ^= BIT(6);
	bytes[BTH_VARIANT] = 0xff;
	bytes[BTH_PSN_FLAGS] |= 0x7f;
	KUNIT_ASSERT_EQ(test, smw_packet_parse(&packet, bytes, total, total), SMW_OK);
	expect_same_fields(test, &packet, &sample);
}

static void smw_packet_parse__ignores_reserved_bits_of_feth(struct kunit *test)
{
	struct smw_packet sample = packet_sample(SMW_RC_FLUSH, 0);
	struct smw_packet packet;
	u32 total;
	u8 *bytes = packet_bytes(test, &sample, &total);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	memset(bytes + SMW_BTH_LEN, 0xff, SMW_FETH_LEN - 1);
	bytes[SMW_BTH_LEN + SMW_FETH_LEN - 1] |= 0xc0;
	KUNIT_ASSERT_EQ(test, smw_packet_parse(&packet, bytes, total, total), SMW_OK);
	expect_same_fields(test, &packet, &sample);
}

static void smw_packet_parse__flags_one_by_one(struct kunit *test)
{
	u32 i, total;

	for (i = 0; i < 4; i++) {
		struct smw_packet sample = packet_sample(SMW_RC_SEND_ONLY, 0);
		struct smw_packet packet;
		u8 *bytes;

		sample.solicited = i & 1;
		sample.ack_request = i & 2;
		bytes = packet_bytes(test, &sample, &total);
		KUNIT_ASSERT_NOT_NULL(test, bytes);
		KUNIT_ASSERT_EQ(test, smw_packet_parse(&packet, bytes, total, total),
				SMW_OK);
		KUNIT_EXPECT_EQ(test, packet.solicited, sample.solicited);
		KUNIT_EXPECT_EQ(test, packet.ack_request, sample.ack_request);
	}
}

static struct kunit_case packet_cases[] = {
	KUNIT_CASE_PARAM(smw_packet_build__bytes, bytes_gen_params),
	KUNIT_CASE(smw_packet_build__unknown_opcode),
	KUNIT_CASE(smw_packet_build__masks_wide_fields),
	KUNIT_CASE_PARAM(smw_packet_parse__bytes, bytes_gen_params),
	KUNIT_CASE(smw_packet_parse__build_and_back),
	KUNIT_CASE(smw_packet_parse__every_truncation),
	KUNIT_CASE(smw_packet_parse__every_available),
	KUNIT_CASE(smw_packet_parse__available_beyond_total),
	KUNIT_CASE(smw_packet_parse__unknown_opcode),
	KUNIT_CASE(smw_packet_parse__unknown_version),
	KUNIT_CASE(smw_packet_parse__every_pad),
	KUNIT_CASE(smw_packet_parse__ignores_variant_bits),
	KUNIT_CASE(smw_packet_parse__ignores_reserved_bits_of_feth),
	KUNIT_CASE(smw_packet_parse__flags_one_by_one),
	{}
};

static struct kunit_suite packet_suite = {
	.name = "smw_packet",
	.test_cases = packet_cases,
};

kunit_test_suite(packet_suite);
