// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions: what can be registered, and what it is good for. */
#include "qp_env.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096UL
#define GIB	(1UL << 30)

struct bare {
	struct rdma_dev dev;
	struct ibv_pd *pd;
};

static void open_bare(struct bare *b)
{
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&b->dev, ktap_opt.device, ktap_opt.gid_index);
	b->pd = ibv_alloc_pd(b->dev.ctx);
	check(b->pd, "ibv_alloc_pd");
}

static void close_bare(struct bare *b)
{
	check_errno(ibv_dealloc_pd(b->pd), 0, "ibv_dealloc_pd");
	rdma_dev_close(&b->dev);
}

static uint8_t *map_pages(size_t pages, int prot, int extra_flags)
{
	void *p = mmap(NULL, pages * PAGE, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);

	if (p == MAP_FAILED && extra_flags & MAP_HUGETLB)
		ktap_skip("no huge pages are set aside");
	check(p != MAP_FAILED, "mmap");
	return p;
}

static void refused(struct bare *b, void *addr, size_t len, unsigned int access,
		    int err, const char *what)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(b->pd, addr, len, (int)access);
	check(!mr, "%s is refused", what);
	check_errno(errno, err, what);
}

static void bad_memory(long arg)
{
	uint8_t *pages;
	struct bare b;

	(void)arg;
	open_bare(&b);
	refused(&b, NULL, PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT, "address 0");
	refused(&b, (void *)(1UL << 46), PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT,
		"memory that is not mapped");
	refused(&b, (void *)0xffffffff81000000UL, PAGE, 0, EFAULT,
		"memory of the kernel");
	pages = map_pages(4, PROT_READ | PROT_WRITE, 0);
	munmap(pages + 2 * PAGE, PAGE);
	refused(&b, pages, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT,
		"memory with a hole");
	munmap(pages, PAGE);
	refused(&b, pages, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT,
		"memory whose first page is not there");
	pages = map_pages(1, PROT_NONE, 0);
	refused(&b, pages, PAGE, 0, EFAULT, "memory that cannot be read");
	close_bare(&b);
}

static void bad_length(long arg)
{
	uint8_t *page;
	struct bare b;

	(void)arg;
	open_bare(&b);
	page = map_pages(1, PROT_READ | PROT_WRITE, 0);
	for (int bit = 40; bit < 64; bit++)
		refused(&b, page, 1UL << bit, IBV_ACCESS_LOCAL_WRITE,
			1UL << bit > b.dev.attr.max_mr_size ? EINVAL : EFAULT,
			"a length of 2^40 or more");
	refused(&b, page, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE, EINVAL, "a length of 2^64 - 1");
	refused(&b, page, 0 - (size_t)page, IBV_ACCESS_LOCAL_WRITE, EINVAL,
		"a length up to the end of all addresses");
	refused(&b, page, 0 - (size_t)page + 16, IBV_ACCESS_LOCAL_WRITE, EINVAL,
		"a length around the end of all addresses");
	refused(&b, page, 0, IBV_ACCESS_LOCAL_WRITE, EINVAL, "no memory");
	close_bare(&b);
}

static void bad_access(long arg)
{
	uint8_t *page;
	struct bare b;

	(void)arg;
	open_bare(&b);
	page = map_pages(1, PROT_READ | PROT_WRITE, 0);
	refused(&b, page, PAGE, IBV_ACCESS_REMOTE_WRITE, EINVAL,
		"REMOTE_WRITE without LOCAL_WRITE");
	refused(&b, page, PAGE, IBV_ACCESS_REMOTE_ATOMIC, EINVAL,
		"REMOTE_ATOMIC without LOCAL_WRITE");
	refused(&b, page, PAGE, 1U << 15, EINVAL, "a flag that does not exist");
	refused(&b, page, PAGE, 1U << 31, EINVAL, "the last flag, which does not exist");
	close_bare(&b);
}

