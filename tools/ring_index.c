// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The headers of the queues: indices, masks and sizes set to anything. */
#include "ring.h"

#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint32_t odd_indices[] = {
	0, 1, 2, 63, 64, 65, 127, 128, 0x7fff, 0xffff, 0x10000, 0x7fffffff,
	0x80000000, 0xfffffffe, 0xffffffff,
};

static void fill_slots(struct ring_env *e, bool good)
{
	struct rxe_queue_buf *q = e->sq.q;

	for (size_t i = 0; i <= e->sq.mask; i++) {
		union {
			struct rxe_send_wqe wqe;
			uint32_t words[RING_SLOT_MAX / 4];
		} s;

		if (good)
			ring_good_wqe(e, &s.wqe);
		else
			for (size_t j = 0; j < ARRAY_SIZE(s.words); j++)
				s.words[j] = ring_random(e);
		memcpy(q->data + i * e->sq.slot_len, &s, e->sq.slot_len);
	}
}

/*
 * No more requests can come of an index than the queue has slots, however
 * often the doorbell rings; and the driver does not wait for what never comes.
 */
static void expect_bounded(struct ring_env *e, unsigned int doorbells)
{
	uint64_t until = rdma_now_us() + 20000;
	unsigned int n = 0;

	while (rdma_now_us() < until)
		n += rdma_drain(e->a.scq);
	check(n <= (doorbells + 1) * (e->sq.mask + 1),
	      "there is at most one CQE for a slot and doorbell (%u)", n);
}

