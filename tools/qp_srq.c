// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: two queue pairs of one responder take from one queue. */
#include "meanwhile.h"
#include "qp_env.h"

#include <stdlib.h>
#include <unistd.h>

#define PAIRS	2
#define LEN	4096
#define WR	16

struct shared {
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct rdma_buf buf;	/* of the receives */
	struct rdma_end a[PAIRS];
	struct rdma_end b[PAIRS];
};

static struct ibv_srq *create_srq(struct shared *s, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = wr, .max_sge = sge },
	};

	errno = 0;
	return ibv_create_srq(s->pd, &init);
}

static void open_bare(struct shared *s)
{
	memset(s, 0, sizeof(*s));
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&s->dev, ktap_opt.device, ktap_opt.gid_index);
	if (!s->dev.attr.max_srq)
		ktap_skip("the device has no shared receive queues");
	s->pd = ibv_alloc_pd(s->dev.ctx);
	check(s->pd, "ibv_alloc_pd");
}

static void close_bare(struct shared *s)
{
	check_errno(ibv_dealloc_pd(s->pd), 0, "ibv_dealloc_pd");
	rdma_dev_close(&s->dev);
}

static void open_with(struct shared *s, const struct rdma_conf *base, uint32_t wr)
{
	struct rdma_conf conf = *base;

	open_bare(s);
	s->srq = create_srq(s, wr, 4);
	check(s->srq, "ibv_create_srq: %s", strerror(errno));
	rdma_buf_create(&s->buf, s->pd, LEN, 0, QP_REGION_RIGHTS);
	for (int i = 0; i < PAIRS; i++) {
		conf.srq = NULL;
		rdma_end_create(&s->a[i], &s->dev, s->pd, &conf);
		conf.srq = s->srq;
		rdma_end_create(&s->b[i], &s->dev, s->pd, &conf);
		rdma_connect(&s->a[i], &s->b[i]);
	}
}

static void open_shared(struct shared *s, enum ibv_qp_type type)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = type;
	open_with(s, &conf, WR);
}

static void close_shared(struct shared *s)
{
	for (int i = 0; i < PAIRS; i++) {
		rdma_end_destroy(&s->a[i]);
		rdma_end_destroy(&s->b[i]);
	}
	check_errno(ibv_destroy_srq(s->srq), 0, "ibv_destroy_srq");
	rdma_buf_destroy(&s->buf);
	close_bare(s);
}

static int try_recv_in(struct shared *s, uint64_t wr_id, const struct rdma_buf *buf)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf->addr + 64 * (wr_id % (buf->len / 128)),
		.length = 64,
		.lkey = buf->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

static int try_recv(struct shared *s, uint64_t wr_id)
{
	return try_recv_in(s, wr_id, &s->buf);
}

static void recv(struct shared *s, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		check_errno(try_recv(s, i), 0, "ibv_post_srq_recv");
}

static void start_send(struct shared *s, int pair, struct rdma_wr *w)
{
	rdma_wr_send(w, s->buf.addr + LEN / 2, 32, s->buf.mr->lkey);
	rdma_post(&s->a[pair], rdma_wr_chain(w, 1));
}

/* Send to a pair and see that it takes that receive. */
static void send_to(struct shared *s, int pair, uint64_t wr_id)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	memset(s->buf.addr + LEN / 2, (int)(wr_id + 1), 32);
	start_send(s, pair, &w);
	qp_expect(s->a[pair].scq, w.wr.wr_id, IBV_WC_SUCCESS, "a send");
	qp_expect_wc(s->b[pair].rcq, &wc, wr_id, IBV_WC_SUCCESS, "its receive");
	check_eq(wc.qp_num, s->b[pair].qp->qp_num, "qp_num");
	check_eq(wc.byte_len, 32, "byte_len");
	check(!memcmp(s->buf.addr + 64 * (wr_id % 32), s->buf.addr + LEN / 2, 32),
	      "the data is in the receive's own place");
}

