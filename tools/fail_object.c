// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Making, asking about and giving back: contexts, protection domains, completion
 * queues, regions, windows. What cannot be given back for lack of memory must be
 * given back by a second try.
 */
#include "fail_env.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SMALL		100
#define LARGE		(4 << 20)
#define RIGHTS		(RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | \
			 IBV_ACCESS_MW_BIND)

static struct ibv_context *ctx_of(struct fail_env *e)
{
	return e->q.dev.ctx;
}

static struct ibv_pd *pd_of(struct fail_env *e)
{
	return e->q.a.pd;
}

/* --- context --- */

static int open_device(struct fail_env *e)
{
	e->ctx = ibv_open_device(ctx_of(e)->device);
	return fail_errno(e->ctx);
}

static void close_device(struct fail_env *e, int err)
{
	if (e->ctx)
		fail_expect_gone(ibv_close_device(e->ctx), err, "ibv_close_device");
	e->ctx = NULL;
}

static int query_device(struct fail_env *e)
{
	struct ibv_device_attr attr;

	return ibv_query_device(ctx_of(e), &attr);
}

static int query_device_ex(struct fail_env *e)
{
	struct ibv_device_attr_ex attr;

	return ibv_query_device_ex(ctx_of(e), NULL, &attr);
}

static int query_port(struct fail_env *e)
{
	struct ibv_port_attr attr;

	return ibv_query_port(ctx_of(e), 1, &attr);
}

static int query_gid(struct fail_env *e)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(ctx_of(e), 1, (uint32_t)e->q.dev.gid_index, &entry, 0);
}

static int query_qp(struct fail_env *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(e->q.a.qp, &attr, IBV_QP_STATE | IBV_QP_AV, &init);
}

/* --- protection domain --- */

static int alloc_pd(struct fail_env *e)
{
	e->pd = ibv_alloc_pd(ctx_of(e));
	return fail_errno(e->pd);
}

static void make_pd(struct fail_env *e)
{
	check_errno(alloc_pd(e), 0, "ibv_alloc_pd");
}

static int try_dealloc_pd(struct fail_env *e)
{
	int err = ibv_dealloc_pd(e->pd);

	if (!err)
		e->pd = NULL;
	return err;
}

static void dealloc_pd(struct fail_env *e, int err)
{
	if (e->pd)
		fail_expect_gone(ibv_dealloc_pd(e->pd), err, "ibv_dealloc_pd");
	e->pd = NULL;
}

/* --- completion queue --- */

static int create_channel(struct fail_env *e)
{
	e->channel = ibv_create_comp_channel(ctx_of(e));
	return fail_errno(e->channel);
}

static void make_channel(struct fail_env *e)
{
	check_errno(create_channel(e), 0, "ibv_create_comp_channel");
}

static int create_cq_of(struct fail_env *e, int cqe)
{
	e->cq = ibv_create_cq(ctx_of(e), cqe, NULL, e->channel, 0);
	return fail_errno(e->cq);
}

static int create_cq(struct fail_env *e)
{
	return create_cq_of(e, 16);
}

static int create_large_cq(struct fail_env *e)
{
	return create_cq_of(e, 100000);
}

static void make_cq(struct fail_env *e)
{
	check_errno(create_cq(e), 0, "ibv_create_cq");
}

static int resize_cq(struct fail_env *e)
{
	return ibv_resize_cq(e->cq, 5000);
}

static int req_notify(struct fail_env *e)
{
	return ibv_req_notify_cq(e->cq, 0);
}

static void make_notified_cq(struct fail_env *e)
{
	make_channel(e);
	make_cq(e);
}

static int try_destroy_cq(struct fail_env *e)
{
	int err = ibv_destroy_cq(e->cq);

	if (!err)
		e->cq = NULL;
	return err;
}

