// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rounds of steps, each in a process and with a device context of its own: a
 * round that hangs or dies is a failure like others and can be tried again.
 */
#include "model.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma_pair.h"

#define ROUND_SECONDS	60
#define SHRINK_SECONDS	60

struct model_round *model_round_new(void)
{
	void *map = mmap(NULL, sizeof(struct model_round),
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);

	if (map == MAP_FAILED)
		rdma_die("mmap: %s", strerror(errno));
	return map;
}

/* --- in the child --- */

static void count(struct model_counts *counts, enum model_op op,
		  const struct model_result *want)
{
	counts->steps++;
	counts->rules[want->rule]++;
	if (want->rule == MODEL_SKIPPED)
		return;
	if (want->err || (want->status != MODEL_NONE &&
			  want->status != IBV_WC_SUCCESS))
		counts->refused[op]++;
	else
		counts->fine[op]++;
}

static void tell(size_t nr, const struct model_request *r,
		 const struct model_result *want)
{
	char text[MODEL_TEXT_LEN];

	model_print(text, r->step);
	printf("%4zu  %s\n        key %#010x, address %#llx: %s\n", nr, text,
	       r->key, (unsigned long long)r->at, model_rule_name[want->rule]);
	fflush(stdout);
}

/* The step, and what the model makes of it, before what the device does. */
static void blame(char why[MODEL_WHY_LEN], const struct model_result *want,
		  const char *difference)
{
	snprintf(why, MODEL_WHY_LEN, "%s; by the model: %s", difference,
		 model_rule_name[want->rule]);
}

static bool do_step(struct model_round *round, const struct model_options *opt,
		    struct model_device *d, struct model *m,
		    const struct model_step *s)
{
	char difference[MODEL_WHY_LEN - 60];
	struct model_request r;
	struct model_result want;

	model_resolve(m, s, &r);
	model_apply(m, &r, &want);
	if (opt->verbose)
		tell(round->done, &r, &want);
	count(&round->counts, s->op, &want);
	if (model_device_do(d, m, &r, &want, difference, sizeof(difference)))
		return true;
	blame(round->why, &want, difference);
	return false;
}

/* @rnd NULL: the steps are there. */
static bool do_round(struct model_round *round, const struct model_options *opt,
		     struct model_random *rnd, size_t n)
{
	struct model_device *d;
	struct model m;

	d = model_device_open(opt, &m);
	for (round->done = 0; round->done < n;) {
		struct model_step *s = &round->steps[round->done];

		if (rnd)
			model_draw(rnd, &m, s);
		round->done++;
		if (!do_step(round, opt, d, &m, s))
			return false;
	}
	/* Half of the rounds leave it to the kernel to free everything. */
	if (rnd && rnd->state & 1)
		return true;
	return model_device_close(d, &m, round->why, sizeof(round->why));
}

/* --- in the parent --- */

static bool wait_for(pid_t pid, unsigned int seconds, char why[MODEL_WHY_LEN])
{
	struct pollfd fd = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	bool ended;
	int status;

	ended = poll(&fd, 1, (int)(1000 * seconds)) == 1;
	close(fd.fd);
	if (!ended)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!ended)
		snprintf(why, MODEL_WHY_LEN, "no end after %u s", seconds);
	else if (WIFSIGNALED(status))
		snprintf(why, MODEL_WHY_LEN, "ended by signal %d",
			 WTERMSIG(status));
	else if (WEXITSTATUS(status) && !*why)
		snprintf(why, MODEL_WHY_LEN, "the program gave up, see above");
	return ended && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool in_child(struct model_round *round, const struct model_options *opt,
		     struct model_random *rnd, size_t n)
{
	pid_t pid;

	*round->why = '\0';
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		rdma_die("fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(!do_round(round, opt, rnd, n));
	}
	return wait_for(pid, ROUND_SECONDS * opt->scale, round->why);
}

bool model_round_draw(struct model_round *round,
		      const struct model_options *opt, uint64_t seed, size_t n)
{
	struct model_random rnd = { seed };

	return in_child(round, opt, &rnd, n);
}

bool model_round_replay(struct model_round *round,
			const struct model_options *opt, size_t n)
{
	return in_child(round, opt, NULL, n);
}

/* --- shrinking --- */

/* The steps without @drop of them from @at on. */
static size_t without(struct model_step *to, const struct model_step *from,
		      size_t n, size_t at, size_t drop)
{
	size_t rest = at + drop < n ? n - at - drop : 0;

	memcpy(to, from, at * sizeof(*to));
	if (rest)
		memcpy(to + at, from + at + drop, rest * sizeof(*to));
	return at + rest;
}

/* Drop pieces of that size; returns how many steps are left. */
static size_t drop_pieces(struct model_round *round,
			  const struct model_options *opt,
			  struct model_step *best, size_t n, size_t piece,
			  uint64_t until)
{
	size_t at = 0;

	while (at < n && rdma_now_us() < until) {
		size_t fewer = without(round->steps, best, n, at, piece);

		if (!fewer || model_round_replay(round, opt, fewer)) {
			at += piece;
			continue;
		}
		/* What comes after the step that failed counts for nothing. */
		n = round->done;
		memcpy(best, round->steps, n * sizeof(*best));
	}
	return n;
}

size_t model_round_shrink(struct model_round *round,
			  const struct model_options *opt, size_t n)
{
	uint64_t until = rdma_now_us() + 1000000ULL * SHRINK_SECONDS * opt->scale;
	static struct model_step best[MODEL_ROUND];
	char why[MODEL_WHY_LEN];
	size_t before;

	memcpy(best, round->steps, n * sizeof(*best));
	memcpy(why, round->why, sizeof(why));
	for (size_t piece = n / 2; piece; piece /= 2)
		n = drop_pieces(round, opt, best, n, piece, until);
	do {	/* one step may have been in the way of another */
		before = n;
		n = drop_pieces(round, opt, best, n, 1, until);
	} while (n < before);
	memcpy(round->steps, best, n * sizeof(*best));
	memcpy(round->why, why, sizeof(why));
	return n;
}
