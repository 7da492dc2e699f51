// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mw_env.h"

#include "ktap_dev.h"

#include <stdlib.h>

#define AT_ONCE_US	1000000	/* nothing here waits for the network */
#define TAG_REGION	0x00
#define TAG_LOCAL	0x80
#define SWAP_VALUE	0x8877665544332211ULL
#define ADD_VALUE	0x0101010101010101ULL

const char *const mw_op_name[MW_OPS] = {
	[MW_READ] = "read",
	[MW_WRITE] = "write",
	[MW_WRITE_IMM] = "write-imm",
	[MW_CAS] = "cmp-swap",
	[MW_FADD] = "fetch-add",
};

const unsigned int mw_op_right[MW_OPS] = {
	[MW_READ] = IBV_ACCESS_REMOTE_READ,
	[MW_WRITE] = IBV_ACCESS_REMOTE_WRITE,
	[MW_WRITE_IMM] = IBV_ACCESS_REMOTE_WRITE,
	[MW_CAS] = IBV_ACCESS_REMOTE_ATOMIC,
	[MW_FADD] = IBV_ACCESS_REMOTE_ATOMIC,
};

const char *const mw_how_name[MW_WAYS] = {
	[MW_BY_LOCAL_INV] = "local-inv",
	[MW_BY_SEND_INV] = "send-with-inv",
	[MW_BY_ZERO_BIND] = "zero-length-bind",
	[MW_BY_REBIND] = "rebind",
	[MW_BY_DEALLOC] = "dealloc",
	[MW_BY_QP_DESTROY] = "qp-destroy",
	[MW_BY_QP_RESET] = "qp-reset",
};

bool mw_how_fits(enum mw_how how, int type)
{
	switch (how) {
	case MW_BY_ZERO_BIND:
	case MW_BY_REBIND:
		return type == IBV_MW_TYPE_1;
	case MW_BY_DEALLOC:
		return true;
	default:
		return type == IBV_MW_TYPE_2;
	}
}

/* --- opening and closing --- */

static bool has_type(const struct rdma_dev *dev, int type)
{
	unsigned int claims = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW :
			      IBV_DEVICE_MEM_WINDOW_TYPE_2A |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	return dev->attr.max_mw > 0 && dev->attr.device_cap_flags & claims;
}

void mw_open_dev(struct rdma_dev *dev, int type)
{
	ktap_dev_open(dev);
	if (!has_type(dev, IBV_MW_TYPE_1) && !has_type(dev, IBV_MW_TYPE_2))
		ktap_skip("the device has no memory windows");
	if (type && !has_type(dev, type))
		ktap_skip("the device has no memory windows of type %d", type);
}

struct ibv_pd *mw_open_pd(struct rdma_dev *dev, int type)
{
	struct ibv_pd *pd;

	mw_open_dev(dev, type);
	pd = ibv_alloc_pd(dev->ctx);
	check(pd, "ibv_alloc_pd: %s", strerror(errno));
	return pd;
}

int mw_type_nr(const struct rdma_dev *dev, size_t i)
{
	int type = i & 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	return has_type(dev, type) ? type : 3 - type;
}

int mw_ops(const struct mw_env *e)
{
	return e->dev.attr.atomic_cap == IBV_ATOMIC_NONE ? MW_CAS : MW_OPS;
}

struct ibv_mw *mw_alloc(struct ibv_pd *pd, int type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, (enum ibv_mw_type)type);

	check(mw, "a window of type %d can be allocated: %s", type,
	      strerror(errno));
	return mw;
}

struct ibv_mw *mw_next(struct mw_env *e)
{
	e->mw = mw_alloc(e->a.owner.pd, (int)e->mw->type);
	e->rkey = e->mw->rkey;
	return e->mw;
}

/* Without the right to atomics, where the device has none. */
static unsigned int grantable(unsigned int access)
{
	return access & (RDMA_ALL_REMOTE | ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC);
}

struct rdma_conf mw_fit(struct rdma_conf conf, const struct rdma_dev *dev)
{
	conf.access = grantable(conf.access);
	conf.cap.max_inline_data = 0;
	if (conf.rd_atomic > dev->attr.max_qp_rd_atom)
		conf.rd_atomic = (uint8_t)dev->attr.max_qp_rd_atom;
	return conf;
}

void mw_pair_open(struct mw_pair *p, struct rdma_dev *dev, struct ibv_pd *pd,
		  const struct rdma_conf *conf)
{
	struct rdma_conf mine = mw_fit(*conf, dev);

	rdma_end_create(&p->owner, dev, pd, &mine);
	rdma_end_create(&p->peer, dev, NULL, &mine);
	rdma_connect(&p->owner, &p->peer);
	rdma_buf_create(&p->local, p->peer.pd, MW_LOCAL_LEN, 0,
			IBV_ACCESS_LOCAL_WRITE);
}

