/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows.
 *
 * Locks, outer to inner: window->lock, then owner->lock or mr->lock.
 *
 * A window's hold on its region is the region's count of bound windows. It is
 * changed in mem/mw.c alone, under mr->lock, and deregistration decides under
 * the same lock: either the bind sees the region dead or dereg sees the count.
 *
 * A window's fields of the bind (rights, start, length, offset, mr, owner) are
 * written under window->lock and only while the window is not live and drained
 * (hold.h). So the data path, which takes no lock, reads them stable once it
 * holds the window and has seen it live with the key it was asked for.
 */
#ifndef SMW_MW_H
#define SMW_MW_H

#include <rdma/ib_verbs.h>
#include <smw/keytab.h>
#include <smw/mr.h>
#include <smw/reason.h>
#include <smw/window.h>

/**
 * struct smw_window_owner - the type 2 windows bound to one queue pair
 * @lock: protects @windows
 * @windows: list of struct smw_window by @owner_node
 * @qpn: number of the queue pair, for people; constant
 *
 * Lives in the queue pair; its address is the identity a type 2 window is
 * tied to (C10-72, type 2B).
 */
struct smw_window_owner {
	spinlock_t lock;
	struct list_head windows;
	u32 qpn;
};

/**
 * struct smw_window - the part of a window that packets see
 * @entry: its index
 * @rcu: frees the structure after the last look-up
 * @lock: serialises bind, invalidate and deallocation
 * @pd: the PD it was allocated in, constant
 * @type: enum smw_window_type, constant
 * @live: bound and not being revoked; data path reads it after taking a hold
 * @dead: has no key yet, or is being deallocated; under @lock
 * @key: current rkey
 * @alloc_key: rkey that allocation returned, constant
 * @rights: SMW_REMOTE_* and SMW_FLUSH_* granted, plus SMW_ZERO_BASED
 * @start: first byte as the peer addresses it: 0 where zero based
 * @length: bytes
 * @offset: bytes from the region's first byte to the window's
 * @mr: the region it is bound to, NULL where not
 * @owner: type 2: the queue pair it is bound to, NULL where not
 * @owner_node: in @owner->windows, under @owner->lock
 * @accesses: accesses granted, per CPU: every access counts here. Freed when
 *            the window can grant none any more, before the structure
 * @refusals: accesses refused; approximate, without a lock
 * @last_refusal: enum smw_reason of the last one
 * @link_node: in the link's list of windows, under link->windows_lock
 */
struct smw_window {
	struct smw_key_entry entry;
	struct rcu_head rcu;
	spinlock_t lock;
	const struct ib_pd *pd;
	u8 type;
	bool live;
	bool dead;
	u8 last_refusal;
	u32 key;
	u32 alloc_key;
	u32 rights;
	u64 start;
	u64 length;
	u64 offset;
	struct smw_mr *mr;
	struct smw_window_owner *owner;
	struct list_head owner_node;
	u64 __percpu *accesses;
	u64 refusals;
	struct list_head link_node;
};

/**
 * struct smw_mw - a window's handle
 * @ibmw: what the RDMA core knows of it
 * @window: the rest, freed by RCU
 */
struct smw_mw {
	struct ib_mw ibmw;
	struct smw_window *window;
};

/**
 * struct smw_bind - a bind as posted, copied out of the ring
 * @addr: first byte, a virtual address of the region
 * @length: bytes
 * @lkey: the region
 * @window_key: the window's key as the poster knows it
 * @new_key: its low 8 bits are the new key
 * @rights: access flags, any bits
 */
struct smw_bind {
	u64 addr;
	u64 length;
	u32 lkey;
	u32 window_key;
	u32 new_key;
	u32 rights;
};

/**
 * smw_window_bind() - carry out a BIND_MW work request
 * @link: the link
 * @pd: PD of the posting queue pair
 * @owner: the posting queue pair's windows
 * @bind: the request
 *
 * On success the new key works and the old one is dead: no byte moves under
 * it any more. On failure nothing changed.
 * Context: bottom halves disabled, no hold taken.
 *
 * Return: SMW_OK or SMW_BIND_*.
 */
enum smw_reason smw_window_bind(struct smw_link *link, const struct ib_pd *pd,
				struct smw_window_owner *owner,
				const struct smw_bind *bind);

/**
 * smw_window_invalidate() - carry out LOCAL_INV or the invalidate of a SEND
 * @link: the link
 * @pd: PD of the queue pair that executes it
 * @owner: its windows
 * @key: the key to invalidate
 *
 * Context: bottom halves disabled, no hold taken.
 *
 * Return: SMW_OK: no byte moves under the key any more; or SMW_INV_*:
 * nothing changed.
 */
enum smw_reason smw_window_invalidate(struct smw_link *link, const struct ib_pd *pd,
				      struct smw_window_owner *owner, u32 key);

/**
 * smw_window_accesses() - how many accesses a window has granted
 * @window: a window that is in the link's list of windows
 *
 * Context: under link->windows_lock, or where nobody deallocates the window.
 *
 * Return: the sum over all CPUs.
 */
u64 smw_window_accesses(const struct smw_window *window);

/**
 * smw_window_release_all() - free every type 2 window of a queue pair
 * @owner: the windows; no new bind can come
 *
 * Destroy and reset make them Free (o10-2.2.5). Context: may not hold BH locks.
 */
void smw_window_release_all(struct smw_window_owner *owner);

/**
 * struct smw_access - a remote access as a packet asks for it
 * @pd: PD of the responding queue pair
 * @owner: its windows
 * @qp_rights: its access flags
 * @needed: the rights: SMW_REMOTE_{WRITE,READ,ATOMIC}, or SMW_FLUSH_* of a FLUSH
 * @rkey: key in the packet
 * @whole: all that the key names, instead of a range
 * @va: first byte
 * @bytes: bytes, > 0 but for a FLUSH
 */
struct smw_access {
	const struct ib_pd *pd;
	const struct smw_window_owner *owner;
	u32 qp_rights;
	u32 needed;
	u32 rkey;
	bool whole;
	u64 va;
	u64 bytes;
};

/**
 * smw_access_begin() - judge a remote access and hold what it names
 * @link: the responding link
 * @access: the access
 * @offset: out: byte in the region returned
 * @reason: out: SMW_OK or SMW_ACCESS_*
 *
 * Takes slot SMW_HOLD_REMOTE on success; the caller moves the bytes and calls
 * smw_access_end() in the same section with bottom halves disabled.
 *
 * Return: the region that backs the range, or NULL.
 */
struct smw_mr *smw_access_begin(struct smw_link *link, const struct smw_access *access,
				u64 *offset, enum smw_reason *reason);

/**
 * smw_access_end() - the bytes have moved: let go of what was held
 */
void smw_access_end(void);

/* The RDMA core's operations on windows. */
int smw_mw_alloc(struct ib_mw *ibmw, struct ib_udata *udata);
int smw_mw_dealloc(struct ib_mw *ibmw);

#endif /* SMW_MW_H */
