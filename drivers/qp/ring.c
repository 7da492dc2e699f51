// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/ring.h>

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/**
 * struct smw_ring_memory - a ring's memory and its place in the mmap space
 * @rdma: entry of the RDMA core; its last reference frees the memory. Unused in a
 *        kernel consumer's ring, which has no user context
 * @buf: header and elements. Pages that a user has mapped outlive it.
 */
struct smw_ring_memory {
	struct rdma_user_mmap_entry rdma;
	struct rxe_queue_buf *buf;
};

static int offer_mmap(struct smw_ring_memory *memory, struct ib_udata *udata,
		      size_t size, struct mminfo *info)
{
	struct ib_ucontext *uctx = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	int err = rdma_user_mmap_entry_insert(uctx, &memory->rdma, size);

	if (err)
		return err;
	info->offset = rdma_user_mmap_get_offset(&memory->rdma);
	info->size = size;
	return 0;
}

int smw_ring_create(struct smw_ring *ring, struct ib_udata *udata, u32 entries,
		    u32 element_size, struct mminfo *info)
{
	u32 slots = roundup_pow_of_two(entries + 1);
	u32 shift = order_base_2(element_size);
	size_t size = PAGE_ALIGN(sizeof(struct rxe_queue_buf) + ((size_t)slots << shift));
	struct smw_ring_memory *memory;
	int err;

	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return -ENOMEM;
	/* The user's choice of size is no reason for a warning. */
	memory->buf = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!memory->buf) {
		err = -ENOMEM;
		goto err_free;
	}
	err = udata ? offer_mmap(memory, udata, size, info) : 0;
	if (err)
		goto err_vfree;
	memory->buf->log2_elem_size = shift;
	memory->buf->index_mask = slots - 1;
	ring->buf = memory->buf;
	ring->memory = memory;
	ring->mask = slots - 1;
	ring->shift = shift;
	ring->index = 0;
	return 0;

err_vfree:
	vfree(memory->buf);
err_free:
	kfree(memory);
	return err;
}

void smw_ring_destroy(struct smw_ring *ring)
{
	if (ring->memory && ring->memory->rdma.ucontext)
		rdma_user_mmap_entry_remove(&ring->memory->rdma);
	else if (ring->memory)
		smw_ring_mmap_free(&ring->memory->rdma);
	ring->memory = NULL;
	ring->buf = NULL;
}

void smw_ring_reset(struct smw_ring *ring)
{
	/* The user produces and reads both indices in shared memory alone. */
	WRITE_ONCE(ring->buf->producer_index, 0);
	smw_ring_consume(ring, 0);
}

static void carry(struct smw_ring *to, u32 at, const struct smw_ring *from, u32 index,
		  u32 count)
{
	while (count--)
		memcpy(smw_ring_element(to, at++), smw_ring_element(from, index++),
		       1UL << from->shift);
}

bool smw_ring_carry(struct smw_ring *to, const struct smw_ring *from, u32 start,
		    const u32 *end, u32 room, spinlock_t *lock, u32 *carried)
{
	u32 turn = SMW_TURN_BYTES >> from->shift;
	u32 done = 0;
	u32 waiting;

	/* Pairs with the release of whoever produces: what is before it is whole. */
	while ((waiting = (smp_load_acquire(end) - start) & from->mask) > done &&
	       waiting <= room) {
		u32 part = min(waiting - done, turn);

		carry(to, done, from, start + done, part);
		done += part;
		spin_unlock_bh(lock);
		cond_resched();
		spin_lock_bh(lock);
	}
	*carried = done;
	return waiting <= done;
}

/*
 * remap_vmalloc_range() takes vmalloc_user() memory alone, which is not charged.
 * Nor is this aligned for caches that alias: no such CPU has this driver.
 */
static int map_pages(struct vm_area_struct *vma, void *buf)
{
	unsigned long at;
	int err;

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (at = vma->vm_start; at < vma->vm_end; at += PAGE_SIZE, buf += PAGE_SIZE) {
		err = vm_insert_page(vma, at, vmalloc_to_page(buf));
		if (err)
			return err;
	}
	return 0;
}

int smw_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct smw_ring_memory *memory;
	int err;

	/* The core has the ring mapped as a whole, and shared. */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	memory = container_of(entry, struct smw_ring_memory, rdma);
	err = map_pages(vma, memory->buf);
	rdma_user_mmap_entry_put(entry);
	return err;
}

void smw_ring_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct smw_ring_memory *memory =
		container_of(entry, struct smw_ring_memory, rdma);

	vfree(memory->buf);
	kfree(memory);
}