void mw_open_conf(struct mw_env *e, long arg, const struct rdma_conf *conf,
		  unsigned int region_access)
{
	struct rdma_conf mine = *conf;

	memset(e, 0, sizeof(*e));
	mine.wr_api = arg & MW_WR_API;
	mw_open_dev(&e->dev, MW_TYPE(arg));
	mw_pair_open(&e->a, &e->dev, NULL, &mine);
	rdma_buf_create(&e->region, e->a.owner.pd, MW_REGION_LEN,
			MW_REGION_OFF, grantable(region_access));
	if (!MW_TYPE(arg))
		return;
	e->mw = mw_alloc(e->a.owner.pd, MW_TYPE(arg));
	e->rkey = e->mw->rkey;
}

void mw_open(struct mw_env *e, long arg)
{
	struct rdma_conf conf = rdma_conf_default();

	mw_open_conf(e, arg, &conf, MW_BIND_RIGHTS);
}

void mw_second_pair(struct mw_env *e, struct mw_pair *b, bool same_pd)
{
	mw_pair_open(b, &e->dev, same_pd ? e->a.owner.pd : NULL,
		     &e->a.owner.conf);
}

void mw_pair_close(struct mw_pair *p)
{
	rdma_buf_destroy(&p->local);
	rdma_end_destroy(&p->owner);
	rdma_end_destroy(&p->peer);
}

void mw_close(struct mw_env *e)
{
	if (e->mw)
		check_errno(ibv_dealloc_mw(e->mw), 0, "ibv_dealloc_mw");
	if (e->region.map)
		rdma_buf_destroy(&e->region);
	mw_pair_close(&e->a);
	rdma_dev_close(&e->dev);
}

void mw_close_two(struct mw_env *e, struct mw_pair *b)
{
	mw_pair_close(b);
	mw_close(e);
}

void mw_close_pd(struct rdma_dev *dev, struct ibv_pd *pd)
{
	check_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	rdma_dev_close(dev);
}

/* --- binding and revoking --- */

struct rdma_bind mw_good_bind(const struct mw_env *e, size_t off, size_t len,
			      unsigned int access)
{
	return (struct rdma_bind){
		.mw = e->mw,
		.current_rkey = e->rkey,
		.new_rkey = ibv_inc_rkey(e->rkey),
		.mr_lkey = e->region.mr->lkey,
		.addr = e->region.iova + off,
		.length = len,
		.access = access,
	};
}

enum ibv_wc_status mw_try_bind(struct rdma_end *owner,
			       const struct rdma_bind *bind)
{
	enum ibv_wc_status status;
	struct rdma_wr w;
	struct ibv_wc wc;

	rdma_wr_bind(&w, bind);
	status = rdma_do(owner, &w, &wc);
	if (status == IBV_WC_SUCCESS)
		check_eq(wc.opcode, IBV_WC_BIND_MW, "opcode of a bind");
	return status;
}

/* ibv_bind_mw(3): the call that binds a window of type 1. */
static void bind_type1(struct mw_env *e, size_t off, size_t len,
		       unsigned int access)
{
	static uint64_t wr_id = 0x1b00;
	struct ibv_mw_bind bind = {
		.wr_id = ++wr_id,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = e->region.mr,
			.addr = e->region.iova + off,
			.length = len,
			.mw_access_flags = access,
		},
	};
	struct ibv_wc wc;

	check_errno(ibv_bind_mw(e->a.owner.qp, e->mw, &bind), 0, "ibv_bind_mw");
	check(rdma_wait_wc(e->a.owner.scq, &wc, RDMA_WAIT_MS),
	      "a bind completes");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of a bind");
	check_eq(wc.opcode, IBV_WC_BIND_MW, "opcode of a bind");
	check_eq(wc.wr_id, bind.wr_id, "wr_id of a bind");
	check_eq(e->mw->rkey, ibv_inc_rkey(e->rkey), "the key after a bind");
	e->rkey = e->mw->rkey;
}

void mw_bind(struct mw_env *e, size_t off, size_t len, unsigned int access)
{
	struct rdma_bind bind = mw_good_bind(e, off, len, access);

	if (e->mw->type == IBV_MW_TYPE_1) {
		bind_type1(e, off, len, access);
		return;
	}
	check_eq(mw_try_bind(&e->a.owner, &bind), IBV_WC_SUCCESS,
		 "status of a bind");
	e->rkey = bind.new_rkey;
}

