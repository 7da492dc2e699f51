// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The range of a window: what lies inside works, one byte outside does not. */
#include "mw_env.h"

#include <stdio.h>

/* The window of these cases: it begins and ends off every boundary. */
#define WIN_OFF	5003
#define WIN_LEN	20011
#define WIN_END	(WIN_OFF + WIN_LEN)

/* Of an access by READ or WRITE, as offsets into the region. */
struct span {
	const char *name;
	long first;
	uint32_t len;
	bool inside;
};

static const struct span spans[] = {
	{ "all", WIN_OFF, WIN_LEN, true },
	{ "first-byte", WIN_OFF, 1, true },
	{ "last-byte", WIN_END - 1, 1, true },
	{ "first-packet", WIN_OFF, MW_MTU, true },
	{ "first-packet-and-one", WIN_OFF, MW_MTU + 1, true },
	{ "last-packet", WIN_END - MW_MTU, MW_MTU, true },
	{ "last-packets", WIN_END - 5 * MW_MTU - 1, 5 * MW_MTU + 1, true },
	{ "front-byte", WIN_OFF - 1, 1, false },
	{ "front-single", WIN_OFF - 1, 100, false },
	{ "front-packet", WIN_OFF - 1, MW_MTU, false },
	{ "front-multi", WIN_OFF - 1, 4 * MW_MTU, false },
	{ "front-only-first-packet", WIN_OFF - MW_MTU, 4 * MW_MTU, false },
	{ "rear-byte", WIN_END, 1, false },
	{ "rear-single", WIN_END - 99, 100, false },
	{ "rear-packet", WIN_END - MW_MTU + 1, MW_MTU, false },
	{ "rear-multi", WIN_END - 4 * MW_MTU + 1, 4 * MW_MTU, false },
	{ "rear-only-last-packet", WIN_END - 4 * MW_MTU, 4 * MW_MTU + 1, false },
	{ "all-and-front", WIN_OFF - 1, WIN_LEN + 1, false },
	{ "all-and-rear", WIN_OFF, WIN_LEN + 1, false },
	{ "around", WIN_OFF - 1, WIN_LEN + 2, false },
	{ "whole-region", 0, MW_REGION_LEN, false },
	{ "region-before", 0, WIN_OFF, false },
	{ "region-behind", WIN_END, 3 * MW_MTU, false },
	{ "region-first-byte", 0, 1, false },
	{ "region-last-byte", MW_REGION_LEN - 1, 1, false },
	{ "before-region", -1, 1, false },
	{ "behind-region", MW_REGION_LEN, 1, false },
};

static struct mw_target span_target(const struct mw_env *e,
				    const struct span *s)
{
	return (struct mw_target){
		.rkey = e->rkey,
		.va = e->region.iova + (uint64_t)s->first,
		.off = s->inside ? (size_t)s->first : 0,
		.len = s->len,
	};
}

/* MW_ARG: which span, and in the lowest bit whether the window is zero based */
static void range(long arg)
{
	const struct span *s = &spans[MW_ARG(arg) >> 1];
	bool zero_based = MW_ARG(arg) & 1;
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = MW_READ; op <= MW_WRITE_IMM; op++) {
		if (op == MW_READ || !s->inside)
			mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE |
				(zero_based ? IBV_ACCESS_ZERO_BASED : 0U));
		t = span_target(&e, s);
		if (zero_based)
			t.va -= e.region.iova + WIN_OFF;
		if (s->inside)
			mw_allowed(&e, &e.a, (enum mw_op)op, t);
		else
			mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/* Addresses that have nothing to do with the region, and sums that wrap. */
static const struct {
	const char *name;
	uint64_t va;
	bool relative;	/* to the window's first byte */
	uint32_t len;
} strange[] = {
	{ "va-0", 0, false, 8 },
	{ "va-last", UINT64_MAX, false, 1 },
	{ "va-wraps", UINT64_MAX, false, 2 },
	{ "va-wraps-multi", UINT64_MAX - MW_MTU, false, 4 * MW_MTU },
	{ "va-sign", 1ULL << 63, false, 8 },
	{ "plus-4g", 1ULL << 32, true, 8 },
	{ "minus-4g", 0 - (1ULL << 32), true, 8 },
	{ "plus-sign", 1ULL << 63, true, 8 },
};

