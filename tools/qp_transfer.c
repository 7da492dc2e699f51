// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Every operation, every length around every path MTU, every GID. */
#include "qp_env.h"

#define MIB	(1U << 20)
#define WR_API	0x100

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128U << mtu;
}

/* Skip what the port cannot carry. */
static struct rdma_conf conf_for(enum ibv_mtu mtu, bool wr_api)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.mtu = mtu;
	conf.wr_api = wr_api;
	return conf;
}

static void open_mtu(struct qp_env *e, enum ibv_mtu mtu, bool wr_api,
		     size_t len)
{
	struct rdma_conf conf = conf_for(mtu, wr_api);

	qp_open_unconnected(e, &conf, len);
	if (mtu > e->dev.port_attr.active_mtu)
		ktap_skip("the port's MTU is %u",
			  mtu_bytes(e->dev.port_attr.active_mtu));
	rdma_connect(&e->a, &e->b);
}

static void sizes(long arg)
{
	enum qp_op op = (enum qp_op)(arg & 15);
	enum ibv_mtu mtu = (enum ibv_mtu)(arg >> 4 & 15);
	uint32_t m = mtu_bytes(mtu);
	const uint32_t lens[] = {
		0, 1, 2, 3, 4, 5, m - 1, m, m + 1, 2 * m - 1, 2 * m, 2 * m + 1,
		3 * m, 65535, 65536, 65537, MIB - 1, MIB,
	};
	struct qp_env e;

	open_mtu(&e, mtu, arg & WR_API, MIB + 16);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++)
		qp_transfer(&e, op, i % 7, lens[i]);
	qp_close(&e);
}

static uint64_t load64(const void *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static void atomics(long arg)
{
	const uint64_t start = 0x1122334455667788, swap = 0xffeeddccbbaa9988;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct qp_env e;
	uint64_t *word;

	open_mtu(&e, IBV_MTU_1024, arg & WR_API, 4096);
	qp_fill(&e);
	word = (uint64_t *)(e.bbuf.addr + 64);
	*word = start;
	rdma_wr_cas(&w, e.abuf.addr, e.abuf.mr->lkey, e.bbuf.iova + 64,
		    e.bbuf.mr->rkey, start + 1, swap);
	check_eq(rdma_do(&e.a, &w, &wc), IBV_WC_SUCCESS, "status");
	check_eq(wc.opcode, IBV_WC_COMP_SWAP, "opcode");
	check_eq(load64(e.abuf.addr), start, "the old value");
	check_eq(*word, start, "no swap when it does not compare");
	rdma_wr_cas(&w, e.abuf.addr, e.abuf.mr->lkey, e.bbuf.iova + 64,
		    e.bbuf.mr->rkey, start, swap);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "status");
	check_eq(load64(e.abuf.addr), start, "the old value");
	check_eq(*word, swap, "a swap when it does");
	rdma_wr_fadd(&w, e.abuf.addr, e.abuf.mr->lkey, e.bbuf.iova + 64,
		     e.bbuf.mr->rkey, UINT64_MAX);
	check_eq(rdma_do(&e.a, &w, &wc), IBV_WC_SUCCESS, "status");
	check_eq(wc.opcode, IBV_WC_FETCH_ADD, "opcode");
	check_eq(wc.byte_len, 8, "byte_len");
	check_eq(load64(e.abuf.addr), swap, "the old value");
	check_eq(*word, swap - 1, "a sum that wraps");
	check(rdma_buf_touched(&e.bbuf, QP_TAG_B, 64, 8) < 0,
	      "nothing else changes");
	qp_close(&e);
}

/* Messages that cross PSN 2^24, both ways, several times over. */
static void psn_wrap(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct qp_env e;

	conf.psn = (uint32_t)arg;
	conf.mtu = IBV_MTU_256;
	qp_open(&e, &conf, 65536);
	for (int op = 0; op < QP_DATA_OPS; op++) {
		for (int i = 0; i < 6; i++)
			qp_transfer(&e, (enum qp_op)op, 0, 1 + 700U * i);
		rdma_reconnect(&e.a, &e.b);
	}
	for (int op = QP_CAS; op < QP_OPS; op++) {
		for (int i = 0; i < 6; i++) {
			struct rdma_wr w;

			qp_build(&e, &w, (enum qp_op)op, 0, 8);
			check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS,
				 qp_op_name[op]);
		}
		qp_expect_works(&e);
		rdma_reconnect(&e.a, &e.b);
	}
	qp_close(&e);
}