void mw_local_inv(struct rdma_end *end, uint32_t rkey)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	rdma_wr_local_inv(&w, rkey);
	check_eq(rdma_do(end, &w, &wc), IBV_WC_SUCCESS,
		 "status of LOCAL_INV of a bound window");
	check_eq(wc.opcode, IBV_WC_LOCAL_INV, "opcode of LOCAL_INV");
}

static void send_inv(struct mw_env *e)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	rdma_recv(&e->a.owner, 0x77, NULL, 0, 0);
	rdma_wr_send_inv(&w, NULL, 0, 0, e->rkey);
	check_eq(rdma_do(&e->a.peer, &w, NULL), IBV_WC_SUCCESS,
		 "status of SEND_WITH_INV");
	check(rdma_wait_wc(e->a.owner.rcq, &wc, RDMA_WAIT_MS),
	      "SEND_WITH_INV completes a receive");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of its receive");
	check(wc.wc_flags & IBV_WC_WITH_INV, "the receive has IBV_WC_WITH_INV");
	check_eq(wc.invalidated_rkey, e->rkey, "invalidated_rkey");
}

void mw_revoke(struct mw_env *e, enum mw_how how)
{
	switch (how) {
	case MW_BY_LOCAL_INV:
		mw_local_inv(&e->a.owner, e->rkey);
		break;
	case MW_BY_SEND_INV:
		send_inv(e);
		break;
	case MW_BY_ZERO_BIND:
		bind_type1(e, 0, 0, 0);
		break;
	case MW_BY_REBIND:
		bind_type1(e, MW_REGION_LEN - 8, 8, RDMA_ALL_REMOTE);
		break;
	case MW_BY_DEALLOC:
		check_errno(ibv_dealloc_mw(e->mw), 0, "ibv_dealloc_mw");
		e->mw = NULL;
		break;
	case MW_BY_QP_DESTROY:
		check_errno(ibv_destroy_qp(e->a.owner.qp), 0, "ibv_destroy_qp");
		e->a.owner.qp = rdma_qp_create(&e->a.owner);
		check(e->a.owner.qp, "another queue pair can be made");
		if (e->a.owner.qpx)
			e->a.owner.qpx = ibv_qp_to_qp_ex(e->a.owner.qp);
		rdma_reconnect(&e->a.owner, &e->a.peer);
		break;
	case MW_BY_QP_RESET:
		rdma_reconnect(&e->a.owner, &e->a.peer);
		break;
	default:
		abort();
	}
}

void mw_expect_busy(struct mw_env *e)
{
	check_errno(ibv_dereg_mr(e->region.mr), EBUSY,
		    "ibv_dereg_mr with a window bound to the region");
}

void mw_expect_dereg(struct mw_env *e)
{
	check_errno(ibv_dereg_mr(e->region.mr), 0,
		    "ibv_dereg_mr with no window bound to the region");
	e->region.mr = NULL;
}

void mw_at_once(uint64_t since, const char *what)
{
	uint64_t us = rdma_now_us() - since;

	check(us < (uint64_t)AT_ONCE_US * ktap_opt.scale,
	      "%s returns at once (%llu ms)", what,
	      (unsigned long long)us / 1000);
}

/* --- accesses --- */

struct mw_target mw_at(const struct mw_env *e, size_t off, uint32_t len)
{
	return (struct mw_target){
		.rkey = e->rkey,
		.va = e->region.iova + off,
		.off = off,
		.len = len,
	};
}

