/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A process of many threads that use and destroy the same objects, and is killed. */
#ifndef SMW_TOOLS_RING_KILLED_H
#define SMW_TOOLS_RING_KILLED_H

#include "ring.h"

struct actor;
typedef void (*actor_fn)(struct actor *a);

/* One thread, which does one thing for ever. */
struct actor {
	void *shared;		/* what the threads have together */
	unsigned int seed;
	actor_fn act;
};

/* A number below @below. */
uint32_t draw(struct actor *a, uint32_t below);
/* A thread for each of @acts. Does not return: the parent kills the process. */
void actors_run(void *shared, const actor_fn *acts, size_t n, unsigned int seed);

/* Does not return, and counts in @done what was carried out. */
typedef void (*ring_live_fn)(unsigned int seed, unsigned long *done);
/* @rounds processes after each other that @live until they are killed. */
void ring_lives(ring_live_fn live, unsigned int rounds);

#endif
