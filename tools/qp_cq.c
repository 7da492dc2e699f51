// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: notification, overrun, resizing. */
#include "meanwhile.h"
#include "qp_env.h"

#include <poll.h>
#include <stdlib.h>

/* Is there a completion event now, or within @ms? */
static bool notified(struct rdma_end *end, int ms)
{
	struct pollfd fd = { end->channel->fd, POLLIN, 0 };

	return poll(&fd, 1, ms * (int)ktap_opt.scale) == 1;
}

static void take_event(struct rdma_end *end)
{
	struct ibv_cq *cq;
	void *context;

	check(!ibv_get_cq_event(end->channel, &cq, &context),
	      "ibv_get_cq_event");
	check(cq == end->rcq, "the event is about its CQ");
	ibv_ack_cq_events(cq, 1);
}

static void send_one(struct qp_env *e, unsigned int flags)
{
	struct rdma_wr w;

	rdma_recv(&e->b, 1, NULL, 0, 0);
	rdma_wr_send(&w, NULL, 0, 0);
	w.wr.send_flags |= flags;
	check_eq(rdma_do(&e->a, &w, NULL), IBV_WC_SUCCESS, "a send");
}

/* One event for one request for notification. */
static void any_event(long arg)
{
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	send_one(&e, 0);
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	check(!notified(&e.b, 20), "no event that was not asked for");
	for (int i = 0; i < 3; i++) {
		check_errno(ibv_req_notify_cq(e.b.rcq, 0), 0,
			    "ibv_req_notify_cq");
		check(!notified(&e.b, 0), "no event before a completion");
		send_one(&e, 0);
		check(notified(&e.b, RDMA_WAIT_MS), "an event comes");
		take_event(&e.b);
		send_one(&e, 0);
		check(!notified(&e.b, 20), "and no other");
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	}
	qp_close(&e);
}

static void solicited_event(long arg)
{
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	check_errno(ibv_req_notify_cq(e.b.rcq, 1), 0, "ibv_req_notify_cq");
	send_one(&e, 0);
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	check(!notified(&e.b, 20), "an unsolicited message is no event");
	send_one(&e, IBV_SEND_SOLICITED);
	check(notified(&e.b, RDMA_WAIT_MS), "a solicited message is");
	take_event(&e.b);
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	/* a completion in error counts as solicited */
	check_errno(ibv_req_notify_cq(e.b.rcq, 1), 0, "ibv_req_notify_cq");
	rdma_recv(&e.b, 2, NULL, 0, 0);
	check_errno(rdma_to_state(&e.b, IBV_QPS_ERR), 0, "to ERR");
	check(notified(&e.b, RDMA_WAIT_MS), "a completion in error is");
	take_event(&e.b);
	qp_expect(e.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, "the receive");
	qp_close(&e);
}

/* The last packet of a long message carries the solicited bit. */
static void solicited_long(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	qp_open(&e, NULL, 65536);
	check_errno(ibv_req_notify_cq(e.b.rcq, 1), 0, "ibv_req_notify_cq");
	rdma_recv(&e.b, 1, e.bbuf.addr, 65536, e.bbuf.mr->lkey);
	qp_build(&e, &w, (enum qp_op)arg, 0, 20000);
	w.wr.send_flags |= IBV_SEND_SOLICITED;
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "the request");
	check(notified(&e.b, RDMA_WAIT_MS), "a solicited message is an event");
	take_event(&e.b);
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	qp_close(&e);
}

/* More completions than a CQ holds: events about it and its queue pair, and no harm beyond. */
static void overrun(long receives)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct qp_env e;
	int n;

	conf.cqe = 8;
	conf.cap.max_send_wr = 1024;
	conf.cap.max_recv_wr = 1024;
	qp_open(&e, &conf, 4096);
	cq = receives ? e.b.rcq : e.a.scq;
	qp = receives ? e.b.qp : e.a.qp;
	n = cq->cqe + 2;
	if (n > 1024)
		ktap_skip("the smallest CQ has %d entries", cq->cqe);
	for (int i = 0; receives && i < n; i++)
		rdma_recv(&e.b, (uint64_t)i, NULL, 0, 0);
	for (int i = 0; i < n; i++) {
		qp_build(&e, &w, receives ? QP_SEND : QP_WRITE, 0, receives ? 0 : 8);
		if (receives)
			w.wr.send_flags = 0;
		if (rdma_try_post(&e.a, rdma_wr_chain(&w, 1)))
			break;
	}
	check(rdma_wait_event(&e.dev, IBV_EVENT_CQ_ERR, cq, RDMA_WAIT_MS),
	      "IBV_EVENT_CQ_ERR comes");
	check(rdma_wait_event(&e.dev, IBV_EVENT_QP_FATAL, qp, RDMA_WAIT_MS),
	      "IBV_EVENT_QP_FATAL comes");
	check_eq(rdma_state(qp), IBV_QPS_ERR, "the state of the queue pair");
	/* what is in it may or may not be had; asking does not hurt */
	for (int i = 0; i < n; i++) {
		struct ibv_wc wc;

		if (ibv_poll_cq(cq, 1, &wc) <= 0)
			break;
	}
	rdma_buf_destroy(&e.abuf);
	rdma_buf_destroy(&e.bbuf);
	rdma_end_destroy(&e.a);
	rdma_end_destroy(&e.b);
	rdma_dev_close(&e.dev);

	qp_open(&e, NULL, 4096);
	qp_expect_works(&e);
	qp_close(&e);
}

