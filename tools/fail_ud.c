// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles and multicast groups. */
#include "fail_env.h"
#include "ud_env.h"

#include <stdlib.h>

static const union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 77, 2, 1 } };
static const union ibv_gid group6 = { .raw = { 0xff, 0x15, [15] = 1 } };

static int create_ah(struct fail_env *e)
{
	struct ibv_ah_attr path = ud_path(&e->q.dev, &e->q.dev.gid);

	errno = 0;
	e->ah = ibv_create_ah(e->q.a.pd, &path);
	return fail_errno(e->ah);
}

static void make_ah(struct fail_env *e)
{
	check_errno(create_ah(e), 0, "ibv_create_ah");
}

static int try_destroy_ah(struct fail_env *e)
{
	int err = ibv_destroy_ah(e->ah);

	if (!err)
		e->ah = NULL;
	return err;
}

static void destroy_ah(struct fail_env *e, int err)
{
	if (e->ah)
		fail_expect_gone(ibv_destroy_ah(e->ah), err, "ibv_destroy_ah");
	e->ah = NULL;
}

static void make_ud(struct fail_env *e)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = IBV_QPT_UD;
	rdma_end_create(&e->end, &e->q.dev, e->q.a.pd, &conf);
}

static int attach(struct fail_env *e)
{
	return abs(ibv_attach_mcast(e->end.qp, &group, 0));
}

static int attach6(struct fail_env *e)
{
	return abs(ibv_attach_mcast(e->end.qp, &group6, 0));
}

static void make_member(struct fail_env *e)
{
	make_ud(e);
	check_errno(attach(e), 0, "ibv_attach_mcast");
}

static int detach(struct fail_env *e)
{
	return abs(ibv_detach_mcast(e->end.qp, &group, 0));
}

static void end_attach(struct fail_env *e, int err)
{
	check_errno(detach(e), err ? EINVAL : 0, "ibv_detach_mcast");
	rdma_end_destroy(&e->end);
}

static void end_attach6(struct fail_env *e, int err)
{
	check_errno(abs(ibv_detach_mcast(e->end.qp, &group6, 0)), err ? EINVAL : 0,
		    "ibv_detach_mcast");
	rdma_end_destroy(&e->end);
}

static void end_detach(struct fail_env *e, int err)
{
	if (err)
		check_errno(detach(e), 0, "ibv_detach_mcast");
	rdma_end_destroy(&e->end);
}

static const struct fail_path paths[] = {
	/* ENOBUFS: the core looked for a route */
	{ .name = "create_ah", .run = create_ah, .undo = destroy_ah,
	  .errnos = { ENOBUFS } },
	{ .name = "destroy_ah", .prepare = make_ah, .run = try_destroy_ah,
	  .undo = destroy_ah },
	{ .name = "attach", .prepare = make_ud, .run = attach, .undo = end_attach },
	{ .name = "attach-ipv6", .prepare = make_ud, .run = attach6, .undo = end_attach6 },
	{ .name = "detach", .prepare = make_member, .run = detach, .undo = end_detach },
};

static void fail_ud(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_every(&e, &paths[arg]);
	fail_close(&e);
}

void fail_ud_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ktap_add("ibv_create_ah(3), ibv_attach_mcast(3)", fail_ud, (long)i, 0,
			 "ud.%s", paths[i].name);
}
