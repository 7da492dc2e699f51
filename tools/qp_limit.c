// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Every maximum that is reported can be had; one more is refused. */
#include "ud_env.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MANY	70000	/* as many objects as these cases make */
#define SAMPLE	1000	/* of a device that claims more than that */

struct bare {
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void open_bare(struct bare *b)
{
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&b->dev, ktap_opt.device, ktap_opt.gid_index);
	b->pd = ibv_alloc_pd(b->dev.ctx);
	b->cq = ibv_create_cq(b->dev.ctx, 16, NULL, NULL, 0);
	check(b->pd && b->cq, "a PD and a CQ");
}

static void close_bare(struct bare *b)
{
	check_errno(ibv_destroy_cq(b->cq), 0, "ibv_destroy_cq");
	check_errno(ibv_dealloc_pd(b->pd), 0, "ibv_dealloc_pd");
	rdma_dev_close(&b->dev);
}

static struct ibv_qp *create_qp(struct bare *b, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.cap = *cap,
		.qp_type = IBV_QPT_RC,
	};

	errno = 0;
	return ibv_create_qp(b->pd, &attr);
}

enum cap { SEND_WR, RECV_WR, SEND_SGE, RECV_SGE, CAPS };

static const char *const cap_name[CAPS] = { "send-wr", "recv-wr", "send-sge",
					    "recv-sge" };

static uint32_t *cap_field(struct ibv_qp_cap *cap, enum cap which)
{
	switch (which) {
	case SEND_WR:
		return &cap->max_send_wr;
	case RECV_WR:
		return &cap->max_recv_wr;
	case SEND_SGE:
		return &cap->max_send_sge;
	default:
		return &cap->max_recv_sge;
	}
}

static void qp_cap(long arg)
{
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	enum cap which = (enum cap)arg;
	struct ibv_qp *qp;
	struct bare b;
	uint32_t max;

	open_bare(&b);
	max = (uint32_t)(which <= RECV_WR ? b.dev.attr.max_qp_wr :
					    b.dev.attr.max_sge);
	*cap_field(&cap, which) = max;
	qp = create_qp(&b, &cap);
	check(qp, "a queue pair with a %s of %u: %s", cap_name[which], max,
	      strerror(errno));
	check_errno(ibv_destroy_qp(qp), 0, "ibv_destroy_qp");
	*cap_field(&cap, which) = max + 1;
	qp = create_qp(&b, &cap);
	check(!qp, "no queue pair with a %s of %u", cap_name[which], max + 1);
	check_errno(errno, EINVAL, "one more");
	*cap_field(&cap, which) = UINT32_MAX;
	check(!create_qp(&b, &cap), "nor with 2^32 - 1");
	close_bare(&b);
}

/* Asking for nothing is allowed; asking for absurd inline data is not. */
static void qp_odd_caps(long arg)
{
	static const struct ibv_qp_cap none = { 0 };
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct ibv_qp *qp;
	struct bare b;

	(void)arg;
	open_bare(&b);
	qp = create_qp(&b, &none);
	if (qp)
		check_errno(ibv_destroy_qp(qp), 0, "ibv_destroy_qp");
	cap.max_inline_data = 1U << 20;
	check(!create_qp(&b, &cap), "no queue pair with 1 MiB of inline data");
	check_errno(errno, EINVAL, "too much inline data");
	cap.max_inline_data = UINT32_MAX;
	check(!create_qp(&b, &cap), "nor with 2^32 - 1");
	close_bare(&b);
}

static void cqe(long arg)
{
	struct ibv_cq *cq;
	struct bare b;
	int max;

	(void)arg;
	open_bare(&b);
	max = b.dev.attr.max_cqe;
	cq = ibv_create_cq(b.dev.ctx, max, NULL, NULL, 0);
	check(cq, "a CQ of max_cqe %d: %s", max, strerror(errno));
	check(cq->cqe >= max, "it has as many entries");
	check_errno(ibv_destroy_cq(cq), 0, "ibv_destroy_cq");
	errno = 0;
	check(!ibv_create_cq(b.dev.ctx, max + 1, NULL, NULL, 0),
	      "no CQ of max_cqe + 1");
	check_errno(errno, EINVAL, "one more");
	errno = 0;
	check(!ibv_create_cq(b.dev.ctx, 0, NULL, NULL, 0), "no CQ of 0");
	check_errno(errno, EINVAL, "none at all");
	errno = 0;
	check(!ibv_create_cq(b.dev.ctx, -1, NULL, NULL, 0), "no CQ of -1");
	check_errno(ibv_resize_cq(b.cq, max), 0, "ibv_resize_cq to max_cqe");
	check_errno(ibv_resize_cq(b.cq, max + 1), EINVAL,
		    "ibv_resize_cq to max_cqe + 1");
	close_bare(&b);
}

/* --- how many objects --- */

enum object { PD, MR, CQ, QP, SRQ, AH, OBJECTS };