/* A CQ is resized with its contents; it cannot become too small for them. */
static void resize(long arg)
{
	struct rdma_wr w[20];
	struct qp_env e;
	int err;

	(void)arg;
	qp_open(&e, NULL, 4096);
	for (size_t i = 0; i < 20; i++) {
		qp_build(&e, &w[i], QP_WRITE, 0, 8);
		rdma_post(&e.a, rdma_wr_chain(&w[i], 1));
	}
	/* all of them are in the CQ when a message after them was received */
	rdma_recv(&e.b, 1, NULL, 0, 0);
	{
		struct rdma_wr last;

		rdma_wr_send(&last, NULL, 0, 0);
		last.wr.send_flags = 0;
		rdma_post(&e.a, rdma_wr_chain(&last, 1));
	}
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	qp_expect(e.a.scq, w[0].wr.wr_id, IBV_WC_SUCCESS, "a write");
	err = ibv_resize_cq(e.a.scq, 1000);
	if (err == EOPNOTSUPP)
		ktap_skip("CQs cannot be resized");
	check_errno(err, 0, "ibv_resize_cq to 1000");
	check(e.a.scq->cqe >= 1000, "it has as many entries");
	qp_expect(e.a.scq, w[1].wr.wr_id, IBV_WC_SUCCESS, "a write");
	check_errno(ibv_resize_cq(e.a.scq, 4), EINVAL,
		    "ibv_resize_cq to less than there is in it");
	check_errno(ibv_resize_cq(e.a.scq, 50), 0, "ibv_resize_cq to 50");
	for (size_t i = 2; i < 20; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS, "a write");
	qp_expect_none(e.a.scq, "no more");
	for (int round = 0; round < 10; round++)
		qp_expect_works(&e);
	qp_close(&e);
}

static bool resize_cq(struct meanwhile *m)
{
	return !ibv_resize_cq(m->object, 64 + rand_r(&m->seed) % 3000);
}

#define BATCH	50

/* Fill it with some completions, and see that each comes once, in order. */
static void post_and_poll(struct qp_env *e, uint64_t first)
{
	struct rdma_wr w[BATCH];
	struct ibv_wc wc;

	for (size_t i = 0; i < BATCH; i++) {
		qp_build(e, &w[i], QP_WRITE, 0, 64);
		w[i].wr.wr_id = first + i;
		rdma_post(&e->a, rdma_wr_chain(&w[i], 1));
	}
	for (size_t i = 0; i < BATCH; i++)
		qp_expect_wc(e->a.scq, &wc, first + i, IBV_WC_SUCCESS, "a write");
}

static void resize_polled(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 100;
	struct meanwhile resizer;
	unsigned long resized;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	if (ibv_resize_cq(e.a.scq, 100) == EOPNOTSUPP)
		ktap_skip("CQs cannot be resized");
	meanwhile_start(&resizer, resize_cq, e.a.scq);
	for (unsigned long i = 0; i < rounds; i++)
		post_and_poll(&e, i * BATCH);
	resized = meanwhile_stop(&resizer);
	ktap_note("%lu times resized", resized);
	check(resized >= rounds / 10, "it was resized meanwhile");
	qp_close(&e);
}

/* One CQ for both queues of both ends. */
static void shared(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_qp_init_attr init = {
		.cap = conf.cap,
		.qp_type = IBV_QPT_RC,
	};
	bool seen[4] = { false };
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, &conf, 4096);
	init.recv_cq = e.a.scq;
	init.send_cq = init.recv_cq;
	for (int i = 0; i < 2; i++) {
		struct rdma_end *end = i ? &e.b : &e.a;

		check_errno(ibv_destroy_qp(end->qp), 0, "ibv_destroy_qp");
		end->qp = ibv_create_qp(end->pd, &init);
		check(end->qp, "ibv_create_qp");
	}
	rdma_connect(&e.a, &e.b);
	for (uint64_t i = 0; i < 2; i++) {
		rdma_recv(i ? &e.a : &e.b, i, NULL, 0, 0);
		rdma_wr_send(&w, NULL, 0, 0);
		w.wr.wr_id = 2 + i;
		rdma_post(i ? &e.b : &e.a, rdma_wr_chain(&w, 1));
	}
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc;

		check(rdma_wait_wc(e.a.scq, &wc, RDMA_WAIT_MS),
		      "completion %d comes", i);
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		check(wc.wr_id < 4 && !seen[wc.wr_id], "each comes once");
		seen[wc.wr_id] = true;
	}
	/* b's queue pair holds a's CQ */
	check_errno(ibv_destroy_qp(e.b.qp), 0, "ibv_destroy_qp");
	e.b.qp = NULL;
	qp_close(&e);
}

