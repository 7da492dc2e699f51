// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Binds that must fail: each check of a bind, and what a failure looks like.
 *
 * A window of type 1 is bound when the bad bind comes, one of type 2 is Free.
 * After the failure it must still be just that, with the key it had.
 */
#include "mw_env.h"

#define OLD_OFF	256	/* where the window of type 1 is bound before */
#define OLD_LEN	512
#define BOTH	3	/* bits of the types a row is about */
#define ONLY1	1
#define ONLY2	2

/* Objects that a row adds, to be given back after it. */
struct extra {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
};

struct row {
	const char *name;
	const char *clause;
	int types;
	void (*spoil)(struct mw_env *e, struct rdma_bind *b, struct extra *x);
};

/* --- how each row spoils a good bind --- */

static void bad_index(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	struct ibv_mw *gone = mw_alloc(e->a.owner.pd, (int)e->mw->type);

	(void)x;
	b->current_rkey = gone->rkey;
	check_errno(ibv_dealloc_mw(gone), 0, "ibv_dealloc_mw");
}

static void bad_key(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	(void)e;
	(void)x;
	b->current_rkey ^= 0x80;
}

static void region_as_window(struct mw_env *e, struct rdma_bind *b,
			     struct extra *x)
{
	(void)x;
	b->current_rkey = e->region.mr->rkey;
}

static void window_pd(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	x->pd = ibv_alloc_pd(e->dev.ctx);
	check(x->pd, "ibv_alloc_pd");
	x->mw = mw_alloc(x->pd, (int)e->mw->type);
	b->current_rkey = x->mw->rkey;
}

static void region_pd(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	x->pd = ibv_alloc_pd(e->dev.ctx);
	check(x->pd, "ibv_alloc_pd");
	x->mr = ibv_reg_mr(x->pd, e->region.addr, e->region.len,
			   MW_BIND_RIGHTS);
	check(x->mr, "ibv_reg_mr");
	b->mr_lkey = x->mr->lkey;
}

/* Window and region share a PD that is not the queue pair's. */
static void both_pd(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	region_pd(e, b, x);
	x->mw = mw_alloc(x->pd, (int)e->mw->type);
	b->current_rkey = x->mw->rkey;
}

static void region_gone(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	struct ibv_mr *mr = ibv_reg_mr(e->a.owner.pd, e->region.addr,
				       e->region.len, MW_BIND_RIGHTS);

	(void)x;
	check(mr, "ibv_reg_mr");
	b->mr_lkey = mr->lkey;
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
}

static void region_key(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	(void)e;
	(void)x;
	b->mr_lkey ^= 1;
}

static void region_zero(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	(void)e;
	(void)x;
	b->mr_lkey = 0;
}

static void region_ones(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	(void)e;
	(void)x;
	b->mr_lkey = 0xffffffff;
}

static void window_as_region(struct mw_env *e, struct rdma_bind *b,
			     struct extra *x)
{
	(void)x;
	b->mr_lkey = e->rkey;
}

static void use_region(struct mw_env *e, struct rdma_bind *b, struct extra *x,
		       uint64_t iova, unsigned int access)
{
	x->mr = ibv_reg_mr_iova(e->a.owner.pd, e->region.map, e->region.map_len,
				iova, (int)access);
	if (!x->mr && errno == EOPNOTSUPP)
		ktap_skip("such a region cannot be registered here");
	check(x->mr, "ibv_reg_mr_iova: %s", strerror(errno));
	b->mr_lkey = x->mr->lkey;
	b->addr = iova + 128;
	b->length = 128;
}

static void zero_based_region(struct mw_env *e, struct rdma_bind *b,
			      struct extra *x)
{
	use_region(e, b, x, 0, MW_BIND_RIGHTS | IBV_ACCESS_ZERO_BASED);
}

static void no_mw_bind(struct mw_env *e, struct rdma_bind *b, struct extra *x)
{
	use_region(e, b, x, (uintptr_t)e->region.map,
		   MW_BIND_RIGHTS & ~IBV_ACCESS_MW_BIND);
}