static const char *const object_name[OBJECTS] = { "pd", "mr", "cq", "qp",
						   "srq", "ah" };

static size_t object_max(const struct ibv_device_attr *attr, enum object what)
{
	switch (what) {
	case PD:
		return (size_t)attr->max_pd;
	case MR:
		return (size_t)attr->max_mr;
	case CQ:
		return (size_t)attr->max_cq;
	case SRQ:
		return (size_t)attr->max_srq;
	case AH:
		return (size_t)attr->max_ah;
	default:
		return (size_t)attr->max_qp;
	}
}

static void *make(struct bare *b, enum object what)
{
	static const struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_ah_attr path = ud_path(&b->dev, &b->dev.gid);

	errno = 0;
	switch (what) {
	case PD:
		return ibv_alloc_pd(b->dev.ctx);
	case MR:
		return ibv_reg_mr(b->pd, page, sizeof(page), 0);
	case CQ:
		return ibv_create_cq(b->dev.ctx, 1, NULL, NULL, 0);
	case SRQ:
		return ibv_create_srq(b->pd, &srq);
	case AH:
		return ibv_create_ah(b->pd, &path);
	default:
		return create_qp(b, &cap);
	}
}

static int unmake(void *object, enum object what)
{
	switch (what) {
	case PD:
		return ibv_dealloc_pd(object);
	case MR:
		return ibv_dereg_mr(object);
	case CQ:
		return ibv_destroy_cq(object);
	case SRQ:
		return ibv_destroy_srq(object);
	case AH:
		return ibv_destroy_ah(object);
	default:
		return ibv_destroy_qp(object);
	}
}

/* All of them where they are cheap, a sample where they are not. */
static void objects(long arg)
{
	enum object what = (enum object)arg;
	struct bare b;
	size_t max, n;
	void **made;
	void *more;
	bool all;

	open_bare(&b);
	max = object_max(&b.dev.attr, what);
	all = max <= (what <= MR ? MANY : SAMPLE);
	/* the case has made one PD and one CQ already */
	n = all ? max - (what == PD || what == CQ) : SAMPLE;
	if (!n)
		ktap_skip("the device has none");
	made = calloc(n, sizeof(*made));
	check(made, "memory");
	for (size_t i = 0; i < n; i++) {
		made[i] = make(&b, what);
		check(made[i], "%s %zu of %zu: %s", object_name[what], i, max,
		      strerror(errno));
	}
	if (all) {
		more = make(&b, what);
		check(!more, "one more than %zu is refused", max);
		check(errno == ENOMEM || errno == EINVAL || errno == ENOSPC,
		      "by an errno that says so (%s)", strerror(errno));
	}
	for (size_t i = 0; i < n; i++)
		check_errno(unmake(made[i], what), 0, "giving one back");
	free(made);
	close_bare(&b);
}

static void rd_atomic(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_wr w[40];
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, &conf, 65536);
	e.a.conf.rd_atomic = (uint8_t)(e.dev.attr.max_qp_init_rd_atom > 255 ?
				       255 : e.dev.attr.max_qp_init_rd_atom);
	e.b.conf.rd_atomic = (uint8_t)(e.dev.attr.max_qp_rd_atom > 255 ?
				       255 : e.dev.attr.max_qp_rd_atom);
	check(e.b.conf.rd_atomic >= e.a.conf.rd_atomic,
	      "a responder has what a requester may use");
	check_errno(rdma_to_init(&e.a), 0, "to INIT");
	check_errno(rdma_to_init(&e.b), 0, "to INIT");
	rdma_connect(&e.a, &e.b);
	qp_fill(&e);
	for (size_t i = 0; i < 40; i++)
		qp_build(&e, &w[i], QP_READ, 1600 * i, 1600);
	rdma_post(&e.a, rdma_wr_chain(w, 40));
	for (size_t i = 0; i < 40; i++)
		qp_expect(e.a.scq, w[i].wr.wr_id, IBV_WC_SUCCESS, "a read");
	qp_expect_moved(&e, QP_READ, 0, 64000);
	qp_close(&e);
}

/* A queue of the greatest depth can be filled and emptied. */
static void deep_queue(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_dev dev;
	struct qp_env e;
	uint32_t depth;

	(void)arg;
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	depth = (uint32_t)dev.attr.max_qp_wr;
	if (depth > (uint32_t)dev.attr.max_cqe)
		depth = (uint32_t)dev.attr.max_cqe;
	if (depth > 32768)
		depth = 32768;
	rdma_dev_close(&dev);
	conf.cap.max_send_wr = depth;
	conf.cap.max_recv_wr = depth;
	conf.cqe = (int)depth;
	qp_open(&e, &conf, 4096);
	for (uint32_t i = 0; i < depth; i++)
		rdma_recv(&e.b, i, NULL, 0, 0);
	for (uint32_t i = 0; i < depth; i++) {
		struct rdma_wr w;

		rdma_wr_send(&w, NULL, 0, 0);
		w.wr.wr_id = i;
		rdma_post(&e.a, rdma_wr_chain(&w, 1));
	}
	for (uint32_t i = 0; i < depth; i++) {
		qp_expect(e.a.scq, i, IBV_WC_SUCCESS, "a send");
		qp_expect(e.b.rcq, i, IBV_WC_SUCCESS, "a receive");
	}
	qp_close(&e);
}