static uint64_t load64(const void *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static void build(struct rdma_wr *w, struct mw_env *e, struct mw_pair *p,
		  enum mw_op op, const struct mw_target *t)
{
	uint32_t lkey = p->local.mr->lkey;
	void *at = p->local.addr;
	uint64_t old = 0;

	if (t->off + 8 <= e->region.len)
		old = load64(e->region.addr + t->off);
	switch (op) {
	case MW_READ:
		rdma_wr_read(w, at, t->len, lkey, t->va, t->rkey);
		break;
	case MW_WRITE:
	case MW_WRITE_IMM:
		rdma_wr_write(w, at, t->len, lkey, t->va, t->rkey);
		break;
	case MW_CAS:
		rdma_wr_cas(w, at, lkey, t->va, t->rkey, old, SWAP_VALUE);
		break;
	default:
		rdma_wr_fadd(w, at, lkey, t->va, t->rkey, ADD_VALUE);
		break;
	}
	if (op == MW_WRITE_IMM) {
		w->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		w->wr.imm_data = 0x01020304;
	}
}

void mw_fill(struct mw_env *e, struct mw_pair *p)
{
	rdma_buf_fill(&e->region, TAG_REGION);
	rdma_buf_fill(&p->local, TAG_LOCAL);
}

static enum ibv_wc_status do_access(struct mw_env *e, struct mw_pair *p,
				    enum mw_op op, const struct mw_target *t)
{
	struct rdma_wr w;

	check(t->len <= p->local.len, "the case fits its buffers");
	if (op >= (enum mw_op)mw_ops(e))
		ktap_skip("the device has no atomics");
	mw_fill(e, p);
	if (op == MW_WRITE_IMM)
		rdma_recv(&p->owner, 0x1337, NULL, 0, 0);
	build(&w, e, p, op, t);
	return rdma_do(&p->peer, &w, NULL);
}

static void expect_untouched(const struct rdma_buf *buf, uint8_t tag,
			     size_t skip, size_t skip_len, const char *what)
{
	long at = rdma_buf_touched(buf, tag, skip, skip_len);

	check(at < 0, "%s outside the access is untouched (byte %ld is not)",
	      what, at - (long)(buf->addr - buf->map));
}

void mw_expect_untouched(struct mw_env *e, struct mw_pair *p)
{
	expect_untouched(&e->region, TAG_REGION, 0, 0, "the region");
	expect_untouched(&p->local, TAG_LOCAL, 0, 0, "the peer's memory");
}

static void expect_read(struct mw_env *e, struct mw_pair *p,
			const struct mw_target *t)
{
	check(!memcmp(p->local.addr, e->region.addr + t->off, t->len),
	      "a read fetches the bytes of the region");
	expect_untouched(&e->region, TAG_REGION, 0, 0, "the region");
	expect_untouched(&p->local, TAG_LOCAL, 0, t->len, "the peer's memory");
}

void mw_expect_write(struct mw_env *e, struct mw_pair *p,
		     const struct mw_target *t)
{
	check(!memcmp(p->local.addr, e->region.addr + t->off, t->len),
	      "a write places its bytes in the region");
	expect_untouched(&e->region, TAG_REGION, t->off, t->len, "the region");
	expect_untouched(&p->local, TAG_LOCAL, 0, 0, "the peer's memory");
}

static void expect_atomic(struct mw_env *e, struct mw_pair *p, enum mw_op op,
			  const struct mw_target *t)
{
	size_t at = (size_t)(e->region.addr - e->region.map) + t->off;
	uint8_t bytes[8];
	uint64_t old, want;

	for (size_t i = 0; i < 8; i++)
		bytes[i] = rdma_buf_byte(TAG_REGION, at + i);
	old = load64(bytes);
	want = op == MW_CAS ? SWAP_VALUE : old + ADD_VALUE;
	check(load64(p->local.addr) == old, "an atomic returns the old value");
	check(load64(e->region.addr + t->off) == want,
	      "an atomic stores the new value");
	expect_untouched(&e->region, TAG_REGION, t->off, 8, "the region");
	expect_untouched(&p->local, TAG_LOCAL, 0, 8, "the peer's memory");
}

void mw_allowed(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		struct mw_target t)
{
	enum ibv_wc_status status = do_access(e, p, op, &t);
	struct ibv_wc wc;

	check(status == IBV_WC_SUCCESS,
	      "%s of %u bytes at offset %zu is allowed (%s)", mw_op_name[op],
	      t.len, t.off, ibv_wc_status_str(status));
	switch (op) {
	case MW_READ:
		expect_read(e, p, &t);
		break;
	case MW_WRITE_IMM:
		check(rdma_wait_wc(p->owner.rcq, &wc, RDMA_WAIT_MS),
		      "a write with immediate completes a receive");
		check_eq(wc.status, IBV_WC_SUCCESS, "status of its receive");
		mw_expect_write(e, p, &t);
		break;
	case MW_WRITE:
		mw_expect_write(e, p, &t);
		break;
	default:
		expect_atomic(e, p, op, &t);
		break;
	}
}

void mw_refused_as(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		   struct mw_target t, unsigned long statuses)
{
	enum ibv_wc_status status = do_access(e, p, op, &t);

	check(MW_STATUS(status) & statuses,
	      "%s of %u bytes at va %#llx by key %#010x is refused (%s)",
	      mw_op_name[op], t.len, (unsigned long long)t.va, t.rkey,
	      ibv_wc_status_str(status));
	mw_expect_untouched(e, p);
	check(rdma_wait_state(p->owner.qp, IBV_QPS_ERR),
	      "a refusal puts the responder's queue pair into ERR");
	check(rdma_wait_state(p->peer.qp, IBV_QPS_ERR),
	      "a refusal puts the requester's queue pair into ERR");
	rdma_reconnect(&p->owner, &p->peer);
}

void mw_refused(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		struct mw_target t)
{
	mw_refused_as(e, p, op, t, MW_STATUS(IBV_WC_REM_ACCESS_ERR));
}
