// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The peers' fire: a thread for each lane keeps READs, WRITEs and atomics of
 * one and of many packets going until one of them fails.
 */
#include "fire.h"

#include <sched.h>
#include <sys/resource.h>

#define SMALL	64
#define NICE	10

static void build_data(struct fire_lane *lane, struct rdma_wr *w,
		       struct fire_slot *slot, bool read)
{
	uint32_t len = 1 + fire_draw(&lane->seed, fire_draw(&lane->seed, 2) ?
				     FIRE_DATA : SMALL);
	uint64_t va = lane->va + fire_draw(&lane->seed, FIRE_DATA - len + 1);
	uint32_t lkey = lane->local.mr->lkey;

	if (read) {
		slot->read_len = len;
		rdma_wr_read(w, slot->data, len, lkey, va, lane->rkey);
	} else {
		/* Another place: other bytes than the last WRITE's. */
		rdma_wr_write(w, lane->local.addr +
			      fire_draw(&lane->seed, FIRE_DATA), len, lkey, va,
			      lane->rkey);
	}
}

static void build_atomic(struct fire_lane *lane, struct rdma_wr *w,
			 struct fire_slot *slot, bool swap)
{
	uint64_t va = lane->va + FIRE_DATA +
		      8 * fire_draw(&lane->seed, FIRE_WORDS);
	uint32_t lkey = lane->local.mr->lkey;

	if (swap)
		rdma_wr_cas(w, slot->word, lkey, va, lane->rkey, *slot->word,
			    FIRE_WORD | fire_draw(&lane->seed, 1U << 30));
	else
		rdma_wr_fadd(w, slot->word, lkey, va, lane->rkey, 1);
}

static void post_one(struct fire_lane *lane, unsigned int i)
{
	unsigned int kind = fire_draw(&lane->seed, 8);
	struct rdma_wr w;

	if (kind < 6)
		build_data(lane, &w, &lane->slot[i], kind & 1);
	else
		build_atomic(lane, &w, &lane->slot[i], kind & 1);
	w.wr.wr_id = i;
	rdma_post(&lane->peer, rdma_wr_chain(&w, 1));
	lane->pending++;
}

static void good(struct fire_lane *lane, unsigned int i)
{
	check(lane->end == IBV_WC_SUCCESS,
	      "nothing completes with success after what failed");
	__atomic_add_fetch(&lane->done, 1, __ATOMIC_RELAXED);
	post_one(lane, i);
}

static void bad(struct fire_lane *lane, enum ibv_wc_status status)
{
	if (lane->end == IBV_WC_SUCCESS)
		lane->end = status;
	else
		check(status == IBV_WC_WR_FLUSH_ERR,
		      "what follows the access that failed is flushed (%s)",
		      ibv_wc_status_str(status));
}

static void shoot(struct fire_lane *lane)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < FIRE_DEPTH; i++)
		post_one(lane, i);
	while (lane->pending) {
		check(rdma_wait_wc(lane->peer.scq, &wc, 2 * RDMA_WAIT_MS),
		      "every access completes (%u are pending)", lane->pending);
		/* A SEND_WITH_INV that was flushed fails where it is missed. */
		if (wc.wr_id >= FIRE_DEPTH)
			continue;
		lane->pending--;
		if (wc.status == IBV_WC_SUCCESS)
			good(lane, (unsigned int)wc.wr_id);
		else
			bad(lane, wc.status);
	}
}

/* Connecting takes its time, so the lanes do it side by side. */
static void *run_lane(void *arg)
{
	struct fire_lane *lane = arg;

	/* The owner need not wait for them on few CPUs. (Of this thread alone.) */
	setpriority(PRIO_PROCESS, 0, NICE);
	shoot(lane);
	while (!__atomic_load_n(&lane->fire->over, __ATOMIC_ACQUIRE))
		sched_yield();
	fire_reconnect(lane);
	return NULL;
}

void fire_load_start(struct fire *f)
{
	f->over = false;
	for (unsigned int i = 0; i < FIRE_LANES; i++) {
		struct fire_lane *lane = &f->lane[i];

		lane->done = 0;
		lane->end = IBV_WC_SUCCESS;
		check(!pthread_create(&lane->thread, NULL, run_lane, lane),
		      "pthread_create");
	}
}

/* Of the lane that has done the fewest, or of all together. */
static unsigned long accesses_done(const struct fire *f, bool each)
{
	unsigned long sum = 0, least = -1UL;

	for (unsigned int i = 0; i < FIRE_LANES; i++) {
		unsigned long done = __atomic_load_n(&f->lane[i].done,
						     __ATOMIC_RELAXED);

		sum += done;
		least = done < least ? done : least;
	}
	return each ? least : sum;
}

void fire_load_wait(struct fire *f, unsigned long accesses, bool each)
{
	uint64_t until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;

	while (accesses_done(f, each) < accesses) {
		check(rdma_now_us() < until,
		      "the peers' accesses go through");
		sched_yield();
	}
}

/* Nothing that the owner stored after the revocation has come to the peer. */
static void expect_no_secret(const struct fire_lane *lane)
{
	for (unsigned int i = 0; i < FIRE_DEPTH; i++) {
		const struct fire_slot *slot = &lane->slot[i];

		for (uint32_t j = 0; j < slot->read_len; j++)
			check(slot->data[j] & 0x80,
			      "not one byte is read after the revocation (%u)",
			      j);
		check(*slot->word & FIRE_WORD,
		      "no atomic is executed after the revocation");
	}
}

void fire_load_end(struct fire *f, const struct fire_way *way)
{
	__atomic_store_n(&f->over, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < FIRE_LANES; i++) {
		struct fire_lane *lane = &f->lane[i];

		check(!pthread_join(lane->thread, NULL), "pthread_join");
		if (way->refused)
			check(lane->end == IBV_WC_REM_ACCESS_ERR,
			      "pending accesses end with REM_ACCESS_ERR (%s)",
			      ibv_wc_status_str(lane->end));
		expect_no_secret(lane);
		f->accesses += lane->done;
	}
}