#define PIECE		(16U << 20)	/* of memory behind a great message */
#define MESSAGE_SECONDS	240

/* Addresses for a message of any length, with some before it. */
struct vast {
	uint8_t *map;
	size_t len;
	struct ibv_mr *mr;
};

static bool vast_open(struct vast *v, struct ibv_pd *pd, uint32_t message)
{
	v->len = (size_t)message + PIECE;
	v->map = qp_map_repeated(v->len, PIECE);
	v->mr = v->map ? ibv_reg_mr(pd, v->map, v->len, QP_REGION_RIGHTS) : NULL;
	return v->mr;
}

static void vast_close(struct vast *v)
{
	check_errno(ibv_dereg_mr(v->mr), 0, "ibv_dereg_mr");
	munmap(v->map, v->len);
}

static void build_vast(struct rdma_wr *w, enum qp_op op, const struct vast *a,
		       size_t off, uint32_t len, const struct vast *b)
{
	uint8_t *addr = a->map + off;

	if (op == QP_SEND)
		rdma_wr_send(w, addr, len, a->mr->lkey);
	else if (op == QP_WRITE)
		rdma_wr_write(w, addr, len, a->mr->lkey, (uintptr_t)b->map,
			      b->mr->rkey);
	else
		rdma_wr_read(w, addr, len, a->mr->lkey, (uintptr_t)b->map,
			     b->mr->rkey);
}

/* max_msg_sz: that many bytes arrive, one more is refused. */
static void greatest_message(long arg)
{
	enum qp_op op = (enum qp_op)arg;
	const size_t off = 12345;	/* the two sides are not aligned alike */
	struct vast a, b;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct qp_env e;
	uint64_t start;
	uint32_t len;

	qp_open(&e, NULL, 4096);
	len = e.dev.port_attr.max_msg_sz;
	if (!vast_open(&a, e.a.pd, len) || !vast_open(&b, e.b.pd, len))
		ktap_skip("a message of %u bytes cannot be registered", len);
	for (size_t i = 0; i < PIECE; i++) {
		a.map[i] = (uint8_t)(i * 167 + (i >> 8) * 13 + (i >> 16));
		b.map[i] = (uint8_t)(i * 59 + (i >> 8) * 31 + (i >> 16) * 3);
	}
	if (op == QP_SEND)
		rdma_recv(&e.b, 1, b.map, len, b.mr->lkey);
	build_vast(&w, op, &a, off, len, &b);
	start = rdma_now_us();
	rdma_post(&e.a, rdma_wr_chain(&w, 1));
	check(rdma_wait_wc(e.a.scq, &wc, MESSAGE_SECONDS * 1000), "it completes");
	ktap_note("%u bytes in %llu ms", len,
		  (unsigned long long)(rdma_now_us() - start) / 1000);
	check_eq(wc.status, IBV_WC_SUCCESS, "status");
	if (op == QP_SEND) {
		qp_expect_wc(e.b.rcq, &wc, 1, IBV_WC_SUCCESS, "the receive");
		check_eq(wc.byte_len, len, "byte_len");
	}
	check(!memcmp(a.map + off + len - PIECE, b.map + len - PIECE, PIECE),
	      "its last bytes arrive, each in its place");
	build_vast(&w, op, &a, off, len + 1, &b);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_LOC_LEN_ERR, "one byte more");
	vast_close(&a);
	vast_close(&b);
	qp_close(&e);
}

void qp_limit_cases(void)
{
	static const enum qp_op with_data[] = { QP_SEND, QP_WRITE, QP_READ };

	for (long i = 0; i < CAPS; i++)
		ktap_add("max_qp_wr, max_sge", qp_cap, i, 0, "limit.%s",
			 cap_name[i]);
	ktap_add("ibv_create_qp(3)", qp_odd_caps, 0, 0, "limit.odd-caps");
	ktap_add("max_cqe", cqe, 0, 0, "limit.cqe");
	for (long i = 0; i < OBJECTS; i++)
		ktap_add("max_pd, max_mr, max_cq, max_qp, max_srq, max_ah", objects, i, 120,
			 "limit.%s", object_name[i]);
	ktap_add("max_qp_rd_atom", rd_atomic, 0, 0, "limit.rd-atomic");
	ktap_add("max_qp_wr", deep_queue, 0, 120, "limit.deep-queue");
	for (size_t i = 0; i < ARRAY_SIZE(with_data); i++)
		ktap_add("max_msg_sz", greatest_message, with_data[i],
			 MESSAGE_SECONDS, "limit.message.%s",
			 qp_op_name[with_data[i]]);
}
