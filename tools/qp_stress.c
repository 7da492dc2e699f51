// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Many things at once: threads, random lengths, CPU and device on one word. */
#include "meanwhile.h"
#include "qp_env.h"

#include <pthread.h>
#include <stdlib.h>

#define MIB	(1UL << 20)

/* --- atomics against the CPU --- */

static bool add_by_cpu(struct meanwhile *m)
{
	__atomic_fetch_add((uint64_t *)m->object, 1, __ATOMIC_RELAXED);
	return true;
}

static void cpu_atomics(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 2000;
	struct meanwhile adder;
	struct qp_env e;
	uint64_t *word;
	uint64_t sum = 0;

	(void)arg;
	qp_open(&e, NULL, 4096);
	word = (uint64_t *)(e.bbuf.addr + 8);
	*word = 0;
	meanwhile_start(&adder, add_by_cpu, word);
	for (unsigned long i = 0; i < rounds; i++) {
		struct rdma_wr w;
		uint64_t old;

		if (i & 1) {
			rdma_wr_fadd(&w, e.abuf.addr, e.abuf.mr->lkey,
				     e.bbuf.iova + 8, e.bbuf.mr->rkey, 1);
			check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS,
				 "a fetch-and-add");
			sum++;
			continue;
		}
		old = __atomic_load_n(word, __ATOMIC_RELAXED);
		rdma_wr_cas(&w, e.abuf.addr, e.abuf.mr->lkey, e.bbuf.iova + 8,
			    e.bbuf.mr->rkey, old, old + 1);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS,
			 "a compare-and-swap");
		sum += !memcmp(e.abuf.addr, &old, 8);
	}
	sum += meanwhile_stop(&adder);
	check_eq(*word, sum, "the sum of what the CPU and the device added");
	qp_close(&e);
}

/* --- random lengths, offsets and operations, both ways --- */

struct worker {
	struct rdma_end *end;
	struct rdma_end *peer;
	struct rdma_buf *local;
	struct rdma_buf *remote;	/* the half of it that is the worker's */
	size_t base;
	unsigned int seed;
	unsigned long rounds;
	char error[128];
};

static void *fail(struct worker *w, const char *what, unsigned long round)
{
	snprintf(w->error, sizeof(w->error), "%s in round %lu", what, round);
	return NULL;
}

/* Write to the peer, read it back to another place, compare. */
static void *write_and_read(void *arg)
{
	struct worker *w = arg;

	for (unsigned long i = 0; i < w->rounds; i++) {
		uint32_t len = 1 + (uint32_t)rand_r(&w->seed) % 60000;
		size_t from = w->base + (size_t)rand_r(&w->seed) % 5000;
		size_t to = w->base + (size_t)rand_r(&w->seed) % 5000;
		size_t back = w->base + 131072 + (size_t)rand_r(&w->seed) % 5000;
		struct rdma_wr wr[2];
		struct ibv_wc wc;

		for (uint32_t j = 0; j < len; j++)
			w->local->addr[from + j] = (uint8_t)(i + j * 7);
		rdma_wr_write(&wr[0], w->local->addr + from, len,
			      w->local->mr->lkey, w->remote->iova + to,
			      w->remote->mr->rkey);
		wr[0].wr.send_flags = 0;
		rdma_wr_read(&wr[1], w->local->addr + back, len,
			     w->local->mr->lkey, w->remote->iova + to,
			     w->remote->mr->rkey);
		if (rdma_try_post(w->end, rdma_wr_chain(wr, 2)))
			return fail(w, "cannot post", i);
		if (!rdma_wait_wc(w->end->scq, &wc, 4 * RDMA_WAIT_MS))
			return fail(w, "no completion", i);
		if (wc.status != IBV_WC_SUCCESS)
			return fail(w, ibv_wc_status_str(wc.status), i);
		if (memcmp(w->local->addr + from, w->local->addr + back, len))
			return fail(w, "other data", i);
	}
	return NULL;
}

static void run_workers(struct worker *w, size_t n, void *(*run)(void *))
{
	pthread_t thread[8];

	for (size_t i = 0; i < n; i++)
		check(!pthread_create(&thread[i], NULL, run, &w[i]),
		      "pthread_create");
	for (size_t i = 0; i < n; i++)
		check(!pthread_join(thread[i], NULL), "pthread_join");
	for (size_t i = 0; i < n; i++)
		check(!w[i].error[0], "thread %zu: %s", i, w[i].error);
}

static void both_directions(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 300;
	struct worker w[2];
	struct qp_env e;

	memset(w, 0, sizeof(w));
	qp_open(&e, NULL, MIB);
	for (size_t i = 0; i < 2; i++) {
		w[i].end = i ? &e.b : &e.a;
		w[i].peer = i ? &e.a : &e.b;
		w[i].local = i ? &e.bbuf : &e.abuf;
		w[i].remote = i ? &e.abuf : &e.bbuf;
		w[i].base = i * 524288;
		w[i].seed = (unsigned int)(ktap_opt.seed + i + 1);
		w[i].rounds = rounds;
	}
	if (arg) {
		run_workers(w, 2, write_and_read);
	} else {
		run_workers(&w[0], 1, write_and_read);
		run_workers(&w[1], 1, write_and_read);
	}
	qp_close(&e);
}

