// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Binds that must succeed. */
#include "mw_env.h"

/* Bind bytes [off, off + len) and use them to the edges. */
static void bind_and_use(struct mw_env *e, size_t off, size_t len)
{
	mw_bind(e, off, len, RDMA_ALL_REMOTE);
	mw_allowed(e, &e->a, MW_WRITE, mw_at(e, off, (uint32_t)len));
	mw_allowed(e, &e->a, MW_READ, mw_at(e, off, (uint32_t)len));
	mw_allowed(e, &e->a, MW_WRITE, mw_at(e, off, 1));
	mw_allowed(e, &e->a, MW_WRITE, mw_at(e, off + len - 1, 1));
}

static const struct {
	const char *name;
	size_t off;
	size_t len;
} ranges[] = {
	{ "whole-region", 0, MW_REGION_LEN },
	{ "first-byte", 0, 1 },
	{ "last-byte", MW_REGION_LEN - 1, 1 },
	{ "odd-bytes", 12345, 6789 },
	{ "front-half", 0, MW_REGION_LEN / 2 },
	{ "rear-half", MW_REGION_LEN / 2, MW_REGION_LEN / 2 },
	{ "within-a-page", 4096, 100 },
	{ "across-a-page", 4096 - MW_REGION_OFF - 3, 7 },
	{ "across-many-pages", 4096 - MW_REGION_OFF - 1, 5 * 4096 + 2 },
};

static void range(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	bind_and_use(&e, ranges[MW_ARG(arg)].off, ranges[MW_ARG(arg)].len);
	mw_expect_busy(&e);
	mw_close(&e);
}

/* No rights are legal, and then nothing is allowed. */
static void no_rights(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = 0; op < mw_ops(&e); op++) {
		mw_bind(&e, 0, 64, 0);
		mw_expect_busy(&e);
		mw_refused(&e, &e.a, (enum mw_op)op, mw_at(&e, 0, 8));
	}
	mw_close(&e);
}

/*
 * LOCAL_WRITE is no right of a window: where a device takes it among the
 * flags of a bind, as test suites ask for, it grants nothing.
 */
static void local_write_is_no_right(long arg)
{
	struct rdma_bind bind;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = 0; op < mw_ops(&e); op++) {
		enum ibv_wc_status status;

		bind = mw_good_bind(&e, 0, 64, IBV_ACCESS_LOCAL_WRITE);
		status = mw_try_bind(&e.a.owner, &bind);
		if (status == IBV_WC_MW_BIND_ERR) {
			rdma_reconnect(&e.a.owner, &e.a.peer);
			continue;
		}
		check_eq(status, IBV_WC_SUCCESS, "status of the bind");
		e.rkey = bind.new_rkey;
		mw_refused(&e, &e.a, (enum mw_op)op, mw_at(&e, 0, 8));
	}
	mw_close(&e);
}

/* A window may be read although its region may only be bound. */
static void read_needs_only_bind(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct mw_env e;

	mw_open_conf(&e, arg, &conf, IBV_ACCESS_MW_BIND);
	mw_bind(&e, 100, 200, IBV_ACCESS_REMOTE_READ);
	mw_allowed(&e, &e.a, MW_READ, mw_at(&e, 100, 200));
	mw_close(&e);
}

/* A window's rights are its own: the region needs no remote right. */
static void exceeds_region(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct mw_env e;

	mw_open_conf(&e, arg, &conf,
		     IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE);
	mw_bind(&e, 96, 200, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_READ, mw_at(&e, 96, 200));
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 96, 200));
	for (int op = MW_CAS; op < mw_ops(&e); op++)
		mw_allowed(&e, &e.a, (enum mw_op)op, mw_at(&e, 96, 8));
	mw_close(&e);
}

/* The address of a zero-based bind is still a virtual address. */
static void zero_based(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 4000, 3000, RDMA_ALL_REMOTE | IBV_ACCESS_ZERO_BASED);
	t = mw_at(&e, 4000, 3000);
	t.va = 0;
	mw_allowed(&e, &e.a, MW_WRITE, t);
	mw_allowed(&e, &e.a, MW_READ, t);
	t.off += 2999;
	t.va += 2999;
	t.len = 1;
	mw_allowed(&e, &e.a, MW_WRITE, t);
	mw_close(&e);
}