static void write_readonly(struct mw_env *e, struct rdma_bind *b,
			   struct extra *x)
{
	use_region(e, b, x, (uintptr_t)e->region.map,
		   IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
	b->access = IBV_ACCESS_REMOTE_WRITE;
}

static void atomic_readonly(struct mw_env *e, struct rdma_bind *b,
			    struct extra *x)
{
	use_region(e, b, x, (uintptr_t)e->region.map,
		   IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
	b->access = IBV_ACCESS_REMOTE_ATOMIC;
}

static void all_readonly(struct mw_env *e, struct rdma_bind *b,
			 struct extra *x)
{
	use_region(e, b, x, (uintptr_t)e->region.map, IBV_ACCESS_MW_BIND);
	b->access = RDMA_ALL_REMOTE;
}

#define SPOIL_FLAG(name, flag)						\
static void name(struct mw_env *e, struct rdma_bind *b, struct extra *x)\
{									\
	(void)e;							\
	(void)x;							\
	b->access |= (flag);						\
}

SPOIL_FLAG(flag_mw_bind, IBV_ACCESS_MW_BIND)
SPOIL_FLAG(flag_zero_based, IBV_ACCESS_ZERO_BASED)
SPOIL_FLAG(flag_on_demand, IBV_ACCESS_ON_DEMAND)
SPOIL_FLAG(flag_hugetlb, IBV_ACCESS_HUGETLB)
SPOIL_FLAG(flag_flush_global, 1U << 8)
SPOIL_FLAG(flag_flush_persistent, 1U << 9)
SPOIL_FLAG(flag_unknown, 1U << 15)
SPOIL_FLAG(flag_relaxed, IBV_ACCESS_RELAXED_ORDERING)
SPOIL_FLAG(flag_sign, 1U << 31)

#define SPOIL_RANGE(name, addr_, length_)				\
static void name(struct mw_env *e, struct rdma_bind *b, struct extra *x)\
{									\
	const uint64_t begin = e->region.iova;				\
	const uint64_t end = begin + e->region.len;			\
									\
	(void)x;							\
	(void)begin;							\
	(void)end;							\
	b->addr = (addr_);						\
	b->length = (length_);						\
}

SPOIL_RANGE(range_front, begin - 1, 2)
SPOIL_RANGE(range_before, begin - 1, 1)
SPOIL_RANGE(range_rear, end - 1, 2)
SPOIL_RANGE(range_behind, end, 1)
SPOIL_RANGE(range_too_long, begin, e->region.len + 1)
SPOIL_RANGE(range_around, begin - 1, e->region.len + 2)
SPOIL_RANGE(range_zero_addr, 0, 1)
SPOIL_RANGE(range_last_addr, UINT64_MAX, 1)
SPOIL_RANGE(range_wrap, UINT64_MAX, 2)
SPOIL_RANGE(range_wrap_into, begin + 64, 0 - (uint64_t)32)
SPOIL_RANGE(range_wrap_exact, begin, 0 - begin)
SPOIL_RANGE(range_all, begin, UINT64_MAX)
SPOIL_RANGE(range_everything, 0, UINT64_MAX)
SPOIL_RANGE(range_sign, begin, 1ULL << 63)
SPOIL_RANGE(range_33_bits, begin, (1ULL << 32) + 64)
SPOIL_RANGE(range_empty, begin, 0)

/* The same ranges for a zero-based window: it cannot reach further. */
#define SPOIL_ZERO_BASED(name, range)					\
static void name(struct mw_env *e, struct rdma_bind *b, struct extra *x)\
{									\
	range(e, b, x);							\
	b->access |= IBV_ACCESS_ZERO_BASED;				\
}

SPOIL_ZERO_BASED(zb_front, range_front)
SPOIL_ZERO_BASED(zb_rear, range_rear)
SPOIL_ZERO_BASED(zb_behind, range_behind)
SPOIL_ZERO_BASED(zb_zero_addr, range_zero_addr)
SPOIL_ZERO_BASED(zb_wrap, range_wrap)
SPOIL_ZERO_BASED(zb_wrap_into, range_wrap_into)

static const struct row rows[] = {
	{ "no-such-window", "the window exists", BOTH, bad_index },
	{ "wrong-key", "the current key matches", BOTH, bad_key },
	{ "region-as-window", "the window exists", BOTH, region_as_window },
	{ "window-of-other-pd", "C10-72", BOTH, window_pd },
	{ "region-of-other-pd", "C10-72", BOTH, region_pd },
	{ "both-of-other-pd", "C10-72", BOTH, both_pd },
	{ "region-gone", "lkey names a live region", BOTH, region_gone },
	{ "region-wrong-key", "lkey names a live region", BOTH, region_key },
	{ "lkey-0", "lkey names a live region", BOTH, region_zero },
	{ "lkey-ones", "lkey names a live region", BOTH, region_ones },
	{ "window-as-region", "lkey names a live region", BOTH,
	  window_as_region },
	{ "zero-based-region", "the region is not zero based", BOTH,
	  zero_based_region },
	{ "region-without-mw-bind", "C10-73", BOTH, no_mw_bind },
	{ "write-of-readonly", "C10-74", BOTH, write_readonly },
	{ "atomic-of-readonly", "C10-74", BOTH, atomic_readonly },
	{ "all-of-readonly", "C10-74", BOTH, all_readonly },
	{ "flag-zero-based", "o10-36.2.2", ONLY1, flag_zero_based },
	{ "flag-mw-bind", "ibv_bind_mw(3): flags", BOTH, flag_mw_bind },
	{ "flag-on-demand", "ibv_bind_mw(3): flags", BOTH, flag_on_demand },
	{ "flag-hugetlb", "ibv_bind_mw(3): flags", BOTH, flag_hugetlb },
	{ "flag-flush-global", "choice: no FLUSH without the region's", BOTH,
	  flag_flush_global },
	{ "flag-flush-persistent", "choice: no FLUSH without the region's", BOTH,
	  flag_flush_persistent },
	{ "flag-unknown", "ibv_bind_mw(3): flags", BOTH, flag_unknown },
	{ "flag-relaxed-ordering", "choice: a hint is no flag of a bind", BOTH,
	  flag_relaxed },
	{ "flag-bit-31", "ibv_bind_mw(3): flags", BOTH, flag_sign },
	{ "range-front", "C10-75", BOTH, range_front },
	{ "range-before", "C10-75", BOTH, range_before },
	{ "range-rear", "C10-75", BOTH, range_rear },
	{ "range-behind", "C10-75", BOTH, range_behind },
	{ "range-too-long", "C10-75", BOTH, range_too_long },
	{ "range-around", "C10-75", BOTH, range_around },
	{ "range-zero-addr", "C10-75", BOTH, range_zero_addr },
	{ "range-last-addr", "C10-75", BOTH, range_last_addr },
	{ "range-wrap", "C10-75: no wrap", BOTH, range_wrap },
	{ "range-wrap-into", "C10-75: no wrap", BOTH, range_wrap_into },
	{ "range-wrap-exact", "C10-75: no wrap", BOTH, range_wrap_exact },
	{ "range-all", "C10-75: no wrap", BOTH, range_all },
	{ "range-everything", "C10-75: no wrap", BOTH, range_everything },
	{ "range-sign", "C10-75: no wrap", BOTH, range_sign },
	{ "range-33-bits", "C10-75", BOTH, range_33_bits },
	{ "zero-length", "o10-37.2.40", ONLY2, range_empty },
	{ "zero-based-front", "C10-75: ZERO_BASED too", ONLY2, zb_front },
	{ "zero-based-rear", "C10-75: ZERO_BASED too", ONLY2, zb_rear },
	{ "zero-based-behind", "C10-75: ZERO_BASED too", ONLY2, zb_behind },
	{ "zero-based-zero-addr", "C10-75: ZERO_BASED too", ONLY2,
	  zb_zero_addr },
	{ "zero-based-wrap", "C10-75: ZERO_BASED too", ONLY2, zb_wrap },
	{ "zero-based-wrap-into", "C10-75: ZERO_BASED too", ONLY2,
	  zb_wrap_into },
};

/* --- what a failure looks like --- */

/* The bind and two requests after it: an error, two flushes, no more. */
static void expect_failure(struct rdma_end *end, struct rdma_end *peer,
			   const struct rdma_bind *bind, unsigned int flags)
{
	enum ibv_wc_status want = IBV_WC_MW_BIND_ERR;
	struct rdma_wr w[3];
	struct ibv_wc wc;

	rdma_wr_bind(&w[0], bind);
	rdma_wr_send(&w[1], NULL, 0, 0);
	rdma_wr_send(&w[2], NULL, 0, 0);
	w[0].wr.send_flags = flags;
	w[1].wr.send_flags = flags;
	rdma_recv(peer, 1, NULL, 0, 0);
	rdma_post(end, rdma_wr_chain(w, 3));
	for (int i = 0; i < 3; i++) {
		check(rdma_wait_wc(end->scq, &wc, RDMA_WAIT_MS),
		      "request %d of 3 completes, unsignaled or not", i);
		check_eq(wc.wr_id, w[i].wr.wr_id, "wr_id");
		check(wc.status == want, "request %d of 3: %s", i,
		      ibv_wc_status_str(wc.status));
		check_eq(wc.qp_num, end->qp->qp_num, "qp_num");
		if (!i)
			check_eq(wc.opcode, IBV_WC_BIND_MW, "opcode");
		want = IBV_WC_WR_FLUSH_ERR;
	}
	check(rdma_wait_state(end->qp, IBV_QPS_ERR),
	      "a failed bind puts the queue pair into ERR");
	check(!ibv_poll_cq(end->scq, 1, &wc), "there is one CQE for each");
	check(!ibv_poll_cq(peer->rcq, 1, &wc), "nothing was sent after it");
}

/* What is posted then is flushed. */
static void expect_flush(struct rdma_end *end, const struct rdma_bind *bind)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	rdma_wr_bind(&w, bind);
	check_eq(rdma_do(end, &w, &wc), IBV_WC_WR_FLUSH_ERR,
		 "status of a bind posted in ERR");
}

/* The window is what it was before, and its key is. */
static void expect_unchanged(struct mw_env *e, uint32_t wanted_rkey)
{
	struct mw_target t = mw_at(e, 128, 64);

	if (e->mw->type == IBV_MW_TYPE_1) {
		mw_allowed(e, &e->a, MW_WRITE, mw_at(e, OLD_OFF, OLD_LEN));
		mw_refused(e, &e->a, MW_WRITE, t);
		mw_expect_busy(e);
		mw_bind(e, 0, 0, 0);
	} else {
		mw_refused(e, &e->a, MW_WRITE, t);
	}
	if (wanted_rkey >> 8 == e->rkey >> 8) {
		t.rkey = wanted_rkey;
		mw_refused(e, &e->a, MW_WRITE, t);
	}
	mw_bind(e, 1000, 2000, RDMA_ALL_REMOTE);
	mw_allowed(e, &e->a, MW_WRITE, mw_at(e, 1000, 2000));
	mw_revoke(e, MW_BY_DEALLOC);
	mw_expect_dereg(e);
}

static void give_back(struct extra *x)
{
	if (x->mw)
		check_errno(ibv_dealloc_mw(x->mw), 0, "ibv_dealloc_mw");
	if (x->mr)
		check_errno(ibv_dereg_mr(x->mr), 0, "ibv_dereg_mr");
	if (x->pd)
		check_errno(ibv_dealloc_pd(x->pd), 0, "ibv_dealloc_pd");
}

static void run_row(long arg)
{
	const struct row *row = &rows[MW_ARG(arg)];
	struct extra x = { 0 };
	struct rdma_bind bind;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OLD_OFF, OLD_LEN, RDMA_ALL_REMOTE);
	/* Free, but with another key than the one it was allocated with */
	if (MW_TYPE(arg) == IBV_MW_TYPE_2)
		mw_local_inv(&e.a.owner, e.rkey);
	bind = mw_good_bind(&e, 128, 128, RDMA_ALL_REMOTE);
	/* any other byte: the key must not change even so */
	bind.new_rkey += 0x10;
	bind.new_rkey = (bind.new_rkey & 0xff) | (e.rkey & ~0xffU);
	row->spoil(&e, &bind, &x);
	expect_failure(&e.a.owner, &e.a.peer, &bind,
		       arg & MW_WR_API ? 0 : IBV_SEND_SIGNALED);
	expect_flush(&e.a.owner, &bind);
	rdma_reconnect(&e.a.owner, &e.a.peer);
	give_back(&x);
	expect_unchanged(&e, bind.new_rkey);
	mw_close(&e);
}

