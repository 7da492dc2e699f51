/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Holds: how the data path uses a shared object without writing to it.
 *
 * A CPU that is about to use a window, region or queue pair notes its address
 * in a slot of its own and only then looks whether the object may still be
 * used. Whoever takes the object away first marks it unusable and then waits
 * until no CPU's slot names it. One of the two always sees the other:
 *
 *	user					taker
 *	slot = object				object->usable = false
 *	smp_mb()				smp_mb()
 *	if (object->usable) use it		wait while any slot == object
 *	slot = NULL (release)			(acquire) reuse or free it
 *
 * So a use costs one local store and one local barrier, no shared cache line,
 * and revocation is a fence: when smw_hold_drain() returns, not one more byte
 * moves under a check made before.
 *
 * Rules
 *  - A hold is taken and dropped in one section with bottom halves disabled,
 *    which is at most one turn of work (SMW_TURN_BYTES), so a drain is short.
 *  - Inside a hold on a region or window no lock is taken that a taker may hold
 *    while it drains: window->lock, mr->lock, mutexes, and where a request
 *    invalidates (LOCAL_INV, SEND_WITH_INV) requester.lock and responder.lock.
 *    Those two are taken before the hold; and what invalidates has dropped its own
 *    CPU's holds on regions and windows, or it would wait for itself.
 *  - Inside a hold on a queue pair its locks are taken; a drain of a queue pair
 *    is done by process context with none of them held.
 *  - The memory of the object itself outlives the look-up by RCU, or by a
 *    second look at the table after the hold was taken (queue pairs).
 */
#ifndef SMW_HOLD_H
#define SMW_HOLD_H

#include <linux/percpu.h>

/* One slot per part that an object can play in a turn of one CPU. */
enum smw_hold_slot {
	SMW_HOLD_QP,		/* queue pair that a packet came in for */
	SMW_HOLD_PEER,		/* queue pair that a same-host request goes to */
	SMW_HOLD_REMOTE,	/* window or region named by an rkey */
	SMW_HOLD_SEND,		/* region named by an lkey of a send work request */
	SMW_HOLD_RECEIVE,	/* region named by an lkey of a receive work request */
	SMW_HOLD_SLOTS
};

/**
 * struct smw_holds - what one CPU is using now
 * @object: by enum smw_hold_slot; written by this CPU with bottom halves
 *          disabled, read by any
 */
struct smw_holds {
	const void *object[SMW_HOLD_SLOTS];
} ____cacheline_aligned;

DECLARE_PER_CPU(struct smw_holds, smw_holds);

/**
 * smw_hold_take() - note that this CPU uses an object
 * @slot: the part it plays; the slot is free
 * @object: the object, kept in memory by RCU or looked up again afterwards
 *
 * The caller looks whether the object is usable after this, never before.
 * Context: bottom halves disabled.
 */
static inline void smw_hold_take(enum smw_hold_slot slot, const void *object)
{
	WRITE_ONCE(this_cpu_ptr(&smw_holds)->object[slot], object);
	/* Pairs with the barrier in smw_hold_drain(). */
	smp_mb();
}

/**
 * smw_hold_drop() - the use is over
 * @slot: a slot, taken or free
 */
static inline void smw_hold_drop(enum smw_hold_slot slot)
{
	/* Pairs with the acquire in smw_hold_drain(): the use is over before. */
	smp_store_release(&this_cpu_ptr(&smw_holds)->object[slot], NULL);
}

/**
 * smw_hold_drain() - wait until no CPU uses an object
 * @object: an object already marked unusable by the caller
 *
 * Context: any but hard interrupts; spins for at most a turn of work.
 */
void smw_hold_drain(const void *object);

/**
 * smw_hold_peek() - what this CPU holds in a slot, for tests
 * @slot: a slot
 *
 * Return: the object, or NULL.
 */
const void *smw_hold_peek(enum smw_hold_slot slot);

#endif /* SMW_HOLD_H */
