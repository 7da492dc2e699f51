// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_rereg_mr(3): other memory, another domain, other rights, all or none of them. */
#include "qp_env.h"

#include <sys/mman.h>

#define LEN		4096
#define NO_MEMORY	8192UL
#define PIECE		64

static int rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		 const struct rdma_buf *memory, unsigned int access)
{
	int err = rdma_rereg_mr(mr, flags, pd, memory->addr, memory->len, (int)access);

	if (err == EOPNOTSUPP)
		ktap_skip("the device does not register regions anew");
	return err;
}

/* The old memory's key does not open the new memory. */
static void by_old_key(long arg)
{
	struct rdma_buf other;
	struct rdma_wr w;
	struct qp_env e;
	uint32_t old_key;

	(void)arg;
	qp_open(&e, NULL, LEN);
	qp_fill(&e);
	rdma_buf_create(&other, e.b.pd, 3000, 77, QP_REGION_RIGHTS);
	rdma_buf_fill(&other, QP_TAG_B);
	old_key = e.bbuf.mr->rkey;
	check_errno(rereg(e.bbuf.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &other, 0),
		    0, "ibv_rereg_mr");
	rdma_wr_write(&w, e.abuf.addr, 64, e.abuf.mr->lkey, (uintptr_t)other.addr, old_key);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_REM_ACCESS_ERR, "a write by the old key");
	check(rdma_buf_touched(&other, QP_TAG_B, 0, 0) < 0, "the new memory is untouched");
	rdma_buf_destroy(&other);
	qp_close(&e);
}

/* Other memory: the old one is out of reach, by either address. */
static void translation(long arg)
{
	struct rdma_buf other;
	struct rdma_wr w;
	struct qp_env e;

	(void)arg;
	qp_open(&e, NULL, LEN);
	qp_fill(&e);
	rdma_buf_create(&other, e.b.pd, 3000, 77, QP_REGION_RIGHTS);
	rdma_buf_fill(&other, QP_TAG_B);
	check_errno(rereg(e.bbuf.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &other, 0),
		    0, "ibv_rereg_mr");
	rdma_wr_write(&w, e.abuf.addr, 3000, e.abuf.mr->lkey,
		      (uintptr_t)other.addr, e.bbuf.mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "a write to the new memory");
	check(!memcmp(other.addr, e.abuf.addr, 3000), "the data arrives");
	check(rdma_buf_touched(&other, QP_TAG_B, 0, 3000) < 0, "... and nowhere else");
	check_errno(rdma_rereg_mr(e.bbuf.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				  (void *)NO_MEMORY, LEN, 0), EFAULT,
		    "memory that is not there");
	check_errno(rdma_rereg_mr(e.bbuf.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				  other.addr, 0, 0), EINVAL, "no memory");
	rdma_wr_write(&w, e.abuf.addr, 3000, e.abuf.mr->lkey,
		      (uintptr_t)other.addr, e.bbuf.mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_SUCCESS, "what failed changes nothing");
	rdma_wr_write(&w, e.abuf.addr, 64, e.abuf.mr->lkey, e.bbuf.iova,
		      e.bbuf.mr->rkey);
	check_eq(rdma_do(&e.a, &w, NULL), IBV_WC_REM_ACCESS_ERR,
		 "a write to the old memory");
	check(rdma_buf_touched(&e.bbuf, QP_TAG_B, 0, 0) < 0,
	      "the old memory is untouched");
	rdma_buf_destroy(&other);
	qp_close(&e);
}

/* --- any combination of changes --- */

struct rereg_env {
	struct qp_env e;	/* the region is b's */
	struct rdma_end c;	/* of a's domain */
	struct rdma_end d;	/* connected to c, of a domain that the region may go to */
	struct rdma_buf other;	/* memory elsewhere */
	uint8_t written;
};

/* What a region should be. */
struct region {
	const struct rdma_buf *memory;
	uint32_t key;
	bool of_d;	/* it is of d's domain, not b's */
	bool writable;
};

static void rereg_open(struct rereg_env *r)
{
	struct rdma_conf conf = rdma_conf_default();

	r->written = 0;
	qp_open(&r->e, NULL, LEN);
	rdma_end_create(&r->c, &r->e.dev, r->e.a.pd, &conf);
	rdma_end_create(&r->d, &r->e.dev, NULL, &conf);
	rdma_connect(&r->c, &r->d);
	rdma_buf_create(&r->other, r->e.b.pd, LEN - 1000, 77, QP_REGION_RIGHTS);
	qp_fill(&r->e);
	rdma_buf_fill(&r->other, QP_TAG_A);
}

static void rereg_close(struct rereg_env *r)
{
	/* It may be of d's domain. */
	rdma_buf_destroy(&r->e.bbuf);
	rdma_buf_destroy(&r->other);
	rdma_end_destroy(&r->c);
	rdma_end_destroy(&r->d);
	qp_close(&r->e);
}

/* A request to b or to d; one that is refused costs the connection. */
static void request(struct rereg_env *r, bool to_d, struct rdma_wr *w, bool allowed,
		    const char *what)
{
	struct rdma_end *from = to_d ? &r->c : &r->e.a, *to = to_d ? &r->d : &r->e.b;

	check_eq(rdma_do(from, w, NULL), allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
		 what);
	if (!allowed)
		rdma_reconnect(from, to);
}