/* MW_ARG: slots that are good or not. */
static void send_producer(long arg)
{
	struct ring_env e;

	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_indices); i++) {
		fill_slots(&e, arg);
		__atomic_store_n(&e.sq.q->producer_index, odd_indices[i],
				 __ATOMIC_RELEASE);
		ring_doorbell(&e);
		ring_doorbell(&e);
		expect_bounded(&e, 2);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* The consumer index is the driver's: what we write there is not believed. */
static void send_consumer(long arg)
{
	struct ring_env e;

	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_indices); i++) {
		fill_slots(&e, arg);
		__atomic_store_n(&e.sq.q->consumer_index, odd_indices[i],
				 __ATOMIC_RELEASE);
		__atomic_store_n(&e.sq.q->producer_index, 5, __ATOMIC_RELEASE);
		ring_doorbell(&e);
		ring_doorbell(&e);
		expect_bounded(&e, 2);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Sizes in the header are told to us, not asked of us. */
static void send_sizes(long arg)
{
	struct ring_env e;

	(void)arg;
	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_indices); i++) {
		fill_slots(&e, true);
		e.sq.q->log2_elem_size = odd_indices[i];
		e.sq.q->index_mask = odd_indices[ARRAY_SIZE(odd_indices) - 1 -
						 i];
		__atomic_store_n(&e.sq.q->producer_index, odd_indices[i],
				 __ATOMIC_RELEASE);
		ring_doorbell(&e);
		expect_bounded(&e, 1);
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* RESET begins anew, whatever the header said. */
static void send_after_reset(long arg)
{
	struct rdma_wr w;
	struct ring_env e;

	(void)arg;
	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_indices); i++) {
		e.sq.q->producer_index = odd_indices[i];
		e.sq.q->consumer_index = ~odd_indices[i];
		ring_doorbell(&e);
		ring_recover(&e);
		rdma_wr_write(&w, e.abuf.addr, 64, e.abuf.mr->lkey, e.bbuf.iova,
			      e.bbuf.mr->rkey);
		rdma_post(&e.a, rdma_wr_chain(&w, 1));
		check(rdma_wait_wc(e.a.scq, &(struct ibv_wc){ 0 },
				   RDMA_WAIT_MS),
		      "a request posted after RESET completes");
		ring_replace_qp(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* --- completion queues --- */

static void traffic(struct ring_env *e, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct rdma_wr w;

		rdma_wr_write(&w, e->abuf.addr, 64, e->abuf.mr->lkey,
			      e->bbuf.iova, e->bbuf.mr->rkey);
		if (rdma_try_post(&e->a, rdma_wr_chain(&w, 1)))
			break;
	}
}

/*
 * The CQ's consumer is ours: a wrong one makes it look full, or empty. The
 * driver may say that it has overrun; it may not write outside of it.
 */
static void cq_header(long arg)
{
	struct ring_env e;

	for (size_t i = 0; i < ARRAY_SIZE(odd_indices); i++) {
		struct rxe_queue_buf *q;

		ring_open(&e);
		q = e.scq.q;
		traffic(&e, 8);
		if (arg & 1)
			q->consumer_index = odd_indices[i];
		if (arg & 2)
			q->producer_index = odd_indices[i];
		if (arg & 4) {
			q->log2_elem_size = odd_indices[i] & 31;
			q->index_mask = odd_indices[i];
		}
		traffic(&e, 50);
		ring_expect_no_harm(&e);
		ibv_resize_cq(e.a.scq, 100);
		ibv_req_notify_cq(e.a.scq, 0);
		ring_expect_no_harm(&e);
		ring_close(&e);
	}
}

/* --- the doorbell --- */

/* A POST_SEND command that brings requests of its own. */
static int doorbell_with(struct ring_env *e, uint32_t wr_count,
			 uint32_t sge_count, uint32_t wqe_size,
			 const void *tail, size_t tail_len)
{
	uint64_t words[256] = { 0 };
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	struct ib_uverbs_post_send *core = (void *)(hdr + 1);
	struct ib_uverbs_post_send_resp resp;
	size_t len = sizeof(*hdr) + sizeof(*core) + tail_len;

	hdr->command = IB_USER_VERBS_CMD_POST_SEND;
	hdr->in_words = (uint16_t)(len / 4);
	hdr->out_words = sizeof(resp) / 4;
	core->response = (uintptr_t)&resp;
	core->qp_handle = e->a.qp->handle;
	core->wr_count = wr_count;
	core->sge_count = sge_count;
	core->wqe_size = wqe_size;
	memcpy(core + 1, tail, tail_len);
	return write(e->dev.ctx->cmd_fd, words, len) == (ssize_t)len ? 0 :
								       errno;
}

static void doorbell(long arg)
{
	struct {
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} tail;
	struct ring_env e;

	(void)arg;
	ring_open(&e);
	for (uint32_t opcode = 0; opcode < 40; opcode++) {
		memset(&tail, 0, sizeof(tail));
		tail.wr.num_sge = 1;
		tail.wr.opcode = opcode;
		tail.wr.send_flags = IBV_SEND_SIGNALED;
		tail.wr.wr.rdma.remote_addr = e.bbuf.iova;
		tail.wr.wr.rdma.rkey = e.bbuf.mr->rkey;
		tail.sge.addr = (uintptr_t)e.abuf.addr;
		tail.sge.length = 64;
		tail.sge.lkey = e.abuf.mr->lkey;
		/* whatever it answers: nothing but the ring is looked at */
		doorbell_with(&e, 1, 1, sizeof(tail.wr), &tail, sizeof(tail));
		check(ring_settle(&e) == IBV_WC_SUCCESS,
		      "nothing bad comes of it");
	}
	doorbell_with(&e, 0xffffffff, 0xffffffff, 0xffffffff, &tail,
		      sizeof(tail));
	doorbell_with(&e, 0x02000000, 0, sizeof(tail.wr), &tail, sizeof(tail));
	doorbell_with(&e, 0, 0, 0, &tail, sizeof(tail));
	ring_settle(&e);
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* --- the mappings --- */

/* The process may unmap what it maps; the driver has its own view. */
static void unmapped(long arg)
{
	struct ring_env e;
	struct ring *rings[4];

	(void)arg;
	ring_open(&e);
	traffic(&e, 8);
	rings[0] = &e.sq;
	rings[1] = &e.rq;
	rings[2] = &e.scq;
	rings[3] = &e.rcq;
	for (size_t i = 0; i < 4; i++) {
		/* something must be there for the library to unmap */
		check(mmap(rings[i]->q, rings[i]->map_len,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED |
			   MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mmap");
	}
	ring_doorbell(&e);
	ring_doorbell(&e);
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* What can be mapped of the device, at any offset, is only what is ours. */
static void other_offsets(long arg)
{
	struct ring_env e;
	size_t mapped = 0;

	(void)arg;
	ring_open(&e);
	for (uint64_t page = 0; page < 4096; page++) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			       e.dev.ctx->cmd_fd, (off_t)(page * 4096));

		if (p == MAP_FAILED)
			continue;
		mapped++;
		munmap(p, 4096);
	}
	for (int bit = 24; bit < 63; bit++) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			       e.dev.ctx->cmd_fd, (off_t)(1UL << bit));

		if (p != MAP_FAILED)
			mapped++;
	}
	ktap_note("%zu offsets could be mapped", mapped);
	check(mapped < 64, "few offsets can be mapped");
	ring_expect_no_harm(&e);
	ring_close(&e);
}

void ring_index_cases(void)
{
	ktap_add("the user's indices are masked", send_producer, 1, 60,
		 "index.send-producer");
	ktap_add("the user's indices are masked", send_producer, 0, 60,
		 "index.send-producer-garbage");
	ktap_add("the driver keeps its own index", send_consumer, 1, 60,
		 "index.send-consumer");
	ktap_add("the driver keeps its own index", send_consumer, 0, 60,
		 "index.send-consumer-garbage");
	ktap_add("the driver keeps its own sizes", send_sizes, 0, 60,
		 "index.send-sizes");
	ktap_add("RESET begins anew", send_after_reset, 0, 60,
		 "index.send-after-reset");
	ktap_add("the user's indices are masked", cq_header, 1, 60,
		 "index.cq-consumer");
	ktap_add("the driver keeps its own index", cq_header, 2, 60,
		 "index.cq-producer");
	ktap_add("the driver keeps its own sizes", cq_header, 4, 60,
		 "index.cq-sizes");
	ktap_add("the doorbell is empty", doorbell, 0, 60, "index.doorbell");
	ktap_add("the driver has its own view", unmapped, 0, 0,
		 "index.unmapped");
	ktap_add("only a process's own queues are mapped", other_offsets, 0, 0,
		 "index.other-offsets");
}
