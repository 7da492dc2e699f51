// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rights: of the window, of the queue pair, and not of the region. */
#include "mw_env.h"

#define REFUSED_BY_QP	(MW_STATUS(IBV_WC_REM_ACCESS_ERR) | \
			 MW_STATUS(IBV_WC_REM_INV_REQ_ERR))

static unsigned int rights_of(long combination)
{
	return (combination & 1 ? IBV_ACCESS_REMOTE_READ : 0U) |
	       (combination & 2 ? IBV_ACCESS_REMOTE_WRITE : 0U) |
	       (combination & 4 ? IBV_ACCESS_REMOTE_ATOMIC : 0U);
}

/* A window with these rights allows these operations and no others. */
static void window_rights(long arg)
{
	unsigned int rights = rights_of(MW_ARG(arg));
	bool bound = false;
	struct mw_env e;

	mw_open(&e, arg);
	if (rights & ~RDMA_ALL_REMOTE)
		ktap_skip("the device has no atomics");
	for (int op = 0; op < mw_ops(&e); op++) {
		struct mw_target t;

		if (!bound)
			mw_bind(&e, 800, 1600, rights);
		t = mw_at(&e, 800, 8);
		bound = rights & mw_op_right[op];
		if (bound)
			mw_allowed(&e, &e.a, (enum mw_op)op, t);
		else
			mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/* Of several packets, too: the right is judged before the first is placed. */
static void window_rights_multi(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 800, 16000, RDMA_ALL_REMOTE & ~IBV_ACCESS_REMOTE_WRITE);
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, 800, 16000));
	mw_bind(&e, 800, 16000, RDMA_ALL_REMOTE & ~IBV_ACCESS_REMOTE_WRITE);
	mw_refused(&e, &e.a, MW_WRITE_IMM, mw_at(&e, 800, 16000));
	mw_bind(&e, 800, 16000, RDMA_ALL_REMOTE & ~IBV_ACCESS_REMOTE_READ);
	mw_refused(&e, &e.a, MW_READ, mw_at(&e, 800, 16000));
	mw_close(&e);
}

/* The queue pair must allow the operation as well. */
static void qp_rights(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct mw_env e;

	conf.access = rights_of(MW_ARG(arg));
	mw_open_conf(&e, arg, &conf, MW_BIND_RIGHTS);
	for (int op = 0; op < mw_ops(&e); op++) {
		struct mw_target t;

		mw_bind(&e, 800, 1600, RDMA_ALL_REMOTE);
		t = mw_at(&e, 800, 8);
		if (conf.access & mw_op_right[op])
			mw_allowed(&e, &e.a, (enum mw_op)op, t);
		else
			mw_refused_as(&e, &e.a, (enum mw_op)op, t,
				      REFUSED_BY_QP);
		if (MW_TYPE(arg) == IBV_MW_TYPE_2 &&
		    conf.access & mw_op_right[op])
			mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* What the region allows, its own key allows; the window's key does not. */
static void region_rights(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = 0; op < mw_ops(&e); op++) {
		mw_bind(&e, 800, 1600, 0);
		t = mw_at(&e, 800, 8);
		t.rkey = e.region.mr->rkey;
		mw_allowed(&e, &e.a, (enum mw_op)op, t);
		t.rkey = e.rkey;
		mw_refused(&e, &e.a, (enum mw_op)op, t);
	}
	mw_close(&e);
}

/* A new bind brings its own rights, more or fewer. */
static void rights_change(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 800, 1600, IBV_ACCESS_REMOTE_READ);
	mw_allowed(&e, &e.a, MW_READ, mw_at(&e, 800, 1600));
	if (MW_TYPE(arg) == IBV_MW_TYPE_2)
		mw_local_inv(&e.a.owner, e.rkey);
	mw_bind(&e, 800, 1600, IBV_ACCESS_REMOTE_WRITE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 800, 1600));
	mw_refused(&e, &e.a, MW_READ, mw_at(&e, 800, 1600));
	mw_close(&e);
}

/* A window's right to write is not a right to read, by any range. */
static void write_only_read(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (uint32_t len = 1; len <= 4096; len *= 16) {
		mw_bind(&e, 800, 4096, IBV_ACCESS_REMOTE_WRITE);
		mw_refused(&e, &e.a, MW_READ, mw_at(&e, 800, len));
	}
	mw_close(&e);
}

void mw_rights_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		for (long rights = 0; rights < 8; rights++) {
			long arg = type | rights << MW_ARG_SHIFT;
			const char *r = rights & 1 ? "R" : "-";
			const char *w = rights & 2 ? "W" : "-";
			const char *a = rights & 4 ? "A" : "-";

			ktap_add("the window's rights include the operation",
				 window_rights, arg, 0,
				 "rights.type%ld.window-%s%s%s", type, r, w, a);
			ktap_add("the QP's access flags do, too", qp_rights,
				 arg, 0, "rights.type%ld.qp-%s%s%s", type, r,
				 w, a);
		}
		ktap_add("nothing of a refused message is placed",
			 window_rights_multi, type, 0,
			 "rights.type%ld.multi-packet", type);
		ktap_add("IW: the region's rights are not looked at",
			 region_rights, type, 0, "rights.type%ld.region",
			 type);
		ktap_add("the window's rights include the operation",
			 rights_change, type, 0, "rights.type%ld.change",
			 type);
		ktap_add("the window's rights include the operation",
			 write_only_read, type, 0,
			 "rights.type%ld.write-only", type);
	}
}
