// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "flush_env.h"

#define OFF		72	/* of the region's first byte in its page */
#define NOWHERE		0x1234567890abcdefULL

const char *const flush_kind_name[FLUSH_KINDS] = {
	[FLUSH_OF_REGION] = "region",
	[FLUSH_OF_TYPE_1] = "type1",
	[FLUSH_OF_TYPE_2] = "type2",
	[FLUSH_OF_ZERO_BASED] = "zero-based",
};

/* Of <rdma/rdma_user_rxe.h> since Linux 6.2. */
struct wr_flush {
	uint64_t remote_addr;
	uint32_t length;	/* the provider leaves it alone */
	uint32_t rkey;
	uint8_t type;
	uint8_t level;
};

uint64_t flush_device_flags(void)
{
	struct ibv_device_attr_ex attr = { 0 };
	struct rdma_dev dev;

	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	check_errno(ibv_query_device_ex(dev.ctx, NULL, &attr), 0, "ibv_query_device_ex");
	rdma_dev_close(&dev);
	return attr.device_cap_flags_ex;
}

void flush_open_with(struct flush_env *e, unsigned int qp_access, unsigned int access)
{
	ring_open(&e->r);
	e->r.b.conf.access |= qp_access;
	ring_recover(&e->r);
	rdma_buf_create(&e->memory, e->r.b.pd, FLUSH_LEN, OFF,
			IBV_ACCESS_LOCAL_WRITE | RDMA_ALL_REMOTE | IBV_ACCESS_MW_BIND | access);
}

void flush_open(struct flush_env *e)
{
	flush_open_with(e, ACCESS_GLOBAL, ACCESS_GLOBAL);
}

void flush_insist(struct flush_env *e)
{
	e->r.a.conf.retry_cnt = 7;
	e->r.a.conf.timeout = 11;	/* 8 ms */
	ring_recover(&e->r);
}

void flush_close(struct flush_env *e)
{
	ring_expect_no_harm(&e->r);
	rdma_buf_destroy(&e->memory);
	ring_close(&e->r);
}

struct flush flush_good(const struct flush_env *e)
{
	return (struct flush){
		.va = e->memory.iova,
		.len = FLUSH_LEN,
		.rkey = e->memory.mr->rkey,
		.type = FLUSH_GLOBAL,
		.level = FLUSH_RANGE,
	};
}

struct flush flush_whole(uint32_t rkey)
{
	return (struct flush){
		.va = NOWHERE,
		.len = 0xffffffff,
		.rkey = rkey,
		.type = FLUSH_GLOBAL,
		.level = FLUSH_REGION,
	};
}

void flush_build(const struct flush_env *e, union ring_slot *s, const struct flush *f)
{
	static uint64_t wr_id = 0xf1000000;
	struct wr_flush wr = {
		.remote_addr = f->va,
		.rkey = f->rkey,
		.type = f->type,
		.level = f->level,
	};

	ring_good_wqe(&e->r, &s->wqe);
	memset(&s->wqe.wr.wr, 0, sizeof(s->wqe.wr.wr));
	memcpy(&s->wqe.wr.wr, &wr, sizeof(wr));
	memset(s->wqe.dma.sge, 0, sizeof(*s->wqe.dma.sge));
	s->wqe.wr.wr_id = ++wr_id;
	s->wqe.wr.opcode = WR_FLUSH;
	s->wqe.dma.length = f->len;
	s->wqe.dma.resid = f->len;
	s->wqe.dma.num_sge = 0;
}

enum ibv_wc_status flush_post(struct flush_env *e, const union ring_slot *s)
{
	int opcode = s->wqe.wr.opcode == WR_FLUSH ? WC_FLUSH : WC_ATOMIC_WRITE;
	struct ibv_wc wc;

	ring_put(&e->r, s, sizeof(*s));
	check_errno(ring_doorbell(&e->r), 0, "the doorbell");
	check(rdma_wait_wc(e->r.a.scq, &wc, RDMA_WAIT_MS), "a request completes");
	check_eq(wc.wr_id, s->wqe.wr.wr_id, "its wr_id");
	if (wc.status == IBV_WC_SUCCESS)
		check_eq(wc.opcode, opcode, "its opcode");
	return wc.status;
}

