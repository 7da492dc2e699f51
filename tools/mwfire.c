// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fence under fire: four threads of peers read, write and do atomics
 * through a key without pause while the owner takes it back, round after
 * round. From that moment on not one byte moves in either direction, and the
 * peers are told.
 *
 * A round knows of a byte that moved too late in three ways: the memory changes
 * after it was looked at; it is no longer what the owner filled it with; a READ
 * brings what the owner filled it with.
 */
#include "fire.h"
#include "ktap_dev.h"

#define ROUNDS		30
#define LOOKS		3
#define DELAY_US	300	/* the revocation comes this late at most */
#define SILENCE_US	1000	/* while requests go unanswered */
#define CASE_SECONDS	600

static void spin_us(unsigned int us)
{
	uint64_t until = rdma_now_us() + us;

	while (rdma_now_us() < until)
		;
}

static void expect_still(const struct fire *f, const struct fire_target *t)
{
	const uint8_t *now = f->region.addr + t->off;
	size_t moved = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!memcmp(now, f->snapshot, t->len))
		return;
	for (size_t i = 0; i < t->len; i++)
		moved += now[i] != f->snapshot[i];
	check(!moved, "not one byte is written after the revocation: %zu were, round %lu",
	      moved, f->rounds);
}

/* Look at the memory, look again, and give it to somebody else. */
static void fence(struct fire *f, const struct fire_target *t)
{
	uint8_t *at = f->region.addr + t->off;

	memcpy(f->snapshot, at, t->len);
	for (unsigned int i = 0; i < LOOKS; i++)
		expect_still(f, t);
	memset(at, FIRE_SECRET, t->len);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void expect_secret(const struct fire *f)
{
	size_t moved = 0;

	for (size_t i = 0; i < FIRE_PARTS; i++)
		moved += f->region.addr[i] != FIRE_SECRET;
	check(!moved, "not one byte is written after the revocation: %zu were, round %lu",
	      moved, f->rounds);
}

static void revoke(struct fire *f, const struct fire_way *way,
		   struct fire_target *t)
{
	uint64_t limit_us = 1000ULL * way->limit_ms * rdma_scale;
	uint64_t start = rdma_now_us();
	uint64_t us;

	way->revoke(f, t);
	us = rdma_now_us() - start;
	fence(f, t);
	f->revocations++;
	if (us > f->slowest_us)
		f->slowest_us = us;
	f->late += limit_us && us > limit_us;
	check(!limit_us || us < FIRE_TOO_LATE * limit_us,
	      "it is done within %u ms (%llu us)", way->limit_ms,
	      (unsigned long long)us);
}

/* Whom nobody answers any more tries again and again, until it is stopped. */
static void cease(struct fire *f)
{
	spin_us(SILENCE_US);
	for (unsigned int i = 0; i < FIRE_LANES; i++)
		check_errno(rdma_to_state(&f->lane[i].peer, IBV_QPS_ERR), 0,
			    "the peer to ERR");
}

static void one_round(struct fire *f, const struct fire_way *way)
{
	fire_arm(f, way);
	fire_load_start(f);
	fire_load_wait(f, 1 + fire_draw(&f->seed, 4), f->rounds % 4 == 0);
	spin_us(fire_draw(&f->seed, DELAY_US));
	for (unsigned int i = 0; i < f->num_targets; i++)
		revoke(f, way, &f->target[i]);
	if (!way->refused)
		cease(f);
	fire_load_end(f, way);
	expect_secret(f);
	fire_drop_events(f);
	f->rounds++;
}

static void fire_rounds(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : ROUNDS;
	const struct fire_way *way = &fire_ways[arg];
	uint64_t start, end;
	struct fire f;

	fire_open(&f, way);
	start = rdma_now_us();
	end = start + 1000000ULL * ktap_opt.seconds;
	while (ktap_opt.seconds ? rdma_now_us() < end : f.rounds < rounds)
		one_round(&f, way);
	end = rdma_now_us();
	ktap_note("%lu rounds in %llu ms, %lu accesses, slowest revocation %llu us",
		  f.rounds, (unsigned long long)(end - start) / 1000,
		  f.accesses, (unsigned long long)f.slowest_us);
	check(f.late <= f.revocations / FIRE_LATE,
	      "it is done within %u ms (%lu of %lu were not)", way->limit_ms,
	      f.late, f.revocations);
	fire_close(&f);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < fire_num_ways; i++)
		ktap_add(fire_ways[i].clause, fire_rounds, (long)i,
			 CASE_SECONDS, "fire.%s", fire_ways[i].name);
	return ktap_dev_main(argc, argv, "prst");
}