static void unsignaled(long arg)
{
	struct rdma_bind bind;
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	bind = mw_good_bind(&e, 8, 64, RDMA_ALL_REMOTE);
	rdma_wr_bind(&w[0], &bind);
	w[0].wr.send_flags = 0;
	rdma_wr_send(&w[1], NULL, 0, 0);
	rdma_recv(&e.a.peer, 1, NULL, 0, 0);
	rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
	check(rdma_wait_wc(e.a.owner.scq, &wc, RDMA_WAIT_MS),
	      "the request after the bind completes");
	check_eq(wc.wr_id, w[1].wr.wr_id, "a good unsignaled bind is silent");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of the next request");
	e.rkey = bind.new_rkey;
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 8, 64));
	mw_close(&e);
}

/* With fence, a bind waits for the reads before it. */
static void fenced(long arg)
{
	struct rdma_bind bind;
	struct rdma_buf sink;
	struct rdma_buf source;
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&sink, e.a.owner.pd, 32768, 0, IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&source, e.a.peer.pd, 32768, 0, RDMA_ALL_REMOTE |
			IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_fill(&source, 0x80);
	bind = mw_good_bind(&e, 8, 64, RDMA_ALL_REMOTE);
	rdma_wr_read(&w[0], sink.addr, 32768, sink.mr->lkey, source.iova,
		     source.mr->rkey);
	rdma_wr_bind(&w[1], &bind);
	w[1].wr.send_flags |= IBV_SEND_FENCE;
	rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
	for (int i = 0; i < 2; i++) {
		check(rdma_wait_wc(e.a.owner.scq, &wc, RDMA_WAIT_MS),
		      "request %d completes", i);
		check_eq(wc.wr_id, w[i].wr.wr_id, "completions are in order");
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		check(!memcmp(sink.addr, source.addr, 32768),
		      "the read is complete");
	}
	e.rkey = bind.new_rkey;
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 8, 64));
	rdma_buf_destroy(&sink);
	rdma_buf_destroy(&source);
	mw_close(&e);
}

/* Type 1 may be bound again while it is bound; the region's hold moves on. */
static void rebind_other_region(long arg)
{
	struct rdma_buf other;
	struct mw_target old;
	struct mw_env e;
	struct ibv_mr *first;

	mw_open(&e, arg);
	rdma_buf_create(&other, e.a.owner.pd, MW_REGION_LEN, 8, MW_BIND_RIGHTS);
	mw_bind(&e, 16, 64, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 16, 64));
	old = mw_at(&e, 16, 64);
	mw_expect_busy(&e);
	first = e.region.mr;
	e.region.mr = other.mr;
	e.region.iova = other.iova;
	mw_bind(&e, 32, 128, RDMA_ALL_REMOTE);
	check_errno(ibv_dereg_mr(other.mr), EBUSY, "dereg of the new region");
	check_errno(ibv_dereg_mr(first), 0, "dereg of the old region");
	e.region.mr = NULL;
	mw_refused(&e, &e.a, MW_WRITE, old);
	check_errno(ibv_dealloc_mw(e.mw), 0, "ibv_dealloc_mw");
	e.mw = NULL;
	rdma_buf_destroy(&other);
	mw_close(&e);
}

/* A zero-length bind looks at no region: it may name none. */
static void unbind_names_no_region(long arg)
{
	struct rdma_bind bind;
	struct mw_target old;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 16, 64, RDMA_ALL_REMOTE);
	old = mw_at(&e, 16, 64);
	bind = mw_good_bind(&e, 0, 0, 0);
	bind.mr_lkey = 0;
	bind.addr = 0;
	check_eq(mw_try_bind(&e.a.owner, &bind), IBV_WC_SUCCESS,
		 "status of a zero-length bind with lkey 0");
	mw_refused(&e, &e.a, MW_WRITE, old);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* An unbound window of type 1 can be unbound, and then bound. */
