// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UC queue pairs: what is sent is complete, what does not fit is dropped in
 * silence, and the next message is taken all the same. A message that arrives
 * tells that everything before it was judged.
 */
#include "qp_env.h"

#include <unistd.h>

#define LEN	16384
#define WR_API	0x100

static void open_uc(struct qp_env *e, bool wr_api, enum ibv_mtu mtu, size_t len)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = IBV_QPT_UC;
	conf.wr_api = wr_api;
	conf.mtu = mtu;
	qp_open_unconnected(e, &conf, len);
	if (mtu > e->dev.port_attr.active_mtu)
		ktap_skip("the port's MTU is %u",
			  128U << e->dev.port_attr.active_mtu);
	rdma_connect(&e->a, &e->b);
}

static void sizes(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	enum ibv_mtu mtu = (enum ibv_mtu)(arg >> 4 & 15);
	uint32_t m = 128U << mtu;
	const uint32_t lens[] = {
		0, 1, 2, 3, 4, 5, m - 1, m, m + 1, 2 * m - 1, 2 * m, 2 * m + 1,
		3 * m, LEN - 1, LEN,
	};
	struct qp_env e;

	open_uc(&e, arg & WR_API, mtu, LEN + 16);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		/* A WRITE is complete before it has arrived. */
		if (op == QP_WRITE) {
			struct rdma_wr w;

			qp_fill(&e);
			qp_build(&e, &w, op, i % 7, lens[i]);
			check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
			qp_expect_works(&e);
			qp_expect_moved(&e, op, i % 7, lens[i]);
		} else {
			qp_transfer(&e, op, i % 7, lens[i]);
		}
	}
	qp_close(&e);
}

static void psn_wrap(long arg)
{
	struct qp_env e;

	open_uc(&e, false, IBV_MTU_256, LEN);
	e.a.conf.psn = (uint32_t)arg;
	e.b.conf.psn = (uint32_t)arg;
	rdma_reconnect(&e.a, &e.b);
	for (int i = 0; i < 12; i++)
		qp_transfer(&e, QP_SEND_IMM, 0, 1 + 700U * (uint32_t)i);
	qp_close(&e);
}

/* Operations that wait for an answer are not for UC. */
static void wrong_operation(long arg)
{
	struct rdma_wr w;
	struct qp_env e;

	open_uc(&e, false, IBV_MTU_1024, LEN);
	qp_fill(&e);
	if (arg < QP_OPS)
		qp_build(&e, &w, (enum qp_op)arg, 0, 8);
	else
		rdma_wr_send_inv(&w, e.abuf.addr, 8, e.abuf.mr->lkey,
				 e.bbuf.mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_LOC_QP_OP_ERR, "status");
	check(rdma_wait_state(e.a.qp, IBV_QPS_ERR), "the queue pair is in ERR");
	check_eq(rdma_state(e.b.qp), IBV_QPS_RTS, "the peer's state");
	qp_expect_moved(&e, QP_SEND, 0, 0);
	qp_close(&e);
}

static void send(struct qp_env *e, size_t off, uint32_t len)
{
	struct rdma_wr w;

	qp_build(e, &w, QP_SEND, off, len);
	check_eq(rdma_do(&e->a, &w, NULL), IBV_WC_SUCCESS, "a send");
}

/* The first message has no receive; the second one has, and takes it. */
static void no_receive(long arg)
{
	struct qp_env e;

	(void)arg;
	open_uc(&e, false, IBV_MTU_256, LEN);
	for (uint32_t len = 1; len <= 1024; len *= 4) {
		qp_fill(&e);
		send(&e, 0, len);
		usleep(20000 * rdma_scale);	/* it has to be on its way */
		rdma_recv(&e.b, 7, e.bbuf.addr + 4096, 1024, e.bbuf.mr->lkey);
		memcpy(e.abuf.addr + 4096, "the second message", 18);
		send(&e, 4096, 18);
		qp_expect(e.b.rcq, 7, IBV_WC_SUCCESS, "the second message");
		check(!memcmp(e.bbuf.addr + 4096, "the second message", 18),
		      "the receive has the second message");
	}
	check_eq(rdma_state(e.b.qp), IBV_QPS_RTS, "the state");
	qp_close(&e);
}