/* Read-only memory can be sent and read, but not registered for writing. */
static void read_only(long arg)
{
	uint8_t *page = map_pages(2, PROT_READ | PROT_WRITE, 0);
	struct ibv_mr *mr;
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	memset(page, 0x5a, 2 * PAGE);
	check(!mprotect(page, 2 * PAGE, PROT_READ), "mprotect");
	qp_open(&e, NULL, 16384);
	errno = 0;
	check(!ibv_reg_mr(e.b.pd, page, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE),
	      "read-only memory cannot be registered for writing");
	check_errno(errno, EFAULT, "ibv_reg_mr");
	mr = ibv_reg_mr(e.b.pd, page, 2 * PAGE, IBV_ACCESS_REMOTE_READ);
	check(mr, "read-only memory can be registered for reading: %s",
	      strerror(errno));
	rdma_wr_read(&w, e.abuf.addr, 5000, e.abuf.mr->lkey,
		     (uintptr_t)page + 3, mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a read of it");
	check(!memcmp(e.abuf.addr, page, 5000), "the data arrives");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	munmap(page, 2 * PAGE);
	qp_close(&e);
}

/* A region's address for the device need not be the process's. */
static void own_iova(long arg)
{
	static const uint64_t pages[] = {
		0, 0x1000, 0x7fff00000000, 0x8000000000000000,
		0 - (uint64_t)0x100000,
	};
	struct ibv_mr *mr;
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 16384);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		uint64_t iova = pages[i] + ((uintptr_t)e.bbuf.addr & (PAGE - 1));

		mr = ibv_reg_mr_iova(e.b.pd, e.bbuf.addr, 16384, iova,
				     QP_REGION_RIGHTS);
		check(mr, "a region at %#llx: %s", (unsigned long long)iova,
		      strerror(errno));
		qp_fill(&e);
		rdma_wr_write(&w, e.abuf.addr, 16384, e.abuf.mr->lkey, iova,
			      mr->rkey);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
		qp_expect_moved(&e, QP_WRITE, 0, 16384);
		rdma_wr_write(&w, e.abuf.addr, 16, e.abuf.mr->lkey,
			      iova + 16384 - 15, mr->rkey);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_REM_ACCESS_ERR,
			 "a write one byte too far");
		rdma_reconnect(&e.a, &e.b);
		check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	}
	qp_close(&e);
}

/* Two regions may cover the same memory; each has its keys and its life. */
static void same_memory(long arg)
{
	struct ibv_mr *mr[8];
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, 16384);
	for (size_t i = 0; i < 8; i++) {
		mr[i] = ibv_reg_mr(e.b.pd, e.bbuf.addr, 16384,
				   QP_REGION_RIGHTS);
		check(mr[i], "ibv_reg_mr");
	}
	for (size_t i = 0; i < 8; i++) {
		qp_fill(&e);
		rdma_wr_write(&w, e.abuf.addr, 16384, e.abuf.mr->lkey,
			      e.bbuf.iova, mr[7 - i]->rkey);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
		qp_expect_moved(&e, QP_WRITE, 0, 16384);
		check_errno(ibv_dereg_mr(mr[7 - i]), 0, "ibv_dereg_mr");
	}
	qp_close(&e);
}

/* Huge pages, by request or as the kernel likes. */
static void huge_pages(long arg)
{
	const size_t len = 4UL << 20;
	struct ibv_mr *mr;
	struct rdma_wr w;
	struct qp_env e;
	uint8_t *mem;

	mem = map_pages(len / PAGE, PROT_READ | PROT_WRITE,
			arg ? MAP_HUGETLB : 0);
	if (!arg)
		madvise(mem, len, MADV_HUGEPAGE);
	memset(mem, 0, len);
	qp_open(&e, NULL, 1UL << 20);
	qp_fill(&e);
	mr = ibv_reg_mr(e.b.pd, mem + 5, len - 5, QP_REGION_RIGHTS);
	check(mr, "ibv_reg_mr: %s", strerror(errno));
	for (size_t off = 5; off + (1UL << 20) <= len; off += 1000003) {
		rdma_wr_write(&w, e.abuf.addr, 1U << 20, e.abuf.mr->lkey,
			      (uintptr_t)mem + off, mr->rkey);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
		check(!memcmp(mem + off, e.abuf.addr, 1UL << 20),
		      "the data arrives");
	}
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	munmap(mem, len);
	qp_close(&e);
}

