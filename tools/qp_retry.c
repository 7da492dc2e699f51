// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receivers that are late, and peers that are not there. */
#include "qp_env.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Soft timers of others in 300 ms; the one in question would go off some 10000 times. */
#define RNR_IDLE_TIMERS	500

/* IBTA 9.7.5.2.8: the timer values of RNR NAK, in units of 10 us. */
static const uint32_t rnr_timer_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
	512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
	32768, 49152,
};

static void pass_us(uint64_t us)
{
	uint64_t until = rdma_now_us() + us;

	while (rdma_now_us() < until)
		sched_yield();
}

static void expect_err_state(struct ibv_qp *qp, const char *who)
{
	check(rdma_wait_state(qp, IBV_QPS_ERR), "%s is in ERR", who);
}

/* Receives posted late; the sender waits, as long as it takes. */
static void rnr_late(long arg)
{
	enum qp_op op = (enum qp_op)arg;
	struct rdma_wr w[3];
	struct qp_env e;

	qp_open(&e, NULL, 16384);
	for (int round = 0; round < 3; round++) {
		qp_fill(&e);
		for (size_t i = 0; i < 3; i++)
			qp_build(&e, &w[i], op, 5000 * i, 5000);
		rdma_post(&e.a, rdma_wr_chain(w, 3));
		for (size_t i = 0; i < 3; i++) {
			pass_us(3000);
			qp_expect_none(e.a.scq, "a send that is not received");
			rdma_recv(&e.b, i, e.bbuf.addr + 5000 * i, 5000,
				  e.bbuf.mr->lkey);
			qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS,
				  "a send that is received");
			qp_expect(e.b.rcq, i, IBV_WC_SUCCESS, "the receive");
		}
		qp_expect_moved(&e, op, 0, 15000);
	}
	qp_close(&e);
}

