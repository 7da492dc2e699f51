// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Order: binds and invalidates among the other requests of a send queue. */
#include "mw_env.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OFF	640
#define LEN	2048
#define MANY	1000	/* requests of one send queue */
#define TURN	256	/* what smw completes in one go */

/* The completions of @n posted requests: in order, all good. */
static void expect_all_good(struct rdma_end *end, const struct rdma_wr *w,
			    size_t n)
{
	struct ibv_wc wc;

	for (size_t i = 0; i < n; i++) {
		check(rdma_wait_wc(end->scq, &wc, RDMA_WAIT_MS),
		      "request %zu completes", i);
		check_eq(wc.wr_id, w[i].wr.wr_id, "completions are in order");
		check(wc.status == IBV_WC_SUCCESS, "request %zu: %s", i,
		      ibv_wc_status_str(wc.status));
	}
	check(!ibv_poll_cq(end->scq, 1, &wc), "one CQE for each request");
}

/* BIND and SEND in one list: who gets the SEND may use the key at once. */
static void bind_then_send(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 50;
	struct rdma_bind bind;
	struct rdma_wr w[2];
	struct rdma_wr use;
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	for (unsigned int i = 0; i < rounds; i++) {
		bind = mw_good_bind(&e, OFF + i % 7, LEN, RDMA_ALL_REMOTE);
		rdma_wr_bind(&w[0], &bind);
		rdma_wr_send(&w[1], NULL, 0, 0);
		rdma_recv(&e.a.peer, i, NULL, 0, 0);
		rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
		check(rdma_wait_wc(e.a.peer.rcq, &wc, RDMA_WAIT_MS),
		      "the peer gets the message");
		rdma_wr_write(&use, e.a.local.addr, LEN, e.a.local.mr->lkey,
			      bind.addr, bind.new_rkey);
		check_eq(rdma_do(&e.a.peer, &use, NULL), IBV_WC_SUCCESS,
			 "status of a write as soon as the key is known");
		expect_all_good(&e.a.owner, w, 2);
		e.rkey = bind.new_rkey;
		if (MW_TYPE(arg) == IBV_MW_TYPE_2)
			mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* A whole life in one list. */
static void life_in_one_list(long arg)
{
	struct rdma_bind bind;
	struct rdma_wr w[6];
	struct mw_env e;

	mw_open(&e, arg);
	for (size_t i = 0; i < 6; i += 2) {
		bind = mw_good_bind(&e, OFF + 100 * i, LEN, RDMA_ALL_REMOTE);
		rdma_wr_bind(&w[i], &bind);
		e.rkey = bind.new_rkey;
		rdma_wr_local_inv(&w[i + 1], e.rkey);
	}
	rdma_post(&e.a.owner, rdma_wr_chain(w, 6));
	expect_all_good(&e.a.owner, w, 6);
	mw_expect_dereg(&e);
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF, 8));
	mw_close(&e);
}

/* Revoked and told in one list: who gets the SEND finds the key dead. */
static void revoke_then_send(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 10;
	struct rdma_bind unbind;
	struct rdma_wr w[2];
	struct mw_target t;
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	for (unsigned int i = 0; i < rounds; i++) {
		mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
		t = mw_at(&e, OFF, LEN);
		mw_allowed(&e, &e.a, MW_WRITE, t);
		unbind = mw_good_bind(&e, 0, 0, 0);
		if (MW_TYPE(arg) == IBV_MW_TYPE_1)
			rdma_wr_bind(&w[0], &unbind);
		else
			rdma_wr_local_inv(&w[0], e.rkey);
		w[0].wr.send_flags = 0;
		rdma_wr_send(&w[1], NULL, 0, 0);
		rdma_recv(&e.a.peer, i, NULL, 0, 0);
		rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
		check(rdma_wait_wc(e.a.peer.rcq, &wc, RDMA_WAIT_MS),
		      "the peer gets the message");
		mw_refused(&e, &e.a, MW_WRITE, t);
		if (MW_TYPE(arg) == IBV_MW_TYPE_1) {
			e.rkey = unbind.new_rkey;
			e.mw->rkey = e.rkey;	/* as ibv_bind_mw() does */
		}
	}
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* The last bind of a list is the one that holds. */
static void rebinds_in_one_list(long arg)
{
	struct rdma_bind bind;
	struct rdma_wr w[4];
	struct mw_env e;

	mw_open(&e, arg);
	for (size_t i = 0; i < 4; i++) {
		bind = mw_good_bind(&e, OFF + 4000 * i, LEN, RDMA_ALL_REMOTE);
		rdma_wr_bind(&w[i], &bind);
		e.rkey = bind.new_rkey;
	}
	rdma_post(&e.a.owner, rdma_wr_chain(w, 4));
	expect_all_good(&e.a.owner, w, 4);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF + 12000, LEN));
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF + 8000, LEN));
	mw_close(&e);
}