static void strange_address(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = MW_READ; op <= MW_WRITE; op++) {
		mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
		t = mw_at(&e, WIN_OFF, strange[MW_ARG(arg)].len);
		if (!strange[MW_ARG(arg)].relative)
			t.va = 0;
		t.va += strange[MW_ARG(arg)].va;
		mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/*
 * The edges of windows whose place is special, each by READ and WRITE, of one
 * byte, one packet and several: inside as far as they go, and one byte further.
 */
enum place { PLAIN, OWN_IOVA, TOP, PLACES };

static const char *const place_name[PLACES] = {
	[PLAIN] = "plain",
	[OWN_IOVA] = "own-iova",	/* ibv_reg_mr_iova(), an odd address */
	[TOP] = "top",			/* the last address is 2^64 - 1 */
};

#define TOP_LEN	(MW_REGION_LEN - 64)

static void place_region(struct mw_env *e, enum place place)
{
	struct ibv_pd *pd = e->a.owner.pd;

	if (place == PLAIN)
		return;
	rdma_buf_destroy(&e->region);
	if (place == OWN_IOVA)
		rdma_buf_create_iova(&e->region, pd, MW_REGION_LEN, 1203,
				     0x123456789000, MW_BIND_RIGHTS);
	else
		rdma_buf_create_iova(&e->region, pd, TOP_LEN, 64,
				     0 - (uint64_t)MW_REGION_LEN,
				     MW_BIND_RIGHTS);
}

static const struct {
	const char *name;
	long page;	/* from the region's second page boundary; or */
	long end;	/* from the region's end */
	uint32_t len;
} edges[] = {
	{ "one-byte", 100, 0, 1 },
	{ "page", 0, 0, 4096 },
	{ "across-a-page", -3, 0, 7 },
	{ "across-pages", -1, 0, 3 * 4096 + 2 },
	{ "region-end", 0, 5000, 5000 },
};

struct edge_window {
	size_t off;
	uint32_t len;
	unsigned int rights;
};

/* Bytes [first, first + len) of the window, or of what surrounds it. */
static void edge(struct mw_env *e, const struct edge_window *w, long first,
		 uint32_t len, bool inside)
{
	for (int op = MW_READ; op <= MW_WRITE; op++) {
		struct mw_target t;

		/* a refusal ended the connection and freed a window of type 2 */
		if (!inside || op == MW_READ)
			mw_bind(e, w->off, w->len, w->rights);
		t = mw_at(e, inside ? w->off + (size_t)first : 0, len);
		t.va = w->rights & IBV_ACCESS_ZERO_BASED ?
		       0 : e->region.iova + w->off;
		t.va += (uint64_t)first;
		if (inside)
			mw_allowed(e, &e->a, (enum mw_op)op, t);
		else
			mw_refused(e, &e->a, (enum mw_op)op, t);
	}
	if (inside && e->mw->type == IBV_MW_TYPE_2)
		mw_local_inv(&e->a.owner, e->rkey);
}

/* MW_ARG: the place, whether the window is zero based, and a row of edges[] */
static void edge_cases(long arg)
{
	long row = MW_ARG(arg) >> 4;
	struct edge_window w = { .len = edges[row].len };
	long len = (long)w.len;
	struct mw_env e;

	mw_open(&e, arg);
	place_region(&e, (enum place)(MW_ARG(arg) & 7));
	w.rights = RDMA_ALL_REMOTE | (MW_ARG(arg) & 8 ? IBV_ACCESS_ZERO_BASED : 0U);
	if (edges[row].end)
		w.off = e.region.len - (size_t)edges[row].end;
	else
		w.off = (size_t)(8192 - (long)(e.region.iova % 4096) +
				 edges[row].page);
	edge(&e, &w, 0, w.len, true);
	edge(&e, &w, len - 1, 1, true);
	edge(&e, &w, -1, 1, false);
	edge(&e, &w, -1, w.len + 1, false);
	edge(&e, &w, -MW_MTU, 4 * MW_MTU, false);
	edge(&e, &w, len, 1, false);
	edge(&e, &w, 0, w.len + 1, false);
	edge(&e, &w, len - 1, 4 * MW_MTU, false);
	mw_close(&e);
}

static void add_edge_cases(long row, long place)
{
	long arg = (row << 4 | place) << MW_ARG_SHIFT;

	for (long type = 1; type <= 2; type++)
		ktap_add("range inside the window, byte granular", edge_cases,
			 type | arg, 0, "access.type%ld.edges-%s-%s", type,
			 place_name[place], edges[row].name);
	ktap_add("range inside the window: ZERO_BASED", edge_cases,
		 2 | arg | 8 << MW_ARG_SHIFT, 0,
		 "access.zero-based.edges-%s-%s", place_name[place],
		 edges[row].name);
}

/* In a zero-based window the virtual address of its bytes means nothing. */
static void zero_based_by_address(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = MW_READ; op <= MW_WRITE; op++) {
		mw_bind(&e, WIN_OFF, WIN_LEN,
			RDMA_ALL_REMOTE | IBV_ACCESS_ZERO_BASED);
		mw_refused(&e, &e.a, (enum mw_op)op, mw_at(&e, WIN_OFF, 8));
	}
	mw_close(&e);
}

