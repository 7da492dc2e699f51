// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ways of posting: inline, many elements, signaling, fence, whole lists. */
#include "qp_env.h"

#include <stdlib.h>

#define WR_API	0x100
#define LEN	65536

static void open_cap(struct qp_env *e, bool wr_api, uint32_t sges,
		     uint32_t inline_data)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.wr_api = wr_api;
	conf.cap.max_send_sge = sges;
	conf.cap.max_recv_sge = sges;
	conf.cap.max_inline_data = inline_data;
	qp_open(e, &conf, LEN);
}

/* Inline data needs no region, and may change as soon as it is posted. */
static void inlined(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	uint32_t max = 256;
	uint8_t *data = malloc(max);
	struct qp_env e;

	check(data, "memory");
	open_cap(&e, arg & WR_API, 1, max);
	for (uint32_t len = arg & WR_API ? 1 : 0; len <= max;
	     len += len < 9 ? 1 : 13) {
		struct rdma_wr w;

		qp_fill(&e);
		memcpy(data, e.abuf.addr, len);
		qp_build(&e, &w, op, 0, len);
		w.wr.send_flags |= IBV_SEND_INLINE;
		w.sge.addr = (uintptr_t)data;
		w.sge.lkey = 0xbadbad;
		if (qp_takes_recv(op))
			rdma_recv(&e.b, 1, e.bbuf.addr, LEN, e.bbuf.mr->lkey);
		rdma_post(&e.a, rdma_wr_chain(&w, 1));
		memset(data, 0xee, max);
		qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "inline");
		if (qp_takes_recv(op))
			qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
		qp_expect_moved(&e, op, 0, len);
	}
	free(data);
	qp_close(&e);
}

static void inline_too_long(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rdma_wr w;
	struct qp_env e;
	uint32_t max;

	conf.wr_api = arg & WR_API;
	qp_open(&e, &conf, LEN);
	check(!ibv_query_qp(e.a.qp, &attr, IBV_QP_CAP, &init), "ibv_query_qp");
	max = init.cap.max_inline_data;
	check(max >= conf.cap.max_inline_data, "as much inline as asked for");
	qp_build(&e, &w, QP_WRITE, 0, max + 1);
	w.wr.send_flags |= IBV_SEND_INLINE;
	check(rdma_try_post(&e.a, rdma_wr_chain(&w, 1)),
	      "more than max_inline_data is refused");
	qp_expect_works(&e);
	qp_close(&e);
}

/* Elements of different lengths, some of none, over two regions. */
static uint32_t scatter(struct ibv_sge *sge, uint32_t n, struct rdma_buf *buf)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < n; i++) {
		sge[i].length = i % 5 == 3 ? 0 : 1 + (i * 397) % 1500;
		sge[i].addr = (uintptr_t)buf->addr + total;
		sge[i].lkey = buf->mr->lkey;
		total += sge[i].length;
	}
	return total;
}

static void elements(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	struct ibv_sge sge[32], rsge[32];
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = rsge };
	struct ibv_recv_wr *bad;
	struct qp_env e;

	open_cap(&e, arg & WR_API, 32, 0);
	for (uint32_t n = 1; n <= 32; n += n < 4 ? 1 : 7) {
		uint32_t len = scatter(sge, n, &e.abuf);
		struct rdma_wr w;

		qp_fill(&e);
		qp_build(&e, &w, op, 0, len);
		w.wr.sg_list = sge;
		w.wr.num_sge = (int)n;
		/* received by as many elements, of the same lengths */
		scatter(rsge, n, &e.bbuf);
		recv.num_sge = op == QP_WRITE_IMM ? 0 : (int)n;
		if (qp_takes_recv(op))
			check(!ibv_post_recv(e.b.qp, &recv, &bad),
			      "ibv_post_recv");
		rdma_post(&e.a, rdma_wr_chain(&w, 1));
		qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the request");
		if (qp_takes_recv(op))
			qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
		qp_expect_moved(&e, op, 0, len);
	}
	qp_close(&e);
}