/* LOCAL_INV waits for the requests before it: here, for a receiver. */
static void local_inv_waits(long arg)
{
	struct rdma_wr w[2];
	struct ibv_wc wc;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_wr_send(&w[0], NULL, 0, 0);
	rdma_wr_local_inv(&w[1], e.rkey);
	rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
	for (int i = 0; i < 20; i++) {
		mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
		check(!ibv_poll_cq(e.a.owner.scq, 1, &wc),
		      "nothing completes before the send is received");
	}
	mw_expect_busy(&e);
	rdma_recv(&e.a.peer, 1, NULL, 0, 0);
	expect_all_good(&e.a.owner, w, 2);
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF, 8));
	mw_expect_dereg(&e);
	mw_close(&e);
}

/* It waits for a long read into the region, too. */
static void local_inv_after_read(long arg)
{
	struct rdma_buf source;
	struct rdma_wr w[2];
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&source, e.a.peer.pd, MW_REGION_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_fill(&source, 0x80);
	for (int i = 0; i < 10; i++) {
		mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
		rdma_buf_fill(&e.region, 0);
		rdma_wr_read(&w[0], e.region.addr, MW_REGION_LEN,
			     e.region.mr->lkey, source.iova, source.mr->rkey);
		rdma_wr_local_inv(&w[1], e.rkey);
		w[0].wr.send_flags = 0;
		rdma_post(&e.a.owner, rdma_wr_chain(w, 2));
		expect_all_good(&e.a.owner, &w[1], 1);
		check(!memcmp(e.region.addr, source.addr, MW_REGION_LEN),
		      "the read is complete when LOCAL_INV is");
	}
	rdma_buf_destroy(&source);
	mw_close(&e);
}

/*
 * Local operations run once. The sends around them are refused with RNR until
 * the peer posts receives, so the requester goes back several times; a bind
 * that ran again would find its window not Free.
 */
static void once(long arg)
{
	uint64_t until;
	struct rdma_bind bind;
	struct rdma_wr w[6];
	struct mw_env e;

	mw_open(&e, arg);
	bind = mw_good_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	rdma_wr_bind(&w[0], &bind);
	rdma_wr_send(&w[1], NULL, 0, 0);
	rdma_wr_local_inv(&w[2], bind.new_rkey);
	e.rkey = bind.new_rkey;
	bind = mw_good_bind(&e, OFF + LEN, LEN, RDMA_ALL_REMOTE);
	rdma_wr_bind(&w[3], &bind);
	e.rkey = bind.new_rkey;
	rdma_wr_send(&w[4], NULL, 0, 0);
	rdma_wr_send(&w[5], NULL, 0, 0);
	rdma_post(&e.a.owner, rdma_wr_chain(w, 6));
	for (int i = 0; i < 3; i++) {
		/* time for RNR to come about: 0.64 ms each */
		until = rdma_now_us() + 5000;
		while (rdma_now_us() < until)
			sched_yield();
		rdma_recv(&e.a.peer, 1, NULL, 0, 0);
	}
	expect_all_good(&e.a.owner, w, 6);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF + LEN, LEN));
	mw_refused(&e, &e.a, MW_WRITE, mw_at(&e, OFF, 8));
	mw_close(&e);
}

static bool open_counter(const struct mw_env *e, const char *name, int flags, int *fd)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(e->dev.ctx->device), name);
	*fd = open(path, flags);
	return *fd >= 0;
}

static long read_counter(int fd, const char *what)
{
	char text[32] = "";

	check(read(fd, text, sizeof(text) - 1) > 0, "%s: %s", what, strerror(errno));
	return atol(text);
}

/*
 * Binds that the device counts; skips the case where it counts none. The kernel keeps what
 * it has read for as many milliseconds as the file lifespan says.
 */
static long binds_done(const struct mw_env *e)
{
	int lifespan, counter;
	long kept, binds;

	if (!open_counter(e, "mw_binds", O_RDONLY, &counter))
		ktap_skip("the device does not count binds");
	if (!open_counter(e, "lifespan", O_RDWR, &lifespan))
		ktap_skip("the counters' lifespan cannot be set");
	kept = read_counter(lifespan, "lifespan");
	check(pwrite(lifespan, "0", 1, 0) == 1, "lifespan");
	binds = read_counter(counter, "mw_binds");
	check(dprintf(lifespan, "%ld", kept) > 0, "lifespan");
	close(lifespan);
	close(counter);
	return binds;
}

/* Away, and back at the PSN that it was to begin with. */
static void peer_leaves(struct mw_env *e)
{
	check_errno(rdma_to_state(&e->a.peer, IBV_QPS_RESET), 0, "the peer to RESET");
}