static const struct {
	const char *name;
	size_t off;	/* the window's */
	size_t len;
	long at;	/* the atomic's, from the window's first byte */
	bool inside;
} atomics[] = {
	{ "exact", 4096, 8, 0, true },
	{ "first", 4096, 800, 0, true },
	{ "last", 4096, 800, 792, true },
	{ "odd-window", 4093, 800, 3, true },
	{ "before", 4096, 800, -8, false },
	{ "behind", 4096, 800, 800, false },
	{ "front-1", 4097, 800, -1, false },
	{ "front-7", 4103, 800, -7, false },
	{ "rear-1", 4096, 807, 800, false },
	{ "rear-7", 4096, 801, 800, false },
	{ "short-window", 4096, 7, 0, false },
};

static void atomic_range(long arg)
{
	long row = MW_ARG(arg);
	size_t off = atomics[row].off;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = MW_CAS; op <= MW_FADD; op++) {
		struct mw_target t;

		if (op == MW_CAS || !atomics[row].inside)
			mw_bind(&e, off, atomics[row].len, RDMA_ALL_REMOTE);
		t = mw_at(&e, (size_t)((long)off + atomics[row].at), 8);
		if (atomics[row].inside)
			mw_allowed(&e, &e.a, (enum mw_op)op, t);
		else
			mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/*
 * Inside the window, but not aligned to 8 bytes. The library posts it only by
 * ibv_wr_*(): ibv_post_send() refuses it itself.
 */
static void atomic_misaligned(long arg)
{
	struct mw_env e;

	mw_open(&e, arg | MW_WR_API);
	for (int op = MW_CAS; op <= MW_FADD; op++) {
		for (size_t off = 4097; off < 4104; off += 3) {
			mw_bind(&e, 4000, 800, RDMA_ALL_REMOTE);
			mw_refused_as(&e, &e.a, (enum mw_op)op,
				      mw_at(&e, off, 8),
				      MW_STATUS(IBV_WC_REM_INV_REQ_ERR));
		}
	}
	mw_close(&e);
}

static void atomic_zero_based(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = MW_CAS; op <= MW_FADD; op++) {
		mw_bind(&e, 4096, 800, RDMA_ALL_REMOTE | IBV_ACCESS_ZERO_BASED);
		t = mw_at(&e, 4096, 8);
		t.va = 0;
		mw_allowed(&e, &e.a, (enum mw_op)op, t);
		t.off += 792;
		t.va = 792;
		mw_allowed(&e, &e.a, (enum mw_op)op, t);
		t.va = 800;
		mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/* A message of no bytes has no key to check: not even one that is wrong. */
static void zero_length(long arg)
{
	enum mw_op op = MW_ARG(arg) & 1 ? MW_READ : MW_WRITE;
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	t = mw_at(&e, 0, 0);
	mw_allowed(&e, &e.a, op, t);	/* not bound */
	mw_bind(&e, WIN_OFF, WIN_LEN, 0);
	t = mw_at(&e, WIN_OFF, 0);
	mw_allowed(&e, &e.a, op, t);	/* no right */
	t.va = UINT64_MAX;
	mw_allowed(&e, &e.a, op, t);	/* no such address */
	t.rkey = 0;
	mw_allowed(&e, &e.a, op, t);	/* no such key */
	t.rkey = 0xffffffff;
	mw_allowed(&e, &e.a, op, t);
	mw_close(&e);
}

/* Of three writes the second is refused: the third does not happen. */
static void pipeline(long arg)
{
	static const enum ibv_wc_status want[3] = {
		IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	};
	struct rdma_wr w[3];
	struct ibv_wc wc;
	struct mw_env e;
	uint64_t va;

	mw_open(&e, arg);
	mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
	va = e.region.iova + WIN_OFF;
	rdma_buf_fill(&e.region, 0);
	rdma_buf_fill(&e.a.local, 0x80);
	for (int i = 0; i < 3; i++)
		rdma_wr_write(&w[i], e.a.local.addr, 2000, e.a.local.mr->lkey,
			      va + (uint64_t)i * 4000, e.rkey);
	w[1].wr.wr.rdma.remote_addr = va + WIN_LEN - 1999;
	rdma_post(&e.a.peer, rdma_wr_chain(w, 3));
	for (int i = 0; i < 3; i++) {
		check(rdma_wait_wc(e.a.peer.scq, &wc, RDMA_WAIT_MS),
		      "write %d completes", i);
		check_eq(wc.wr_id, w[i].wr.wr_id, "wr_id");
		check(wc.status == want[i], "write %d: %s", i,
		      ibv_wc_status_str(wc.status));
	}
	check(rdma_buf_touched(&e.region, 0, WIN_OFF, 2000) < 0,
	      "only the first write is placed");
	mw_close(&e);
}

/* The responder learns of a refusal by an affiliated asynchronous event. */
static void event(long arg)
{
	enum mw_op op = (enum mw_op)MW_ARG(arg);
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 4096, 4096, RDMA_ALL_REMOTE);
	if (op == MW_WRITE_IMM)
		rdma_recv(&e.a.owner, 0x1337, NULL, 0, 0);
	mw_refused(&e, &e.a, op, mw_at(&e, 8192, 8));
	check(rdma_wait_event(&e.dev, IBV_EVENT_QP_ACCESS_ERR, e.a.owner.qp,
			      RDMA_WAIT_MS),
	      "the owner gets IBV_EVENT_QP_ACCESS_ERR");
	mw_close(&e);
}

/* Every other key byte of the window's index is wrong. */
static void wrong_key(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	for (uint32_t key = 1; key < 256; key += 3) {
		mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
		t = mw_at(&e, WIN_OFF, 8);
		t.rkey ^= key;
		mw_refused(&e, &e.a, MW_WRITE, t);
	}
	mw_close(&e);
}

/* The region's own keys are not the window's, nor the other way round. */
static void region_key(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct mw_target t;
	struct mw_env e;

	mw_open_conf(&e, arg, &conf,
		     IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE);
	mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
	t = mw_at(&e, WIN_OFF, 8);
	t.rkey = e.region.mr->lkey;
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_bind(&e, WIN_OFF, WIN_LEN, RDMA_ALL_REMOTE);
	t.rkey = (e.rkey & ~0xffU) ^ 0x100;
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_close(&e);
}

static void add_both(const char *clause, ktap_fn run, long row,
		     const char *name)
{
	for (long type = 1; type <= 2; type++)
		ktap_add(clause, run, type | row << MW_ARG_SHIFT, 0,
			 "access.type%ld.%s", type, name);
}

void mw_access_cases(void)
{
	for (long i = 0; i < (long)ARRAY_SIZE(spans); i++) {
		add_both("range inside the window", range, i << 1,
			 spans[i].name);
		ktap_add("range inside the window: ZERO_BASED", range,
			 2 | ((i << 1) | 1) << MW_ARG_SHIFT, 0,
			 "access.zero-based.%s", spans[i].name);
	}
	for (long i = 0; i < (long)ARRAY_SIZE(edges); i++)
		for (long place = 0; place < PLACES; place++)
			add_edge_cases(i, place);
	for (long i = 0; i < (long)ARRAY_SIZE(strange); i++)
		add_both("range inside the window, no wrap", strange_address,
			 i, strange[i].name);
	for (long i = 0; i < (long)ARRAY_SIZE(atomics); i++) {
		char name[40];

		snprintf(name, sizeof(name), "atomic-%s", atomics[i].name);
		add_both("range inside the window", atomic_range, i, name);
	}
	add_both("atomics are aligned", atomic_misaligned, 0,
		 "atomic-misaligned");
	ktap_add("range inside the window: ZERO_BASED", atomic_zero_based, 2, 0,
		 "access.zero-based.atomic");
	ktap_add("ZERO_BASED: va is an offset", zero_based_by_address, 2, 0,
		 "access.zero-based.by-address");
	add_both("C9-88", zero_length, 0, "zero-length-write");
	add_both("C9-88", zero_length, 1, "zero-length-read");
	add_both("nothing of a refused message is placed", pipeline, 0,
		 "pipeline");
	for (long op = 0; op < MW_OPS; op++) {
		char name[40];

		snprintf(name, sizeof(name), "event-%s", mw_op_name[op]);
		add_both("IBV_EVENT_QP_ACCESS_ERR", event, op, name);
	}
	add_both("index and key match", wrong_key, 0, "wrong-key");
	add_both("index and key match", region_key, 0, "region-key");
}
