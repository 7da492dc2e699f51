// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A second thread writes to the rings while the driver works on them: each
 * field must be read once, and what was checked be what is used.
 */
#include "meanwhile.h"
#include "ring.h"

#include <stdlib.h>

#define SECONDS	3

enum what { FLIP_SLOTS, FLIP_FIELDS, FLIP_HEADER, FLIP_RECV, FLIP_CQ, WHATS };

static const char *const what_name[WHATS] = { "slots", "fields", "header",
					      "recv", "cq" };

struct flipper {
	struct ring_env *e;
	enum what what;
	unsigned int seed;
};

static uint32_t random32(struct flipper *f)
{
	return (uint32_t)rand_r(&f->seed) << 16 ^ (uint32_t)rand_r(&f->seed);
}

static void flip_word(struct flipper *f, uint8_t *base, size_t len)
{
	uint32_t *words = (uint32_t *)base;

	__atomic_store_n(&words[random32(f) % (len / 4)], random32(f),
			 __ATOMIC_RELAXED);
}

/* Good and bad values of one field, back and forth. */
static void flip_field(struct flipper *f)
{
	struct ring_env *e = f->e;
	uint32_t slot = random32(f) & e->sq.mask;
	struct rxe_send_wqe *wqe = (struct rxe_send_wqe *)
		(e->sq.q->data + slot * e->sq.slot_len);
	bool good = random32(f) & 1;

	switch (random32(f) % 6) {
	case 0:
		wqe->wr.opcode = good ? IBV_WR_RDMA_WRITE :
				 random32(f) % 40;
		break;
	case 1:
		wqe->dma.num_sge = good ? 1 : random32(f);
		break;
	case 2:
		wqe->dma.sge[0].length = good ? 64 : random32(f);
		break;
	case 3:
		wqe->dma.sge[0].addr = good ? (uintptr_t)e->abuf.addr :
				       (uintptr_t)e->secret.addr;
		break;
	case 4:
		wqe->dma.length = good ? 64 : random32(f);
		break;
	default:
		wqe->wr.send_flags = good ? IBV_SEND_SIGNALED : random32(f);
		break;
	}
}

static void flip_header(struct flipper *f, struct ring *r, bool all)
{
	switch (random32(f) % (all ? 4 : 2)) {
	case 0:
		r->q->producer_index = random32(f);
		break;
	case 1:
		r->q->consumer_index = random32(f);
		break;
	case 2:
		r->q->log2_elem_size = random32(f);
		break;
	default:
		r->q->index_mask = random32(f);
		break;
	}
}

static bool flip(struct meanwhile *m)
{
	struct flipper *f = m->object;
	struct ring_env *e = f->e;

	switch (f->what) {
	case FLIP_SLOTS:
		flip_word(f, e->sq.q->data, e->sq.slot_len * (e->sq.mask + 1UL));
		break;
	case FLIP_FIELDS:
		flip_field(f);
		break;
	case FLIP_HEADER:
		flip_header(f, &e->sq, true);
		break;
	case FLIP_RECV:
		flip_word(f, e->rq.q->data, e->rq.slot_len * (e->rq.mask + 1UL));
		flip_header(f, &e->rq, true);
		break;
	default:
		flip_header(f, &e->scq, true);
		break;
	}
	return true;
}

/* Post what should be good, raw: the library would not survive the header. */
static void post_raw(struct ring_env *e)
{
	union ring_slot s;

	for (int i = 0; i < 8; i++) {
		ring_good_wqe(e, &s.wqe);
		ring_put(e, &s, sizeof(s));
	}
	ring_doorbell(e);
}

static void peer_posts(struct ring_env *e)
{
	for (int i = 0; i < 4; i++) {
		struct rdma_wr w;

		rdma_wr_send(&w, e->bbuf.addr, 2000, e->bbuf.mr->lkey);
		if (rdma_try_post(&e->b, rdma_wr_chain(&w, 1)))
			return;
	}
}

/* Back to work, without looking at the rings that the other thread writes. */
static void restart(struct ring_env *e)
{
	int err = rdma_to_state(&e->a, IBV_QPS_RESET);

	if (!err)
		err = rdma_to_state(&e->b, IBV_QPS_RESET);
	check_errno(err, 0, "to RESET");
	rdma_drain(e->b.scq);
	rdma_drain(e->b.rcq);
	rdma_connect(&e->a, &e->b);
}

static void race(long arg)
{
	uint64_t until;
	unsigned int seconds = ktap_opt.rounds ? ktap_opt.rounds : SECONDS;
	struct flipper f = { .what = (enum what)arg };
	struct meanwhile flipping;
	struct ring_env e;
	unsigned long restarts = 0;

	ring_open(&e);
	f.e = &e;
	f.seed = (unsigned int)ktap_opt.seed + 77;
	meanwhile_start(&flipping, flip, &f);
	until = rdma_now_us() + 1000000ULL * seconds;
	while (rdma_now_us() < until) {
		for (int i = 0; i < 10; i++) {
			post_raw(&e);
			if (arg == FLIP_RECV)
				peer_posts(&e);
		}
		ring_expect_no_harm(&e);
		if (rdma_state(e.a.qp) == IBV_QPS_RTS &&
		    rdma_state(e.b.qp) == IBV_QPS_RTS)
			continue;
		restart(&e);
		restarts++;
	}
	check(meanwhile_stop(&flipping), "the rings were written meanwhile");
	ktap_note("%lu times in ERR", restarts);
	ring_expect_no_harm(&e);
	ring_close(&e);
}

void ring_race_cases(void)
{
	for (long i = 0; i < WHATS; i++)
		ktap_add("each field is read once", race, i, 120, "race.%s",
			 what_name[i]);
}