/* It gives up after rnr_retry more tries, each after the receiver's timer. */
static void rnr_exceeded(long arg)
{
	unsigned int timer = (unsigned int)(arg & 31);
	unsigned int retries = (unsigned int)(arg >> 5);
	struct rdma_conf conf = rdma_conf_default();
	uint64_t start, least, took;
	struct rdma_wr w[2];
	struct qp_env e;

	conf.rnr_retry = (uint8_t)retries;
	conf.min_rnr_timer = (uint8_t)timer;
	conf.timeout = 18;	/* 1 s: only RNR is to be seen here */
	qp_open(&e, &conf, 4096);
	qp_build(&e, &w[0], QP_SEND, 0, 100);
	qp_build(&e, &w[1], QP_WRITE, 0, 100);
	qp_fill(&e);
	start = rdma_now_us();
	rdma_post(&e.a, rdma_wr_chain(w, 2));
	qp_expect(e.a.scq, w[0].wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR, "the send");
	took = rdma_now_us() - start;
	qp_expect(e.a.scq, w[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR,
		  "the request after it");
	expect_err_state(e.a.qp, "the requester");
	check_eq(rdma_state(e.b.qp), IBV_QPS_RTS, "state of the responder");
	check(rdma_buf_touched(&e.bbuf, QP_TAG_B, 0, 0) < 0,
	      "nothing after the send is done");
	least = (uint64_t)retries * rnr_timer_10us[timer] * 10;
	check(took >= least, "%u retries with timer %u take %llu us (took %llu)",
	      retries, timer, (unsigned long long)least,
	      (unsigned long long)took);
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

/* A peer that does not answer: its queue pair is in RESET, or not there. */
static void silent_peer(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	bool gone = arg & 16;
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w[2];
	struct qp_env e;

	conf.timeout = 10;	/* 4.2 ms */
	conf.retry_cnt = 2;
	qp_open(&e, &conf, 4096);
	if (gone) {
		check_errno(ibv_destroy_qp(e.b.qp), 0, "ibv_destroy_qp");
		e.b.qp = NULL;
	} else {
		check_errno(rdma_to_state(&e.b, IBV_QPS_RESET), 0, "to RESET");
	}
	qp_build(&e, &w[0], op, 0, 100);
	qp_build(&e, &w[1], QP_WRITE, 0, 100);
	w[0].wr.send_flags = 0;
	rdma_post(&e.a, rdma_wr_chain(w, 2));
	qp_expect(e.a.scq, w[0].wr.wr_id, IBV_WC_RETRY_EXC_ERR,
		  "a request that nobody answers, unsignaled");
	qp_expect(e.a.scq, w[1].wr.wr_id, IBV_WC_WR_FLUSH_ERR,
		  "the request after it");
	expect_err_state(e.a.qp, "the requester");
	qp_close(&e);
}

/* 4.096 us * 2^timeout, retry_cnt times over, is the least it takes. */
static void retry_time(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	uint64_t start, least, took;
	struct rdma_wr w;
	struct qp_env e;

	conf.timeout = (uint8_t)arg;
	conf.retry_cnt = 3;
	qp_open(&e, &conf, 4096);
	check_errno(rdma_to_state(&e.b, IBV_QPS_RESET), 0, "to RESET");
	qp_build(&e, &w, QP_WRITE, 0, 100);
	start = rdma_now_us();
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_RETRY_EXC_ERR, "status");
	took = rdma_now_us() - start;
	least = (4096ULL << arg) * 3 / 1000;
	check(took >= least, "3 retries take %llu us (took %llu)",
	      (unsigned long long)least, (unsigned long long)took);
	qp_close(&e);
}

/* A peer that comes up late is found by the retries. */
static void late_peer(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	check_errno(rdma_to_init(&e.a), 0, "to INIT");
	check_errno(rdma_to_rtr(&e.a, e.b.qp->qp_num, e.b.conf.psn), 0,
		    "to RTR");
	check_errno(rdma_to_rts(&e.a), 0, "to RTS");
	qp_build(&e, &w, QP_WRITE, 0, 100);
	qp_fill(&e);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	pass_us(20000);
	check_errno(rdma_to_init(&e.b), 0, "to INIT");
	check_errno(rdma_to_rtr(&e.b, e.a.qp->qp_num, e.a.conf.psn), 0,
		    "to RTR");
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the write");
	qp_expect_moved(&e, QP_WRITE, 0, 100);
	check_errno(rdma_to_rts(&e.b), 0, "to RTS");
	qp_expect_works(&e);
	qp_close(&e);
}

/* Soft high-resolution timers that went off, of all CPUs. */
static unsigned long soft_timers(void)
{
	unsigned long total = 0;
	char line[4096];
	FILE *file = fopen("/proc/softirqs", "re");

	check(file, "/proc/softirqs can be read");
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "HRTIMER:");

		if (!at)
			continue;
		at += strlen("HRTIMER:");
		for (char *end; ; at = end) {
			unsigned long count = strtoul(at, &end, 10);

			if (end == at)
				break;
			total += count;
		}
	}
	fclose(file);
	return total;
}

/*
 * While the receiver's timer runs nothing is in flight: the shortest ack timeout, 8 us,
 * is nothing to count down.
 */
static void rnr_idle(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	unsigned long before, count;
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	conf.timeout = 1;
	conf.min_rnr_timer = 0;	/* 655 ms */
	qp_open(&e, &conf, 4096);
	qp_build(&e, &w, QP_SEND, 0, 100);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	pass_us(100000);
	before = soft_timers();
	pass_us(300000);
	count = soft_timers() - before;
	ktap_note("%lu timers in 300 ms", count);
	check(count < RNR_IDLE_TIMERS, "less than %d timers go off (%lu did)",
	      RNR_IDLE_TIMERS, count);
	rdma_recv(&e.b, 1, e.bbuf.addr, 100, e.bbuf.mr->lkey);
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "a send that is received");
	qp_close(&e);
}

#define HALF_LEN	65536
#define HALF_THERE	5120	/* some whole packets */

/* A queue pair that says it is a, to send b what is next: b answers a. */
static void connect_as_a(struct rdma_end *end, struct qp_env *e)
{
	rdma_end_create(end, &e->dev, e->a.pd, &e->a.conf);
	check_errno(rdma_to_init(end), 0, "to INIT");
	check_errno(rdma_to_rtr(end, e->b.qp->qp_num, e->b.conf.psn), 0, "to RTR");
	check_errno(rdma_to_rts(end), 0, "to RTS");
}