void flush_expect_slot(struct flush_env *e, const union ring_slot *s,
		       enum ibv_wc_status want, const char *what)
{
	enum ibv_wc_status got = flush_post(e, s);

	check(got == want, "%s: %s, not %s", what, ibv_wc_status_str(got),
	      ibv_wc_status_str(want));
	if (got == IBV_WC_SUCCESS)
		return;
	check(rdma_wait_state(e->r.a.qp, IBV_QPS_ERR), "%s: the requester ends", what);
	if (got == IBV_WC_LOC_QP_OP_ERR)
		check_eq(rdma_state(e->r.b.qp), IBV_QPS_RTS, what);
	else
		check(rdma_wait_state(e->r.b.qp, IBV_QPS_ERR), "%s: so does the responder",
		      what);
	ring_recover(&e->r);
}

void flush_expect(struct flush_env *e, const struct flush *f, enum ibv_wc_status want,
		  const char *what)
{
	union ring_slot s;

	flush_build(e, &s, f);
	flush_expect_slot(e, &s, want, what);
}

static enum ibv_wc_status bind_type1(struct flush_env *e, struct flush_target *t,
				     unsigned int access)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = e->memory.mr,
			.addr = e->memory.iova + FLUSH_AT,
			.length = FLUSH_SIZE,
			.mw_access_flags = access,
		},
	};
	struct ibv_wc wc;

	check_errno(ibv_bind_mw(e->r.b.qp, t->mw, &bind), 0, "ibv_bind_mw");
	check(rdma_wait_wc(e->r.b.scq, &wc, RDMA_WAIT_MS), "a bind completes");
	t->rkey = t->mw->rkey;
	return wc.status;
}

static enum ibv_wc_status bind_type2(struct flush_env *e, struct flush_target *t,
				     unsigned int access)
{
	struct rdma_bind bind = {
		.mw = t->mw,
		.current_rkey = t->mw->rkey,
		.new_rkey = ibv_inc_rkey(t->mw->rkey),
		.mr_lkey = e->memory.mr->lkey,
		.addr = e->memory.iova + FLUSH_AT,
		.length = FLUSH_SIZE,
		.access = access,
	};
	struct rdma_wr w;

	t->rkey = bind.new_rkey;
	rdma_wr_bind(&w, &bind);
	return rdma_do(&e->r.b, &w, NULL);
}

enum ibv_wc_status flush_bind(struct flush_env *e, enum flush_kind kind,
			      unsigned int access, struct flush_target *t)
{
	t->mw = ibv_alloc_mw(e->r.b.pd, kind == FLUSH_OF_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	check(t->mw, "a window: %s", strerror(errno));
	if (kind == FLUSH_OF_TYPE_1)
		return bind_type1(e, t, access);
	if (kind == FLUSH_OF_TYPE_2)
		return bind_type2(e, t, access);
	t->start = 0;
	return bind_type2(e, t, access | IBV_ACCESS_ZERO_BASED);
}

struct flush_target flush_target_open(struct flush_env *e, enum flush_kind kind,
				      unsigned int access)
{
	struct flush_target t = { .start = e->memory.iova + FLUSH_AT };

	if (kind != FLUSH_OF_REGION) {
		check_eq(flush_bind(e, kind, access, &t), IBV_WC_SUCCESS, "a bind");
		return t;
	}
	t.mr = ibv_reg_mr(e->r.b.pd, e->memory.addr + FLUSH_AT, FLUSH_SIZE, (int)access);
	check(t.mr, "a region: %s", strerror(errno));
	t.rkey = t.mr->rkey;
	return t;
}

void flush_target_close(const struct flush_target *t)
{
	if (t->mr)
		check_errno(ibv_dereg_mr(t->mr), 0, "ibv_dereg_mr");
	else
		check_errno(ibv_dealloc_mw(t->mw), 0, "ibv_dealloc_mw");
}