/* The two ends need not cut the message in the same places. */
static void elements_differ(long arg)
{
	struct ibv_sge sge[7], rsge[3];
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = rsge, .num_sge = 3 };
	struct ibv_recv_wr *bad;
	struct rdma_wr w;
	struct qp_env e;
	uint32_t len;

	(void)arg;
	open_cap(&e, false, 8, 0);
	len = scatter(sge, 7, &e.abuf);
	for (uint32_t i = 0; i < 3; i++) {
		rsge[i].addr = (uintptr_t)e.bbuf.addr + i * (len / 3);
		rsge[i].length = i < 2 ? len / 3 : len;
		rsge[i].lkey = e.bbuf.mr->lkey;
	}
	qp_fill(&e);
	check(!ibv_post_recv(e.b.qp, &recv, &bad), "ibv_post_recv");
	qp_build(&e, &w, QP_SEND, 0, len);
	w.wr.sg_list = sge;
	w.wr.num_sge = 7;
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	qp_expect(e.a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the request");
	qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	qp_expect_moved(&e, QP_SEND, 0, len);
	qp_close(&e);
}

static void too_many_elements(long arg)
{
	struct ibv_sge sge[64];
	struct rdma_wr w;
	struct qp_env e;

	open_cap(&e, arg & WR_API, 2, 0);
	scatter(sge, 64, &e.abuf);
	qp_build(&e, &w, QP_WRITE, 0, 8);
	w.wr.sg_list = sge;
	w.wr.num_sge = 64;
	check(rdma_try_post(&e.a, rdma_wr_chain(&w, 1)),
	      "more elements than the queue was made for are refused");
	qp_expect_works(&e);
	qp_close(&e);
}

static void unsignaled(long arg)
{
	enum { ROUNDS = 40, BATCH = 16 };
	struct rdma_wr w[BATCH];
	struct qp_env e;

	open_cap(&e, arg & WR_API, 1, 0);
	for (int i = 0; i < ROUNDS; i++) {
		for (size_t j = 0; j < BATCH; j++) {
			qp_build(&e, &w[j], j & 1 ? QP_READ : QP_WRITE, j, 100);
			w[j].wr.send_flags = j == BATCH - 1 ?
				IBV_SEND_SIGNALED : 0;
		}
		rdma_post(&e.a, rdma_wr_chain(w, BATCH));
		qp_expect(e.a.scq, w[BATCH - 1].wr.wr_id, IBV_WC_SUCCESS,
			  "the signaled one");
		qp_expect_none(e.a.scq, "unsignaled requests");
	}
	qp_close(&e);
}

static void all_signaled(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w[8];
	struct qp_env e;

	conf.sq_sig_all = true;
	conf.wr_api = arg & WR_API;
	qp_open(&e, &conf, LEN);
	for (size_t i = 0; i < 8; i++) {
		qp_build(&e, &w[i], QP_WRITE, i, 100);
		w[i].wr.send_flags = 0;
	}
	rdma_post(&e.a, rdma_wr_chain(w, 8));
	for (size_t i = 0; i < 8; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS,
			  "sq_sig_all: each request");
	qp_close(&e);
}

/* A full queue refuses, and takes more when there is room again. */
static void full_queue(long arg)
{
	struct rdma_wr w;
	struct qp_env e;
	int posted = 0;
	int err;

	open_cap(&e, arg & WR_API, 1, 0);
	do {
		rdma_wr_send(&w, NULL, 0, 0);	/* waits: nobody receives */
		err = rdma_try_post(&e.a, rdma_wr_chain(&w, 1));
		posted += !err;
	} while (!err && posted < 100000);
	check(posted >= 64, "as many requests as asked for (%d)", posted);
	check(err == ENOMEM || err == ENOSPC, "one more is refused (%s)",
	      strerror(err));
	for (int i = 0; i < posted; i++) {
		rdma_recv(&e.b, 1, NULL, 0, 0);
		check(rdma_wait_wc(e.a.scq, &(struct ibv_wc){ 0 },
				   RDMA_WAIT_MS), "send %d completes", i);
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	}
	qp_expect_works(&e);
	qp_close(&e);
}