/* A request for notification holds for the queue, whatever ring it has. */
static void resize_armed(long arg)
{
	struct qp_env e;
	int err;

	qp_open(&e, NULL, 4096);
	for (int cqe = 1000; cqe >= 10; cqe /= 10) {
		check_errno(ibv_req_notify_cq(e.b.rcq, (int)arg), 0, "ibv_req_notify_cq");
		err = ibv_resize_cq(e.b.rcq, cqe);
		if (err == EOPNOTSUPP)
			ktap_skip("CQs cannot be resized");
		check_errno(err, 0, "ibv_resize_cq");
		check(!notified(&e.b, 0), "to resize is no event");
		send_one(&e, arg ? IBV_SEND_SOLICITED : 0);
		check(notified(&e.b, RDMA_WAIT_MS), "an event comes");
		take_event(&e.b);
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	}
	qp_close(&e);
}

/* Each of what holds a domain, by itself. */
static void domain_busy(long arg)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_ah_attr path = { .is_global = 1 };
	static uint8_t memory[64];
	struct rdma_dev dev;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	(void)arg;
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	pd = ibv_alloc_pd(dev.ctx);
	check(pd, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	check(mr, "ibv_reg_mr: %s", strerror(errno));
	check_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd with a region");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	path.port_num = dev.port;
	path.grh.dgid = dev.gid;
	path.grh.sgid_index = (uint8_t)dev.gid_index;
	ah = ibv_create_ah(pd, &path);
	check(ah, "ibv_create_ah: %s", strerror(errno));
	check_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd with an address handle");
	check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
	srq = ibv_create_srq(pd, &srq_attr);
	check(srq, "ibv_create_srq: %s", strerror(errno));
	check_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd with a shared queue");
	check_errno(ibv_destroy_srq(srq), 0, "ibv_destroy_srq");
	check_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd with nothing");
	rdma_dev_close(&dev);
}

static void busy(long arg)
{
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 4096);
	check_errno(ibv_destroy_cq(e.a.scq), EBUSY,
		    "ibv_destroy_cq with a queue pair");
	check_errno(ibv_dealloc_pd(e.a.pd), EBUSY,
		    "ibv_dealloc_pd with a queue pair");
	qp_expect_works(&e);
	qp_close(&e);
}

void qp_cq_cases(void)
{
	ktap_add("ibv_req_notify_cq(3)", any_event, 0, 0, "cq.notify");
	ktap_add("ibv_req_notify_cq(3): solicited", solicited_event, 0, 0,
		 "cq.notify-solicited");
	ktap_add("ibv_req_notify_cq(3): solicited", solicited_long, QP_SEND, 0,
		 "cq.notify-solicited-long-send");
	ktap_add("ibv_req_notify_cq(3): solicited", solicited_long,
		 QP_SEND_IMM, 0, "cq.notify-solicited-long-send-imm");
	ktap_add("ibv_req_notify_cq(3): solicited", solicited_long,
		 QP_WRITE_IMM, 0, "cq.notify-solicited-long-write-imm");
	ktap_add("overrun -> events of CQ and QP", overrun, 0, 0, "cq.overrun");
	ktap_add("overrun -> events of CQ and QP", overrun, 1, 0, "cq.overrun-receives");
	ktap_add("ibv_resize_cq(3)", resize, 0, 0, "cq.resize");
	ktap_add("ibv_resize_cq(3), armed", resize_armed, 0, 0, "cq.resize-armed");
	ktap_add("ibv_resize_cq(3), armed", resize_armed, 1, 0, "cq.resize-armed-solicited");
	ktap_add("ibv_resize_cq(3), polled by another thread", resize_polled, 0, 90,
		 "cq.resize-polled");
	ktap_add("ibv_create_qp(3)", shared, 0, 0, "cq.shared");
	ktap_add("ibv_destroy_cq(3): EBUSY", busy, 0, 0, "cq.busy");
	ktap_add("ibv_alloc_pd(3): EBUSY", domain_busy, 0, 0, "pd.busy");
}
