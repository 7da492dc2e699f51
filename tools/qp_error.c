// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests that must fail, the status they end with, and what is left. */
#include "qp_env.h"

#include <unistd.h>

#define LEN	16384

static void open_api(struct qp_env *e, bool wr_api)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.wr_api = wr_api;
	qp_open(e, &conf, LEN);
	qp_fill(e);
}

static void expect_err_state(struct ibv_qp *qp, const char *who)
{
	check(rdma_wait_state(qp, IBV_QPS_ERR), "%s is in ERR", who);
}

/* Both memories are as they were, and the ends can connect again. */
static void expect_harmless(struct qp_env *e)
{
	check(rdma_buf_touched(&e->abuf, QP_TAG_A, 0, 0) < 0,
	      "nothing changes at the requester");
	check(rdma_buf_touched(&e->bbuf, QP_TAG_B, 0, 0) < 0,
	      "nothing changes at the responder");
	rdma_reconnect(&e->a, &e->b);
	qp_expect_works(e);
	qp_close(e);
}

/* The request fails with @status, the next is flushed. */
static void expect_failure(struct qp_env *e, struct rdma_wr *w,
			   enum ibv_wc_status status, const char *what)
{
	struct rdma_wr next;

	rdma_wr_send(&next, NULL, 0, 0);
	next.wr.send_flags = 0;
	w->wr.send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	rdma_post(&e->a, rdma_wr_chain(w, 1));
	rdma_post(&e->a, rdma_wr_chain(&next, 1));
	qp_expect(e->a.scq, w->wr.wr_id, status, what);
	qp_expect(e->a.scq, next.wr.wr_id, IBV_WC_WR_FLUSH_ERR,
		  "the request after it");
	expect_err_state(e->a.qp, "the requester");
}

/* --- remote access errors --- */

enum wrong {
	WRONG_KEY, NO_KEY, BEFORE, BEHIND, WRAPS, OTHER_PD, NO_RIGHT, FREED,
	WRONGS,
};

static const char *const wrong_name[WRONGS] = {
	[WRONG_KEY] = "wrong-key",
	[NO_KEY] = "no-key",
	[BEFORE] = "before",
	[BEHIND] = "behind",
	[WRAPS] = "wraps",
	[OTHER_PD] = "other-pd",
	[NO_RIGHT] = "no-right",
	[FREED] = "freed",
};

struct remote {
	uint64_t addr;
	uint32_t rkey;
	struct ibv_mr *extra;
};

static void reg_extra(struct qp_env *e, struct remote *r, struct ibv_pd *pd,
		      unsigned int access)
{
	r->extra = ibv_reg_mr(pd, e->bbuf.addr, LEN, (int)access);
	check(r->extra, "ibv_reg_mr");
	r->rkey = r->extra->rkey;
}

static void make_wrong(struct qp_env *e, enum wrong wrong, struct remote *r)
{
	r->addr = e->bbuf.iova + 64;
	r->rkey = e->bbuf.mr->rkey;
	r->extra = NULL;
	switch (wrong) {
	case WRONG_KEY:
		r->rkey ^= 1;
		break;
	case NO_KEY:
		r->rkey = 0xffffffff;
		break;
	case BEFORE:
		r->addr = e->bbuf.iova - 8;
		break;
	case BEHIND:
		r->addr = e->bbuf.iova + LEN;
		break;
	case WRAPS:
		r->addr = UINT64_MAX & ~7ULL;
		break;
	case OTHER_PD:
		reg_extra(e, r, e->a.pd, QP_REGION_RIGHTS);
		break;
	case NO_RIGHT:
		reg_extra(e, r, e->b.pd, IBV_ACCESS_LOCAL_WRITE);
		break;
	default:
		reg_extra(e, r, e->b.pd, QP_REGION_RIGHTS);
		check_errno(ibv_dereg_mr(r->extra), 0, "ibv_dereg_mr");
		r->extra = NULL;
		break;
	}
}

/* In the argument, beside operation and fault: */
#define MULTI	0x100	/* of several packets */
#define WR_API	0x200
#define EVENT	0x400	/* look for the responder's event, too */

