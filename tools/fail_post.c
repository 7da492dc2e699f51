// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests. Where the call itself finds no memory, the request stays in the
 * ring and the next call rings for it too. On the way of a packet no memory is
 * the loss of the packet, which the transport recovers from: never an error.
 */
#include "fail_env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define RECV_ID		0x4ece
#define LEN		3000	/* three packets */
#define LOSSY_ROUNDS	12

enum post_op { OP_SEND_INV = QP_OPS, OP_LOCAL_INV, OP_BIND, OP_BIND_TYPE_1, POST_OPS };

static enum post_op op;

static const char *op_name(enum post_op which)
{
	static const char *const more[] = {
		[OP_SEND_INV] = "send-inv",
		[OP_LOCAL_INV] = "local-inv",
		[OP_BIND] = "bind",
		[OP_BIND_TYPE_1] = "bind_mw",
	};

	return which < (enum post_op)QP_OPS ? qp_op_name[which] : more[which];
}

static bool takes_recv(void)
{
	return op == OP_SEND_INV || (op < (enum post_op)QP_OPS &&
				     qp_takes_recv((enum qp_op)op));
}

/* --- windows --- */

static struct rdma_bind good_bind(struct fail_env *e)
{
	return (struct rdma_bind){
		.mw = e->mw,
		.current_rkey = e->mw->rkey,
		.new_rkey = ibv_inc_rkey(e->mw->rkey),
		.mr_lkey = e->mr->lkey,
		.addr = (uintptr_t)e->q.bbuf.addr,
		.length = LEN,
		.access = IBV_ACCESS_REMOTE_READ,
	};
}

/* The window that an invalidate names belongs to the end that executes it. */
static struct rdma_end *window_end(struct fail_env *e)
{
	return op == OP_SEND_INV ? &e->q.b : &e->q.a;
}

static void make_window(struct fail_env *e)
{
	struct rdma_end *end = window_end(e);
	struct rdma_bind bind;
	struct rdma_wr w;

	e->mw = ibv_alloc_mw(end->pd, op == OP_BIND_TYPE_1 ? IBV_MW_TYPE_1 :
							     IBV_MW_TYPE_2);
	check(e->mw, "ibv_alloc_mw: %s", strerror(errno));
	e->mr = ibv_reg_mr(end->pd, e->q.bbuf.addr, LEN,
			   QP_REGION_RIGHTS | IBV_ACCESS_MW_BIND);
	check(e->mr, "ibv_reg_mr: %s", strerror(errno));
	if (op == OP_BIND || op == OP_BIND_TYPE_1)
		return;
	bind = good_bind(e);
	rdma_wr_bind(&w, &bind);
	check_eq(rdma_do(end, &w, NULL), IBV_WC_SUCCESS, "status of a bind");
}

static void destroy_window(struct fail_env *e)
{
	bool bound = op == OP_BIND || op == OP_BIND_TYPE_1;

	check_errno(ibv_dereg_mr(e->mr), bound ? EBUSY : 0, "ibv_dereg_mr");
	check_errno(ibv_dealloc_mw(e->mw), 0, "ibv_dealloc_mw");
	if (bound)
		check_errno(ibv_dereg_mr(e->mr), 0, "ibv_dereg_mr");
}

/* --- posting --- */

static void prepare(struct fail_env *e)
{
	struct rdma_bind bind;

	qp_fill(&e->q);
	if (takes_recv())
		rdma_recv(&e->q.b, RECV_ID, e->q.bbuf.addr,
			  op == (enum post_op)QP_WRITE_IMM ? 0 : LEN, e->q.bbuf.mr->lkey);
	if (op < (enum post_op)QP_OPS) {
		qp_build(&e->q, &e->wr, (enum qp_op)op, 0, LEN);
		return;
	}
	make_window(e);
	switch (op) {
	case OP_SEND_INV:
		rdma_wr_send_inv(&e->wr, NULL, 0, 0, ibv_inc_rkey(e->mw->rkey));
		break;
	case OP_LOCAL_INV:
		rdma_wr_local_inv(&e->wr, ibv_inc_rkey(e->mw->rkey));
		break;
	default:
		bind = good_bind(e);
		rdma_wr_bind(&e->wr, &bind);
		break;
	}
}

static int bind_type_1(struct fail_env *e)
{
	struct ibv_mw_bind bind = {
		.wr_id = e->wr.wr.wr_id,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = e->mr,
			.addr = (uintptr_t)e->q.bbuf.addr,
			.length = LEN,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ,
		},
	};

	return ibv_bind_mw(e->q.a.qp, e->mw, &bind);
}

static int post(struct fail_env *e)
{
	if (op == OP_BIND_TYPE_1)
		return bind_type_1(e);
	return rdma_try_post(&e->q.a, rdma_wr_chain(&e->wr, 1));
}