static void two_takers(long arg)
{
	struct shared s;

	open_shared(&s, (enum ibv_qp_type)arg);
	for (uint64_t round = 0; round < 40; round++) {
		recv(&s, round * 12, 12);
		for (uint64_t i = 0; i < 12; i++)
			send_to(&s, (i / 2 + round) % PAIRS, round * 12 + i);
	}
	close_shared(&s);
}

static void set_limit(struct shared *s, uint32_t limit, int err)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	check_errno(ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT), err,
		    "ibv_modify_srq");
}

static uint32_t limit_now(struct shared *s)
{
	struct ibv_srq_attr attr;

	check_errno(ibv_query_srq(s->srq, &attr), 0, "ibv_query_srq");
	return attr.srq_limit;
}

static void limit(long arg)
{
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	set_limit(&s, WR * 64, EINVAL);
	for (uint64_t round = 0; round < 3; round++) {
		recv(&s, 0, 6);
		set_limit(&s, 3, 0);
		check_eq(limit_now(&s), 3, "the limit");
		for (uint64_t i = 0; i < 3; i++)
			send_to(&s, i % PAIRS, i);
		check_eq(limit_now(&s), 3, "three are left: still armed");
		send_to(&s, 0, 3);
		check(rdma_wait_event(&s.dev, IBV_EVENT_SRQ_LIMIT_REACHED, s.srq,
				      RDMA_WAIT_MS), "the event comes");
		check_eq(limit_now(&s), 0, "it is armed no more");
		send_to(&s, 1, 4);
		send_to(&s, 1, 5);
		check(!rdma_wait_event(&s.dev, IBV_EVENT_SRQ_LIMIT_REACHED, s.srq,
				       50), "no second event");
	}
	close_shared(&s);
}

static int resize(struct shared *s, uint32_t wr)
{
	struct ibv_srq_attr attr = { .max_wr = wr };

	return ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR);
}

static void resized(long arg)
{
	struct ibv_srq_attr attr;
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	recv(&s, 100, 3);
	send_to(&s, 0, 100);	/* the ring begins in the middle */
	recv(&s, 103, 10);
	check_errno(resize(&s, 200), 0, "a larger queue");
	check_errno(ibv_query_srq(s.srq, &attr), 0, "ibv_query_srq");
	check(attr.max_wr >= 200, "it has the size that was asked for");
	send_to(&s, 1, 101);
	recv(&s, 113, 100);
	check(resize(&s, 20), "a queue that its receives do not fit in is refused");
	for (uint64_t i = 102; i < 213; i++)
		send_to(&s, i % PAIRS, i);
	check_errno(resize(&s, 4), 0, "a smaller queue");
	recv(&s, 1, 4);
	for (uint64_t i = 1; i < 5; i++)
		send_to(&s, i % PAIRS, i);
	set_limit(&s, 3, 0);
	check_errno(resize(&s, 2), EINVAL, "a queue smaller than its limit");
	check(resize(&s, 0), "a queue of nothing is refused");
	check(resize(&s, (uint32_t)s.dev.attr.max_srq_wr + 1),
	      "more than max_srq_wr is refused");
	close_shared(&s);
}

static void expect_attr(struct shared *s, const struct ibv_srq_attr *want)
{
	struct ibv_srq_attr attr;

	check_errno(ibv_query_srq(s->srq, &attr), 0, "ibv_query_srq");
	check_eq(attr.max_wr, want->max_wr, "max_wr");
	check_eq(attr.max_sge, want->max_sge, "max_sge");
	check_eq(attr.srq_limit, want->srq_limit, "srq_limit");
}

static int modify_both(struct shared *s, uint32_t wr, uint32_t srq_limit)
{
	struct ibv_srq_attr attr = { .max_wr = wr, .srq_limit = srq_limit };

	return ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
}