/* A bound window of type 2 must be Free before it is bound again. */
static void not_free(long arg)
{
	struct rdma_bind bind;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 128, 64, RDMA_ALL_REMOTE);
	bind = mw_good_bind(&e, 1024, 64, RDMA_ALL_REMOTE);
	expect_failure(&e.a.owner, &e.a.peer, &bind,
		       arg & MW_WR_API ? 0 : IBV_SEND_SIGNALED);
	mw_expect_busy(&e);
	mw_close(&e);
}

/* Another queue pair's failing bind leaves the window where it is bound. */
static void not_free_other_qp(long arg)
{
	struct rdma_bind bind;
	struct mw_pair b;
	struct mw_env e;

	mw_open(&e, arg);
	mw_second_pair(&e, &b, true);
	mw_bind(&e, 128, 64, RDMA_ALL_REMOTE);
	bind = mw_good_bind(&e, 1024, 64, RDMA_ALL_REMOTE);
	expect_failure(&b.owner, &b.peer, &bind, 0);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 128, 64));
	mw_expect_busy(&e);
	mw_local_inv(&e.a.owner, e.rkey);
	mw_expect_dereg(&e);
	mw_close_two(&e, &b);
}

/*
 * Before RTS a bind is refused when it is posted, or waits; it binds nothing.
 * MW_ARG: the state that the queue pair is in.
 */
