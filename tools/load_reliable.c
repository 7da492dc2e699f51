// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RC: several connections, each with a stream of requests in either direction. A slot
 * of a stream does one thing after the other, in memory of its own:
 *
 *	from	source: what slot i sends	back: what slot i reads
 *	to	target: slot i's, word of the stream's atomics	inbox: receives
 *
 * What the target holds is known at any time, since nobody else writes there; so is
 * what each atomic must find, since those of a stream are executed in order. One word
 * belongs to all streams: its value is the sum of what they added.
 */
#include "load.h"

#include <stdlib.h>

#define LANES		4
#define STREAMS		(2 * LANES)
#define SLOTS		8
#define PART		32768U
#define NUM_RECEIVES	(2 * SLOTS)
#define WORD_OFF	((size_t)SLOTS * PART)
#define BY_TARGET	0x100	/* wr_id: posted by the stream's other end */
#define WINDOW_SLOT	0	/* the one that binds and invalidates */

enum op { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, FETCH_ADD, COMPARE_SWAP, SHARED_ADD,
	  BIND, WINDOW_WRITE, SEND_INV, LOCAL_INV, OPS };

static const char *const op_name[OPS] = {
	[WRITE] = "WRITE", [WRITE_IMM] = "WRITE_IMM", [SEND] = "SEND",
	[SEND_IMM] = "SEND_IMM", [READ] = "READ", [FETCH_ADD] = "FETCH_ADD",
	[COMPARE_SWAP] = "COMPARE_SWAP", [SHARED_ADD] = "SHARED_ADD", [BIND] = "BIND",
	[WINDOW_WRITE] = "WRITE by a window", [SEND_INV] = "SEND_WITH_INV",
	[LOCAL_INV] = "LOCAL_INV",
};

struct slot {
	enum op op;
	bool busy;
	uint32_t off;		/* in its part */
	uint32_t len;
	uint64_t found;		/* what the atomic must find */
	uint64_t deadline;
};

/* What the next receive must be. */
struct message {
	enum op op;
	uint32_t len;
	uint32_t imm;
	uint32_t rkey;		/* invalidated */
	uint64_t sum;
};

struct stream {
	struct rdma_end *from;
	struct rdma_end *to;
	struct rdma_buf source;
	struct rdma_buf back;
	struct rdma_buf target;
	struct rdma_buf inbox;
	uint8_t *expected;	/* what @target holds */
	struct slot slot[SLOTS];
	struct message message[4 * SLOTS];
	uint32_t messages_sent;
	uint32_t messages_taken;
	uint64_t word;		/* of its own, as it will be */
	struct ibv_mw *mw;
	uint32_t rkey;		/* of the window */
	uint64_t done[OPS];
	uint64_t packets;	/* that a wire without faults would carry, less ACKs */
	uint64_t added;		/* to the word of all */
};

struct load {
	struct rdma_dev dev;
	struct rdma_dev peer_dev;
	struct ibv_pd *pd;
	struct ibv_pd *peer_pd;
	struct rdma_end end[LANES][2];
	struct rdma_buf shared[2];
	struct stream stream[STREAMS];
	uint32_t seed;
	bool two_devices;
};

static struct stream *other_way(struct load *l, const struct stream *s)
{
	return &l->stream[(s - l->stream) ^ 1];
}

/* --- opening and closing --- */

static struct ibv_pd *alloc_pd(struct rdma_dev *dev)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);

	check(pd, "ibv_alloc_pd: %s", strerror(errno));
	return pd;
}

static void post_receive(struct stream *s, uint64_t i)
{
	rdma_recv(s->to, i, s->inbox.addr + i * PART, PART, s->inbox.mr->lkey);
}