/* Messages in both directions as fast as they can be posted. */
static void *send_and_receive(void *arg)
{
	enum { DEPTH = 16 };
	struct worker *w = arg;
	unsigned long sent = 0, received = 0, posted = 0;

	while (received < w->rounds || sent < w->rounds) {
		struct rdma_wr wr;
		struct ibv_wc wc;
		bool idle = true;

		if (posted < w->rounds && posted - sent < DEPTH) {
			rdma_wr_send(&wr, w->local->addr, 20000,
				     w->local->mr->lkey);
			if (rdma_try_post(w->end, rdma_wr_chain(&wr, 1)))
				return fail(w, "cannot post", posted);
			posted++;
			idle = false;
		}
		if (ibv_poll_cq(w->end->scq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return fail(w, ibv_wc_status_str(wc.status),
					    sent);
			sent++;
			idle = false;
		}
		if (ibv_poll_cq(w->end->rcq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS || wc.byte_len != 20000)
				return fail(w, "a bad receive", received);
			received++;
			if (rdma_try_recv(w->end, 0, w->local->addr + 32768,
					  20000, w->local->mr->lkey))
				return fail(w, "cannot receive", received);
			idle = false;
		}
		if (idle)
			sched_yield();
	}
	return NULL;
}

static void messages_both_ways(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 1000;
	struct rdma_conf conf = rdma_conf_default();
	struct worker w[2];
	struct qp_env e;

	conf.wr_api = arg;
	memset(w, 0, sizeof(w));
	qp_open(&e, &conf, 65536);
	for (size_t i = 0; i < 2; i++) {
		w[i].end = i ? &e.b : &e.a;
		w[i].local = i ? &e.bbuf : &e.abuf;
		w[i].rounds = rounds;
		for (int j = 0; j < 32; j++)
			rdma_recv(w[i].end, 0, w[i].local->addr + 32768, 20000,
				  w[i].local->mr->lkey);
	}
	run_workers(w, 2, send_and_receive);
	qp_close(&e);
}

/* --- many queue pairs, made and destroyed with traffic on them --- */

static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	struct rdma_conf conf = rdma_conf_default();

	for (unsigned long i = 0; i < w->rounds; i++) {
		struct rdma_end a, b;
		struct rdma_wr wr[4];

		rdma_end_create(&a, w->end->dev, w->end->pd, &conf);
		rdma_end_create(&b, w->end->dev, w->end->pd, &conf);
		rdma_connect(&a, &b);
		for (size_t j = 0; j < 4; j++)
			rdma_wr_write(&wr[j], w->local->addr, 30000,
				      w->local->mr->lkey, w->local->iova +
				      65536, w->local->mr->rkey);
		rdma_post(&a, rdma_wr_chain(wr, 4));
		/* in the middle of it, in either order */
		rdma_end_destroy(i & 1 ? &a : &b);
		rdma_end_destroy(i & 1 ? &b : &a);
	}
	return NULL;
}

static void churn(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 100;
	struct worker w[2];
	struct qp_env e;

	(void)arg;
	memset(w, 0, sizeof(w));
	qp_open(&e, NULL, 131072);
	for (size_t i = 0; i < 2; i++) {
		w[i].end = i ? &e.b : &e.a;
		w[i].local = i ? &e.bbuf : &e.abuf;
		w[i].rounds = rounds;
	}
	run_workers(w, 2, come_and_go);
	qp_expect_works(&e);
	qp_close(&e);
}

/* Four threads post to one queue pair: every request completes once. */
struct poster {
	struct qp_env *e;
	uint64_t first_id;
};

#define POSTS	200
#define POSTERS	4

static void *post_some(void *arg)
{
	struct poster *p = arg;

	for (uint64_t i = 0; i < POSTS; i++) {
		struct rdma_wr w;

		qp_build(p->e, &w, i & 1 ? QP_READ : QP_WRITE, 0, 64);
		w.wr.wr_id = p->first_id + i;
		while (rdma_try_post(&p->e->a, rdma_wr_chain(&w, 1)))
			sched_yield();
	}
	return NULL;
}

static void many_posters(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	bool seen[POSTS * POSTERS] = { false };
	struct poster p[POSTERS];
	pthread_t thread[POSTERS];
	struct qp_env e;

	conf.wr_api = arg;
	conf.cqe = POSTS * POSTERS;
	qp_open(&e, &conf, 4096);
	for (size_t i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){ &e, i * POSTS };
		check(!pthread_create(&thread[i], NULL, post_some, &p[i]),
		      "pthread_create");
	}
	for (size_t i = 0; i < POSTS * POSTERS; i++) {
		struct ibv_wc wc;

		check(rdma_wait_wc(e.a.scq, &wc, RDMA_WAIT_MS),
		      "completion %zu comes", i);
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		check(wc.wr_id < POSTS * POSTERS && !seen[wc.wr_id],
		      "each completes once");
		seen[wc.wr_id] = true;
	}
	for (size_t i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	qp_close(&e);
}

void qp_stress_cases(void)
{
	ktap_add("atomic against the CPU too", cpu_atomics, 0, 60,
		 "stress.cpu-atomics");
	ktap_add("data integrity", both_directions, 0, 120,
		 "stress.random-lengths");
	ktap_add("data integrity, both directions at once", both_directions, 1,
		 120, "stress.random-lengths-both-ways");
	ktap_add("two threads, both directions", messages_both_ways, 0, 120,
		 "stress.messages-both-ways");
	ktap_add("two threads, both directions", messages_both_ways, 1, 120,
		 "stress.messages-both-ways-wr-api");
	ktap_add("destroyed with traffic on it", churn, 0, 120,
		 "stress.come-and-go");
	ktap_add("threads post to one queue", many_posters, 0, 60,
		 "stress.many-posters");
	ktap_add("threads post to one queue", many_posters, 1, 60,
		 "stress.many-posters-wr-api");
}