static void before_rts(long arg)
{
	enum ibv_qp_state state = (enum ibv_qp_state)MW_ARG(arg);
	struct rdma_bind bind;
	struct rdma_end *end;
	struct mw_target t;
	struct rdma_wr w;
	struct ibv_wc wc;
	struct mw_env e;
	int err;

	mw_open(&e, arg);
	end = &e.a.owner;
	check_errno(rdma_to_state(end, IBV_QPS_RESET), 0, "to RESET");
	if (state != IBV_QPS_RESET)
		check_errno(rdma_to_init(end), 0, "to INIT");
	if (state == IBV_QPS_RTR)
		check_errno(rdma_to_rtr(end, e.a.peer.qp->qp_num, 0), 0,
			    "to RTR");
	bind = mw_good_bind(&e, 128, 64, RDMA_ALL_REMOTE);
	rdma_wr_bind(&w, &bind);
	err = rdma_try_post(end, &w.wr);
	ktap_note("posting it gives %d (%s)", err, strerror(err));
	check(!ibv_poll_cq(end->scq, 1, &wc), "nothing completes before RTS");
	rdma_reconnect(&e.a.owner, &e.a.peer);
	t = mw_at(&e, 128, 8);
	t.rkey = bind.new_rkey;
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* A bind by ibv_bind_mw() that the device refuses: as bad as any other. */
static void call_beyond_region(long arg)
{
	struct ibv_mw_bind bind = { .wr_id = 0x77 };
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OLD_OFF, OLD_LEN, RDMA_ALL_REMOTE);
	bind.bind_info.mr = e.region.mr;
	bind.bind_info.addr = e.region.iova;
	bind.bind_info.length = e.region.len + 1;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	check_errno(ibv_bind_mw(e.a.owner.qp, e.mw, &bind), 0, "ibv_bind_mw");
	check(rdma_wait_wc(e.a.owner.scq, &wc, RDMA_WAIT_MS),
	      "a failed bind completes, unsignaled or not");
	check_eq(wc.status, IBV_WC_MW_BIND_ERR, "status");
	check_eq(wc.wr_id, bind.wr_id, "wr_id");
	rdma_reconnect(&e.a.owner, &e.a.peer);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OLD_OFF, OLD_LEN));
	mw_close(&e);
}

