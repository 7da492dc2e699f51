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
	SMW_CURSOR_REGION,	/* a region that the caller holds */
	SMW_CURSOR_SGES,	/* a scatter list; holds its regions itself */
};

/**
 * struct smw_cursor - a place in memory of some kind, moved on by copying
 * @kind: which arm of the union
 * @flat: next byte
 * @skb: @packet, and @offset of the next byte from skb->data
 * @region: @mr and @offset of the next byte in it
 * @sges: the list of @count elements; @index and @offset are the next byte;
 *        @mr is the region of @index where @slot holds it, otherwise NULL
 */
struct smw_cursor {
	enum smw_cursor_kind kind;
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
 * @pd: PD of the queue pair
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
 * smw_cursor_release() - drop the hold that a scatter list cursor has
 * @cursor: any cursor
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
 * Return: SMW_OK or SMW_LOCAL_*.
 */
enum smw_reason smw_copy(struct smw_cursor *to, struct smw_cursor *from, u32 bytes);

#endif /* SMW_COPY_H */