static void remote_access(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	enum wrong wrong = (enum wrong)(arg >> 4 & 15);
	uint32_t len = arg & MULTI ? 5000 : 8;
	struct remote r;
	struct rdma_wr w;
	struct qp_env e;

	open_api(&e, arg & WR_API);
	make_wrong(&e, wrong, &r);
	qp_build(&e, &w, op, 0, len);
	if (op >= QP_CAS) {
		w.wr.wr.atomic.remote_addr = r.addr;
		w.wr.wr.atomic.rkey = r.rkey;
	} else {
		w.wr.wr.rdma.remote_addr = r.addr;
		w.wr.wr.rdma.rkey = r.rkey;
	}
	if (qp_takes_recv(op))
		rdma_recv(&e.b, 1, NULL, 0, 0);
	expect_failure(&e, &w, IBV_WC_REM_ACCESS_ERR, "the request");
	expect_err_state(e.b.qp, "the responder");
	check(!(arg & EVENT) ||
	      rdma_wait_event(&e.dev, IBV_EVENT_QP_ACCESS_ERR, e.b.qp,
			      RDMA_WAIT_MS),
	      "the responder gets IBV_EVENT_QP_ACCESS_ERR");
	if (r.extra)
		check_errno(ibv_dereg_mr(r.extra), 0, "ibv_dereg_mr");
	expect_harmless(&e);
}