static void open_stream(struct load *l, unsigned int i)
{
	struct stream *s = &l->stream[i];

	s->from = &l->end[i / 2][i & 1];
	s->to = &l->end[i / 2][!(i & 1)];
	rdma_buf_create(&s->source, s->from->pd, SLOTS * PART, 0, IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&s->back, s->from->pd, SLOTS * PART, 0, IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&s->target, s->to->pd, WORD_OFF + 8, 8, RDMA_ALL_REMOTE |
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	rdma_buf_create(&s->inbox, s->to->pd, NUM_RECEIVES * PART, 0,
			IBV_ACCESS_LOCAL_WRITE);
	s->expected = calloc(1, WORD_OFF);
	check(s->expected, "calloc");
	s->mw = ibv_alloc_mw(s->to->pd, IBV_MW_TYPE_2);
	check(s->mw, "ibv_alloc_mw: %s", strerror(errno));
	s->rkey = s->mw->rkey;
	for (uint64_t j = 0; j < NUM_RECEIVES; j++)
		post_receive(s, j);
}

static void open_lane(struct load *l, unsigned int i)
{
	struct rdma_conf conf = load_conf(IBV_QPT_RC);
	struct rdma_end *a = &l->end[i][0], *b = &l->end[i][1];

	conf.psn = load_draw(&l->seed, 1U << 24);
	rdma_end_create(a, &l->dev, l->pd, &conf);
	conf.psn = load_draw(&l->seed, 1U << 24);
	rdma_end_create(b, l->two_devices ? &l->peer_dev : &l->dev, l->peer_pd, &conf);
	rdma_connect(a, b);
}

static void open_all(struct load *l)
{
	memset(l, 0, sizeof(*l));
	rdma_scale = ktap_opt.scale;
	l->seed = (uint32_t)ktap_opt.seed * 2 + 1;
	l->two_devices = ktap_opt.peer_device;
	rdma_dev_open(&l->dev, ktap_opt.device, ktap_opt.gid_index);
	if (l->two_devices)
		rdma_dev_open(&l->peer_dev, ktap_opt.peer_device, -1);
	l->pd = alloc_pd(&l->dev);
	l->peer_pd = l->two_devices ? alloc_pd(&l->peer_dev) : l->pd;
	rdma_buf_create(&l->shared[0], l->pd, 8, 0, RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&l->shared[1], l->peer_pd, 8, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
	for (unsigned int i = 0; i < LANES; i++)
		open_lane(l, i);
	for (unsigned int i = 0; i < STREAMS; i++)
		open_stream(l, i);
}

static void close_stream(struct stream *s)
{
	check_errno(ibv_dealloc_mw(s->mw), 0, "ibv_dealloc_mw");
	rdma_buf_destroy(&s->source);
	rdma_buf_destroy(&s->back);
	rdma_buf_destroy(&s->target);
	rdma_buf_destroy(&s->inbox);
	free(s->expected);
}

static void close_all(struct load *l)
{
	for (unsigned int i = 0; i < STREAMS; i++)
		close_stream(&l->stream[i]);
	for (unsigned int i = 0; i < STREAMS; i++)
		rdma_end_destroy(&l->end[i / 2][i & 1]);
	rdma_buf_destroy(&l->shared[0]);
	rdma_buf_destroy(&l->shared[1]);
	check_errno(ibv_dealloc_pd(l->pd), 0, "ibv_dealloc_pd");
	if (l->two_devices) {
		check_errno(ibv_dealloc_pd(l->peer_pd), 0, "ibv_dealloc_pd");
		rdma_dev_close(&l->peer_dev);
	}
	rdma_dev_close(&l->dev);
}

/* --- what a slot asks for --- */

static uint8_t *part(const struct rdma_buf *buf, unsigned int i)
{
	return buf->addr + (size_t)i * PART;
}

/* A quarter are short, a quarter are long. */
static uint32_t draw_length(struct load *l)
{
	static const uint32_t longest[] = { 64, 4096, 4096, PART };

	return load_draw(&l->seed, longest[load_draw(&l->seed, 4)] + 1);
}

static void expect_message(struct stream *s, const struct slot *t, const void *data,
			   struct rdma_wr *w)
{
	struct message *m =
		&s->message[s->messages_sent % ARRAY_SIZE(s->message)];

	check(s->messages_sent - s->messages_taken < ARRAY_SIZE(s->message),
	      "receives complete before their sends do");
	*m = (struct message){ t->op, t->len, s->messages_sent, s->rkey, 0 };
	if (t->op != WRITE_IMM)
		m->sum = load_sum(data, t->len);
	if (t->op != SEND && t->op != SEND_INV)
		w->wr.imm_data = m->imm;
	s->messages_sent++;
}

static void build_data(struct load *l, struct stream *s, unsigned int i, struct rdma_wr *w)
{
	static const enum ibv_wr_opcode opcodes[OPS] = {
		[WRITE] = IBV_WR_RDMA_WRITE, [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[SEND] = IBV_WR_SEND, [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WINDOW_WRITE] = IBV_WR_RDMA_WRITE, [SEND_INV] = IBV_WR_SEND_WITH_INV,
	};
	struct slot *t = &s->slot[i];
	uint8_t *data = part(&s->source, i);
	uint32_t lkey = s->source.mr->lkey;
	uint64_t va;

	t->len = draw_length(l);
	t->off = load_draw(&l->seed, PART - t->len + 1);
	load_fill(&l->seed, data, t->len);
	va = (uintptr_t)part(&s->target, i) + t->off;
	if (t->op == SEND_INV)
		rdma_wr_send_inv(w, data, t->len, lkey, s->rkey);
	else if (t->op == SEND || t->op == SEND_IMM)
		rdma_wr_send(w, data, t->len, lkey);
	else
		rdma_wr_write(w, data, t->len, lkey, va,
			      t->op == WINDOW_WRITE ? s->rkey : s->target.mr->rkey);
	w->wr.opcode = opcodes[t->op];
	if (t->op != WRITE && t->op != WINDOW_WRITE)
		expect_message(s, t, data, w);
	s->packets += load_packets(t->len);
}

static void build_read(struct load *l, struct stream *s, unsigned int i, struct rdma_wr *w)
{
	struct slot *t = &s->slot[i];

	t->len = draw_length(l);
	t->off = load_draw(&l->seed, PART - t->len + 1);
	rdma_wr_read(w, part(&s->back, i), t->len, s->back.mr->lkey,
		     (uintptr_t)part(&s->target, i) + t->off, s->target.mr->rkey);
	s->packets += 1 + load_packets(t->len);
}

static void build_atomic(struct load *l, struct stream *s, unsigned int i,
			 struct rdma_wr *w)
{
	uint64_t word = (uintptr_t)(s->target.addr + WORD_OFF);
	uint32_t lkey = s->back.mr->lkey;
	uint64_t add = load_draw(&l->seed, 1000);
	struct slot *t = &s->slot[i];
	const struct rdma_buf *shared = &l->shared[s->to->pd == l->pd ? 0 : 1];

	t->found = s->word;
	s->packets += 2;
	if (t->op == SHARED_ADD) {
		s->added += add;
		rdma_wr_fadd(w, part(&s->back, i), lkey, shared->iova,
			     shared->mr->rkey, add);
	} else if (t->op == FETCH_ADD) {
		s->word += add;
		rdma_wr_fadd(w, part(&s->back, i), lkey, word, s->target.mr->rkey, add);
	} else {
		/* Every other one is not to swap. */
		uint64_t compare = s->word + (add & 1);

		if (!(add & 1))
			s->word = add;
		rdma_wr_cas(w, part(&s->back, i), lkey, word, s->target.mr->rkey,
			    compare, add);
	}
}

static void build_bind(struct stream *s, struct rdma_wr *w)
{
	struct rdma_bind bind = {
		.mw = s->mw,
		.current_rkey = s->rkey,
		.new_rkey = ibv_inc_rkey(s->rkey),
		.mr_lkey = s->target.mr->lkey,
		.addr = (uintptr_t)part(&s->target, WINDOW_SLOT),
		.length = PART,
		.access = IBV_ACCESS_REMOTE_WRITE,
	};

	rdma_wr_bind(w, &bind);
	s->rkey = bind.new_rkey;
}

/* The window's slot has a circle of its own; the others draw. */
static enum op next_op(struct load *l, const struct slot *t, bool window, bool begun)
{
	if (!window)
		return (enum op)load_draw(&l->seed, BIND);
	if (!begun)
		return BIND;
	switch (t->op) {
	case BIND:
		return WINDOW_WRITE;
	case WINDOW_WRITE:
		return load_draw(&l->seed, 2) ? SEND_INV : LOCAL_INV;
	default:
		return BIND;
	}
}

static void start(struct load *l, struct stream *s, unsigned int i, bool begun)
{
	struct slot *t = &s->slot[i];
	struct rdma_end *end = s->from;
	struct rdma_wr w;
	uint64_t wr_id = i;

	t->op = next_op(l, t, i == WINDOW_SLOT, begun);
	switch (t->op) {
	case READ:
		build_read(l, s, i, &w);
		break;
	case FETCH_ADD:
	case COMPARE_SWAP:
	case SHARED_ADD:
		build_atomic(l, s, i, &w);
		break;
	case BIND:
		build_bind(s, &w);
		break;
	case LOCAL_INV:
		rdma_wr_local_inv(&w, s->rkey);
		break;
	default:
		build_data(l, s, i, &w);
		break;
	}
	if (t->op == BIND || t->op == LOCAL_INV) {
		end = s->to;
		wr_id |= BY_TARGET;
	}
	w.wr.wr_id = wr_id;
	t->busy = true;
	t->deadline = rdma_now_us() + 1000000ULL * LOAD_SILENCE_S * rdma_scale;
	rdma_post(end, rdma_wr_chain(&w, 1));
}

/* --- what came of it --- */

static void placed(struct stream *s, unsigned int i)
{
	const struct slot *t = &s->slot[i];
	uint8_t *expected = s->expected + (size_t)i * PART;

	memcpy(expected + t->off, part(&s->source, i), t->len);
	check(!memcmp(part(&s->target, i), expected, PART),
	      "the %s of %u bytes is placed whole, and nothing beside it",
	      op_name[t->op], t->len);
}

static void brought(struct stream *s, unsigned int i)
{
	const struct slot *t = &s->slot[i];

	check(!memcmp(part(&s->back, i), s->expected + (size_t)i * PART + t->off, t->len),
	      "the READ of %u bytes brings what is there", t->len);
}

static void finish(struct stream *s, unsigned int i)
{
	struct slot *t = &s->slot[i];
	uint64_t found;

	switch (t->op) {
	case WRITE:
	case WRITE_IMM:
	case WINDOW_WRITE:
		placed(s, i);
		break;
	case READ:
		brought(s, i);
		break;
	case FETCH_ADD:
	case COMPARE_SWAP:
		memcpy(&found, part(&s->back, i), sizeof(found));
		check(found == t->found, "an atomic finds %llx (found %llx)",
		      (unsigned long long)t->found, (unsigned long long)found);
		break;
	default:
		break;
	}
	s->done[t->op]++;
	t->busy = false;
}

static void take_message(struct stream *s, const struct ibv_wc *wc)
{
	struct message *m =
		&s->message[s->messages_taken % ARRAY_SIZE(s->message)];

	check(wc->status == IBV_WC_SUCCESS, "a receive ends with '%s'",
	      ibv_wc_status_str(wc->status));
	check(s->messages_taken != s->messages_sent, "no message comes twice");
	s->messages_taken++;
	check_eq(wc->byte_len, m->len, "length of a message");
	check_eq(wc->opcode, m->op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		 "opcode of a receive");
	if (m->op == SEND_IMM || m->op == WRITE_IMM)
		check(wc->wc_flags & IBV_WC_WITH_IMM && wc->imm_data == m->imm,
		      "messages come in order, with their immediate data");
	if (m->op == SEND_INV)
		check(wc->wc_flags & IBV_WC_WITH_INV && wc->invalidated_rkey == m->rkey,
		      "the receive tells the key that was invalidated");
	if (m->op != WRITE_IMM)
		check(load_sum(s->inbox.addr + wc->wr_id * PART, m->len) == m->sum,
		      "every byte of a %s of %u is right", op_name[m->op], m->len);
	post_receive(s, wc->wr_id);
}

/* Receives first: their sends are not done before them. */
static bool poll_stream(struct load *l, struct stream *s)
{
	bool found = false;
	struct ibv_wc wc;

	while (ibv_poll_cq(s->to->rcq, 1, &wc) > 0) {
		take_message(s, &wc);
		found = true;
	}
	while (ibv_poll_cq(s->from->scq, 1, &wc) > 0) {
		struct stream *whose = wc.wr_id & BY_TARGET ? other_way(l, s) : s;
		unsigned int i = wc.wr_id & ~BY_TARGET;

		check(wc.status == IBV_WC_SUCCESS, "a %s ends with '%s'",
		      op_name[whose->slot[i].op], ibv_wc_status_str(wc.status));
		finish(whose, i);
		found = true;
	}
	return found;
}

static void start_slots(struct load *l, struct stream *s, bool begun)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (!s->slot[i].busy)
			start(l, s, i, begun);
}

static unsigned int num_busy(const struct load *l)
{
	uint64_t now = rdma_now_us();
	unsigned int n = 0;

	for (unsigned int i = 0; i < STREAMS * SLOTS; i++) {
		const struct slot *t = &l->stream[i / SLOTS].slot[i % SLOTS];

		check(!t->busy || now < t->deadline, "a %s completes within %u s",
		      op_name[t->op], LOAD_SILENCE_S * rdma_scale);
		n += t->busy;
	}
	return n;
}

static void run(struct load *l, uint64_t until)
{
	bool begun = false, stop = false;

	while (!stop || num_busy(l)) {
		bool found = false;

		stop = rdma_now_us() >= until;
		for (unsigned int i = 0; i < STREAMS; i++) {
			found |= poll_stream(l, &l->stream[i]);
			if (!stop)
				start_slots(l, &l->stream[i], begun);
		}
		begun = true;
		if (!found)
			load_idle();
		num_busy(l);
	}
}

static void expect_sums(const struct load *l)
{
	uint64_t added = 0, shared = 0, word;

	for (unsigned int i = 0; i < 2; i++) {
		memcpy(&word, l->shared[i].addr, sizeof(word));
		shared += word;
	}
	for (unsigned int i = 0; i < STREAMS; i++) {
		const struct stream *s = &l->stream[i];

		added += s->added;
		memcpy(&word, s->target.addr + WORD_OFF, sizeof(word));
		check(word == s->word, "the word of stream %u is exact", i);
		check_eq(s->messages_taken, s->messages_sent, "messages that arrived");
		check_eq(rdma_state(s->from->qp), IBV_QPS_RTS, "state of a queue pair");
	}
	check(shared == added, "the word of all is exact (%llu, not %llu)",
	      (unsigned long long)shared, (unsigned long long)added);
}

static void tell(const struct load *l, uint64_t us)
{
	uint64_t packets = 0, requests = 0;

	for (enum op op = 0; op < OPS; op++) {
		uint64_t done = 0;

		for (unsigned int i = 0; i < STREAMS; i++)
			done += l->stream[i].done[op];
		check(done || us < 1000000ULL * LOAD_SECONDS, "some %s are done",
		      op_name[op]);
		requests += done;
		ktap_note("%llu %s", (unsigned long long)done, op_name[op]);
	}
	for (unsigned int i = 0; i < STREAMS; i++)
		packets += l->stream[i].packets;
	ktap_note("%llu requests, %llu packets needed, in %llu ms",
		  (unsigned long long)requests, (unsigned long long)packets,
		  (unsigned long long)us / 1000);
}

static void reliable(long arg)
{
	uint64_t begin = rdma_now_us();
	struct load l;

	(void)arg;
	open_all(&l);
	run(&l, load_until_us());
	expect_sums(&l);
	tell(&l, rdma_now_us() - begin);
	close_all(&l);
}

void load_reliable_cases(void)
{
	ktap_add("nothing lost, nothing wrong, atomics exact", reliable, 0, 180, "load.rc");
}
