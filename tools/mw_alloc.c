// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Allocation: capabilities, limits, keys, protection domains. */
#include "mw_env.h"

#include <stdlib.h>

#define SAMPLE		1024	/* of a device that claims millions of windows */
#define BIG_MAX_MW	100000

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* No two keys of @n share an index. */
static void expect_distinct(uint32_t *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i] >>= 8;
	qsort(keys, n, sizeof(*keys), compare_u32);
	for (size_t i = 1; i < n; i++)
		check(keys[i] != keys[i - 1], "index %#x is given out once",
		      keys[i]);
}

static void caps(long arg)
{
	const unsigned int both = IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				  IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct rdma_dev dev;

	mw_open_dev(&dev, (int)arg);
	check((dev.attr.device_cap_flags & both) != both,
	      "a device has windows of type 2A or 2B, not of both");
	rdma_dev_close(&dev);
}

static void one(long arg)
{
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	pd = mw_open_pd(&dev, MW_TYPE(arg));
	mw = mw_alloc(pd, MW_TYPE(arg));
	check(mw->rkey >> 8, "the index is not 0");
	check_eq(mw->type, MW_TYPE(arg), "type");
	check(mw->pd == pd, "the window belongs to its PD");
	check_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
	mw_close_pd(&dev, pd);
}

static void bad_type(long arg)
{
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	pd = mw_open_pd(&dev, 0);
	errno = 0;
	mw = ibv_alloc_mw(pd, (enum ibv_mw_type)arg);
	check(!mw, "there is no window type %ld", arg);
	check_errno(errno, EINVAL, "ibv_alloc_mw");
	mw_close_pd(&dev, pd);
}

static void pd_busy(long arg)
{
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	pd = mw_open_pd(&dev, MW_TYPE(arg));
	mw = mw_alloc(pd, MW_TYPE(arg));
	check_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd with a window");
	check_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
	mw_close_pd(&dev, pd);
}

static void unbound(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	mw_refused(&e, &e.a, (enum mw_op)MW_ARG(arg), mw_at(&e, 64, 8));
	mw_close(&e);
}

/* The region's own address as the target: an unbound window has no range. */
static void unbound_at_zero(long arg)
{
	struct mw_env e;
	struct mw_target t;

	mw_open(&e, arg);
	t = mw_at(&e, 0, 8);
	t.va = 0;
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_refused(&e, &e.a, MW_READ, t);
	mw_close(&e);
}

static struct ibv_mw **alloc_many(const struct rdma_dev *dev, struct ibv_pd *pd,
				  size_t n, uint32_t *keys)
{
	struct ibv_mw **mw = calloc(n, sizeof(*mw));

	check(mw && keys, "memory for %zu windows", n);
	for (size_t i = 0; i < n; i++) {
		mw[i] = ibv_alloc_mw(pd, (enum ibv_mw_type)mw_type_nr(dev, i));
		check(mw[i], "window %zu of max_mw can be allocated: %s", i,
		      strerror(errno));
		keys[i] = mw[i]->rkey;
	}
	return mw;
}

static void free_many(struct ibv_mw **mw, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_errno(ibv_dealloc_mw(mw[i]), 0, "ibv_dealloc_mw");
	free(mw);
}

/* What max_mw says can be had, and no more. */
static void max_mw(long arg)
{
	struct rdma_dev dev;
	struct ibv_mw **mw;
	struct ibv_mw *more;
	struct ibv_pd *pd;
	uint32_t *keys;
	size_t n;
	bool all;

	(void)arg;
	pd = mw_open_pd(&dev, 0);
	all = dev.attr.max_mw <= BIG_MAX_MW;
	n = all ? (size_t)dev.attr.max_mw : SAMPLE;
	ktap_note("%zu windows of max_mw %d", n, dev.attr.max_mw);
	keys = calloc(n, sizeof(*keys));
	mw = alloc_many(&dev, pd, n, keys);
	if (all) {
		errno = 0;
		more = ibv_alloc_mw(pd, (enum ibv_mw_type)mw_type_nr(&dev, 0));
		check(!more, "one more than max_mw is refused");
		check_errno(errno, ENOMEM, "one more than max_mw");
		check_errno(ibv_dealloc_mw(mw[n / 2]), 0, "ibv_dealloc_mw");
		mw[n / 2] = ibv_alloc_mw(pd,
					 (enum ibv_mw_type)mw_type_nr(&dev, 1));
		check(mw[n / 2], "one freed is one to have: %s",
		      strerror(errno));
	}
	expect_distinct(keys, n);
	free_many(mw, n);
	/* freed ones can be had again */
	n = n < SAMPLE ? n : SAMPLE;
	mw = alloc_many(&dev, pd, n, keys);
	free_many(mw, n);
	free(keys);
	mw_close_pd(&dev, pd);
}

