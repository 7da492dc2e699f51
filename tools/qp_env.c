// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp_env.h"

#include <sys/mman.h>
#include <unistd.h>

#define RECV_ID		0x7ec0
#define IMM		0xa1b2c3d4

const char *const qp_op_name[QP_OPS] = {
	[QP_SEND] = "send",
	[QP_SEND_IMM] = "send-imm",
	[QP_WRITE] = "write",
	[QP_WRITE_IMM] = "write-imm",
	[QP_READ] = "read",
	[QP_CAS] = "cmp-swap",
	[QP_FADD] = "fetch-add",
};

void qp_open_unconnected(struct qp_env *e, const struct rdma_conf *conf,
			 size_t len)
{
	struct rdma_conf plain = rdma_conf_default();

	memset(e, 0, sizeof(*e));
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&e->dev, ktap_opt.device, ktap_opt.gid_index);
	rdma_end_create(&e->a, &e->dev, NULL, conf ? conf : &plain);
	rdma_end_create(&e->b, &e->dev, NULL, conf ? conf : &plain);
	rdma_buf_create(&e->abuf, e->a.pd, len, 40, QP_REGION_RIGHTS);
	rdma_buf_create(&e->bbuf, e->b.pd, len, 136, QP_REGION_RIGHTS);
}

void qp_open(struct qp_env *e, const struct rdma_conf *conf, size_t len)
{
	qp_open_unconnected(e, conf, len);
	rdma_connect(&e->a, &e->b);
}

void qp_close(struct qp_env *e)
{
	rdma_buf_destroy(&e->abuf);
	rdma_buf_destroy(&e->bbuf);
	rdma_end_destroy(&e->a);
	rdma_end_destroy(&e->b);
	rdma_dev_close(&e->dev);
}

void qp_expect_wc(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t wr_id,
		  enum ibv_wc_status status, const char *what)
{
	check(rdma_wait_wc(cq, wc, RDMA_WAIT_MS), "%s completes", what);
	check(wc->status == status, "%s ends with '%s' (not '%s')", what,
	      ibv_wc_status_str(status), ibv_wc_status_str(wc->status));
	check_eq(wc->wr_id, wr_id, what);
}

void qp_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	       const char *what)
{
	struct ibv_wc wc;

	qp_expect_wc(cq, &wc, wr_id, status, what);
}

