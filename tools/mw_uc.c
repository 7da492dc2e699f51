// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Windows of UC queue pairs: the same rules, but a refused write is dropped
 * without a word, and the connection goes on.
 */
#include "mw_env.h"

#define OFF	5003
#define LEN	9001

static void need_uc(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_UC,
	};
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	pd = mw_open_pd(&dev, 0);
	attr.send_cq = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
	check(attr.send_cq, "ibv_create_cq: %s", strerror(errno));
	attr.recv_cq = attr.send_cq;
	qp = ibv_create_qp(pd, &attr);
	if (!qp)
		ktap_skip("the device makes no UC queue pairs (%s)",
			  strerror(errno));
	check_errno(ibv_destroy_qp(qp), 0, "ibv_destroy_qp");
	check_errno(ibv_destroy_cq(attr.send_cq), 0, "ibv_destroy_cq");
	mw_close_pd(&dev, pd);
}

static void open_uc(struct mw_env *e, long arg)
{
	struct rdma_conf conf = rdma_conf_default();

	need_uc();
	conf.type = IBV_QPT_UC;
	conf.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	mw_open_conf(e, arg, &conf, MW_BIND_RIGHTS);
}

/*
 * A write, and a send after it: when the send is received, the write has been
 * placed or dropped. Neither tells the requester.
 */
static void write_and_tell(struct mw_env *e, struct mw_pair *p,
			   const struct mw_target *t)
{
	struct rdma_wr w[2];
	struct ibv_wc wc;

	mw_fill(e, p);
	rdma_recv(&p->owner, 1, NULL, 0, 0);
	rdma_wr_write(&w[0], p->local.addr, t->len, p->local.mr->lkey, t->va,
		      t->rkey);
	rdma_wr_send(&w[1], NULL, 0, 0);
	rdma_post(&p->peer, rdma_wr_chain(w, 2));
	for (int i = 0; i < 2; i++) {
		check(rdma_wait_wc(p->peer.scq, &wc, RDMA_WAIT_MS),
		      "request %d completes", i);
		check_eq(wc.wr_id, w[i].wr.wr_id, "wr_id");
		check(wc.status == IBV_WC_SUCCESS, "request %d: %s", i,
		      ibv_wc_status_str(wc.status));
	}
	check(rdma_wait_wc(p->owner.rcq, &wc, RDMA_WAIT_MS),
	      "the send after the write arrives");
	check_eq(wc.status, IBV_WC_SUCCESS, "status of its receive");
	check_eq(rdma_state(p->owner.qp), IBV_QPS_RTS, "the owner's state");
	check_eq(rdma_state(p->peer.qp), IBV_QPS_RTS, "the peer's state");
}

static void placed(struct mw_env *e, struct mw_pair *p, struct mw_target t)
{
	write_and_tell(e, p, &t);
	mw_expect_write(e, p, &t);
}

static void dropped(struct mw_env *e, struct mw_pair *p, struct mw_target t)
{
	write_and_tell(e, p, &t);
	mw_expect_untouched(e, p);
}

static void writes(long arg)
{
	struct mw_target t;
	struct mw_env e;

	open_uc(&e, arg);
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_WRITE);
	placed(&e, &e.a, mw_at(&e, OFF, LEN));
	placed(&e, &e.a, mw_at(&e, OFF, 1));
	placed(&e, &e.a, mw_at(&e, OFF + LEN - 1, 1));
	placed(&e, &e.a, mw_at(&e, OFF + LEN - MW_MTU, MW_MTU));
	if (MW_TYPE(arg) == IBV_MW_TYPE_2) {
		mw_local_inv(&e.a.owner, e.rkey);
		mw_bind(&e, OFF, LEN,
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
		t = mw_at(&e, OFF, LEN);
		t.va = 0;
		placed(&e, &e.a, t);
		t.va = 1;
		dropped(&e, &e.a, t);
	}
	mw_close(&e);
}

static const struct {
	const char *name;
	long first;	/* from the window's first byte */
	uint32_t len;
} spans[] = {
	{ "front", -1, 100 },
	{ "front-byte", -1, 1 },
	{ "front-multi", -1, 4 * MW_MTU },
	{ "rear", LEN - 99, 100 },
	{ "rear-byte", LEN, 1 },
	{ "rear-multi", LEN - 4 * MW_MTU, 4 * MW_MTU + 1 },
};