/* A size and a limit in one call: both, or "none of the attributes will be modified". */
static void both(long arg)
{
	struct ibv_srq_attr attr;
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	recv(&s, 0, 6);
	check_errno(modify_both(&s, 1000, 3), 0, "a larger queue and a limit");
	check_errno(ibv_query_srq(s.srq, &attr), 0, "ibv_query_srq");
	check(attr.max_wr >= 1000, "it has the size that was asked for");
	check_eq(attr.srq_limit, 3, "and the limit");
	check_errno(modify_both(&s, (uint32_t)s.dev.attr.max_srq_wr + 1, 1), EINVAL,
		    "more than max_srq_wr");
	expect_attr(&s, &attr);
	check_errno(modify_both(&s, 0, 1), EINVAL, "a queue of nothing");
	expect_attr(&s, &attr);
	check_errno(modify_both(&s, 8, 9), EINVAL, "a limit above the size");
	expect_attr(&s, &attr);
	check_errno(modify_both(&s, 2, 1), EINVAL, "a queue that its receives do not fit in");
	expect_attr(&s, &attr);
	for (uint64_t i = 0; i < 3; i++)
		send_to(&s, i % PAIRS, i);
	check_eq(limit_now(&s), 3, "three are left: still armed");
	send_to(&s, 1, 3);
	check(rdma_wait_event(&s.dev, IBV_EVENT_SRQ_LIMIT_REACHED, s.srq, RDMA_WAIT_MS),
	      "the event comes");
	close_shared(&s);
}

/* A size and a limit; some are too small for what is in it. */
static bool resize_and_limit(struct meanwhile *m)
{
	struct ibv_srq_attr limit = { .srq_limit = rand_r(&m->seed) % 4 };
	struct shared *s = m->object;
	bool done = !resize(s, 4 + rand_r(&m->seed) % 500);

	ibv_modify_srq(s->srq, &limit, IBV_SRQ_LIMIT);
	return done;
}

/* While one thread resizes, each receive is taken once, in order. */
static void resized_in_use(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 300;
	uint64_t posted = 0, sent = 0;
	struct meanwhile resizer;
	unsigned long times;
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	meanwhile_start(&resizer, resize_and_limit, &s);
	for (unsigned long i = 0; i < rounds; i++) {
		while (posted < sent + WR && !try_recv(&s, posted))
			posted++;
		while (sent < posted - posted % 3) {
			send_to(&s, sent % PAIRS, sent);
			sent++;
		}
	}
	times = meanwhile_stop(&resizer);
	ktap_note("%lu times resized, %lu messages", times, (unsigned long)sent);
	check(times >= rounds / 10, "it was resized meanwhile");
	close_shared(&s);
}

static void full(long arg)
{
	struct ibv_srq_attr attr;
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	check_errno(ibv_query_srq(s.srq, &attr), 0, "ibv_query_srq");
	recv(&s, 0, attr.max_wr);
	check_errno(try_recv(&s, 99), ENOMEM, "one more than max_wr");
	for (uint64_t i = 0; i < attr.max_wr; i++)
		send_to(&s, i % PAIRS, i);
	close_shared(&s);
}

static void not_ready(long arg)
{
	struct rdma_wr w[PAIRS];
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	for (int i = 0; i < PAIRS; i++)
		start_send(&s, i, &w[i]);
	usleep(20000 * rdma_scale);
	for (int i = 0; i < PAIRS; i++)
		qp_expect_none(s.a[i].scq, "without a receive");
	recv(&s, 5, PAIRS);
	for (int i = 0; i < PAIRS; i++) {
		struct ibv_wc wc;

		qp_expect(s.a[i].scq, w[i].wr.wr_id, IBV_WC_SUCCESS, "a send");
		check(rdma_wait_wc(s.b[i].rcq, &wc, RDMA_WAIT_MS), "a receive");
		check_eq(wc.status, IBV_WC_SUCCESS, "its status");
	}
	close_shared(&s);
}