static void peer_returns(struct mw_env *e)
{
	struct rdma_end *peer = &e->a.peer;

	check_errno(rdma_to_init(peer), 0, "the peer to INIT");
	rdma_recv(peer, 1, NULL, 0, 0);
	check_errno(rdma_to_rtr(peer, e->a.owner.qp->qp_num, peer->conf.psn), 0,
		    "the peer to RTR");
}

/*
 * Binds wait behind a SEND for its acknowledgment, which completes them all: so no more
 * of them are done before than a CPU may complete in one go.
 */
static void binds_behind_a_loss(long arg)
{
	static struct rdma_wr w[MANY];
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_bind bind;
	struct mw_env e;
	long before;

	conf.cap.max_send_wr = MANY;
	conf.cqe = MANY;
	conf.timeout = 17;	/* 0.5 s */
	mw_open_conf(&e, arg, &conf, MW_BIND_RIGHTS);
	before = binds_done(&e);
	peer_leaves(&e);
	rdma_wr_send(&w[0], NULL, 0, 0);
	for (size_t i = 1; i < MANY; i++) {
		bind = mw_good_bind(&e, i, LEN, RDMA_ALL_REMOTE);
		rdma_wr_bind(&w[i], &bind);
		e.rkey = bind.new_rkey;
	}
	rdma_post(&e.a.owner, rdma_wr_chain(w, MANY));
	check(binds_done(&e) - before <= TURN, "%ld binds wait for one acknowledgment",
	      binds_done(&e) - before);
	peer_returns(&e);
	expect_all_good(&e.a.owner, w, MANY);
	check_eq(binds_done(&e) - before, MANY - 1, "binds");
	rdma_reconnect(&e.a.owner, &e.a.peer);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, MANY - 1, LEN));
	mw_close(&e);
}

/* A peer reads through the window while its owner writes to the peer. */
static void traffic_both_ways(long arg)
{
	struct rdma_buf sink;
	struct rdma_wr to[8], from[8];
	struct mw_env e;

	mw_open(&e, arg);
	rdma_buf_create(&sink, e.a.peer.pd, MW_REGION_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
	mw_bind(&e, 0, MW_REGION_LEN, RDMA_ALL_REMOTE);
	rdma_buf_fill(&e.region, 0);
	for (size_t i = 0; i < 8; i++) {
		rdma_wr_write(&to[i], e.region.addr, 8192, e.region.mr->lkey,
			      sink.iova + i * 8192, sink.mr->rkey);
		rdma_wr_read(&from[i], e.a.local.addr + i * 8192, 8192,
			     e.a.local.mr->lkey, e.region.iova + i * 8192,
			     e.rkey);
	}
	rdma_post(&e.a.owner, rdma_wr_chain(to, 8));
	rdma_post(&e.a.peer, rdma_wr_chain(from, 8));
	expect_all_good(&e.a.owner, to, 8);
	expect_all_good(&e.a.peer, from, 8);
	check(!memcmp(e.a.local.addr, e.region.addr, MW_REGION_LEN),
	      "the reads fetched the window");
	for (size_t i = 0; i < 8; i++)
		check(!memcmp(sink.addr + i * 8192, e.region.addr, 8192),
		      "write %zu arrived", i);
	rdma_buf_destroy(&sink);
	mw_close(&e);
}

void mw_order_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		ktap_add("in effect before later requests", bind_then_send,
			 type, 60, "order.type%ld.bind-then-send", type);
		ktap_add("in effect before later requests", bind_then_send,
			 type | MW_WR_API, 60,
			 "order.type%ld.bind-then-send-wr-api", type);
		ktap_add("in effect before later requests", revoke_then_send,
			 type, 0, "order.type%ld.revoke-then-send", type);
		ktap_add("ibv_alloc_mw(3)", traffic_both_ways, type, 0,
			 "order.type%ld.traffic-both-ways", type);
	}
	ktap_add("in effect before later requests", life_in_one_list, 2, 0,
		 "order.type2.life-in-one-list");
	ktap_add("in effect before later requests", life_in_one_list,
		 2 | MW_WR_API, 0, "order.type2.life-in-one-list-wr-api");
	ktap_add("type 1: bind while bound", rebinds_in_one_list, 1, 0,
		 "order.type1.rebinds-in-one-list");
	ktap_add("in order, and of bounded number", binds_behind_a_loss, 1, 0,
		 "order.type1.binds-behind-a-loss");
	ktap_add("10.6.5.1", local_inv_waits, 2, 0, "order.local-inv-waits");
	ktap_add("10.6.5.1", local_inv_after_read, 2, 0,
		 "order.local-inv-after-read");
	ktap_add("local operations run once", once, 2, 0, "order.once");
	ktap_add("local operations run once", once, 2 | MW_WR_API, 0,
		 "order.once-wr-api");
}
