/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rules of memory windows and regions as pure functions: facts in, a
 * reason out. What holds the facts still while they are judged is mem/'s job.
 */
#ifndef SMW_WINDOW_H
#define SMW_WINDOW_H

#include <linux/bits.h>
#include <linux/types.h>
#include <smw/reason.h>

/* Access rights; the values are those of IBV_ACCESS_* and IB_ACCESS_*. */
#define SMW_LOCAL_WRITE		BIT(0)
#define SMW_REMOTE_WRITE	BIT(1)
#define SMW_REMOTE_READ		BIT(2)
#define SMW_REMOTE_ATOMIC	BIT(3)
#define SMW_MW_BIND		BIT(4)
#define SMW_ZERO_BASED		BIT(5)
#define SMW_FLUSH_GLOBAL	BIT(8)
#define SMW_FLUSH_PERSISTENT	BIT(9)

/* What a window can grant of any region, ... */
#define SMW_WINDOW_RIGHTS (SMW_REMOTE_WRITE | SMW_REMOTE_READ | SMW_REMOTE_ATOMIC)

/* ... and what of a region that has it: it says what the memory is good for. */
#define SMW_FLUSH_RIGHTS (SMW_FLUSH_GLOBAL | SMW_FLUSH_PERSISTENT)

/* What a bind may ask for besides; it grants a peer nothing. Applications pass
 * LOCAL_WRITE out of habit, and rdma-core's own tests do.
 */
#define SMW_WINDOW_NO_RIGHTS SMW_LOCAL_WRITE

enum smw_window_type {
	SMW_WINDOW_TYPE_1 = 1,
	SMW_WINDOW_TYPE_2 = 2,
};

/* Type 1: FREE means unbound, VALID bound. Type 2: as IBTA names them. */
enum smw_window_state {
	SMW_WINDOW_FREE,
	SMW_WINDOW_VALID,
};

/**
 * struct smw_bind_facts - everything that decides a bind
 * @type: enum smw_window_type
 * @state: enum smw_window_state
 * @window_key: the window's current key
 * @alloc_key: the key that allocation returned, which stock librxe keeps
 *             posting for a type 2 window; equal to @window_key for type 1
 * @posted_key: the window key in the work request; for its index the caller
 *              found this window
 * @new_key: the new key in the work request; its low 8 bits count
 * @same_pd: window PD == QP PD == region PD (C10-72); where there is no region
 *           to compare with, and for a type 1 unbind, window PD == QP PD
 * @region_live: the lkey names a registered region and its key byte matches
 * @region_zero_based: the region was registered zero based
 * @region_rights: SMW_* rights of the region
 * @region_start: the region's iova
 * @region_length: its bytes
 * @addr: first byte to bind, a virtual address even for a zero-based window
 * @length: bytes to bind
 * @rights: access flags as posted, any bits
 */
struct smw_bind_facts {
	u8 type;
	u8 state;
	u32 window_key;
	u32 alloc_key;
	u32 posted_key;
	u32 new_key;
	bool same_pd;
	bool region_live;
	bool region_zero_based;
	u32 region_rights;
	u64 region_start;
	u64 region_length;
	u64 addr;
	u64 length;
	u32 rights;
};

/**
 * smw_bind_check() - may this bind be done?
 * @facts: the facts, held still by the caller
 *
 * A type 1 bind of length 0 unbinds: its region, address and rights are not
 * looked at, its key and protection domain are.
 *
 * Return: SMW_OK or one of SMW_BIND_*.
 */
enum smw_reason smw_bind_check(const struct smw_bind_facts *facts);

/**
 * struct smw_access_facts - everything that decides a remote access by key
 * @is_window: the index names a window, otherwise a region
 * @type: enum smw_window_type, for a window
 * @live: a window is VALID, a region registered
 * @key: the current key of the window or region
 * @used_key: the key in the packet
 * @same_pd: QP PD == window or region PD
 * @same_qp: type 2 window: bound to this very QP; ignored otherwise
 * @rights: SMW_* rights of the window or region
 * @qp_rights: SMW_REMOTE_* and SMW_FLUSH_* rights of the QP
 * @needed: all rights that the operation needs: SMW_REMOTE_{WRITE,READ,ATOMIC}, or
 *          one or both of SMW_FLUSH_*; never none
 * @start: first byte of the window or region as a remote peer addresses it
 *         (0 where zero based)
 * @length: bytes of it
 * @va: first byte accessed
 * @bytes: bytes accessed; > 0 (C9-88: a zero-length access never asks) but for a
 *         FLUSH (oA19-13)
 */
struct smw_access_facts {
	bool is_window;
	u8 type;
	bool live;
	u32 key;
	u32 used_key;
	bool same_pd;
	bool same_qp;
	u32 rights;
	u32 qp_rights;
	u32 needed;
	u64 start;
	u64 length;
	u64 va;
	u64 bytes;
};

/**
 * smw_access_check() - may this remote access be done?
 * @facts: the facts, held still by the caller
 *
 * Return: SMW_OK or one of SMW_ACCESS_*, the first that fails in the order of
 * the contract: key, bound, PD, QP, rights, QP's rights, range.
 */
enum smw_reason smw_access_check(const struct smw_access_facts *facts);

/**
 * struct smw_invalidate_facts - everything that decides an invalidate by key
 * @is_window: the index names a window, otherwise a region
 * @is_fast: the region is for fast registration
 * @type: enum smw_window_type, for a window
 * @state: enum smw_window_state; of a region, whether it is registered
 * @key: the current key
 * @used_key: the key in the request
 * @same_pd: QP PD == PD of window or region
 * @same_qp: the window is bound to this very QP
 */
struct smw_invalidate_facts {
	bool is_window;
	bool is_fast;
	u8 type;
	u8 state;
	u32 key;
	u32 used_key;
	bool same_pd;
	bool same_qp;
};

/**
 * smw_invalidate_check() - may LOCAL_INV or SEND_WITH_INV invalidate this?
 * @facts: the facts, held still by the caller
 *
 * Regions of user space are never invalidated by key; a Free window is an
 * error (documented choice), a fast region that is invalid already is none.
 *
 * Return: SMW_OK or one of SMW_INV_*.
 */
enum smw_reason smw_invalidate_check(const struct smw_invalidate_facts *facts);

#endif /* SMW_WINDOW_H */