/* A queue pair in ERR leaves the receives to the others, and says so. */
static void last_wqe(long arg)
{
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	recv(&s, 0, 4);
	send_to(&s, 0, 0);
	check_errno(rdma_to_state(&s.b[0], IBV_QPS_ERR), 0, "to ERR");
	check(rdma_wait_event(&s.dev, IBV_EVENT_QP_LAST_WQE_REACHED, s.b[0].qp,
			      RDMA_WAIT_MS), "the event comes");
	check_errno(rdma_to_state(&s.b[0], IBV_QPS_ERR), 0, "to ERR again");
	check(!rdma_wait_event(&s.dev, IBV_EVENT_QP_LAST_WQE_REACHED, s.b[0].qp,
			       50), "no second event");
	qp_expect_none(s.b[0].rcq, "no receive is flushed");
	for (uint64_t i = 1; i < 4; i++)
		send_to(&s, 1, i);
	rdma_reconnect(&s.a[0], &s.b[0]);
	recv(&s, 7, 1);
	send_to(&s, 0, 7);
	close_shared(&s);
}

/* The receives are of the shared queue's domain, the queue pair may be of another. */
static void other_domain(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end a, b;
	struct rdma_buf own, from;
	struct rdma_wr w;
	struct shared s;

	(void)arg;
	open_bare(&s);
	s.srq = create_srq(&s, WR, 4);
	check(s.srq, "ibv_create_srq: %s", strerror(errno));
	rdma_buf_create(&s.buf, s.pd, LEN, 0, QP_REGION_RIGHTS);
	rdma_end_create(&a, &s.dev, NULL, &conf);
	conf.srq = s.srq;
	/* Of the receive queue that it does not have, any size. */
	conf.cap.max_recv_wr = UINT32_MAX;
	conf.cap.max_recv_sge = UINT32_MAX;
	rdma_end_create(&b, &s.dev, NULL, &conf);
	rdma_connect(&a, &b);
	rdma_buf_create(&own, b.pd, LEN, 0, QP_REGION_RIGHTS);
	rdma_buf_create(&from, a.pd, LEN, 0, QP_REGION_RIGHTS);
	rdma_buf_fill(&from, QP_TAG_A);
	recv(&s, 1, 1);
	rdma_wr_send(&w, from.addr, 64, from.mr->lkey);
	check_eq(rdma_do(&a, &w, NULL), IBV_WC_SUCCESS, "a send");
	qp_expect(b.rcq, 1, IBV_WC_SUCCESS, "its receive");
	check(!memcmp(s.buf.addr + 64, from.addr, 64), "the data arrives");
	/* A key of the queue pair's own domain is of no use. */
	check_errno(try_recv_in(&s, 2, &own), 0, "ibv_post_srq_recv");
	rdma_wr_send(&w, from.addr, 64, from.mr->lkey);
	check_eq(rdma_do(&a, &w, NULL), IBV_WC_REM_OP_ERR, "a send");
	qp_expect(b.rcq, 2, IBV_WC_LOC_PROT_ERR, "its receive");
	rdma_buf_destroy(&from);
	rdma_buf_destroy(&own);
	rdma_end_destroy(&a);
	rdma_end_destroy(&b);
	check_errno(ibv_destroy_srq(s.srq), 0, "ibv_destroy_srq");
	rdma_buf_destroy(&s.buf);
	close_bare(&s);
}

static void in_use(long arg)
{
	struct shared s;

	(void)arg;
	open_shared(&s, IBV_QPT_RC);
	recv(&s, 0, 1);
	check_errno(ibv_destroy_srq(s.srq), EBUSY, "ibv_destroy_srq");
	send_to(&s, 0, 0);
	close_shared(&s);
}

/* --- destroyed under load --- */

