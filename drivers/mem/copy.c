// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/copy.h>

#include <linux/skbuff.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <smw/mr.h>
#include <smw/mw.h>

void smw_cursor_sges(struct smw_cursor *cursor, struct smw_link *link,
		     const struct ib_pd *pd, const struct smw_sge *list, u32 count,
		     u32 rights, enum smw_hold_slot slot)
{
	cursor->kind = SMW_CURSOR_SGES;
	cursor->fault = SMW_OK;
	cursor->sges.link = link;
	cursor->sges.pd = pd;
	cursor->sges.list = list;
	cursor->sges.mr = NULL;
	cursor->sges.count = count;
	cursor->sges.index = 0;
	cursor->sges.offset = 0;
	cursor->sges.rights = rights;
	cursor->sges.slot = slot;
}

static void sges_release(struct smw_cursor *cursor)
{
	if (cursor->sges.mr)
		smw_hold_drop(cursor->sges.slot);
	cursor->sges.mr = NULL;
}

/* Move on to the next element that has a byte left, if this one has none. */
static void sges_settle(struct smw_cursor *cursor)
{
	while (cursor->sges.index < cursor->sges.count &&
	       cursor->sges.offset >= cursor->sges.list[cursor->sges.index].length) {
		sges_release(cursor);
		cursor->sges.index++;
		cursor->sges.offset = 0;
	}
}

static void *sges_run(struct smw_cursor *cursor, u32 *len)
{
	const struct smw_sge *sge;

	sges_settle(cursor);
	if (cursor->sges.index == cursor->sges.count) {
		cursor->fault = SMW_LOCAL_RANGE;
		return NULL;
	}
	sge = &cursor->sges.list[cursor->sges.index];
	if (!cursor->sges.mr) {
		cursor->sges.mr = smw_mr_hold(cursor->sges.link, cursor->sges.pd,
					      sge->lkey, sge->addr, sge->length,
					      cursor->sges.rights,
					      cursor->sges.slot, &cursor->fault);
		if (!cursor->sges.mr)
			return NULL;
	}
	*len = min(*len, sge->length - cursor->sges.offset);
	return smw_mr_run(cursor->sges.mr,
			  sge->addr - cursor->sges.mr->iova + cursor->sges.offset, len);
}

/* The next contiguous run of a cursor that has addresses. */
static void *cursor_run(struct smw_cursor *cursor, u32 *len)
{
	switch (cursor->kind) {
	case SMW_CURSOR_FLAT:
		return cursor->flat;
	case SMW_CURSOR_REGION:
		return smw_mr_run(cursor->region.mr, cursor->region.offset, len);
	case SMW_CURSOR_SGES:
		return sges_run(cursor, len);
	case SMW_CURSOR_SKB:
		break;
	}
	cursor->fault = SMW_LOCAL_RANGE;
	return NULL;
}

static void cursor_advance(struct smw_cursor *cursor, u32 bytes)
{
	switch (cursor->kind) {
	case SMW_CURSOR_FLAT:
		cursor->flat += bytes;
		break;
	case SMW_CURSOR_SKB:
		cursor->skb.offset += bytes;
		break;
	case SMW_CURSOR_REGION:
		cursor->region.offset += bytes;
		break;
	case SMW_CURSOR_SGES:
		cursor->sges.offset += bytes;
		break;
	}
}

void smw_cursor_skip(struct smw_cursor *cursor, u64 bytes)
{
	if (cursor->kind != SMW_CURSOR_SGES) {
		cursor_advance(cursor, bytes);
		return;
	}
	while (bytes && cursor->sges.index < cursor->sges.count) {
		u32 left = cursor->sges.list[cursor->sges.index].length -
			   cursor->sges.offset;
		u32 n = min_t(u64, bytes, left);

		cursor->sges.offset += n;
		bytes -= n;
		sges_settle(cursor);
	}
}

void smw_cursor_release(struct smw_cursor *cursor)
{
	if (cursor->kind == SMW_CURSOR_SGES)
		sges_release(cursor);
	else if (cursor->kind == SMW_CURSOR_REGION)
		smw_access_end();
}

/*
 * At most a word, up to a word's end: words of an application's are written whole. KCSAN
 * does not watch it, as it does not memcpy(): who races there is the application.
 */
static __no_kcsan void copy_word(u8 *target, const u8 *source, u32 bytes)
{
	if (bytes & 8)
		put_unaligned(get_unaligned((const u64 *)source), (u64 *)target);
	if (bytes & 4) {
		put_unaligned(get_unaligned((const u32 *)source), (u32 *)target);
		target += 4;
		source += 4;
	}
	if (bytes & 2) {
		put_unaligned(get_unaligned((const u16 *)source), (u16 *)target);
		target += 2;
		source += 2;
	}
	if (bytes & 1)
		*target = *source;
}

/* How much of @bytes at @target lies in its last word. */
static u32 last_word(const void *target, u32 bytes)
{
	return min_t(u32, bytes, ((uintptr_t)target + bytes - 1) % sizeof(u64) + 1);
}

/*
 * Applications wait for a message by its last byte, and memcpy() may begin at the end: so
 * the last word is written by itself, and last.
 */
static void copy_flat(u8 *target, const u8 *source, u32 bytes)
{
	u32 body = bytes - last_word(target, bytes);

	memcpy(target, source, body);
	/* For whoever polls: the word is seen after what is before it. */
	smp_wmb();
	copy_word(target + body, source + body, bytes - body);
}

static bool copy_from_skb(u8 *target, struct smw_cursor *from, u32 bytes)
{
	u32 body = bytes - last_word(target, bytes);
	int offset = from->skb.offset;
	u8 word[sizeof(u64)];

	if (skb_copy_bits(from->skb.packet, offset, target, body) ||
	    skb_copy_bits(from->skb.packet, offset + body, word, bytes - body)) {
		from->fault = SMW_LOCAL_RANGE;
		return false;
	}
	/* As in copy_flat(). */
	smp_wmb();
	copy_word(target + body, word, bytes - body);
	return true;
}

/* Copy at most *@bytes to contiguous memory; *@bytes becomes what was copied. */
static bool copy_run(void *target, struct smw_cursor *from, u32 *bytes)
{
	void *source;

	if (from->kind == SMW_CURSOR_SKB)
		return copy_from_skb(target, from, *bytes);
	source = cursor_run(from, bytes);
	if (!source)
		return false;
	copy_flat(target, source, *bytes);
	return true;
}

bool smw_copy(struct smw_cursor *to, struct smw_cursor *from, u32 bytes)
{
	while (bytes) {
		u32 n = bytes;
		void *target = cursor_run(to, &n);

		if (!target || !copy_run(target, from, &n))
			return false;
		cursor_advance(to, n);
		cursor_advance(from, n);
		bytes -= n;
	}
	return true;
}