/* Indices are spread over the whole space, in no order. */
static void index_spread(long arg)
{
	enum { N = 512, OCTANTS = 8 };
	uint32_t *keys = calloc(N, sizeof(*keys));
	bool octant[OCTANTS] = { false };
	size_t close_by = 0, ascending = 0, hit = 0;
	struct rdma_dev dev;
	struct ibv_mw **mw;
	struct ibv_pd *pd;

	(void)arg;
	pd = mw_open_pd(&dev, 0);
	if (dev.attr.max_mw < N)
		ktap_skip("the device has only %d windows", dev.attr.max_mw);
	mw = alloc_many(&dev, pd, N, keys);
	for (size_t i = 0; i < N; i++) {
		octant[keys[i] >> 29] = true;
		if (!i)
			continue;
		close_by += labs((long)(keys[i] >> 8) -
				 (long)(keys[i - 1] >> 8)) < 4096;
		ascending += keys[i] > keys[i - 1];
	}
	for (size_t i = 0; i < OCTANTS; i++)
		hit += octant[i];
	check(hit == OCTANTS, "512 indices lie in all eighths of the space (%zu)",
	      hit);
	check(close_by < 16, "indices are not near each other (%zu are)",
	      close_by);
	check(ascending > N / 4 && ascending < N * 3 / 4,
	      "indices are in no order (%zu of %d ascend)", ascending, N - 1);
	free_many(mw, N);
	free(keys);
	mw_close_pd(&dev, pd);
}

/* An index that was freed does not come back soon. */
static void index_reuse(long arg)
{
	enum { N = 256 };
	uint32_t keys[N];
	struct rdma_dev dev;
	struct ibv_pd *pd;

	(void)arg;
	pd = mw_open_pd(&dev, 0);
	for (size_t i = 0; i < N; i++) {
		struct ibv_mw *mw = mw_alloc(pd, mw_type_nr(&dev, 0));

		keys[i] = mw->rkey;
		check_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
	}
	expect_distinct(keys, N);
	mw_close_pd(&dev, pd);
}

/* Windows and regions share one space of indices without meeting in it. */
static void index_regions(long arg)
{
	enum { N = 256 };
	static uint8_t page[4096];
	struct ibv_mr *mr[N];
	struct ibv_mw *mw[N];
	uint32_t keys[2 * N];
	struct rdma_dev dev;
	struct ibv_pd *pd;

	(void)arg;
	pd = mw_open_pd(&dev, 0);
	for (size_t i = 0; i < N; i++) {
		mw[i] = mw_alloc(pd, mw_type_nr(&dev, i));
		mr[i] = ibv_reg_mr(pd, page, sizeof(page),
				   IBV_ACCESS_LOCAL_WRITE);
		check(mr[i], "ibv_reg_mr: %s", strerror(errno));
		keys[2 * i] = mw[i]->rkey;
		keys[2 * i + 1] = mr[i]->lkey;
	}
	expect_distinct(keys, 2 * N);
	for (size_t i = 0; i < N; i++) {
		check_errno(ibv_dealloc_mw(mw[i]), 0, "ibv_dealloc_mw");
		check_errno(ibv_dereg_mr(mr[i]), 0, "ibv_dereg_mr");
	}
	mw_close_pd(&dev, pd);
}

/* A window's key is good for its bytes only while the window exists. */
static void freed_key(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	t = mw_at(&e, 0, 8);
	check_errno(ibv_dealloc_mw(e.mw), 0, "ibv_dealloc_mw");
	e.mw = NULL;
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_expect_dereg(&e);
	mw_close(&e);
}

void mw_alloc_cases(void)
{
	ktap_add("o10-37.2.31", caps, 2, 0, "alloc.capabilities");
	ktap_add("ibv_alloc_mw(3): max_mw is honest", max_mw, 0, 60,
		 "alloc.max-mw");
	ktap_add("choice: indices are not guessable", index_spread, 0, 0,
		 "alloc.index-spread");
	ktap_add("choice: indices are not reused soon", index_reuse, 0, 0,
		 "alloc.index-reuse");
	ktap_add("window and region indices never collide", index_regions, 0, 0,
		 "alloc.index-regions");
	for (long type = 0; type < 256; type += type == 0 ? 3 : 126)
		ktap_add("ibv_alloc_mw(3): type 1 or 2, else EINVAL", bad_type,
			 type, 0, "alloc.bad-type-%ld", type);
	for (long type = 1; type <= 2; type++) {
		ktap_add("ibv_alloc_mw(3)", one, type, 0, "alloc.type%ld",
			 type);
		ktap_add("ibv_alloc_mw(3): a PD with a window is busy",
			 pd_busy, type, 0, "alloc.type%ld.pd-busy", type);
		ktap_add("ibv_alloc_mw(3): created not bound",
			 unbound_at_zero, type, 0, "alloc.type%ld.unbound-zero",
			 type);
		ktap_add("ibv_alloc_mw(3): deallocated", freed_key, type, 0,
			 "alloc.type%ld.freed-key", type);
		for (long op = 0; op < MW_OPS; op++)
			ktap_add("ibv_alloc_mw(3): created not bound", unbound,
				 type | op << MW_ARG_SHIFT, 0,
				 "alloc.type%ld.unbound-%s", type,
				 mw_op_name[op]);
	}
}