void qp_expect_none(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	check(!ibv_poll_cq(cq, 1, &wc), "%s: no completion (wr_id %#llx, %s)",
	      what, (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

bool qp_takes_recv(enum qp_op op)
{
	return op == QP_SEND || op == QP_SEND_IMM || op == QP_WRITE_IMM;
}

void qp_build(struct qp_env *e, struct rdma_wr *w, enum qp_op op, size_t off,
	      uint32_t len)
{
	uint32_t lkey = e->abuf.mr->lkey, rkey = e->bbuf.mr->rkey;
	uint64_t raddr = e->bbuf.iova + off;
	void *addr = e->abuf.addr + off;

	switch (op) {
	case QP_SEND:
	case QP_SEND_IMM:
		rdma_wr_send(w, addr, len, lkey);
		break;
	case QP_WRITE:
	case QP_WRITE_IMM:
		rdma_wr_write(w, addr, len, lkey, raddr, rkey);
		break;
	case QP_READ:
		rdma_wr_read(w, addr, len, lkey, raddr, rkey);
		break;
	case QP_CAS:
		rdma_wr_cas(w, addr, lkey, raddr, rkey, 0, 1);
		break;
	default:
		rdma_wr_fadd(w, addr, lkey, raddr, rkey, 1);
		break;
	}
	if (op == QP_SEND_IMM)
		w->wr.opcode = IBV_WR_SEND_WITH_IMM;
	if (op == QP_WRITE_IMM)
		w->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	if (op == QP_SEND_IMM || op == QP_WRITE_IMM)
		w->wr.imm_data = IMM;
}

void qp_fill(struct qp_env *e)
{
	rdma_buf_fill(&e->abuf, QP_TAG_A);
	rdma_buf_fill(&e->bbuf, QP_TAG_B);
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;

	while (i < len && a[i] == b[i])
		i++;
	return i;
}

void qp_expect_moved(struct qp_env *e, enum qp_op op, size_t off, size_t len)
{
	bool to_a = op == QP_READ;
	size_t same = first_difference(e->abuf.addr + off, e->bbuf.addr + off, len);

	check(same == len, "%s of %zu bytes: all of them arrive, the first %zu did",
	      qp_op_name[op], len, same);
	check(rdma_buf_touched(&e->abuf, QP_TAG_A, off, to_a ? len : 0) < 0,
	      "%s of %zu bytes: nothing else changes at the requester",
	      qp_op_name[op], len);
	check(rdma_buf_touched(&e->bbuf, QP_TAG_B, off, to_a ? 0 : len) < 0,
	      "%s of %zu bytes: nothing else changes at the responder",
	      qp_op_name[op], len);
}

static enum ibv_wc_opcode wc_opcode(enum qp_op op)
{
	if (op == QP_SEND || op == QP_SEND_IMM)
		return IBV_WC_SEND;
	return op == QP_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

static void expect_recv(struct qp_env *e, enum qp_op op, uint32_t len)
{
	bool imm = op != QP_SEND;
	struct ibv_wc wc;

	qp_expect_wc(e->b.rcq, &wc, RECV_ID, IBV_WC_SUCCESS, "the receive");
	check_eq(wc.opcode, op == QP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
		 IBV_WC_RECV, "opcode of the receive");
	check_eq(wc.byte_len, len, "byte_len of the receive");
	/* whether there was a GRH is a case of its own */
	check_eq(wc.wc_flags & ~(unsigned int)IBV_WC_GRH,
		 imm ? IBV_WC_WITH_IMM : 0, "wc_flags of the receive");
	check_eq(wc.qp_num, e->b.qp->qp_num, "qp_num of the receive");
	if (imm)
		check_eq(wc.imm_data, IMM, "imm_data of the receive");
}

void qp_transfer(struct qp_env *e, enum qp_op op, size_t off, uint32_t len)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	qp_fill(e);
	if (qp_takes_recv(op))
		rdma_recv(&e->b, RECV_ID, e->bbuf.addr + off,
			  op == QP_WRITE_IMM ? 0 : len, e->bbuf.mr->lkey);
	qp_build(e, &w, op, off, len);
	rdma_post(&e->a, rdma_wr_chain(&w, 1));
	qp_expect_wc(e->a.scq, &wc, w.wr.wr_id, IBV_WC_SUCCESS, qp_op_name[op]);
	check_eq(wc.opcode, wc_opcode(op), "opcode");
	check_eq(wc.qp_num, e->a.qp->qp_num, "qp_num");
	if (qp_takes_recv(op))
		expect_recv(e, op, len);
	qp_expect_moved(e, op, off, len);
}

void qp_expect_works(struct qp_env *e)
{
	struct rdma_wr w;

	rdma_recv(&e->b, RECV_ID, NULL, 0, 0);
	rdma_wr_send(&w, NULL, 0, 0);
	check_eq(rdma_do(&e->a, &w, NULL), IBV_WC_SUCCESS, "a message to b");
	qp_expect(e->b.rcq, RECV_ID, IBV_WC_SUCCESS, "its receive");
	rdma_recv(&e->a, RECV_ID, NULL, 0, 0);
	rdma_wr_send(&w, NULL, 0, 0);
	check_eq(rdma_do(&e->b, &w, NULL), IBV_WC_SUCCESS, "a message to a");
	qp_expect(e->a.rcq, RECV_ID, IBV_WC_SUCCESS, "its receive");
}

void qp_expect_no_peer(int err, const char *address)
{
	check(err == EINVAL || err == ENODEV || err == ENETUNREACH || err == ETIMEDOUT,
	      "%s is no peer: %s", address, strerror(err));
}

uint8_t *qp_map_repeated(size_t len, size_t piece)
{
	uint8_t *mem = MAP_FAILED;
	int fd;

	fd = memfd_create("memory", 0);
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, (off_t)piece))
		mem = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			   MAP_NORESERVE, -1, 0);
	for (size_t off = 0; mem != MAP_FAILED && off < len; off += piece)
		if (mmap(mem + off, piece, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
			munmap(mem, len);
			mem = MAP_FAILED;
		}
	close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}
