// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The receive queue, a queue pair's own or a shared one: receives and indices that
 * no library would write.
 */
#include "ring.h"

#include <stdlib.h>

#define SHARED	0x10000	/* in a case's argument */

static const uint32_t odd_numbers[] = {
	0, 1, 2, 4, 5, 32, 33, 255, 4096, 65536, 0x7fffffff, 0x80000000,
	0xfffffff0, 0xffffffff,
};

union recv_slot {
	struct rxe_recv_wqe wqe;
	uint32_t words[RING_SLOT_MAX / 4];
};

static void good_recv(const struct ring_env *e, union recv_slot *s)
{
	memset(s, 0, sizeof(*s));
	s->wqe.wr_id = 0x4ecf;
	s->wqe.dma.length = 4096;
	s->wqe.dma.resid = 4096;
	s->wqe.dma.num_sge = 1;
	s->wqe.dma.sge[0].addr = (uintptr_t)e->abuf.addr;
	s->wqe.dma.sge[0].length = 4096;
	s->wqe.dma.sge[0].lkey = e->abuf.mr->lkey;
}

static void put_recv(struct ring_env *e, const union recv_slot *s)
{
	struct rxe_queue_buf *q = e->rq.q;
	uint32_t at = q->producer_index & e->rq.mask;

	memcpy(q->data + at * e->rq.slot_len, s, e->rq.slot_len);
	__atomic_store_n(&q->producer_index, (at + 1) & e->rq.mask,
			 __ATOMIC_RELEASE);
}

/* The peer sends; its request comes to an end, good or bad. */
static enum ibv_wc_status peer_sends(struct ring_env *e, uint32_t len)
{
	struct rdma_wr w;

	rdma_wr_send(&w, e->bbuf.addr, len, e->bbuf.mr->lkey);
	return rdma_do(&e->b, &w, NULL);
}

static void open_for(struct ring_env *e, long arg)
{
	if (arg & SHARED)
		ring_open_shared(e);
	else
		ring_open(e);
}

/* Receives with any number of elements. */
static void num_sge(long arg)
{
	uint32_t len = arg & ~SHARED;
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		enum ibv_wc_status status;

		good_recv(&e, &s);
		s.wqe.dma.num_sge = odd_numbers[i];
		put_recv(&e, &s);
		status = peer_sends(&e, len);
		if (len && odd_numbers[i] > e.rq.slot_len / 16)
			check(status != IBV_WC_SUCCESS,
			      "a receive of %u elements is refused",
			      odd_numbers[i]);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void lengths(long arg)
{
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(odd_numbers); j += 3) {
			good_recv(&e, &s);
			s.wqe.dma.sge[0].length = odd_numbers[i];
			s.wqe.dma.length = odd_numbers[j];
			put_recv(&e, &s);
			peer_sends(&e, 3000);
			ring_replace_qp(&e);
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Into the memory of others, or out of one's own. */
static void elsewhere(long arg)
{
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (int i = 0; i < 5; i++) {
		struct rxe_sge *sge = &s.wqe.dma.sge[0];

		good_recv(&e, &s);
		switch (i) {
		case 0:
			sge->addr = (uintptr_t)e.secret.addr;
			sge->lkey = e.secret.mr->lkey;
			break;
		case 1:
			sge->addr = (uintptr_t)e.secret.addr;
			break;
		case 2:
			sge->addr = (uintptr_t)e.abuf.addr - 1;
			break;
		case 3:
			sge->addr = (uintptr_t)e.abuf.addr + RING_BUF_LEN -
				    2999;
			break;
		default:
			sge->addr = UINT64_MAX - 100;
			break;
		}
		put_recv(&e, &s);
		check(peer_sends(&e, 3000) != IBV_WC_SUCCESS,
		      "a receive elsewhere is refused");
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void garbage(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 150;
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (unsigned int i = 0; i < rounds; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(s.words); k++)
			s.words[k] = ring_random(&e);
		if (i & 1)
			s.wqe.dma.num_sge %= 5;
		put_recv(&e, &s);
		peer_sends(&e, 1 + ring_random(&e) % 4000);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Indices and sizes; then messages, and a flush of what seems to be there. */
static void header(long arg)
{
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		unsigned int n;

		good_recv(&e, &s);
		for (uint32_t j = 0; j <= e.rq.mask; j++)
			put_recv(&e, &s);
		if (arg & 1)
			e.rq.q->producer_index = odd_numbers[i];
		if (arg & 2)
			e.rq.q->consumer_index = odd_numbers[i];
		if (arg & 4) {
			e.rq.q->log2_elem_size = odd_numbers[i];
			e.rq.q->index_mask = odd_numbers[i];
		}
		peer_sends(&e, 100);
		check_errno(rdma_to_state(&e.a, IBV_QPS_ERR), 0, "to ERR");
		n = rdma_drain(e.a.rcq);
		check(n <= 2 * (e.rq.mask + 1),
		      "there is at most one CQE for a slot (%u)", n);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* To another size, with receives that seem to wait. */
static void resized(long arg)
{
	struct ring_env e;
	union recv_slot s;

	open_for(&e, arg);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		struct ibv_srq_attr attr = { .max_wr = i & 1 ? 3 : 500 };
		struct rdma_wr w;
		struct ibv_wc wc;

		good_recv(&e, &s);
		put_recv(&e, &s);
		e.rq.q->producer_index = odd_numbers[i];
		rdma_wr_send(&w, e.bbuf.addr, 100, e.bbuf.mr->lkey);
		rdma_post(&e.b, rdma_wr_chain(&w, 1));
		ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR);
		check(rdma_wait_wc(e.b.scq, &wc, RDMA_WAIT_MS), "the send ends");
		peer_sends(&e, 100);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

void ring_recv_cases(void)
{
	static const struct {
		const char *clause;
		ktap_fn run;
		long arg;
		const char *name;
	} cases[] = {
		{ "num_sge is an arbitrary number", num_sge, 0, "num-sge-empty" },
		{ "num_sge is an arbitrary number", num_sge, 3000, "num-sge" },
		{ "lengths are arbitrary numbers", lengths, 0, "lengths" },
		{ "a receive is placed where it may be", elsewhere, 0, "elsewhere" },
		{ "every field is an arbitrary number", garbage, 0, "garbage" },
		{ "the user's indices are masked", header, 1, "producer" },
		{ "the driver keeps its own index", header, 2, "consumer" },
		{ "the driver keeps its own sizes", header, 4, "sizes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ktap_add(cases[i].clause, cases[i].run, cases[i].arg, 60, "recv.%s",
			 cases[i].name);
		ktap_add(cases[i].clause, cases[i].run, cases[i].arg | SHARED, 60,
			 "srq.%s", cases[i].name);
	}
	ktap_add("the user's indices are masked", resized, SHARED, 60, "srq.resize");
}