/* The two directions of a connection count their packets apart. */
static void psn_apart(long arg)
{
	struct rdma_conf a = rdma_conf_default();
	struct rdma_conf b = rdma_conf_default();
	struct qp_env e;

	(void)arg;
	a.psn = 0xffffff;
	b.psn = 7;
	qp_open_unconnected(&e, &a, 65536);
	e.b.conf = b;
	rdma_connect(&e.a, &e.b);
	for (int op = 0; op < QP_DATA_OPS; op++)
		qp_transfer(&e, (enum qp_op)op, 3, 10000);
	qp_expect_works(&e);
	qp_close(&e);
}

/* Every RoCE v2 GID of the port carries a connection. */
static void every_gid(long arg)
{
	int used = 0;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 16384);
	for (int i = 0; i < e.dev.port_attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(e.dev.ctx, e.dev.port, (uint32_t)i, &entry,
				     0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		e.dev.gid = entry.gid;
		e.dev.gid_index = i;
		rdma_reconnect(&e.a, &e.b);
		for (int op = 0; op < QP_DATA_OPS; op++)
			qp_transfer(&e, (enum qp_op)op, 0, 5000);
		ktap_note("GID %d works", i);
		used++;
	}
	check(used > 0, "the port has RoCE v2 GIDs");
	qp_close(&e);
}

/* A queue pair connected to itself. */
static void itself(long arg)
{
	struct rdma_buf from, to;
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_dev dev;
	struct rdma_end end;
	struct rdma_wr w;

	(void)arg;
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	rdma_end_create(&end, &dev, NULL, &conf);
	rdma_connect(&end, &end);
	rdma_buf_create(&from, end.pd, 65536, 0, QP_REGION_RIGHTS);
	rdma_buf_create(&to, end.pd, 65536, 0, QP_REGION_RIGHTS);
	for (int i = 0; i < 3; i++) {
		rdma_buf_fill(&from, QP_TAG_A);
		rdma_buf_fill(&to, QP_TAG_B);
		rdma_recv(&end, 1, to.addr, 65536, to.mr->lkey);
		rdma_wr_send(&w, from.addr, 50000, from.mr->lkey);
		check_eq(rdma_do(&end, &w, NULL), IBV_WC_SUCCESS, "send");
		qp_expect(end.rcq, 1, IBV_WC_SUCCESS, "the receive");
		check(!memcmp(from.addr, to.addr, 50000), "the data arrives");
		rdma_buf_fill(&to, QP_TAG_B);
		rdma_wr_write(&w, from.addr, 65536, from.mr->lkey, to.iova,
			      to.mr->rkey);
		check_eq(rdma_do(&end, &w, NULL), IBV_WC_SUCCESS, "write");
		check(!memcmp(from.addr, to.addr, 65536), "the data arrives");
		rdma_buf_fill(&to, QP_TAG_B);
		rdma_wr_read(&w, to.addr, 65536, to.mr->lkey, from.iova,
			     from.mr->rkey);
		check_eq(rdma_do(&end, &w, NULL), IBV_WC_SUCCESS, "read");
		check(!memcmp(from.addr, to.addr, 65536), "the data arrives");
	}
	rdma_buf_destroy(&from);
	rdma_buf_destroy(&to);
	rdma_end_destroy(&end);
	rdma_dev_close(&dev);
}

/* Move @len bytes of one buffer to another place of it. */
static void move_within(struct rdma_end *end, const struct rdma_buf *buf, enum qp_op op,
			size_t from, size_t to, uint32_t len)
{
	struct rdma_wr w;

	if (op == QP_SEND) {
		rdma_recv(end, 1, buf->addr + to, len, buf->mr->lkey);
		rdma_wr_send(&w, buf->addr + from, len, buf->mr->lkey);
	} else if (op == QP_WRITE) {
		rdma_wr_write(&w, buf->addr + from, len, buf->mr->lkey, buf->iova + to,
			      buf->mr->rkey);
	} else {
		rdma_wr_read(&w, buf->addr + to, len, buf->mr->lkey, buf->iova + from,
			     buf->mr->rkey);
	}
	check_eq(rdma_do(end, &w, NULL), IBV_WC_SUCCESS, "the request");
	if (op == QP_SEND)
		qp_expect(end->rcq, 1, IBV_WC_SUCCESS, "the receive");
}

