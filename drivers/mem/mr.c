// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/mr.h>

#include <linux/mm.h>
#include <linux/random.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include <smw/key.h>
#include <smw/kunit.h>
#include <smw/link.h>
#include <smw/range.h>
#include <smw/window.h>

/* No FLUSH_PERSISTENT: nothing here makes memory persistent. */
#define MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
		   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
		   IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_FLUSH_GLOBAL)

/* Hints that change nothing here: pages are what they are, order is strict. */
#define MR_ACCESS_HINTS (IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

/* What a kernel consumer's work request may grant. */
#define MR_ACCESS_FAST (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/* No window is ever bound to such a region, so none is left when it is invalidated. */
static_assert(!(MR_ACCESS_FAST & IB_ACCESS_MW_BIND));

/* Block sizes worth looking for: a page up to 1 GiB. */
#define MR_BLOCK_SIZES GENMASK_ULL(30, PAGE_SHIFT)

static_assert(SMW_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert(SMW_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert(SMW_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert(SMW_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert(SMW_MW_BIND == IB_ACCESS_MW_BIND);
static_assert(SMW_ZERO_BASED == IB_ZERO_BASED);
static_assert(SMW_FLUSH_GLOBAL == IB_ACCESS_FLUSH_GLOBAL);
static_assert(SMW_FLUSH_PERSISTENT == IB_ACCESS_FLUSH_PERSISTENT);

/*
 * The device does no DMA, so the RDMA core "maps" pages to their kernel
 * addresses: a DMA block is a contiguous run of kernel memory.
 */
static int mr_map_blocks(struct smw_mr *mr, u64 start)
{
	struct ib_block_iter iter;
	unsigned long size;
	size_t n = 0;

	size = ib_umem_find_best_pgsz(mr->umem, MR_BLOCK_SIZES, start);
	if (!size)
		return -EINVAL;
	mr->block_shift = __ffs(size);
	mr->block_offset = start & (size - 1);
	mr->blocks = kvmalloc_array(ib_umem_num_dma_blocks(mr->umem, size),
				    sizeof(*mr->blocks),
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mr->blocks)
		return -ENOMEM;
	rdma_umem_for_each_dma_block(mr->umem, &iter, size)
		mr->blocks[n++] = ib_virt_dma_to_ptr(rdma_block_iter_dma_address(&iter));
	return 0;
}

static int mr_check_access(int access)
{
	return access & ~(MR_ACCESS | MR_ACCESS_HINTS) ? -EOPNOTSUPP : 0;
}

static int mr_check(u64 length, u64 iova, int access)
{
	int err = mr_check_access(access);

	if (err)
		return err;
	if (!length || length > SMW_MAX_MR_SIZE)
		return -EINVAL;
	/* The last byte must have an address. */
	if (iova > U64_MAX - (length - 1))
		return -EINVAL;
	return 0;
}

static struct smw_mr *mr_alloc(struct ib_pd *pd, u64 length, u64 iova, int access)
{
	struct smw_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);

	if (!mr)
		return NULL;
	spin_lock_init(&mr->lock);
	mr->ibmr.pd = pd;
	mr->ibmr.device = pd->device;
	mr->rights = access & MR_ACCESS;
	mr->iova = access & IB_ZERO_BASED ? 0 : iova;
	mr->length = length;
	return mr;
}

/* Pin user memory for a region. */
static int mr_pin(struct smw_mr *mr, u64 start, int access)
{
	int err;

	mr->umem = ib_umem_get(mr->ibmr.device, start, mr->length, access);
	if (IS_ERR(mr->umem))
		return PTR_ERR(mr->umem);
	err = mr_map_blocks(mr, start);
	if (err)
		ib_umem_release(mr->umem);
	return err;
}

/* Of kernel memory nothing was pinned, and there is no umem. */
static void mr_unpin(struct smw_mr *mr)
{
	kvfree(mr->blocks);
	kvfree(mr->mapped);
	ib_umem_release(mr->umem);
}

/* Unmake a region that has no key. */
static void mr_free(struct smw_mr *mr)
{
	mr_unpin(mr);
	kfree(mr);
}

/* A region of user memory that has no key yet. */
static struct smw_mr *mr_make(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access)
{
	struct smw_mr *mr;
	int err;

	err = mr_check(length, iova, access);
	if (err)
		return ERR_PTR(err);
	mr = mr_alloc(pd, length, iova, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = mr_pin(mr, start, access);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return mr;
}

static void mr_set_key(struct smw_mr *mr, u32 key)
{
	WRITE_ONCE(mr->key, smw_key_compose(mr->entry.index, key));
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
}

/* Give the region its key. A packet may look already; it finds the region not live. */
static int mr_insert(struct smw_link *link, struct smw_mr *mr)
{
	int err = smw_keytab_insert(&link->keys, &mr->entry, SMW_KEY_REGION);

	if (err)
		return err;
	mr_set_key(mr, get_random_u32());
	return 0;
}

/*
 * Count a region that was made, and give it its key; where that fails it is unmade. From
 * then on packets can use it, unless it waits for its registration.
 */
static struct ib_mr *mr_open(struct smw_mr *mr)
{
	struct smw_link *link;
	int err;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	link = smw_link_of(mr->ibmr.device);
	err = smw_link_claim(link, SMW_OBJECT_MR, !mr->umem, SMW_MAX_MR);
	if (err)
		goto err_free;
	err = mr_insert(link, mr);
	if (err)
		goto err_release;
	if (!mr->fast)
		/* Pairs with the acquire in mr_judge(). */
		smp_store_release(&mr->live, true);
	return &mr->ibmr;

err_release:
	smw_link_release(link, SMW_OBJECT_MR, !mr->umem);
err_free:
	mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *smw_mr_reg_user(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access, struct ib_udata *udata)
{
	return mr_open(mr_make(pd, start, length, iova, access));
}
EXPORT_SYMBOL_IF_KUNIT(smw_mr_reg_user);

/*
 * All memory, for kernel consumers: without a DMA device the RDMA core hands them
 * the kernel's own addresses (ib_uses_virt_dma()). The whole address space is two
 * blocks of half its size, so the data path meets no new kind of region.
 */
static struct smw_mr *mr_make_all(struct ib_pd *pd, int access)
{
	struct smw_mr *mr = mr_alloc(pd, U64_MAX, 0, access);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->block_shift = 63;
	mr->blocks = kcalloc(2, sizeof(*mr->blocks), GFP_KERNEL_ACCOUNT);
	if (!mr->blocks) {
		kfree(mr);
		return ERR_PTR(-ENOMEM);
	}
	mr->blocks[1] = (void *)(uintptr_t)BIT_ULL(63);
	return mr;
}

struct ib_mr *smw_mr_get_dma(struct ib_pd *pd, int access)
{
	if (access & ~MR_ACCESS_FAST)
		return ERR_PTR(-EOPNOTSUPP);
	return mr_open(mr_make_all(pd, access));
}

static struct smw_mr *mr_make_fast(struct ib_pd *pd, u32 max_pages)
{
	struct smw_mr *mr = mr_alloc(pd, 0, 0, 0);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->fast = true;
	mr->max_pages = max_pages;
	mr->blocks = kvcalloc(max_pages, sizeof(*mr->blocks), GFP_KERNEL_ACCOUNT);
	mr->mapped = kvcalloc(max_pages, sizeof(*mr->mapped), GFP_KERNEL_ACCOUNT);
	if (!mr->blocks || !mr->mapped) {
		mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	return mr;
}

struct ib_mr *smw_mr_alloc_fast(struct ib_pd *pd, enum ib_mr_type type, u32 max_pages)
{
	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_pages || max_pages > SMW_MAX_FAST_PAGES)
		return ERR_PTR(-EINVAL);
	return mr_open(mr_make_fast(pd, max_pages));
}

static int set_page(struct ib_mr *ibmr, u64 address)
{
	struct smw_mr *mr = smw_mr_of(ibmr);

	if (mr->pages == mr->max_pages)
		return -ENOMEM;
	mr->mapped[mr->pages++] = ib_virt_dma_to_ptr(address);
	return 0;
}

/*
 * The region may be in use still. What is mapped here, and what the core sets of ibmr,
 * range and start, count from REG_MR on.
 */
int smw_mr_map_sg(struct ib_mr *ibmr, struct scatterlist *sg, int count,
		  unsigned int *offset)
{
	struct smw_mr *mr = smw_mr_of(ibmr);

	if (!mr->fast || !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mr->pages = 0;
	mr->mapped_shift = __ffs(ibmr->page_size);
	return ib_sg_to_pages(ibmr, sg, count, offset, set_page);
}

static enum smw_reason mr_register(struct smw_mr *mr, const struct ib_pd *pd, u32 key,
				   u32 access)
{
	u64 size = BIT_ULL(mr->mapped_shift);
	u64 in_page = mr->ibmr.iova & (size - 1);

	if (!mr->fast)
		return SMW_REG_REGION;
	if (mr->ibmr.pd != pd)
		return SMW_REG_PD;
	if (mr->live)
		return SMW_REG_IN_USE;
	if (access & ~(MR_ACCESS_FAST | MR_ACCESS_HINTS))
		return SMW_REG_RIGHT;
	/* Every byte of the range has a page; the consumer may have moved the start. */
	if (!mr->pages || !mr->ibmr.length ||
	    !smw_range_within(0, mr->pages * size, in_page, mr->ibmr.length))
		return SMW_REG_RANGE;
	memcpy(mr->blocks, mr->mapped, mr->pages * sizeof(*mr->blocks));
	WRITE_ONCE(mr->key, smw_key_compose(mr->entry.index, key));
	mr->rights = access & MR_ACCESS_FAST;
	mr->iova = mr->ibmr.iova;
	mr->length = mr->ibmr.length;
	mr->block_shift = mr->mapped_shift;
	mr->block_offset = in_page;
	/* Pairs with the acquire in mr_judge(). */
	smp_store_release(&mr->live, true);
	return SMW_OK;
}

struct smw_mr *smw_mr_find(struct smw_link *link, u32 key)
{
	struct smw_key_entry *entry = smw_keytab_find(&link->keys, smw_key_index(key));

	if (!entry || entry->kind != SMW_KEY_REGION)
		return NULL;
	return container_of(entry, struct smw_mr, entry);
}

enum smw_reason smw_mr_register(struct smw_link *link, const struct ib_pd *pd, u32 key,
				u32 access)
{
	enum smw_reason reason = SMW_REG_REGION;
	struct smw_mr *mr;

	rcu_read_lock();
	mr = smw_mr_find(link, key);
	if (mr) {
		spin_lock(&mr->lock);
		reason = mr_register(mr, pd, key, access);
		spin_unlock(&mr->lock);
	}
	rcu_read_unlock();
	return reason;
}

/* Drained before the lock is let go, or a REG_MR would change what a holder reads. */
enum smw_reason smw_mr_invalidate(struct smw_mr *mr, const struct ib_pd *pd,
				  struct smw_invalidate_facts *facts)
{
	enum smw_reason reason;

	spin_lock(&mr->lock);
	facts->is_fast = mr->fast;
	facts->state = mr->live ? SMW_WINDOW_VALID : SMW_WINDOW_FREE;
	facts->key = mr->key;
	facts->same_pd = mr->ibmr.pd == pd;
	reason = smw_invalidate_check(facts);
	if (!reason) {
		WRITE_ONCE(mr->live, false);
		smw_hold_drain(mr);
	}
	spin_unlock(&mr->lock);
	return reason;
}

/* Take the region from packets, unless a window is bound to it. */
static int mr_retire(struct smw_mr *mr)
{
	spin_lock_bh(&mr->lock);
	if (mr->bound) {
		spin_unlock_bh(&mr->lock);
		return -EBUSY;
	}
	WRITE_ONCE(mr->live, false);
	/* No REG_MR brings it back. */
	mr->pages = 0;
	spin_unlock_bh(&mr->lock);
	smw_hold_drain(mr);
	return 0;
}

int smw_mr_dereg(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct smw_link *link = smw_link_of(ibmr->device);
	struct smw_mr *mr = smw_mr_of(ibmr);
	int err;

	err = mr_retire(mr);
	if (err)
		return err;
	smw_keytab_remove(&link->keys, &mr->entry);
	smw_link_release(link, SMW_OBJECT_MR, !mr->umem);
	mr_unpin(mr);
	kfree_rcu(mr, rcu);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(smw_mr_dereg);

/* Rights alone: the pages stay, and so does what addresses mean. */
static int mr_check_rights(const struct smw_mr *mr, int access)
{
	int err = mr_check_access(access);

	if (err)
		return err;
	/* Pages pinned for reading cannot be written. */
	if (ib_access_writable(access) && !mr->umem->writable)
		return -EOPNOTSUPP;
	return (access ^ mr->rights) & IB_ZERO_BASED ? -EOPNOTSUPP : 0;
}

static void mr_swap_memory(struct smw_mr *mr, struct smw_mr *other)
{
	swap(mr->umem, other->umem);
	swap(mr->blocks, other->blocks);
	swap(mr->block_shift, other->block_shift);
	swap(mr->block_offset, other->block_offset);
	swap(mr->iova, other->iova);
	swap(mr->length, other->length);
}

/* Nobody uses the region: change it, and let packets have it again. */
static void mr_change(struct smw_mr *mr, int flags, int access, struct ib_pd *pd,
		      struct smw_mr *other)
{
	spin_lock_bh(&mr->lock);
	if (other) {
		mr_swap_memory(mr, other);
		/* Whom the old key was given to, it was given for other memory. */
		mr_set_key(mr, mr->key + 1);
	}
	if (flags & IB_MR_REREG_ACCESS)
		mr->rights = access & MR_ACCESS;
	if (flags & IB_MR_REREG_PD)
		mr->ibmr.pd = pd;
	/* Pairs with the acquire in mr_judge(). */
	smp_store_release(&mr->live, true);
	spin_unlock_bh(&mr->lock);
}

/*
 * In place; what cannot be done leaves the region as it was. New memory has a new
 * key, and is pinned before the old one is given up.
 */
struct ib_mr *smw_mr_rereg_user(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata)
{
	struct smw_mr *mr = smw_mr_of(ibmr);
	struct smw_mr *other = NULL;
	int err = 0;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->rights;
	if (flags & IB_MR_REREG_TRANS) {
		other = mr_make(ibmr->pd, start, length, iova, access);
		if (IS_ERR(other))
			return ERR_CAST(other);
	} else if (flags & IB_MR_REREG_ACCESS) {
		err = mr_check_rights(mr, access);
	}
	if (!err)
		err = mr_retire(mr);
	if (!err)
		mr_change(mr, flags, access, pd, other);
	if (other)
		mr_free(other);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_IF_KUNIT(smw_mr_rereg_user);

static enum smw_reason mr_judge(const struct smw_mr *mr, const struct ib_pd *pd,
				u32 lkey, u64 addr, u64 len, u32 rights)
{
	/* Pairs with the releases in mr_open(), mr_register() and mr_change(). */
	if (!smp_load_acquire(&mr->live) || mr->key != lkey)
		return SMW_LOCAL_NO_KEY;
	if (mr->ibmr.pd != pd)
		return SMW_LOCAL_PD;
	if (rights & ~mr->rights)
		return SMW_LOCAL_RIGHT;
	if (!smw_range_within(mr->iova, mr->length, addr, len))
		return SMW_LOCAL_RANGE;
	return SMW_OK;
}

struct smw_mr *smw_mr_hold(struct smw_link *link, const struct ib_pd *pd, u32 lkey,
			   u64 addr, u64 len, u32 rights,
			   enum smw_hold_slot slot, enum smw_reason *reason)
{
	struct smw_mr *mr;

	*reason = SMW_LOCAL_NO_KEY;
	rcu_read_lock();
	mr = smw_mr_find(link, lkey);
	if (mr) {
		smw_hold_take(slot, mr);
		*reason = mr_judge(mr, pd, lkey, addr, len, rights);
		if (*reason) {
			smw_hold_drop(slot);
			mr = NULL;
		}
	}
	rcu_read_unlock();
	return mr;
}
EXPORT_SYMBOL_IF_KUNIT(smw_mr_hold);