static void outside(long arg)
{
	struct mw_target t;
	struct mw_env e;

	open_uc(&e, arg);
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_WRITE);
	t = mw_at(&e, OFF, spans[MW_ARG(arg)].len);
	t.va += (uint64_t)spans[MW_ARG(arg)].first;
	dropped(&e, &e.a, t);
	placed(&e, &e.a, mw_at(&e, OFF, LEN));
	mw_close(&e);
}

/* Not bound, without the right, by a wrong key. */
static void not_granted(long arg)
{
	struct mw_target t;
	struct mw_env e;

	open_uc(&e, arg);
	dropped(&e, &e.a, mw_at(&e, OFF, 64));
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_READ);
	dropped(&e, &e.a, mw_at(&e, OFF, 64));
	if (MW_TYPE(arg) == IBV_MW_TYPE_2)
		mw_local_inv(&e.a.owner, e.rkey);
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_WRITE);
	t = mw_at(&e, OFF, 64);
	t.rkey ^= 0x80;
	dropped(&e, &e.a, t);
	placed(&e, &e.a, mw_at(&e, OFF, LEN));
	mw_close(&e);
}

static void revoked(long arg)
{
	enum mw_how how = (enum mw_how)MW_ARG(arg);
	struct mw_target t;
	struct mw_env e;

	open_uc(&e, arg);
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_WRITE);
	t = mw_at(&e, OFF, LEN);
	placed(&e, &e.a, t);
	mw_revoke(&e, how);
	dropped(&e, &e.a, t);
	if (how != MW_BY_REBIND)
		mw_expect_dereg(&e);
	mw_close(&e);
}

/* Type 1 is for every queue pair of the PD, type 2 for the one that bound it. */
static void other_qp(long arg)
{
	struct mw_pair b;
	struct mw_env e;

	open_uc(&e, arg);
	mw_second_pair(&e, &b, true);
	mw_bind(&e, OFF, LEN, IBV_ACCESS_REMOTE_WRITE);
	if (MW_TYPE(arg) == IBV_MW_TYPE_1)
		placed(&e, &b, mw_at(&e, OFF, LEN));
	else
		dropped(&e, &b, mw_at(&e, OFF, LEN));
	placed(&e, &e.a, mw_at(&e, OFF, LEN));
	mw_close_two(&e, &b);
}

static void bind_error(long arg)
{
	struct rdma_bind bind;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;

	open_uc(&e, arg);
	bind = mw_good_bind(&e, 0, MW_REGION_LEN + 1, IBV_ACCESS_REMOTE_WRITE);
	rdma_wr_bind(&w, &bind);
	w.wr.send_flags = 0;
	check_eq(rdma_do(&e.a.owner, &w, &wc), IBV_WC_MW_BIND_ERR,
		 "status of a bind beyond the region");
	check(rdma_wait_state(e.a.owner.qp, IBV_QPS_ERR),
	      "a failed bind puts the queue pair into ERR");
	mw_expect_dereg(&e);
	mw_close(&e);
}

void mw_uc_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		ktap_add("range inside the window", writes, type, 0,
			 "uc.type%ld.writes", type);
		for (long i = 0; i < (long)ARRAY_SIZE(spans); i++)
			ktap_add("UC: dropped silently", outside,
				 type | i << MW_ARG_SHIFT, 0,
				 "uc.type%ld.%s", type, spans[i].name);
		ktap_add("UC: dropped silently", not_granted, type, 0,
			 "uc.type%ld.not-granted", type);
		for (long how = 0; how < MW_WAYS; how++) {
			/* no opcode of UC carries an invalidate */
			if (!mw_how_fits((enum mw_how)how, (int)type) ||
			    how == MW_BY_SEND_INV)
				continue;
			ktap_add("ibv_alloc_mw(3): until invalidated by …",
				 revoked, type | how << MW_ARG_SHIFT, 0,
				 "uc.type%ld.%s", type, mw_how_name[how]);
		}
		ktap_add(type == 1 ? "type 1: QP PD == window PD" :
			 "2B: QP == the bound QP", other_qp, type, 0,
			 "uc.type%ld.other-qp", type);
		ktap_add("10.7.3.1", bind_error, type, 0,
			 "uc.type%ld.bind-error", type);
	}
}
