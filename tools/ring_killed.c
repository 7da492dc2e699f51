// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Processes that are killed in the middle of what their threads do: each must be gone
 * at once, and nothing of it may be left.
 */
#include "ring_killed.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE_MS		700
#define OBJECTS		"/sys/kernel/debug/smw/%s/objects"

uint32_t draw(struct actor *a, uint32_t below)
{
	return ((uint32_t)rand_r(&a->seed) >> 4) % below;
}

static void *run_actor(void *arg)
{
	struct actor *a = arg;

	for (;;)
		a->act(a);
	return NULL;
}

void actors_run(void *shared, const actor_fn *acts, size_t n, unsigned int seed)
{
	struct actor *actors = calloc(n, sizeof(*actors));

	check(actors, "memory");
	for (size_t i = 0; i < n; i++) {
		pthread_t thread;

		actors[i] = (struct actor){ shared, seed * 37 + (unsigned int)i, acts[i] };
		check(!pthread_create(&thread, NULL, run_actor, &actors[i]),
		      "pthread_create");
	}
	for (;;)
		pause();
}

/* What the device has, where this process may know. */
static bool count_objects(const struct rdma_dev *dev, char *text, size_t len)
{
	char path[128];
	size_t got = 0;
	FILE *f;

	snprintf(path, sizeof(path), OBJECTS, ibv_get_device_name(dev->ctx->device));
	f = fopen(path, "r");
	if (f) {
		got = fread(text, 1, len - 1, f);
		fclose(f);
	}
	text[got] = 0;
	return got;
}

static void one_life(struct ring_env *e, ring_live_fn live, unsigned int seed,
		     unsigned long *done)
{
	char before[256], after[256];
	bool counted = count_objects(&e->dev, before, sizeof(before));
	uint64_t start;
	int status;
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (!pid)
		live(seed, done);
	usleep((LIFE_MS / 2 + ring_random(e) % LIFE_MS) * 1000 * ktap_opt.scale);
	kill(pid, SIGKILL);
	start = rdma_now_us();
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "it lived until it was killed (status %#x)", status);
	check(rdma_now_us() - start < 2000000ULL * ktap_opt.scale, "and is gone at once");
	if (counted) {
		count_objects(&e->dev, after, sizeof(after));
		check(!strcmp(before, after), "nothing of it is left: %s, before %s", after,
		      before);
	}
	ring_expect_no_harm(e);
}

void ring_lives(ring_live_fn live, unsigned int rounds)
{
	unsigned long *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ring_env e;

	if (ktap_opt.rounds)
		rounds = ktap_opt.rounds;
	check(done != MAP_FAILED, "memory");
	ring_open(&e);
	for (unsigned int i = 0; i < rounds; i++)
		one_life(&e, live, (unsigned int)ktap_opt.seed + i, done);
	ktap_note("%lu were carried out", *done);
	check(*done >= rounds, "something was carried out meanwhile");
	ring_close(&e);
}
