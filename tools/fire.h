/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What mwfire's rounds are made of: four lanes, each a queue pair of the owner
 * and one of a peer, and targets, each something with a key that the owner can
 * take back.
 *
 *	type 1 window, region: one target, which all lanes shoot at
 *	type 2 window: a target for each lane, since it belongs to a queue pair
 *
 *	region	| part 0 | part 1 | part 2 | part 3 | spare |
 *	part	| data: READs and WRITEs | words: atomics |
 *
 * Every byte of the data that a peer may read or write has its top bit set, and
 * so has every word of the atomics. What the owner stores after the revocation
 * has not: a single byte tells whether it was moved before that or after.
 */
#ifndef SMW_TOOLS_FIRE_H
#define SMW_TOOLS_FIRE_H

#include "ktap.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define FIRE_LANES	4
#define FIRE_DEPTH	8	/* accesses on their way at any time, each lane */
#define FIRE_DATA	16384
#define FIRE_WORDS	8
#define FIRE_PART	(FIRE_DATA + FIRE_WORDS * 8)
#define FIRE_PARTS	((size_t)FIRE_LANES * FIRE_PART)
#define FIRE_REGION	(FIRE_PARTS + FIRE_PART)
#define FIRE_RIGHTS	(RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | \
			 IBV_ACCESS_MW_BIND)

/*
 * A machine that others use too, or one that is emulated on such, stops now and
 * then: one revocation of so many may be late, and none by so many limits.
 */
#define FIRE_LATE	20
#define FIRE_TOO_LATE	20

#define FIRE_BEFORE	0xa5	/* bytes of the region while the key is good */
#define FIRE_SECRET	0x5a	/* bytes of the region once it is not */
#define FIRE_WORD	(1ULL << 63)

struct fire_target {
	struct ibv_mw *mw;	/* NULL for a region */
	struct rdma_end *end;	/* the owner's, which binds and invalidates */
	struct rdma_end *peer;	/* its other end */
	uint32_t rkey;
	size_t off;		/* of its first byte in the region */
	size_t len;
};

/* The peer's side of one access. */
struct fire_slot {
	uint8_t *data;		/* where a READ goes */
	uint32_t read_len;	/* of the last READ */
	uint64_t *word;		/* where an atomic's old value goes */
};

struct fire;

struct fire_lane {
	struct fire *fire;
	struct rdma_end owner;
	struct rdma_end peer;
	struct rdma_buf local;	/* the peer's memory */
	struct fire_slot slot[FIRE_DEPTH];
	pthread_t thread;
	unsigned int seed;
	/* For one round. */
	uint32_t rkey;
	uint64_t va;		/* of its part of the region */
	unsigned int pending;
	unsigned long done;	/* accesses that were good */
	enum ibv_wc_status end;	/* of the first that was not */
};

struct fire {
	struct rdma_dev dev;
	struct rdma_dev peer_dev;	/* unless it is the same */
	bool two_devices;
	struct rdma_buf region;
	uint8_t *snapshot;
	uint8_t *elsewhere;	/* other memory for the region */
	struct ibv_pd *other_pd; /* another domain for it */
	struct fire_lane lane[FIRE_LANES];
	struct fire_target target[FIRE_LANES];
	unsigned int num_targets;
	unsigned int seed;
	bool over;		/* the round: lanes may connect for the next one */
	/* For the summary. */
	unsigned long rounds;
	unsigned long accesses;
	unsigned long revocations;
	unsigned long late;	/* revocations */
	uint64_t slowest_us;	/* revocation */
};

/* A way to take a key back. */
struct fire_way {
	const char *name;
	const char *clause;
	int type;		/* of the window, 0 for a region */
	void (*revoke)(struct fire *f, struct fire_target *t);
	/* The peer is told; else its requests go unanswered. */
	bool refused;
	/* Within which it is done, 0 for no such promise; see FIRE_LATE. */
	unsigned int limit_ms;
};

extern const struct fire_way fire_ways[];
extern const size_t fire_num_ways;

unsigned int fire_draw(unsigned int *seed, unsigned int below);

void fire_open(struct fire *f, const struct fire_way *way);
void fire_close(struct fire *f);
/* Before a round: the memory as it is before the revocation, and good keys. */
void fire_arm(struct fire *f, const struct fire_way *way);
/* After it: the lane's queue pairs as new. */
void fire_reconnect(struct fire_lane *lane);
void fire_drop_events(struct fire *f);

/* Bind to @len bytes at @off, by the call or request of the window's type. */
void fire_bind(struct fire *f, struct fire_target *t, size_t off, size_t len);

void fire_load_start(struct fire *f);
/* Wait until so many accesses are done, by all lanes or by @each of them. */
void fire_load_wait(struct fire *f, unsigned long accesses, bool each);
/* Wait for the lanes' end, and judge it; they are connected again then. */
void fire_load_end(struct fire *f, const struct fire_way *way);

#endif