static void destroy_cq(struct fail_env *e, int err)
{
	if (e->cq)
		fail_expect_gone(ibv_destroy_cq(e->cq), err, "ibv_destroy_cq");
	e->cq = NULL;
	if (e->channel)
		fail_expect_gone(ibv_destroy_comp_channel(e->channel), err,
				 "ibv_destroy_comp_channel");
	e->channel = NULL;
}

/* --- shared receive queue --- */

static int create_srq(struct fail_env *e)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 100, .max_sge = 2 },
	};

	e->srq = ibv_create_srq(pd_of(e), &init);
	return fail_errno(e->srq);
}

static void make_srq(struct fail_env *e)
{
	check_errno(create_srq(e), 0, "ibv_create_srq");
}

static int resize_srq(struct fail_env *e)
{
	struct ibv_srq_attr attr = { .max_wr = 1000 };

	return ibv_modify_srq(e->srq, &attr, IBV_SRQ_MAX_WR);
}

static int query_srq(struct fail_env *e)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(e->srq, &attr);
}

static int try_destroy_srq(struct fail_env *e)
{
	int err = ibv_destroy_srq(e->srq);

	if (!err)
		e->srq = NULL;
	return err;
}

static void destroy_srq(struct fail_env *e, int err)
{
	if (e->srq)
		fail_expect_gone(ibv_destroy_srq(e->srq), err, "ibv_destroy_srq");
	e->srq = NULL;
}

/* --- region --- */

/* Fresh pages each time, so that they are faulted in by the registration. */
static void map(struct fail_env *e)
{
	e->mem = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(e->mem != MAP_FAILED, "mmap: %s", strerror(errno));
}

static int reg_mr_of(struct fail_env *e, size_t len, uint64_t iova, unsigned int access)
{
	e->mr = ibv_reg_mr_iova(pd_of(e), e->mem, len, iova, access);
	return fail_errno(e->mr);
}

static int reg_small(struct fail_env *e)
{
	return reg_mr_of(e, SMALL, (uintptr_t)e->mem, RIGHTS);
}

static int reg_large(struct fail_env *e)
{
	return reg_mr_of(e, LARGE, (uintptr_t)e->mem, RIGHTS);
}

static int reg_iova(struct fail_env *e)
{
	return reg_mr_of(e, SMALL, 0x1234567000, RIGHTS);
}

static void make_mr(struct fail_env *e)
{
	map(e);
	check_errno(reg_small(e), 0, "ibv_reg_mr");
}

static int try_dereg_mr(struct fail_env *e)
{
	int err = ibv_dereg_mr(e->mr);

	if (!err)
		e->mr = NULL;
	return err;
}

static void dereg_mr(struct fail_env *e, int err)
{
	if (e->mr)
		fail_expect_gone(ibv_dereg_mr(e->mr), err, "ibv_dereg_mr");
	e->mr = NULL;
	munmap(e->mem, LARGE);
}

/* --- window --- */

static int alloc_mw_of(struct fail_env *e, enum ibv_mw_type type)
{
	e->mw = ibv_alloc_mw(pd_of(e), type);
	return fail_errno(e->mw);
}

static int alloc_mw_1(struct fail_env *e)
{
	return alloc_mw_of(e, IBV_MW_TYPE_1);
}

static int alloc_mw_2(struct fail_env *e)
{
	return alloc_mw_of(e, IBV_MW_TYPE_2);
}

static void make_mw(struct fail_env *e)
{
	check_errno(alloc_mw_2(e), 0, "ibv_alloc_mw");
}

/* Bound to the region, which cannot go before the window. */
static void make_bound_mw(struct fail_env *e)
{
	struct rdma_bind bind;
	struct rdma_wr w;

	make_mr(e);
	make_mw(e);
	bind = (struct rdma_bind){
		.mw = e->mw,
		.current_rkey = e->mw->rkey,
		.new_rkey = ibv_inc_rkey(e->mw->rkey),
		.mr_lkey = e->mr->lkey,
		.addr = (uintptr_t)e->mem,
		.length = SMALL,
		.access = IBV_ACCESS_REMOTE_READ,
	};
	rdma_wr_bind(&w, &bind);
	check_eq(rdma_do(&e->q.a, &w, NULL), IBV_WC_SUCCESS, "status of a bind");
}