/* ibv_bind_mw(3) says what it refuses itself by an errno. */
static void call_refuses_type2(long arg)
{
	struct ibv_mw_bind bind = { .wr_id = 1 };
	struct mw_env e;

	mw_open(&e, arg);
	bind.bind_info.mr = e.region.mr;
	bind.bind_info.addr = e.region.iova;
	bind.bind_info.length = 64;
	check(ibv_bind_mw(e.a.owner.qp, e.mw, &bind),
	      "ibv_bind_mw refuses a window of type 2");
	mw_close(&e);
}

void mw_bind_error_cases(void)
{
	for (long i = 0; i < (long)ARRAY_SIZE(rows); i++) {
		for (long type = 1; type <= 2; type++) {
			long arg = type | i << MW_ARG_SHIFT;

			if (!(rows[i].types & type))
				continue;
			ktap_add(rows[i].clause, run_row, arg, 0,
				 "bind-error.type%ld.%s", type, rows[i].name);
			ktap_add("10.7.3.1", run_row, arg | MW_WR_API, 0,
				 "bind-error.type%ld.%s.unsignaled", type,
				 rows[i].name);
		}
	}
	ktap_add("o10-37.2.30", not_free, 2, 0, "bind-error.type2.not-free");
	ktap_add("10.7.3.1", not_free, 2 | MW_WR_API, 0,
		 "bind-error.type2.not-free.unsignaled");
	ktap_add("o10-37.2.30", not_free_other_qp, 2, 0,
		 "bind-error.type2.not-free-other-qp");
	ktap_add("ibv_bind_mw(3)", call_refuses_type2, 2, 0,
		 "bind-error.type2.call");
	ktap_add("10.7.3.1", call_beyond_region, 1, 0,
		 "bind-error.type1.call-beyond-region");
	for (long type = 1; type <= 2; type++) {
		ktap_add("ibv_post_send(3): the QP is in RTS", before_rts,
			 type | IBV_QPS_RESET << MW_ARG_SHIFT, 0,
			 "bind-error.type%ld.qp-in-reset", type);
		ktap_add("ibv_post_send(3): the QP is in RTS", before_rts,
			 type | IBV_QPS_INIT << MW_ARG_SHIFT, 0,
			 "bind-error.type%ld.qp-in-init", type);
		ktap_add("ibv_post_send(3): the QP is in RTS", before_rts,
			 type | IBV_QPS_RTR << MW_ARG_SHIFT, 0,
			 "bind-error.type%ld.qp-in-rtr", type);
	}
}