static void expect_region(struct rereg_env *r, const struct region *want)
{
	uint8_t *own = r->e.abuf.addr, *at = want->memory->addr;
	uint32_t lkey = r->e.abuf.mr->lkey;
	struct rdma_wr w;

	rdma_wr_read(&w, own, PIECE, lkey, (uintptr_t)at, want->key);
	request(r, !want->of_d, &w, false, "a READ in the other domain");
	request(r, want->of_d, &w, true, "a READ");
	check(!memcmp(own, at, PIECE), "it reads the region's memory");
	memset(own, ++r->written, PIECE);
	rdma_wr_write(&w, own, PIECE, lkey, (uintptr_t)at + PIECE, want->key);
	request(r, want->of_d, &w, want->writable, "a WRITE, by the region's rights");
	check(!memcmp(own, at + PIECE, PIECE) == want->writable,
	      "it writes if it is allowed to");
}

static void any_flags(long arg)
{
	struct region region;
	struct rereg_env r;
	int flags = (int)arg;
	struct ibv_mr *mr;

	rereg_open(&r);
	mr = r.e.bbuf.mr;
	region = (struct region){ &r.e.bbuf, mr->rkey, false, true };
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		check_errno(rdma_rereg_mr(mr, flags, r.d.pd, (void *)NO_MEMORY, LEN,
					  IBV_ACCESS_REMOTE_READ), EFAULT,
			    "memory that is not there");
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		check_errno(rereg(mr, flags, r.d.pd, &r.other, IBV_ACCESS_REMOTE_WRITE),
			    EINVAL, "REMOTE_WRITE without LOCAL_WRITE");
	expect_region(&r, &region);
	check_errno(rereg(mr, flags, r.d.pd, &r.other, IBV_ACCESS_REMOTE_READ), 0,
		    "ibv_rereg_mr");
	check_eq(mr->rkey != region.key, flags & IBV_REREG_MR_CHANGE_TRANSLATION,
		 "the key is a new one if the memory is");
	region = (struct region){
		.memory = flags & IBV_REREG_MR_CHANGE_TRANSLATION ? &r.other : &r.e.bbuf,
		.key = mr->rkey,
		.of_d = flags & IBV_REREG_MR_CHANGE_PD,
		.writable = !(flags & IBV_REREG_MR_CHANGE_ACCESS),
	};
	expect_region(&r, &region);
	rereg_close(&r);
}

/* A buffer of one page that can only be read, and a region of it. */
static void read_only_buf(struct rdma_buf *buf, struct ibv_pd *pd)
{
	uint8_t *page = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(page != MAP_FAILED, "mmap");
	memset(page, 0xa5, LEN);
	check(!mprotect(page, LEN, PROT_READ), "mprotect");
	*buf = (struct rdma_buf){
		.map = page, .map_len = LEN, .addr = page, .len = LEN,
		.iova = (uintptr_t)page,
		.mr = ibv_reg_mr(pd, page, LEN, IBV_ACCESS_REMOTE_READ),
	};
	check(buf->mr, "ibv_reg_mr: %s", strerror(errno));
}

/* Pages that were pinned for reading are not written by a change of rights. */
static void read_only(long arg)
{
	struct rereg_env r;
	struct region region;
	struct rdma_buf buf;

	(void)arg;
	rereg_open(&r);
	read_only_buf(&buf, r.e.b.pd);
	region = (struct region){ &buf, buf.mr->rkey, false, false };
	check_errno(rdma_rereg_mr(buf.mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD,
				  r.d.pd, NULL, 0, (int)QP_REGION_RIGHTS), EOPNOTSUPP,
		    "rights to write what is pinned for reading");
	expect_region(&r, &region);
	check_errno(rereg(r.e.bbuf.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &buf, 0),
		    EFAULT, "read-only memory for a region with rights to write");
	region = (struct region){ &r.e.bbuf, r.e.bbuf.mr->rkey, false, true };
	expect_region(&r, &region);
	check_errno(rereg(buf.mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			  NULL, &r.other, QP_REGION_RIGHTS), 0, "memory that can be written");
	region = (struct region){ &r.other, buf.mr->rkey, false, true };
	expect_region(&r, &region);
	rdma_buf_destroy(&buf);
	rereg_close(&r);
}

void qp_rereg_cases(void)
{
	ktap_add("ibv_rereg_mr(3): IBV_REREG_MR_CHANGE_TRANSLATION", by_old_key,
		 0, 0, "mr.rereg-old-key");
	ktap_add("ibv_rereg_mr(3): IBV_REREG_MR_CHANGE_TRANSLATION", translation,
		 0, 0, "mr.rereg-translation");
	for (long flags = 1; flags <= 7; flags++)
		ktap_add("ibv_rereg_mr(3): all or nothing", any_flags, flags, 0,
			 "mr.rereg%s%s%s",
			 flags & IBV_REREG_MR_CHANGE_TRANSLATION ? "-memory" : "",
			 flags & IBV_REREG_MR_CHANGE_PD ? "-pd" : "",
			 flags & IBV_REREG_MR_CHANGE_ACCESS ? "-access" : "");
	ktap_add("ibv_rereg_mr(3): read-only memory", read_only, 0, 0, "mr.rereg-read-only");
}