static void unbind_unbound(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 0, 0, 0);
	mw_bind(&e, 0, 0, 0);
	bind_and_use(&e, 40, 80);
	mw_bind(&e, 0, 0, 0);
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, 40, 8));
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* A region's edges at the end of the address space, without wrapping. */
static void high_iova(long arg)
{
	uint64_t page = MW_ARG(arg) ? 0 - (uint64_t)MW_REGION_LEN :
				      0 - (uint64_t)2 * MW_REGION_LEN;
	struct rdma_buf high;
	struct mw_env e;
	size_t len;

	mw_open(&e, arg);
	rdma_buf_destroy(&e.region);
	/* with 1, its last byte has the address 2^64 - 1 */
	len = MW_REGION_LEN - (MW_ARG(arg) ? 64 : 0);
	rdma_buf_create_iova(&high, e.a.owner.pd, len, 64, page,
			     MW_BIND_RIGHTS);
	e.region = high;
	bind_and_use(&e, 128, 4096);
	if (MW_TYPE(arg) == IBV_MW_TYPE_2)
		mw_local_inv(&e.a.owner, e.rkey);
	bind_and_use(&e, len - 777, 777);
	mw_close(&e);
}

/* A region known by another address than its own. */
static void own_iova(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_destroy(&e.region);
	rdma_buf_create_iova(&e.region, e.a.owner.pd, MW_REGION_LEN, 1203,
			     0x123456789000, MW_BIND_RIGHTS);
	bind_and_use(&e, 2500, 9001);
	mw_close(&e);
}

void mw_bind_cases(void)
{
	for (long arg = 1; arg <= 2; arg++) {
		for (long i = 0; i < (long)ARRAY_SIZE(ranges); i++)
			ktap_add("C10-75: byte granular", range,
				 arg | (i & 1 ? MW_WR_API : 0) |
				 i << MW_ARG_SHIFT, 0,
				 "bind.type%ld.%s", arg, ranges[i].name);
		ktap_add("IW: no rights is legal", no_rights, arg, 0,
			 "bind.type%ld.no-rights", arg);
		ktap_add("choice: LOCAL_WRITE is refused or grants nothing",
			 local_write_is_no_right, arg, 0,
			 "bind.type%ld.local-write-is-no-right", arg);
		ktap_add("IW: REMOTE_READ needs only MW_BIND",
			 read_needs_only_bind, arg, 0,
			 "bind.type%ld.read-needs-only-bind", arg);
		ktap_add("IW: window rights may exceed the region's",
			 exceeds_region, arg, 0,
			 "bind.type%ld.rights-exceed-region", arg);
		ktap_add("ibv_post_send(3): unsignaled", unsignaled, arg, 0,
			 "bind.type%ld.unsignaled", arg);
		ktap_add("ibv_post_send(3): fence", fenced, arg, 0,
			 "bind.type%ld.fence", arg);
		ktap_add("C10-75: no wrap", high_iova, arg, 0,
			 "bind.type%ld.high-iova", arg);
		ktap_add("C10-75: no wrap", high_iova,
			 arg | 1 << MW_ARG_SHIFT, 0,
			 "bind.type%ld.last-address", arg);
		ktap_add("ibv_reg_mr(3): iova", own_iova, arg | MW_WR_API, 0,
			 "bind.type%ld.own-iova", arg);
	}
	ktap_add("C10-75: addr is a virtual address", zero_based, 2, 0,
		 "bind.type2.zero-based");
	ktap_add("C10-75: addr is a virtual address", zero_based,
		 2 | MW_WR_API, 0, "bind.type2.zero-based-wr-api");
	ktap_add("type 1: bind while bound", rebind_other_region, 1, 0,
		 "bind.type1.rebind-other-region");
	ktap_add("choice: an unbind looks at no region",
		 unbind_names_no_region, 1, 0,
		 "bind.type1.unbind-names-no-region");
	ktap_add("ibv_bind_mw(3): zero length", unbind_unbound, 1, 0,
		 "bind.type1.unbind-unbound");
}