static void expect_done(struct fail_env *e, int err)
{
	struct rdma_wr bell;

	/* The call failed before the driver saw it: the next one rings again. */
	rdma_wr_write(&bell, NULL, 0, 0, 0, 0);
	if (err)
		rdma_post(&e->q.a, rdma_wr_chain(&bell, 1));
	qp_expect(e->q.a.scq, e->wr.wr.wr_id, IBV_WC_SUCCESS, op_name(op));
	if (err)
		qp_expect(e->q.a.scq, bell.wr.wr_id, IBV_WC_SUCCESS, "the next");
	if (takes_recv())
		qp_expect(e->q.b.rcq, RECV_ID, IBV_WC_SUCCESS, "its receive");
	if (op < (enum post_op)QP_DATA_OPS)
		qp_expect_moved(&e->q, (enum qp_op)op, 0, LEN);
	if (op >= (enum post_op)QP_OPS)
		destroy_window(e);
}

static void fail_post(struct fail_env *e, enum post_op which)
{
	struct fail_path path = {
		.name = op_name(which),
		.prepare = prepare,
		.run = post,
		.undo = expect_done,
	};

	op = which;
	fail_every(e, &path);
}

static void fail_direct(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_post(&e, (enum post_op)arg);
	fail_close(&e);
}

static void fail_packets(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_wire(&e, true);
	fail_post(&e, (enum post_op)arg);
	fail_wire(&e, false);
	fail_close(&e);
}

/* A receive is posted by writing to memory that is there: nothing can fail. */
static int post_receive(struct fail_env *e)
{
	return rdma_try_recv(&e->q.b, RECV_ID, e->q.bbuf.addr, LEN, e->q.bbuf.mr->lkey);
}

static void use_receive(struct fail_env *e, int err)
{
	struct rdma_wr w;

	check_errno(err, 0, "ibv_post_recv");
	rdma_wr_send(&w, e->q.abuf.addr, LEN, e->q.abuf.mr->lkey);
	check_eq(rdma_do(&e->q.a, &w, NULL), IBV_WC_SUCCESS, "a message");
	qp_expect(e->q.b.rcq, RECV_ID, IBV_WC_SUCCESS, "its receive");
}

static void fail_receive(long arg)
{
	static const struct fail_path path = {
		.name = "recv",
		.run = post_receive,
		.undo = use_receive,
		.never_allocates = true,
	};
	struct fail_env e;

	(void)arg;
	fail_open(&e);
	fail_every(&e, &path);
	fail_close(&e);
}

/* --- wherever the packet's path allocates, softirqs included --- */

static unsigned long read_number(const char *path, int base)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	check(fd >= 0, "%s: %s", path, strerror(errno));
	check(read(fd, text, sizeof(text) - 1) > 0, "%s: %s", path, strerror(errno));
	close(fd);
	return strtoul(text, NULL, base);
}

/* Allocations whose stack goes through the driver fail, in so many of a hundred. */
static void fail_driver(const char *percent)
{
	unsigned long start = read_number("/sys/module/smw/sections/.text", 16);
	unsigned long size = read_number("/sys/module/smw/coresize", 10);
	char number[32];

	snprintf(number, sizeof(number), "%lu", start);
	fail_debugfs("failslab/require-start", number);
	snprintf(number, sizeof(number), "%lu", start + size);
	fail_debugfs("failslab/require-end", number);
	fail_debugfs("failslab/times", "-1");
	fail_debugfs("failslab/probability", percent);
}

static void fail_nobody(void)
{
	fail_debugfs("failslab/probability", "0");
	fail_debugfs("failslab/require-start", "0");
	fail_debugfs("failslab/require-end", "18446744073709551615");
}

static unsigned long timeouts(struct fail_env *e)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/local_ack_timeout_err",
		 ibv_get_device_name(e->q.dev.ctx->device));
	return read_number(path, 10);
}

static void lose_packets(long arg)
{
	unsigned long before;
	struct fail_env e;
	int i;

	fail_open(&e);
	fail_expect_sound(&e, "at first");
	before = timeouts(&e);
	fail_wire(&e, true);
	fail_driver("10");
	for (i = 0; i < LOSSY_ROUNDS; i++)
		qp_transfer(&e.q, (enum qp_op)arg, 0, LEN);
	fail_nobody();
	fail_wire(&e, false);
	fail_expect_sound(&e, qp_op_name[arg]);
	check(timeouts(&e) != before, "packets were lost");
	fail_close(&e);
}

void fail_post_cases(void)
{
	long i;

	for (i = 0; i < POST_OPS; i++)
		ktap_add("ibv_post_send(3), ibv_bind_mw(3)", fail_direct, i, 0,
			 "post.direct.%s", op_name((enum post_op)i));
	for (i = 0; i < POST_OPS; i++)
		ktap_add("IBTA 9.7: a lost packet is recovered", fail_packets, i, 0,
			 "post.packets.%s", op_name((enum post_op)i));
	ktap_add("ibv_post_recv(3)", fail_receive, 0, 0, "post.recv");
	for (i = 0; i < QP_DATA_OPS; i++)
		ktap_add("IBTA 9.7: a lost packet is recovered", lose_packets, i, 60,
			 "lossy.%s", qp_op_name[i]);
}