/*
 * From a buffer to itself. Where source and target overlap, what the target holds then is
 * not said; but nothing else has changed, and what was not to be moved is as it was.
 */
static void overlap(long op)
{
	static const long shifts[] = { 0, 1, -1, 100, -100, 4096, -4096, 70001, -70001 };
	static const uint32_t lens[] = { 8, 1000, 5000, 100000 };
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end end;
	struct rdma_dev dev;
	struct rdma_buf buf;

	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	rdma_end_create(&end, &dev, NULL, &conf);
	rdma_connect(&end, &end);
	rdma_buf_create(&buf, end.pd, 250000, 0, QP_REGION_RIGHTS);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(shifts); j++) {
			size_t to = (size_t)(71000 + shifts[j]);

			rdma_buf_fill(&buf, QP_TAG_A);
			move_within(&end, &buf, (enum qp_op)op, 71000, to, lens[i]);
			check(rdma_buf_touched(&buf, QP_TAG_A, to,
					       shifts[j] ? lens[i] : 0) < 0,
			      "%u bytes, %ld further: nothing else changes", lens[i],
			      shifts[j]);
		}
	}
	rdma_buf_destroy(&buf);
	rdma_end_destroy(&end);
	rdma_dev_close(&dev);
}

/* Only datagrams carry a GRH into the receive. */
static void no_grh(long arg)
{
	enum qp_op op = (enum qp_op)arg;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct qp_env e;

	qp_open(&e, NULL, 4096);
	rdma_recv(&e.b, 1, e.bbuf.addr, 64, e.bbuf.mr->lkey);
	qp_build(&e, &w, op, 0, 64);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "the request");
	qp_expect_wc(e.b.rcq, &wc, 1, IBV_WC_SUCCESS, "the receive");
	check(!(wc.wc_flags & IBV_WC_GRH), "the receive has no IBV_WC_GRH");
	qp_close(&e);
}

void qp_transfer_cases(void)
{
	static const long psns[] = { 0, 1, 0x7fffff, 0x800000, 0xfffff0,
				     0xfffffe, 0xffffff };

	for (long mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		for (long op = 0; op < QP_DATA_OPS; op++)
			ktap_add("every length, every path MTU", sizes,
				 op | mtu << 4, 60, "transfer.%s.mtu-%u",
				 qp_op_name[op], mtu_bytes((enum ibv_mtu)mtu));
	for (long op = 0; op < QP_DATA_OPS; op++)
		ktap_add("ibv_wr_post(3)", sizes,
			 op | IBV_MTU_1024 << 4 | WR_API, 60,
			 "transfer.%s.wr-api", qp_op_name[op]);
	ktap_add("ibv_post_send(3)", atomics, 0, 0, "transfer.atomics");
	ktap_add("ibv_wr_post(3)", atomics, WR_API, 0,
		 "transfer.atomics.wr-api");
	for (size_t i = 0; i < ARRAY_SIZE(psns); i++)
		ktap_add("PSN arithmetic modulo 2^24", psn_wrap, psns[i], 60,
			 "transfer.psn-%#lx", psns[i]);
	ktap_add("a PSN for each direction", psn_apart, 0, 0,
		 "transfer.psn-apart");
	ktap_add("RoCE v2 over IPv4 and IPv6", every_gid, 0, 60,
		 "transfer.every-gid");
	for (long op = 0; op < QP_DATA_OPS; op++)
		if (qp_takes_recv((enum qp_op)op))
			ktap_add("ibv_poll_cq(3): IBV_WC_GRH is for UD", no_grh,
				 op, 0, "transfer.no-grh-%s", qp_op_name[op]);
	ktap_add("ibv_modify_qp(3)", itself, 0, 0, "transfer.itself");
	ktap_add("source and target overlap", overlap, QP_SEND, 0, "transfer.overlap-send");
	ktap_add("source and target overlap", overlap, QP_WRITE, 0, "transfer.overlap-write");
	ktap_add("source and target overlap", overlap, QP_READ, 0, "transfer.overlap-read");
}