/* A message that is too long is dropped, and its receive waits on. */
static void too_short(long arg)
{
	struct ibv_wc wc;
	struct qp_env e;

	(void)arg;
	open_uc(&e, false, IBV_MTU_256, LEN);
	rdma_recv(&e.b, 9, e.bbuf.addr, 700, e.bbuf.mr->lkey);
	send(&e, 0, 701);
	send(&e, 0, 2000);
	send(&e, 0, 700);
	qp_expect_wc(e.b.rcq, &wc, 9, IBV_WC_SUCCESS, "the message that fits");
	check_eq(wc.byte_len, 700, "byte_len");
	qp_expect_none(e.b.rcq, "the others");
	qp_close(&e);
}

/* What a target refuses: a write, by what is wrong with it. */
enum fault { KEY, BEFORE, BEHIND, RIGHTS, FAULTS };

static const char *const fault_name[FAULTS] = { "key", "before", "behind",
						"qp-rights" };

static void refused_write(long arg)
{
	enum fault fault = (enum fault)(arg & 15);
	uint32_t len = arg & 16 ? 3000 : 16;
	struct rdma_wr w;
	struct qp_env e;

	open_uc(&e, false, IBV_MTU_256, LEN);
	if (fault == RIGHTS) {
		e.b.conf.access = IBV_ACCESS_LOCAL_WRITE;
		rdma_reconnect(&e.a, &e.b);
	}
	qp_fill(&e);
	qp_build(&e, &w, QP_WRITE, 0, len);
	if (fault == KEY)
		w.wr.wr.rdma.rkey ^= 1;
	if (fault == BEFORE)
		w.wr.wr.rdma.remote_addr--;
	if (fault == BEHIND)
		w.wr.wr.rdma.remote_addr += LEN - len + 1;
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "status at the sender");
	qp_expect_works(&e);
	qp_expect_moved(&e, QP_WRITE, 0, 0);
	check(!rdma_wait_event(&e.dev, IBV_EVENT_QP_ACCESS_ERR, e.b.qp, 100),
	      "no event");
	qp_close(&e);
}

/* A receive whose memory is not there is the receiver's own fault. */
static void bad_receive(long arg)
{
	struct qp_env e;

	(void)arg;
	open_uc(&e, false, IBV_MTU_1024, LEN);
	rdma_recv(&e.b, 3, e.bbuf.addr, 64, e.bbuf.mr->lkey ^ 0x100);
	send(&e, 0, 64);
	qp_expect(e.b.rcq, 3, IBV_WC_LOC_PROT_ERR, "the receive");
	check(rdma_wait_state(e.b.qp, IBV_QPS_ERR), "the queue pair is in ERR");
	qp_close(&e);
}

void qp_unreliable_cases(void)
{
	static const enum qp_op with_data[] = { QP_SEND, QP_SEND_IMM, QP_WRITE,
						QP_WRITE_IMM };
	static const long psns[] = { 0, 0x7fffff, 0xfffff0, 0xffffff };

	for (size_t i = 0; i < ARRAY_SIZE(with_data); i++) {
		const char *name = qp_op_name[with_data[i]];

		for (long mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
			ktap_add("every length, every path MTU", sizes,
				 with_data[i] | mtu << 4, 60, "uc.%s.mtu-%u",
				 name, 128U << mtu);
		ktap_add("ibv_wr_post(3)", sizes,
			 with_data[i] | IBV_MTU_1024 << 4 | WR_API, 60,
			 "uc.%s.wr-api", name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(psns); i++)
		ktap_add("PSN arithmetic modulo 2^24", psn_wrap, psns[i], 60,
			 "uc.psn-%#lx", psns[i]);
	for (long op = QP_READ; op < QP_OPS; op++)
		ktap_add("o10-55: not for UC", wrong_operation, op, 0,
			 "uc.no-%s", qp_op_name[op]);
	ktap_add("table 38: no such opcode", wrong_operation, QP_OPS, 0,
		 "uc.no-send-inv");
	ktap_add("9.9.4: dropped", no_receive, 0, 0, "uc.no-receive");
	ktap_add("9.9.4: dropped", too_short, 0, 0, "uc.receive-too-short");
	ktap_add("local protection error", bad_receive, 0, 0, "uc.bad-receive");
	for (long fault = 0; fault < FAULTS; fault++) {
		ktap_add("9.9.4: dropped", refused_write, fault, 0,
			 "uc.refused-%s", fault_name[fault]);
		ktap_add("9.9.4: dropped", refused_write, fault | 16, 0,
			 "uc.refused-%s.packets", fault_name[fault]);
	}
}
