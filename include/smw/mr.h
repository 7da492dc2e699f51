/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory regions.
 */
#ifndef SMW_MR_H
#define SMW_MR_H

#include <rdma/ib_verbs.h>
#include <smw/hold.h>
#include <smw/keytab.h>
#include <smw/reason.h>

struct ib_umem;
struct smw_invalidate_facts;
struct smw_link;

/**
 * struct smw_mr - a registered region: user memory, or all of the kernel's, or, for
 * fast registration, what a kernel consumer's work request says
 * @ibmr: what the RDMA core knows of it
 * @entry: its index
 * @rcu: frees the structure after the last look-up
 * @lock: protects @bound, @live, @rights, the PD and what rereg changes; see mw.h
 * @bound: windows bound to it
 * @live: may be used; data path reads it after taking a hold
 * @key: lkey and rkey; changes by rereg and fast registration, while not @live
 * @rights: SMW_* access rights
 * @iova: address of its first byte for local and remote users; as all below but what is
 *        said to be mapped, it changes by rereg and fast registration alone, while not
 *        @live and drained
 * @length: bytes
 * @block_offset: bytes from the start of the first block to the first byte
 * @block_shift: log2 of the block size; a block is contiguous
 * @fast: for fast registration; constant
 * @mapped: where @fast, the pages that count from the next REG_MR on: until then the
 *          old ones are in use, for consumers map before LOCAL_INV was executed
 * @mapped_shift: log2 of the size of a page of @mapped
 * @pages: elements of @mapped that the consumer has filled, of @max_pages
 * @max_pages: elements that @blocks and @mapped have, where @fast
 * @blocks: kernel address of each block
 * @umem: the pinned pages; NULL where the region is not of user memory
 */
struct smw_mr {
	struct ib_mr ibmr;
	struct smw_key_entry entry;
	struct rcu_head rcu;
	spinlock_t lock;
	u32 bound;
	bool live;
	u32 key;
	u32 rights;
	u64 iova;
	u64 length;
	u64 block_offset;
	u8 block_shift;
	bool fast;
	u8 mapped_shift;
	u32 pages;
	u32 max_pages;
	void **blocks;
	void **mapped;
	struct ib_umem *umem;
};

static inline struct smw_mr *smw_mr_of(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct smw_mr, ibmr);
}

/**
 * smw_mr_run() - the longest contiguous run of memory at an offset
 * @mr: a region that the caller holds
 * @offset: byte in the region, < @mr->length
 * @len: in: bytes wanted; out: bytes contiguous at the result, 1 or more
 *
 * The caller has checked @offset and @len against the region.
 *
 * Return: kernel address.
 */
static inline void *smw_mr_run(const struct smw_mr *mr, u64 offset, u32 *len)
{
	u64 at = mr->block_offset + offset;
	u64 size = BIT_ULL(mr->block_shift);
	u64 in_block = at & (size - 1);

	*len = min_t(u64, *len, size - in_block);
	return mr->blocks[at >> mr->block_shift] + in_block;
}

/**
 * smw_mr_find() - the region that a key's index names
 * @link: the link
 * @key: lkey or rkey; its key byte is not looked at
 *
 * Context: under rcu_read_lock().
 *
 * Return: the region, live or not, or NULL.
 */
struct smw_mr *smw_mr_find(struct smw_link *link, u32 key);

/**
 * smw_mr_hold() - find a region by lkey, check a range and hold it
 * @link: the link
 * @pd: PD of the queue pair
 * @lkey: key from the work request
 * @addr: first byte
 * @len: bytes
 * @rights: SMW_LOCAL_WRITE where the memory will be written, otherwise 0
 * @slot: hold slot to take; free on failure
 * @reason: why not, on failure: SMW_LOCAL_*
 *
 * Context: bottom halves disabled.
 *
 * Return: the region, held, or NULL.
 */
struct smw_mr *smw_mr_hold(struct smw_link *link, const struct ib_pd *pd, u32 lkey,
			   u64 addr, u64 len, u32 rights,
			   enum smw_hold_slot slot, enum smw_reason *reason);

/**
 * smw_mr_register() - carry out REG_MR
 * @link: the link
 * @pd: PD of the queue pair
 * @key: names the region by its index, and is its key from now on
 * @access: IB_ACCESS_* rights
 *
 * Context: bottom halves disabled.
 *
 * Return: SMW_OK or one of SMW_REG_*: nothing changed.
 */
enum smw_reason smw_mr_register(struct smw_link *link, const struct ib_pd *pd, u32 key,
				u32 access);

/**
 * smw_mr_invalidate() - carry out LOCAL_INV or the invalidate of a SEND
 * @mr: a region found by the index of the key, under RCU
 * @pd: PD of the queue pair
 * @facts: in: the key that was used; out: what it was compared with
 *
 * A fence: when it returns, not one more byte is moved by that key. Of two that
 * invalidate, owner and peer, the second succeeds too.
 * Context: bottom halves disabled; this CPU holds no region.
 *
 * Return: SMW_OK or one of SMW_INV_*.
 */
enum smw_reason smw_mr_invalidate(struct smw_mr *mr, const struct ib_pd *pd,
				  struct smw_invalidate_facts *facts);

/* The RDMA core's operations on regions. */
struct ib_mr *smw_mr_alloc_fast(struct ib_pd *pd, enum ib_mr_type type, u32 max_pages);
int smw_mr_map_sg(struct ib_mr *ibmr, struct scatterlist *sg, int count,
		  unsigned int *offset);
struct ib_mr *smw_mr_reg_user(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access, struct ib_udata *udata);
struct ib_mr *smw_mr_rereg_user(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *smw_mr_get_dma(struct ib_pd *pd, int access);
int smw_mr_dereg(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* SMW_MR_H */
