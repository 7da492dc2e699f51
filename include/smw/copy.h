/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Moving bytes between scatter lists, regions, packets and flat memory.
 */
#ifndef SMW_COPY_H
#define SMW_COPY_H

#include <linux/types.h>
#include <smw/hold.h>
#include <smw/reason.h>

struct ib_pd;
struct sk_buff;
struct smw_link;
struct smw_mr;

/**
 * struct smw_sge - one element of a scatter list
 * @addr: first byte
 * @length: bytes
 * @lkey: region
 */
struct smw_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

enum smw_cursor_kind {
	SMW_CURSOR_FLAT,	/* kernel memory */
	SMW_CURSOR_SKB,		/* a packet, linear or not; source only */
	SMW_CURSOR_REGION,	/* a region held by smw_access_begin() */
	SMW_CURSOR_SGES,	/* a scatter list; holds its regions itself */
};

/**
 * struct smw_cursor - a place in memory of some kind, moved on by copying
 * @kind: which arm of the union
 * @fault: why copying stopped at this cursor, SMW_LOCAL_*; SMW_OK so far
 * @flat: next byte
 * @skb: @packet, and @offset of the next byte from skb->data
 * @region: @mr and @offset of the next byte in it
 * @sges: the list of @count elements; @index and @offset are the next byte;
 *        @mr is the region of @index where @slot holds it, otherwise NULL
 */
struct smw_cursor {
	enum smw_cursor_kind kind;
	enum smw_reason fault;
	union {
		u8 *flat;
		struct {
			const struct sk_buff *packet;
			u32 offset;
		} skb;
		struct {
			const struct smw_mr *mr;
			u64 offset;
		} region;
		struct {
			struct smw_link *link;
			const struct ib_pd *pd;
			const struct smw_sge *list;
			struct smw_mr *mr;
			u32 count;
			u32 index;
			u32 offset;
			u32 rights;
			enum smw_hold_slot slot;
		} sges;
	};
};

/**
 * smw_cursor_sges() - a cursor on a scatter list
 * @cursor: to initialise
 * @link: the link whose keys the list names
 * @pd: PD that the keys must be of
 * @list: the elements, private memory
 * @count: how many
 * @rights: SMW_LOCAL_WRITE for a target, 0 for a source
 * @slot: SMW_HOLD_SEND or SMW_HOLD_RECEIVE
 */
void smw_cursor_sges(struct smw_cursor *cursor, struct smw_link *link,
		     const struct ib_pd *pd, const struct smw_sge *list, u32 count,
		     u32 rights, enum smw_hold_slot slot);

/**
 * smw_cursor_skip() - move on without copying
 * @cursor: any cursor
 * @bytes: how far; within the list for SMW_CURSOR_SGES
 */
void smw_cursor_skip(struct smw_cursor *cursor, u64 bytes);

/**
 * smw_cursor_flat() - a cursor on kernel memory
 * @cursor: to initialise
 * @memory: its first byte
 */
static inline void smw_cursor_flat(struct smw_cursor *cursor, void *memory)
{
	cursor->kind = SMW_CURSOR_FLAT;
	cursor->fault = SMW_OK;
	cursor->flat = memory;
}

/**
 * smw_cursor_region() - a cursor on a region that smw_access_begin() returned
 * @cursor: to initialise
 * @mr: the region
 * @offset: the first byte in it
 */
static inline void smw_cursor_region(struct smw_cursor *cursor, const struct smw_mr *mr,
				     u64 offset)
{
	cursor->kind = SMW_CURSOR_REGION;
	cursor->fault = SMW_OK;
	cursor->region.mr = mr;
	cursor->region.offset = offset;
}

/**
 * smw_cursor_skb() - a cursor on a packet
 * @cursor: to initialise
 * @packet: the packet
 * @offset: the first byte from skb->data
 */
static inline void smw_cursor_skb(struct smw_cursor *cursor, const struct sk_buff *packet,
				  u32 offset)
{
	cursor->kind = SMW_CURSOR_SKB;
	cursor->fault = SMW_OK;
	cursor->skb.packet = packet;
	cursor->skb.offset = offset;
}

/**
 * smw_cursor_release() - drop the hold of a scatter list or region
 * @cursor: any cursor; a region's one is not used again
 */
void smw_cursor_release(struct smw_cursor *cursor);

/**
 * smw_copy() - copy and move both cursors on
 * @to: target
 * @from: source
 * @bytes: how many
 *
 * Bytes of a scatter list are checked as they are reached; what went before a
 * failure is copied. Holds stay until smw_cursor_release().
 * Context: bottom halves disabled.
 *
 * Return: true, or false where one of the cursors has a fault.
 */
bool smw_copy(struct smw_cursor *to, struct smw_cursor *from, u32 bytes);

#endif /* SMW_COPY_H */