#define PLACES		1024	/* receives, each with 64 bytes of its own */
#define UNTOUCHED	0xee
#define AT_ONCE_US	1000000

struct load {
	struct shared s;
	struct rdma_buf places;
	bool waits[PLACES];	/* posted, and not completed yet */
	unsigned long taken;
	unsigned long left;	/* that waited when the queue went */
};

/* Send without pause, whatever becomes of the other end. */
static bool send_on(struct meanwhile *m)
{
	static const uint8_t message[32];
	struct rdma_end *end = m->object;
	bool done = false;
	struct rdma_wr w;
	struct ibv_wc wc;

	rdma_wr_send(&w, message, sizeof(message), 0);
	w.wr.send_flags |= IBV_SEND_INLINE;
	rdma_try_post(end, rdma_wr_chain(&w, 1));
	while (ibv_poll_cq(end->scq, 1, &wc) > 0) {
		check(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_RETRY_EXC_ERR ||
		      wc.status == IBV_WC_WR_FLUSH_ERR, "a send ends with '%s'",
		      ibv_wc_status_str(wc.status));
		done |= wc.status == IBV_WC_SUCCESS;
	}
	return done;
}

static void take_completions(struct load *l)
{
	struct ibv_wc wc;

	for (int i = 0; i < PAIRS; i++)
		while (ibv_poll_cq(l->s.b[i].rcq, 1, &wc) > 0) {
			check_eq(wc.status, IBV_WC_SUCCESS, "a receive");
			check(wc.wr_id < PLACES && l->waits[wc.wr_id], "each comes once");
			l->waits[wc.wr_id] = false;
			l->taken++;
		}
}

static void fill_up(struct load *l)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (l->waits[i])
			continue;
		memset(l->places.addr + 64 * i, UNTOUCHED, 64);
		l->waits[i] = true;
		check_errno(try_recv_in(&l->s, i, &l->places), 0, "ibv_post_srq_recv");
	}
}

/* What nobody took is as it was, to the end. */
static void expect_the_rest_untouched(struct load *l)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (!l->waits[i])
			continue;
		for (size_t j = 0; j < 64; j++)
			check(l->places.addr[64 * i + j] == UNTOUCHED,
			      "a receive that was not taken is as it was");
		l->waits[i] = false;
		l->left++;
	}
}

static void expect_gone(int err, uint64_t start, const char *what)
{
	check_errno(err, 0, what);
	check(rdma_now_us() - start < AT_ONCE_US * (uint64_t)rdma_scale, "%s at once", what);
}

static void destroy_all(struct shared *s)
{
	uint64_t start;

	check_errno(ibv_destroy_srq(s->srq), EBUSY, "ibv_destroy_srq in use");
	for (int i = 0; i < PAIRS; i++) {
		start = rdma_now_us();
		expect_gone(ibv_destroy_qp(s->b[i].qp), start, "ibv_destroy_qp");
	}
	start = rdma_now_us();
	expect_gone(ibv_destroy_srq(s->srq), start, "ibv_destroy_srq");
}