/* With fence, a request waits for the reads and atomics before it. */
static void fenced(long arg)
{
	struct rdma_wr w[2];
	struct qp_env e;

	open_cap(&e, arg & WR_API, 1, 0);
	for (int i = 0; i < 20; i++) {
		qp_fill(&e);
		rdma_recv(&e.b, 1, e.bbuf.addr + 32768, 32768,
			  e.bbuf.mr->lkey);
		/* fetch the first half, send what was fetched */
		qp_build(&e, &w[0], QP_READ, 0, 32768);
		w[0].wr.send_flags = 0;
		qp_build(&e, &w[1], QP_SEND, 0, 32768);
		w[1].wr.send_flags |= IBV_SEND_FENCE;
		rdma_post(&e.a, rdma_wr_chain(w, 2));
		qp_expect(e.a.scq, w[1].wr.wr_id, IBV_WC_SUCCESS, "the send");
		qp_expect(e.b.rcq, 1, IBV_WC_SUCCESS, "the receive");
		check(!memcmp(e.bbuf.addr, e.bbuf.addr + 32768, 32768),
		      "what was sent is what had been read");
	}
	qp_close(&e);
}

/* More reads at once than the connection may have on its way. */
static void many_reads(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w[32];
	struct qp_env e;

	conf.rd_atomic = (uint8_t)arg;
	qp_open(&e, &conf, LEN);
	qp_fill(&e);
	for (size_t i = 0; i < 32; i++)
		qp_build(&e, &w[i], QP_READ, i * 2048, 2048);
	rdma_post(&e.a, rdma_wr_chain(w, 32));
	for (size_t i = 0; i < 32; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS, "a read");
	qp_expect_moved(&e, QP_READ, 0, LEN);
	qp_close(&e);
}

/* A list of everything, in order. */
static void mixed_list(long arg)
{
	struct rdma_wr w[QP_OPS];
	struct qp_env e;

	open_cap(&e, arg & WR_API, 1, 0);
	for (int round = 0; round < 20; round++) {
		for (int op = 0; op < QP_OPS; op++) {
			qp_build(&e, &w[op], (enum qp_op)op,
				 4096U * (unsigned int)op, 3000);
			if (qp_takes_recv((enum qp_op)op))
				rdma_recv(&e.b, (uint64_t)op, e.bbuf.addr +
					  40000, 4000, e.bbuf.mr->lkey);
		}
		rdma_post(&e.a, rdma_wr_chain(w, QP_OPS));
		for (int op = 0; op < QP_OPS; op++) {
			qp_expect(e.a.scq, w[op].wr.wr_id, IBV_WC_SUCCESS,
				  qp_op_name[op]);
			if (qp_takes_recv((enum qp_op)op))
				qp_expect(e.b.rcq, (uint64_t)op, IBV_WC_SUCCESS,
					  "the receive");
		}
	}
	qp_close(&e);
}

void qp_post_cases(void)
{
	static const enum qp_op inline_ops[] = { QP_SEND, QP_SEND_IMM, QP_WRITE,
						 QP_WRITE_IMM };

	for (long api = 0; api <= WR_API; api += WR_API) {
		const char *suffix = api ? ".wr-api" : "";

		for (size_t i = 0; i < ARRAY_SIZE(inline_ops); i++)
			ktap_add("ibv_post_send(3): inline", inlined,
				 inline_ops[i] | api, 0, "post.inline-%s%s",
				 qp_op_name[inline_ops[i]], suffix);
		ktap_add("ibv_post_send(3): inline", inline_too_long, api, 0,
			 "post.inline-too-long%s", suffix);
		for (long op = 0; op < QP_DATA_OPS; op++)
			ktap_add("32 elements", elements, op | api, 0,
				 "post.elements-%s%s", qp_op_name[op], suffix);
		ktap_add("max_send_sge", too_many_elements, api, 0,
			 "post.too-many-elements%s", suffix);
		ktap_add("unsignaled", unsignaled, api, 0,
			 "post.unsignaled%s", suffix);
		ktap_add("ibv_create_qp(3): sq_sig_all", all_signaled, api, 0,
			 "post.sq-sig-all%s", suffix);
		ktap_add("ibv_post_send(3): ENOMEM", full_queue, api, 60,
			 "post.full-queue%s", suffix);
		ktap_add("ibv_post_send(3): fence", fenced, api, 0,
			 "post.fence%s", suffix);
		ktap_add("ibv_post_send(3): lists", mixed_list, api, 0,
			 "post.mixed-list%s", suffix);
	}
	ktap_add("32 elements", elements_differ, 0, 0, "post.elements-differ");
	for (long depth = 1; depth <= 16; depth *= 4)
		ktap_add("rd_atomic limits", many_reads, depth, 0,
			 "post.reads-with-depth-%ld", depth);
}