/* Each right of a region by itself. */
static void region_rights(long arg)
{
	static const unsigned int needs[QP_OPS] = {
		[QP_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[QP_WRITE_IMM] = IBV_ACCESS_REMOTE_WRITE,
		[QP_READ] = IBV_ACCESS_REMOTE_READ,
		[QP_CAS] = IBV_ACCESS_REMOTE_ATOMIC,
		[QP_FADD] = IBV_ACCESS_REMOTE_ATOMIC,
	};
	unsigned int rights = (unsigned int)arg & RDMA_ALL_REMOTE;
	struct ibv_mr *mr;
	struct qp_env e;

	open_api(&e, false);
	mr = ibv_reg_mr(e.b.pd, e.bbuf.addr, LEN,
			(int)(rights | IBV_ACCESS_LOCAL_WRITE));
	check(mr, "ibv_reg_mr");
	for (int op = QP_WRITE; op < QP_OPS; op++) {
		enum ibv_wc_status status;
		struct rdma_wr w;

		qp_build(&e, &w, (enum qp_op)op, 64, 8);
		if (op >= QP_CAS)
			w.wr.wr.atomic.rkey = mr->rkey;
		else
			w.wr.wr.rdma.rkey = mr->rkey;
		if (qp_takes_recv((enum qp_op)op))
			rdma_recv(&e.b, 1, NULL, 0, 0);
		status = rdma_do(&e.a, &w, NULL);
		check(status == (rights & needs[op] ? IBV_WC_SUCCESS :
				 IBV_WC_REM_ACCESS_ERR), "%s: %s",
		      qp_op_name[op], ibv_wc_status_str(status));
		rdma_reconnect(&e.a, &e.b);
	}
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	qp_close(&e);
}

/* --- invalid requests --- */

static void misaligned(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	open_api(&e, true);	/* ibv_post_send() refuses it itself */
	qp_build(&e, &w, (enum qp_op)arg, 0, 8);
	w.wr.wr.atomic.remote_addr += 4;
	expect_failure(&e, &w, IBV_WC_REM_INV_REQ_ERR, "a misaligned atomic");
	expect_err_state(e.b.qp, "the responder");
	expect_harmless(&e);
}

static void recv_too_short(long arg)
{
	uint32_t len = (uint32_t)arg;
	struct rdma_wr w;
	struct qp_env e;

	open_api(&e, false);
	rdma_recv(&e.b, 1, e.bbuf.addr, len - 1, e.bbuf.mr->lkey);
	rdma_recv(&e.b, 2, e.bbuf.addr, len, e.bbuf.mr->lkey);
	qp_build(&e, &w, QP_SEND, 0, len);
	expect_failure(&e, &w, IBV_WC_REM_INV_REQ_ERR, "the send");
	qp_expect(e.b.rcq, 1, IBV_WC_LOC_LEN_ERR, "the receive");
	qp_expect(e.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, "the next receive");
	expect_err_state(e.b.qp, "the responder");
	check(rdma_buf_touched(&e.bbuf, QP_TAG_B, 0, len - 1) < 0,
	      "nothing is placed outside of the receive");
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

static void recv_bad_lkey(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	open_api(&e, false);
	rdma_recv(&e.b, 1, e.bbuf.addr, LEN, e.bbuf.mr->lkey ^ 1);
	qp_build(&e, &w, QP_SEND, 0, 5000);
	expect_failure(&e, &w, IBV_WC_REM_OP_ERR, "the send");
	qp_expect(e.b.rcq, 1, IBV_WC_LOC_PROT_ERR, "the receive");
	expect_err_state(e.b.qp, "the responder");
	expect_harmless(&e);
}

/* The queue pair does not allow it, whatever the region does. */
static void qp_denies(long arg)
{
	enum qp_op op = (enum qp_op)arg;
	struct rdma_conf conf = rdma_conf_default();
	enum ibv_wc_status status;
	struct rdma_wr w;
	struct qp_env e;

	conf.access = 0;
	qp_open(&e, &conf, LEN);
	qp_fill(&e);
	qp_build(&e, &w, op, 0, 8);
	if (qp_takes_recv(op))
		rdma_recv(&e.b, 1, NULL, 0, 0);
	status = rdma_do(&e.a, &w, NULL);
	check(status == IBV_WC_REM_INV_REQ_ERR ||
	      status == IBV_WC_REM_ACCESS_ERR, "%s is refused (%s)",
	      qp_op_name[op], ibv_wc_status_str(status));
	expect_err_state(e.b.qp, "the responder");
	expect_harmless(&e);
}

/* --- local errors --- */

static void local_key(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	struct ibv_mr *extra = NULL;
	struct rdma_wr w;
	struct qp_env e;

	open_api(&e, arg & WR_API);
	qp_build(&e, &w, op, 0, 2000);
	switch (arg >> 4 & 15) {
	case 0:
		w.sge.lkey ^= 1;
		break;
	case 1:
		w.sge.lkey = e.bbuf.mr->lkey;	/* of another PD */
		w.sge.addr = (uintptr_t)e.bbuf.addr;
		break;
	case 2:
		w.sge.addr = (uintptr_t)e.abuf.addr + LEN - (op >= QP_CAS ? 7 :
							      1999);
		break;
	default:	/* fetched data needs LOCAL_WRITE */
		extra = ibv_reg_mr(e.a.pd, e.abuf.addr, LEN, 0);
		check(extra, "ibv_reg_mr");
		w.sge.lkey = extra->lkey;
		break;
	}
	if (qp_takes_recv(op))
		rdma_recv(&e.b, 1, e.bbuf.addr, LEN, e.bbuf.mr->lkey);
	expect_failure(&e, &w, IBV_WC_LOC_PROT_ERR, "the request");
	if (extra)
		check_errno(ibv_dereg_mr(extra), 0, "ibv_dereg_mr");
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

/*
 * What cannot be read is not sent, and so does not ask for the acknowledgment of what was
 * sent before it. That completes all the same, with no retry used, nor a timer needed.
 */
static const struct last_row {
	enum qp_op op;
	size_t good;		/* requests before it */
	bool half;		/* its first packets can be read, and are sent */
} last_rows[] = {
	{ QP_SEND, 1, false }, { QP_SEND, 5, false }, { QP_SEND, 40, false },
	{ QP_SEND, 1, true },
	{ QP_WRITE, 1, false }, { QP_WRITE, 5, false }, { QP_WRITE, 40, false },
	{ QP_WRITE, 1, true },
};

#define LAST_MAX	41
#define LAST_LEN	64	/* of each, but for half a one */
#define LAST_HALF_LEN	3000	/* some packets */

/* @sge: room for two elements of the last request. */
static void build_last(struct qp_env *e, const struct last_row *row, struct rdma_wr *w,
		       struct ibv_sge *sge)
{
	for (size_t i = 0; i <= row->good; i++) {
		uint32_t len = row->half && i == row->good ? LAST_HALF_LEN : LAST_LEN;
		size_t off = i * LAST_LEN;

		qp_build(e, &w[i], row->op, off, len);
		if (qp_takes_recv(row->op))
			rdma_recv(&e->b, i, e->bbuf.addr + off, len, e->bbuf.mr->lkey);
	}
	w += row->good;
	sge[0] = w->sge;
	sge[1] = w->sge;
	sge[0].length = row->half ? LAST_HALF_LEN - 1 : 0;
	sge[1].length -= sge[0].length;
	sge[1].lkey ^= 1;
	w->wr.sg_list = sge;
	w->wr.num_sge = 2;
}

static void local_key_last(long arg)
{
	const struct last_row *row = &last_rows[arg & 15];
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w[LAST_MAX];
	struct ibv_sge sge[2];
	struct qp_env e;

	conf.timeout = (uint8_t)(arg >> 4);
	conf.retry_cnt = 0;
	qp_open(&e, &conf, LEN);
	qp_fill(&e);
	build_last(&e, row, w, sge);
	rdma_post(&e.a, rdma_wr_chain(w, row->good + 1));
	for (size_t i = 0; i < row->good; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS, "a good request");
	qp_expect(e.a.scq, w[row->good].wr.wr_id, IBV_WC_LOC_PROT_ERR, "the last one");
	expect_err_state(e.a.qp, "the requester");
	if (!row->half)
		qp_expect_moved(&e, row->op, 0, row->good * LAST_LEN);
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

/* What is wrong with the request itself counts first: a READ may have no place either. */
static void too_long(long rd_atomic)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w;
	struct qp_env e;

	conf.rd_atomic = (uint8_t)rd_atomic;
	qp_open(&e, &conf, LEN);
	qp_fill(&e);
	qp_build(&e, &w, QP_READ, 0, (1u << 31) + 1);
	expect_failure(&e, &w, IBV_WC_LOC_LEN_ERR, "the READ");
	expect_harmless(&e);
}

/* --- errors whose completion is lost --- */

/* The only place in @cq is taken, by a message that nobody polls. */
static void fill_cq(struct qp_env *e, struct ibv_cq *cq)
{
	struct rdma_wr w;

	rdma_recv(&e->b, 1, e->bbuf.addr, 64, e->bbuf.mr->lkey);
	qp_build(e, &w, QP_SEND, 0, 64);
	rdma_post(&e->a, rdma_wr_chain(&w, 1));
	if (cq == e->a.scq)
		qp_expect(e->b.rcq, 1, IBV_WC_SUCCESS, "the receive");
	else
		qp_expect(e->a.scq, w.wr.wr_id, IBV_WC_SUCCESS, "the send");
}

/* No completion tells why the queue pair is in ERR, so an event does. */
static void lost(long at_receiver)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end *end;
	struct ibv_cq *cq;
	struct rdma_wr w;
	struct qp_env e;

	conf.cqe = 1;
	qp_open(&e, &conf, LEN);
	end = at_receiver ? &e.b : &e.a;
	cq = at_receiver ? e.b.rcq : e.a.scq;
	if (cq->cqe > 1)
		ktap_skip("the smallest CQ has %d entries", cq->cqe);
	fill_cq(&e, cq);
	rdma_recv(&e.b, 2, e.bbuf.addr, 64, e.bbuf.mr->lkey);
	qp_build(&e, &w, QP_SEND, 0, 65);
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	check(rdma_wait_event(&e.dev, IBV_EVENT_QP_FATAL, end->qp, RDMA_WAIT_MS),
	      "IBV_EVENT_QP_FATAL comes");
	expect_err_state(end->qp, "the queue pair");
	qp_close(&e);
}

/* --- flush --- */

#define FLUSH_MAX 700	/* some turns of a driver that flushes in turns */

/* @count: requests in each queue. */
static void flush(long count)
{
	static struct rdma_wr w[FLUSH_MAX];
	struct rdma_conf conf = rdma_conf_default();
	struct qp_env e;

	conf.cap.max_send_wr = (uint32_t)count;
	conf.cap.max_recv_wr = (uint32_t)count;
	conf.cqe = (int)count;
	qp_open(&e, &conf, 4096);
	for (uint64_t i = 0; i < (uint64_t)count; i++)
		rdma_recv(&e.a, 100 + i, e.abuf.addr, 64, e.abuf.mr->lkey);
	for (long i = 0; i < count; i++) {
		qp_build(&e, &w[i], QP_SEND, 0, 64);	/* nobody receives */
		w[i].wr.send_flags = i & 1 ? IBV_SEND_SIGNALED : 0;
	}
	rdma_post(&e.a, rdma_wr_chain(w, (size_t)count));
	check_errno(rdma_to_state(&e.a, IBV_QPS_ERR), 0, "to ERR");
	for (long i = 0; i < count; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_WR_FLUSH_ERR,
			  "a posted send");
	for (uint64_t i = 0; i < (uint64_t)count; i++)
		qp_expect(e.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR,
			  "a posted receive");
	qp_expect_none(e.a.scq, "one CQE for each send");
	qp_expect_none(e.a.rcq, "one CQE for each receive");
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

/* What is posted in ERR is flushed as well. */
static void flush_later(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	open_api(&e, false);
	check_errno(rdma_to_state(&e.a, IBV_QPS_ERR), 0, "to ERR");
	for (int i = 0; i < 3; i++) {
		rdma_recv(&e.a, 100, e.abuf.addr, 64, e.abuf.mr->lkey);
		qp_build(&e, &w, QP_WRITE, 0, 64);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_WR_FLUSH_ERR,
			 "a send posted in ERR");
		qp_expect(e.a.rcq, 100, IBV_WC_WR_FLUSH_ERR,
			  "a receive posted in ERR");
	}
	expect_harmless(&e);
}

/* A receive that is posted now is flushed in the time since ERR, and a second. */
static void expect_flushed_soon(struct qp_env *e, uint64_t since)
{
	unsigned int ms = (unsigned int)(rdma_now_us() - since) / 1000 + 1000;
	struct ibv_wc wc;

	rdma_recv(&e->a, 99, e->abuf.addr, 64, e->abuf.mr->lkey);
	check(rdma_wait_wc(e->a.rcq, &wc, ms),
	      "a receive posted in ERR completes within %u ms", ms);
	check_eq(wc.wr_id, 99, "its wr_id");
	check_eq(wc.status, IBV_WC_WR_FLUSH_ERR, "its status");
}

/*
 * A receive is posted without a system call; who posts one in ERR, and waits for it to
 * be flushed, calls nothing else either. @before: receives that were posted before ERR;
 * @again: how often ERR is asked for again.
 */
static void wait_for_flush(long before, int again)
{
	struct rdma_conf conf = rdma_conf_default();
	struct qp_env e;
	uint64_t since;

	conf.cap.max_recv_wr = FLUSH_MAX;
	conf.cqe = FLUSH_MAX;
	qp_open(&e, &conf, 4096);
	for (uint64_t i = 0; i < (uint64_t)before; i++)
		rdma_recv(&e.a, 100 + i, e.abuf.addr, 64, e.abuf.mr->lkey);
	since = rdma_now_us();
	check_errno(rdma_to_state(&e.a, IBV_QPS_ERR), 0, "to ERR");
	for (uint64_t i = 0; i < (uint64_t)before; i++)
		qp_expect(e.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR,
			  "a receive posted before");
	while (again--) {
		usleep(1000);
		check_errno(rdma_to_state(&e.a, IBV_QPS_ERR), 0, "to ERR again");
	}
	for (int ms = 0; ms <= 500; ms += 250) {
		usleep(ms * 1000);
		expect_flushed_soon(&e, since);
	}
	rdma_reconnect(&e.a, &e.b);
	qp_expect_works(&e);
	qp_close(&e);
}

static void flush_unasked(long before)
{
	wait_for_flush(before, 0);
}

static void flush_asked_again(long again)
{
	wait_for_flush(0, (int)again);
}

void qp_error_cases(void)
{
	for (long op = QP_WRITE; op < QP_OPS; op++) {
		for (long wrong = 0; wrong < WRONGS; wrong++)
			ktap_add("REM_ACCESS_ERR", remote_access,
				 op | wrong << 4, 0, "error.%s-%s",
				 qp_op_name[op], wrong_name[wrong]);
		ktap_add("REM_ACCESS_ERR", remote_access,
			 op | WRONG_KEY << 4 | WR_API, 0, "error.%s-wr-api",
			 qp_op_name[op]);
		ktap_add("IBV_EVENT_QP_ACCESS_ERR", remote_access,
			 op | BEHIND << 4 | EVENT, 0, "error.%s-event",
			 qp_op_name[op]);
		ktap_add("the QP's access flags", qp_denies, op, 0,
			 "error.%s-qp-denies", qp_op_name[op]);
	}
	for (long wrong = 0; wrong < WRONGS; wrong++)
		ktap_add("nothing of a refused message is placed",
			 remote_access, QP_WRITE | wrong << 4 | MULTI, 0,
			 "error.write-multi-%s", wrong_name[wrong]);
	for (long rights = 0; rights <= (long)RDMA_ALL_REMOTE; rights += 2)
		ktap_add("each right by itself", region_rights, rights, 0,
			 "error.region-rights-%#lx", rights);
	for (long op = QP_CAS; op < QP_OPS; op++)
		ktap_add("atomics are aligned", misaligned, op, 0,
			 "error.%s-misaligned", qp_op_name[op]);
	for (long len = 1; len <= 7777; len = len * 9 + 1016)
		ktap_add("LOC_LEN_ERR, REM_INV_REQ_ERR", recv_too_short, len, 0,
			 "error.recv-too-short-%ld", len);
	ktap_add("LOC_PROT_ERR, REM_OP_ERR", recv_bad_lkey, 0, 0,
		 "error.recv-bad-lkey");
	for (long op = 0; op < QP_OPS; op++) {
		ktap_add("LOC_PROT_ERR", local_key, op, 0,
			 "error.local-%s-wrong-key", qp_op_name[op]);
		ktap_add("LOC_PROT_ERR", local_key, op | 1 << 4, 0,
			 "error.local-%s-other-pd", qp_op_name[op]);
		ktap_add("LOC_PROT_ERR", local_key, op | 2 << 4, 0,
			 "error.local-%s-behind", qp_op_name[op]);
		if (op >= QP_READ)
			ktap_add("LOC_PROT_ERR", local_key, op | 3 << 4, 0,
				 "error.local-%s-readonly", qp_op_name[op]);
	}
	for (long i = 0; i < (long)ARRAY_SIZE(last_rows); i++)
		for (long timeout = 0; timeout <= 17; timeout += 17)
			ktap_add("what is not sent asks for nothing", local_key_last,
				 i | timeout << 4, 0, "error.local-%s-last-of-%zu%s-timeout-%ld",
				 qp_op_name[last_rows[i].op], last_rows[i].good + 1,
				 last_rows[i].half ? "-half" : "", timeout);
	ktap_add("LOC_LEN_ERR", too_long, 1, 0, "error.read-too-long");
	ktap_add("LOC_LEN_ERR", too_long, 0, 0, "error.read-too-long-no-place");
	ktap_add("IBV_EVENT_QP_FATAL", lost, false, 0, "error.lost-at-sender");
	ktap_add("IBV_EVENT_QP_FATAL", lost, true, 0, "error.lost-at-receiver");
	ktap_add("flush of both queues", flush, 8, 0, "error.flush");
	ktap_add("flush of both queues", flush, FLUSH_MAX, 0, "error.flush-many");
	ktap_add("flush of receives", flush_unasked, 0, 0,
		 "error.flush-unasked");
	ktap_add("flush of receives", flush_unasked, FLUSH_MAX, 0,
		 "error.flush-unasked-many");
	ktap_add("flush of receives", flush_asked_again, 20, 0,
		 "error.flush-asked-again");
	ktap_add("flush of both queues", flush_later, 0, 0,
		 "error.flush-later");
}
