// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a process may do with its own queue pairs costs nobody else. */
#include "qp_env.h"

#define STRANGER_TAG	0x33

/*
 * A third queue pair that claims to be a's: it names b as its peer, which knows
 * nothing of it, and asks for what is next in b's sequence with b's key.
 */
static void stranger(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	enum qp_op op = (enum qp_op)arg;
	struct rdma_end c;
	struct rdma_buf cbuf;
	struct rdma_wr w;
	struct qp_env e;

	conf.timeout = 8;
	conf.retry_cnt = 1;
	qp_open(&e, &conf, 4096);
	qp_fill(&e);
	rdma_end_create(&c, &e.dev, NULL, &conf);
	rdma_buf_create(&cbuf, c.pd, 4096, 0, QP_REGION_RIGHTS);
	rdma_buf_fill(&cbuf, STRANGER_TAG);
	check_errno(rdma_to_init(&c), 0, "to INIT");
	check_errno(rdma_to_rtr(&c, e.b.qp->qp_num, conf.psn), 0, "to RTR");
	check_errno(rdma_to_rts(&c), 0, "to RTS");
	if (op == QP_READ)
		rdma_wr_read(&w, cbuf.addr, 4096, cbuf.mr->lkey, e.bbuf.iova,
			     e.bbuf.mr->rkey);
	else
		rdma_wr_fadd(&w, cbuf.addr, cbuf.mr->lkey,
			     (e.bbuf.iova + 7) & ~7ULL, e.bbuf.mr->rkey, 0);
	check_eq(rdma_do(&c, &w, NULL), IBV_WC_RETRY_EXC_ERR,
		 "b answers its own peer alone");
	check(rdma_buf_touched(&cbuf, STRANGER_TAG, 0, 0) < 0,
	      "nothing of b's comes to a stranger");
	rdma_buf_destroy(&cbuf);
	rdma_end_destroy(&c);
	qp_close(&e);
}

void qp_isolate_cases(void)
{
	ktap_add("a queue pair has one peer", stranger, QP_READ, 0,
		 "isolate.stranger.read");
	ktap_add("a queue pair has one peer", stranger, QP_FADD, 0,
		 "isolate.stranger.atomic");
}
