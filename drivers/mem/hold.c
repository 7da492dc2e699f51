// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/hold.h>

#include <linux/cpumask.h>
#include <linux/processor.h>

#include <smw/kunit.h>

/* A drain spins for sections that PREEMPT_RT lets be preempted. */
#ifdef CONFIG_PREEMPT_RT
#error "smw does not support PREEMPT_RT"
#endif

DEFINE_PER_CPU(struct smw_holds, smw_holds);

static void drain_cpu(const struct smw_holds *holds, const void *object)
{
	unsigned int slot;

	for (slot = 0; slot < SMW_HOLD_SLOTS; slot++)
		/* Pairs with the release in smw_hold_drop(). */
		while (smp_load_acquire(&holds->object[slot]) == object)
			cpu_relax();
}

void smw_hold_drain(const void *object)
{
	unsigned int cpu;

	/* Pairs with the barrier in smw_hold_take(). */
	smp_mb();
	for_each_possible_cpu(cpu)
		drain_cpu(per_cpu_ptr(&smw_holds, cpu), object);
}
EXPORT_SYMBOL_IF_KUNIT(smw_hold_drain);

const void *smw_hold_peek(enum smw_hold_slot slot)
{
	return READ_ONCE(raw_cpu_ptr(&smw_holds)->object[slot]);
}
EXPORT_SYMBOL_IF_KUNIT(smw_hold_peek);
