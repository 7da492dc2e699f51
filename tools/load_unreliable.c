// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UC and UD: each message says which it is and has the sum of its bytes. A wire may
 * lose it, bring it late or twice, but none that was not sent.
 */
#include "load.h"
#include "ud_env.h"

#include <stdlib.h>

#define BURST		4	/* messages in one go, */
#define PAUSE_MS	10	/* and how often */
#define NUM_RECEIVES	60
#define RECEIVE_LEN	(UD_GRH + LONGEST)
#define LONGEST		4096
#define MESSAGES_MAX	(1U << 22)
#define LAST_MS		2000	/* what is on its way when the last was sent comes */

struct header {
	uint64_t nr;
	uint64_t sum;		/* of what follows */
};

struct unreliable {
	struct ud_env u;	/* of UC the pair alone */
	bool ud;
	struct rdma_buf inbox;
	uint32_t seed;
	uint32_t longest;
	uint64_t sent;
	uint64_t arrived;
	uint64_t again;		/* of those that had arrived */
	uint64_t packets;	/* sent */
	uint8_t *seen;		/* a bit for each message */
};

static void post_receive(struct unreliable *t, uint64_t i)
{
	rdma_recv(&t->u.e.b, i, t->inbox.addr + i * RECEIVE_LEN, RECEIVE_LEN,
		  t->inbox.mr->lkey);
}

static void open_pair(struct unreliable *t, bool ud)
{
	struct rdma_conf conf = load_conf(ud ? IBV_QPT_UD : IBV_QPT_UC);

	memset(t, 0, sizeof(*t));
	t->ud = ud;
	t->seed = (uint32_t)ktap_opt.seed * 2 + 1;
	if (ud)
		ud_open(&t->u, &conf);
	else
		qp_open(&t->u.e, &conf, UD_LEN);
	t->longest = ud && t->u.mtu < LONGEST ? t->u.mtu : LONGEST;
	rdma_buf_create(&t->inbox, t->u.e.b.pd, NUM_RECEIVES * RECEIVE_LEN, 0,
			IBV_ACCESS_LOCAL_WRITE);
	t->seen = calloc(1, MESSAGES_MAX / 8);
	check(t->seen, "calloc");
	for (uint64_t i = 0; i < NUM_RECEIVES; i++)
		post_receive(t, i);
}

static void close_pair(struct unreliable *t)
{
	free(t->seen);
	/* The receives refer to it. */
	check_errno(rdma_to_state(&t->u.e.b, IBV_QPS_RESET), 0, "to RESET");
	rdma_buf_destroy(&t->inbox);
	if (t->ud)
		ud_close(&t->u);
	else
		qp_close(&t->u.e);
}

static void send_one(struct unreliable *t)
{
	struct header *h = (struct header *)t->u.e.abuf.addr;
	uint32_t body = load_draw(&t->seed, t->longest - (uint32_t)sizeof(*h) + 1);
	uint32_t len = body + (uint32_t)sizeof(*h);
	struct ibv_wc wc;
	struct rdma_wr w;

	check(t->sent < MESSAGES_MAX, "there is room to note what arrived");
	load_fill(&t->seed, h + 1, body);
	h->nr = t->sent++;
	h->sum = load_sum(h + 1, body);
	t->packets += load_packets(len);
	if (t->ud)
		ud_build(&t->u, &w, 0, len, t->u.e.b.qp->qp_num, UD_QKEY);
	else
		rdma_wr_send(&w, h, len, t->u.e.abuf.mr->lkey);
	if (h->nr & 1) {
		w.wr.opcode = IBV_WR_SEND_WITH_IMM;
		w.wr.imm_data = (uint32_t)h->nr;
	}
	check_eq(rdma_do(&t->u.e.a, &w, &wc), IBV_WC_SUCCESS, "a send");
}

static void take(struct unreliable *t, const struct ibv_wc *wc)
{
	size_t skip = t->ud ? UD_GRH : 0;
	const struct header *h =
		(void *)(t->inbox.addr + wc->wr_id * RECEIVE_LEN + skip);
	size_t len = wc->byte_len - skip;

	check_eq(wc->status, IBV_WC_SUCCESS, "a receive");
	check(len >= sizeof(*h) && h->nr < t->sent, "it is a message that was sent");
	check_eq(load_sum(h + 1, len - sizeof(*h)), h->sum, "every byte of it is right");
	check_eq(!!(wc->wc_flags & IBV_WC_WITH_IMM), h->nr & 1, "with immediate data");
	check(!(h->nr & 1) || wc->imm_data == (uint32_t)h->nr, "the right one");
	if (t->seen[h->nr / 8] & 1 << h->nr % 8)
		t->again++;
	else
		t->arrived++;
	t->seen[h->nr / 8] |= (uint8_t)(1 << h->nr % 8);
	post_receive(t, wc->wr_id);
}

static void take_for(struct unreliable *t, unsigned int ms)
{
	uint64_t until = rdma_now_us() + 1000ULL * ms;
	struct ibv_wc wc;

	while (rdma_now_us() < until) {
		if (ibv_poll_cq(t->u.e.b.rcq, 1, &wc) > 0)
			take(t, &wc);
		else
			load_idle();
	}
}

static void unreliable(long ud)
{
	uint64_t until = load_until_us();
	struct unreliable t;

	open_pair(&t, ud);
	while (rdma_now_us() < until) {
		for (int i = 0; i < BURST; i++)
			send_one(&t);
		take_for(&t, PAUSE_MS);
	}
	take_for(&t, LAST_MS * rdma_scale);
	check_eq(rdma_state(t.u.e.a.qp), IBV_QPS_RTS, "state of the sender");
	check_eq(rdma_state(t.u.e.b.qp), IBV_QPS_RTS, "state of the receiver");
	ktap_note("%llu messages sent, %llu lost, %llu came again, %llu packets needed",
		  (unsigned long long)t.sent, (unsigned long long)(t.sent - t.arrived),
		  (unsigned long long)t.again, (unsigned long long)t.packets);
	check(t.arrived > t.sent / 2, "most arrive");
	close_pair(&t);
}

void load_unreliable_cases(void)
{
	ktap_add("what arrives is right", unreliable, 0, 120, "load.uc");
	ktap_add("what arrives is right", unreliable, 1, 120, "load.ud");
}
