/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings shared with user space (struct rxe_queue_buf).
 *
 * The user can write any byte of a ring at any moment. So the kernel keeps its
 * own copy of the index it owns and of the geometry, masks the user's index,
 * and copies an element once before it looks at it.
 *
 * Kernel consumers' rings are the same, but nobody maps them: post.c and cq.c
 * do there what librxe does in the others.
 */
#ifndef SMW_RING_H
#define SMW_RING_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <smw/link.h>

struct smw_ring_memory;

/**
 * struct smw_ring - one ring
 * @buf: header and elements, vmalloc memory that the user may map
 * @memory: the mapping that owns @buf
 * @mask: slots - 1; slots is a power of two
 * @shift: log2 of the element size
 * @index: the index that the kernel owns, masked: consumer of a work queue,
 *         producer of a completion queue
 */
struct smw_ring {
	struct rxe_queue_buf *buf;
	struct smw_ring_memory *memory;
	u32 mask;
	u32 shift;
	u32 index;
};

/**
 * smw_ring_create() - make a ring and offer it for mmap
 * @ring: to initialise
 * @udata: of the command; its user context will map the ring. NULL for a kernel
 *         consumer: nobody will
 * @entries: elements that must fit, 1 or more; one more slot stays empty
 * @element_size: bytes of an element; rounded up to a power of two
 * @info: out: where to map it, for the response to user space
 *
 * Return: 0 or a negative errno.
 */
int smw_ring_create(struct smw_ring *ring, struct ib_udata *udata, u32 entries,
		    u32 element_size, struct mminfo *info);

/**
 * smw_ring_destroy() - give a ring up
 * @ring: a ring, or one never created; user mappings keep its memory
 */
void smw_ring_destroy(struct smw_ring *ring);

/**
 * smw_ring_reset() - empty a work queue's ring
 * @ring: the ring
 */
void smw_ring_reset(struct smw_ring *ring);

static inline u32 smw_ring_next(const struct smw_ring *ring, u32 index)
{
	return (index + 1) & ring->mask;
}

static inline void *smw_ring_element(const struct smw_ring *ring, u32 index)
{
	return ring->buf->data + ((size_t)(index & ring->mask) << ring->shift);
}

/* How far the user has produced; any garbage becomes some slot. */
static inline u32 smw_ring_user_producer(const struct smw_ring *ring)
{
	/* Pairs with the user's release: elements before it are whole. */
	return smp_load_acquire(&ring->buf->producer_index) & ring->mask;
}

static inline u32 smw_ring_user_consumer(const struct smw_ring *ring)
{
	/* Pairs with the user's release: elements before it are free. */
	return smp_load_acquire(&ring->buf->consumer_index) & ring->mask;
}

/* Give slots before @index back to the user of a work queue. */
static inline void smw_ring_consume(struct smw_ring *ring, u32 index)
{
	ring->index = index;
	/* Pairs with the user's acquire: the slots were read before. */
	smp_store_release(&ring->buf->consumer_index, index);
}

/* Show the user of a completion queue elements before @index. */
static inline void smw_ring_produce(struct smw_ring *ring, u32 index)
{
	ring->index = index;
	/* Pairs with the user's acquire: the elements are whole. */
	smp_store_release(&ring->buf->producer_index, index);
}

/* For a work queue that the kernel has filled in the user's place. */
static inline void smw_ring_user_produced(struct smw_ring *ring, u32 index)
{
	/* Pairs with the acquire of whoever takes them: the elements are whole. */
	smp_store_release(&ring->buf->producer_index, index);
}

/* For a completion queue that the kernel has polled in the user's place. */
static inline void smw_ring_user_consumed(struct smw_ring *ring, u32 index)
{
	/* Pairs with the acquire of the producer: the elements were read before. */
	smp_store_release(&ring->buf->consumer_index, index);
}

/**
 * smw_ring_carry() - copy what waits in a ring to another one
 * @to: a ring of the same element size, empty
 * @from: the old ring
 * @start: first element to copy, constant meanwhile
 * @end: index after the last one, which may move on; masked here
 * @room: how many elements @to can take
 * @lock: protects @from; held, and released between turns of SMW_TURN_BYTES,
 *        since packets wait for it
 * @carried: out: how many elements @to holds, from its slot 0 on
 *
 * Return: true, with @lock held all the time since the end was reached; false
 * where there are more than @room.
 */
bool smw_ring_carry(struct smw_ring *to, const struct smw_ring *from, u32 start,
		    const u32 *end, u32 room, spinlock_t *lock, u32 *carried);

/* The RDMA core's operations on mappings. */
int smw_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void smw_ring_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* SMW_RING_H */