/* All goes after @messages of them. */
static void load_once(struct load *l, unsigned long messages)
{
	struct meanwhile senders[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		meanwhile_start(&senders[i], send_on, &l->s.a[i]);
	for (messages += l->taken; l->taken < messages; sched_yield()) {
		fill_up(l);
		take_completions(l);
	}
	destroy_all(&l->s);
	for (int i = 0; i < PAIRS; i++) {
		check(rdma_wait_state(l->s.a[i].qp, IBV_QPS_ERR), "who sends is told");
		meanwhile_stop(&senders[i]);
	}
	take_completions(l);
	expect_the_rest_untouched(l);
}

static void make_again(struct shared *s)
{
	s->srq = create_srq(s, PLACES, 4);
	check(s->srq, "ibv_create_srq: %s", strerror(errno));
	for (int i = 0; i < PAIRS; i++) {
		s->b[i].conf.srq = s->srq;
		s->b[i].qp = rdma_qp_create(&s->b[i]);
		check(s->b[i].qp, "a queue pair: %s", strerror(errno));
		rdma_reconnect(&s->a[i], &s->b[i]);
	}
	recv(s, 0, PAIRS);
	for (int i = 0; i < PAIRS; i++)
		send_to(s, i, (uint64_t)i);
}

static void destroyed_under_load(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 12;
	struct rdma_conf conf = rdma_conf_default();
	static struct load l;

	(void)arg;
	conf.cqe = 2 * PLACES;
	/* It soon gives up on who is gone, and not on who is slow. */
	conf.timeout = 12;	/* 17 ms */
	conf.retry_cnt = 5;
	open_with(&l.s, &conf, PLACES);
	rdma_buf_create(&l.places, l.s.pd, 2 * 64 * PLACES, 0, IBV_ACCESS_LOCAL_WRITE);
	for (unsigned int i = 0; i < rounds; i++) {
		load_once(&l, 1 + i * 97 % 500);
		make_again(&l.s);
	}
	ktap_note("%lu messages, %lu receives left", l.taken, l.left);
	check(l.left, "the queues went in the middle");
	rdma_buf_destroy(&l.places);
	close_shared(&l.s);
}

static void bad_values(long arg)
{
	uint32_t wr, sge;
	struct ibv_srq *srq;
	struct shared s;

	(void)arg;
	open_bare(&s);
	wr = (uint32_t)s.dev.attr.max_srq_wr;
	sge = (uint32_t)s.dev.attr.max_srq_sge;
	check(!create_srq(&s, 0, 1), "no receives at all are refused");
	check_errno(errno, EINVAL, "no receives");
	check(!create_srq(&s, wr + 1, 1), "more than max_srq_wr is refused");
	check_errno(errno, EINVAL, "more than max_srq_wr");
	check(!create_srq(&s, 1, sge + 1), "more than max_srq_sge is refused");
	check_errno(errno, EINVAL, "more than max_srq_sge");
	srq = create_srq(&s, wr, sge);
	check(srq, "the greatest can be had: %s", strerror(errno));
	check_errno(ibv_destroy_srq(srq), 0, "ibv_destroy_srq");
	close_bare(&s);
}

void qp_srq_cases(void)
{
	ktap_add("ibv_post_srq_recv(3)", two_takers, IBV_QPT_RC, 60, "srq.two-takers");
	ktap_add("ibv_post_srq_recv(3)", two_takers, IBV_QPT_UC, 60,
		 "srq.two-takers.uc");
	ktap_add("ibv_modify_srq(3): limit", limit, 0, 0, "srq.limit");
	ktap_add("ibv_modify_srq(3): IBV_SRQ_MAX_WR", resized, 0, 30, "srq.resize");
	ktap_add("ibv_modify_srq(3): all or nothing", both, 0, 0, "srq.modify-both");
	ktap_add("ibv_modify_srq(3), in use", resized_in_use, 0, 90, "srq.resize-in-use");
	ktap_add("ibv_post_srq_recv(3): ENOMEM", full, 0, 30, "srq.full");
	ktap_add("9.7.5.2.8: RNR", not_ready, 0, 0, "srq.rnr");
	ktap_add("ibv_get_async_event(3): last WQE reached", last_wqe, 0, 0, "srq.last-wqe");
	ktap_add("ibv_create_srq(3): pd", other_domain, 0, 0, "srq.other-domain");
	ktap_add("ibv_create_srq(3): EBUSY", in_use, 0, 0, "srq.in-use");
	ktap_add("ibv_create_srq(3), in use", destroyed_under_load, 0, 90,
		 "srq.destroyed-under-load");
	ktap_add("ibv_create_srq(3): max_srq_wr, max_srq_sge", bad_values, 0, 0,
		 "srq.bad-values");
}