static void four_gib(long arg)
{
	static const uint64_t offs[] = {
		0, GIB - 5000, 2 * GIB - 5000, 4 * GIB - 10000,
	};
	/* of addresses, over 16 MiB of memory */
	uint8_t *mem = qp_map_repeated(4 * GIB, 16UL << 20);
	struct ibv_mr *mr;
	struct rdma_wr w;
	struct qp_env e;
	uint64_t start;

	(void)arg;
	if (!mem)
		ktap_skip("4 GiB cannot be mapped here");
	qp_open(&e, NULL, 16384);
	start = rdma_now_us();
	mr = ibv_reg_mr(e.b.pd, mem, 4 * GIB, QP_REGION_RIGHTS);
	check(mr, "4 GiB can be registered: %s", strerror(errno));
	ktap_note("registered in %llu ms",
		  (unsigned long long)(rdma_now_us() - start) / 1000);
	for (size_t i = 0; i < ARRAY_SIZE(offs); i++) {
		qp_fill(&e);
		memset(mem + offs[i], 0, 10000);
		rdma_wr_write(&w, e.abuf.addr, 10000, e.abuf.mr->lkey,
			      (uintptr_t)mem + offs[i], mr->rkey);
		check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
		check(!memcmp(mem + offs[i], e.abuf.addr, 10000),
		      "the data arrives at offset %#llx",
		      (unsigned long long)offs[i]);
	}
	rdma_wr_write(&w, e.abuf.addr, 16, e.abuf.mr->lkey,
		      (uintptr_t)mem + 4 * GIB - 15, mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_REM_ACCESS_ERR,
		 "a write one byte too far");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	munmap(mem, 4 * GIB);
	qp_close(&e);
}

/* Memory that is unmapped stays the region's until it is deregistered. */
static void unmapped_later(long arg)
{
	uint8_t *page = map_pages(4, PROT_READ | PROT_WRITE, 0);
	struct ibv_mr *mr;
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	memset(page, 0x3c, 4 * PAGE);
	qp_open(&e, NULL, 16384);
	mr = ibv_reg_mr(e.b.pd, page, 4 * PAGE, QP_REGION_RIGHTS);
	check(mr, "ibv_reg_mr");
	munmap(page, 4 * PAGE);
	rdma_wr_read(&w, e.abuf.addr, 16384, e.abuf.mr->lkey, (uintptr_t)page,
		     mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a read");
	for (size_t i = 0; i < 16384; i++)
		check(e.abuf.addr[i] == 0x3c, "the old bytes arrive");
	qp_fill(&e);
	rdma_wr_write(&w, e.abuf.addr, 16384, e.abuf.mr->lkey, (uintptr_t)page,
		      mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write");
	rdma_wr_read(&w, e.abuf.addr, 16384, e.abuf.mr->lkey, (uintptr_t)page,
		     mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a read");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	qp_close(&e);
}

void qp_mr_cases(void)
{
	ktap_add("ibv_reg_mr(3): EFAULT", bad_memory, 0, 0, "mr.bad-memory");
	ktap_add("ibv_reg_mr(3): length", bad_length, 0, 0, "mr.bad-length");
	ktap_add("ibv_reg_mr(3): access", bad_access, 0, 0, "mr.bad-access");
	ktap_add("ibv_reg_mr(3): read-only memory", read_only, 0, 0,
		 "mr.read-only");
	ktap_add("ibv_reg_mr(3): iova", own_iova, 0, 0, "mr.own-iova");
	ktap_add("ibv_reg_mr(3)", same_memory, 0, 0, "mr.same-memory");
	ktap_add("huge pages", huge_pages, 0, 30, "mr.huge-pages-transparent");
	ktap_add("huge pages", huge_pages, 1, 30, "mr.huge-pages");
	ktap_add("4 GiB", four_gib, 0, 60, "mr.4-gib");
	ktap_add("ibv_reg_mr(3): pinned", unmapped_later, 0, 0,
		 "mr.unmapped-later");
}