static int try_dealloc_mw(struct fail_env *e)
{
	int err = ibv_dealloc_mw(e->mw);

	if (!err)
		e->mw = NULL;
	return err;
}

static void dealloc_mw(struct fail_env *e, int err)
{
	if (e->mw)
		fail_expect_gone(ibv_dealloc_mw(e->mw), err, "ibv_dealloc_mw");
	e->mw = NULL;
}

static void dealloc_bound_mw(struct fail_env *e, int err)
{
	dealloc_mw(e, err);
	dereg_mr(e, err);
}

/* --- the cases --- */

static const struct fail_path paths[] = {
	/* ENOENT: the library looked for the device elsewhere too */
	{ .name = "open_device", .run = open_device, .undo = close_device,
	  .errnos = { ENOENT } },
	{ .name = "query_device", .run = query_device },
	{ .name = "query_device_ex", .run = query_device_ex },
	{ .name = "query_port", .run = query_port },
	{ .name = "query_gid_ex", .run = query_gid },
	{ .name = "query_qp", .run = query_qp },
	{ .name = "alloc_pd", .run = alloc_pd, .undo = dealloc_pd },
	{ .name = "dealloc_pd", .prepare = make_pd, .run = try_dealloc_pd,
	  .undo = dealloc_pd },
	{ .name = "create_comp_channel", .run = create_channel, .undo = destroy_cq },
	{ .name = "create_cq", .run = create_cq, .undo = destroy_cq },
	{ .name = "create_cq-large", .run = create_large_cq, .undo = destroy_cq,
	  .dense = 30 },
	{ .name = "create_cq-channel", .prepare = make_channel, .run = create_cq,
	  .undo = destroy_cq },
	{ .name = "resize_cq", .prepare = make_cq, .run = resize_cq,
	  .undo = destroy_cq },
	{ .name = "req_notify_cq", .prepare = make_notified_cq, .run = req_notify,
	  .undo = destroy_cq },
	{ .name = "destroy_cq", .prepare = make_cq, .run = try_destroy_cq,
	  .undo = destroy_cq },
	{ .name = "create_srq", .run = create_srq, .undo = destroy_srq },
	{ .name = "resize_srq", .prepare = make_srq, .run = resize_srq,
	  .undo = destroy_srq },
	{ .name = "query_srq", .prepare = make_srq, .run = query_srq,
	  .undo = destroy_srq },
	{ .name = "destroy_srq", .prepare = make_srq, .run = try_destroy_srq,
	  .undo = destroy_srq },
	{ .name = "reg_mr-small", .prepare = map, .run = reg_small, .undo = dereg_mr },
	{ .name = "reg_mr-large", .prepare = map, .run = reg_large, .undo = dereg_mr,
	  .dense = 60 },
	{ .name = "reg_mr-iova", .prepare = map, .run = reg_iova, .undo = dereg_mr },
	{ .name = "dereg_mr", .prepare = make_mr, .run = try_dereg_mr,
	  .undo = dereg_mr },
	{ .name = "alloc_mw-1", .run = alloc_mw_1, .undo = dealloc_mw },
	{ .name = "alloc_mw-2", .run = alloc_mw_2, .undo = dealloc_mw },
	{ .name = "dealloc_mw", .prepare = make_mw, .run = try_dealloc_mw,
	  .undo = dealloc_mw },
	{ .name = "dealloc_mw-bound", .prepare = make_bound_mw, .run = try_dealloc_mw,
	  .undo = dealloc_bound_mw },
};

static void fail_object(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_every(&e, &paths[arg]);
	fail_close(&e);
}

void fail_object_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ktap_add("the manual pages", fail_object, (long)i, 0, "object.%s",
			 paths[i].name);
}