/* The first packets of a's message, and no more: what is behind them cannot be read. */
static void send_half(struct qp_env *e, enum qp_op op, struct rdma_end *end)
{
	const uint8_t *last = e->bbuf.addr + HALF_THERE - 1;
	uint64_t until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;
	struct ibv_sge sge[2];
	struct rdma_wr w;

	qp_build(e, &w, op, 0, HALF_LEN);
	sge[0] = w.sge;
	sge[1] = w.sge;
	sge[0].length = HALF_THERE;
	sge[1].length -= HALF_THERE;
	sge[1].lkey ^= 1;
	w.wr.sg_list = sge;
	w.wr.num_sge = 2;
	rdma_post(end, rdma_wr_chain(&w, 1));
	qp_expect(end->scq, w.wr.wr_id, IBV_WC_LOC_PROT_ERR, "half a message");
	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != e->abuf.addr[HALF_THERE - 1])
		check(rdma_now_us() < until, "half a message is at b");
}

/*
 * b has the first packets of a message, but a does not know. It sends all of them, and
 * what b lacks arrives without a timer's help. Here a third queue pair sent what b has, by
 * packets, since b is not its peer.
 */
static void half_there(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	enum qp_op op = (enum qp_op)arg;
	struct rdma_end c;
	struct rdma_wr w;
	struct qp_env e;

	conf.timeout = 0;
	qp_open(&e, &conf, HALF_LEN);
	qp_fill(&e);
	connect_as_a(&c, &e);
	if (qp_takes_recv(op))
		rdma_recv(&e.b, 1, e.bbuf.addr, HALF_LEN, e.bbuf.mr->lkey);
	send_half(&e, op, &c);
	qp_build(&e, &w, op, 0, HALF_LEN);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "the message");
	if (qp_takes_recv(op))
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	qp_expect_moved(&e, op, 0, HALF_LEN);
	rdma_end_destroy(&c);
	qp_close(&e);
}

void qp_retry_cases(void)
{
	static const struct {
		unsigned int timer;
		unsigned int retries;
	} rnr[] = {
		{ 1, 0 }, { 1, 1 }, { 12, 3 }, { 20, 3 }, { 24, 2 }, { 0, 1 },
	};
	static const enum qp_op ops[] = { QP_SEND, QP_WRITE, QP_READ, QP_CAS };

	ktap_add("RNR: 7 = for ever", rnr_late, QP_SEND, 0, "retry.rnr-send");
	ktap_add("RNR: 7 = for ever", rnr_late, QP_SEND_IMM, 0,
		 "retry.rnr-send-imm");
	ktap_add("RNR: 7 = for ever", rnr_late, QP_WRITE_IMM, 0,
		 "retry.rnr-write-imm");
	for (size_t i = 0; i < ARRAY_SIZE(rnr); i++)
		ktap_add("RNR: the IBTA timer table", rnr_exceeded,
			 (long)(rnr[i].timer | rnr[i].retries << 5), 30,
			 "retry.rnr-timer-%u-retries-%u", rnr[i].timer,
			 rnr[i].retries);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		ktap_add("RETRY_EXC_ERR", silent_peer, ops[i], 0,
			 "retry.peer-in-reset-%s", qp_op_name[ops[i]]);
		ktap_add("RETRY_EXC_ERR", silent_peer, ops[i] | 16, 0,
			 "retry.peer-gone-%s", qp_op_name[ops[i]]);
	}
	for (long timeout = 8; timeout <= 16; timeout += 4)
		ktap_add("ack timeout 4.096 us * 2^t", retry_time, timeout, 30,
			 "retry.timeout-%ld", timeout);
	ktap_add("nothing in flight, no timer", rnr_idle, 0, 30, "retry.rnr-idle");
	ktap_add("a late peer is found", late_peer, 0, 0, "retry.late-peer");
	ktap_add("what is there is skipped", half_there, QP_SEND, 0, "retry.half-send");
	ktap_add("what is there is skipped", half_there, QP_WRITE, 0, "retry.half-write");
}
