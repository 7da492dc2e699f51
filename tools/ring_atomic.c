// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ATOMIC WRITE: eight aligned bytes at once, in order, by a key with REMOTE_WRITE. They
 * are in the request itself, where another's elements would be.
 */
#include "flush_env.h"
#include "meanwhile.h"

#include <stdio.h>

#define CAP_ATOMIC_WRITE	(1ULL << 40)
#define TAG			0x20	/* pattern of the memory */
#define VALUE			0x0123456789abcdefULL
#define WORD			sizeof(uint64_t)

static void capability(long arg)
{
	uint64_t flags = flush_device_flags();

	(void)arg;
	check(flags & CAP_ATOMIC_WRITE, "the device says that it has it");
}

/* As librxe builds it. */
static void build(const struct flush_env *e, union ring_slot *s, uint64_t va, uint32_t rkey,
		  uint64_t value)
{
	static uint64_t wr_id = 0xa1000000;

	ring_good_wqe(&e->r, &s->wqe);
	s->wqe.wr.wr_id = ++wr_id;
	s->wqe.wr.opcode = WR_ATOMIC_WRITE;
	s->wqe.wr.wr.rdma.remote_addr = va;
	s->wqe.wr.wr.rdma.rkey = rkey;
	memset(s->wqe.dma.sge, 0, sizeof(*s->wqe.dma.sge));
	memcpy(s->wqe.dma.inline_data, &value, WORD);
	s->wqe.dma.length = WORD;
	s->wqe.dma.resid = WORD;
	s->wqe.dma.num_sge = 0;
}

/* The word at @off is there, and nothing else has changed. */
static void expect_written(struct flush_env *e, size_t off, uint64_t value)
{
	check(!memcmp(e->memory.addr + off, &value, WORD), "the eight bytes at %zu", off);
	check(rdma_buf_touched(&e->memory, TAG, off, WORD) < 0, "and no other ones");
}

static void expect_untouched(struct flush_env *e)
{
	check(rdma_buf_touched(&e->memory, TAG, 0, 0) < 0, "nothing of it is written");
}

/* Ask for a word at @va, which is @off bytes into the memory. */
static void expect(struct flush_env *e, uint64_t va, uint32_t rkey, size_t off,
		   enum ibv_wc_status want, const char *what)
{
	static uint64_t value = VALUE;
	union ring_slot s;

	rdma_buf_fill(&e->memory, TAG);
	build(e, &s, va, rkey, ++value);
	flush_expect_slot(e, &s, want, what);
	if (want == IBV_WC_SUCCESS)
		expect_written(e, off, value);
	else
		expect_untouched(e);
}

static void places(long arg)
{
	/* The page ends at 4024. */
	static const size_t offs[] = { 0, 8, 16, 4016, 4024, 8192, FLUSH_LEN - WORD };
	struct flush_env e;

	(void)arg;
	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(offs); i++)
		expect(&e, e.memory.iova + offs[i], e.memory.mr->rkey, offs[i],
		       IBV_WC_SUCCESS, "a word");
	flush_close(&e);
}

static void misaligned(long arg)
{
	struct flush_env e;

	(void)arg;
	flush_open(&e);
	for (size_t off = 1; off < WORD; off++)
		expect(&e, e.memory.iova + 64 + off, e.memory.mr->rkey, 0,
		       IBV_WC_REM_INV_REQ_ERR, "a misaligned word");
	expect(&e, e.memory.iova + 64, e.memory.mr->rkey, 64, IBV_WC_SUCCESS, "an aligned one");
	flush_close(&e);
}

/* Of a window that is zero based the address is aligned, and the memory may not be. */
static void odd_window(long arg)
{
	struct rdma_bind bind = {
		.length = 64,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED,
	};
	struct flush_env e;
	struct rdma_wr w;

	(void)arg;
	flush_open(&e);
	bind.mw = ibv_alloc_mw(e.r.b.pd, IBV_MW_TYPE_2);
	check(bind.mw, "a window: %s", strerror(errno));
	bind.current_rkey = bind.mw->rkey;
	bind.new_rkey = ibv_inc_rkey(bind.mw->rkey);
	bind.mr_lkey = e.memory.mr->lkey;
	bind.addr = e.memory.iova + 4;
	rdma_wr_bind(&w, &bind);
	check_eq(rdma_do(&e.r.b, &w, NULL), IBV_WC_SUCCESS, "a bind");
	expect(&e, 8, bind.new_rkey, 0, IBV_WC_REM_INV_REQ_ERR, "the window's second word");
	check_errno(ibv_dealloc_mw(bind.mw), 0, "ibv_dealloc_mw");
	flush_close(&e);
}

/* From the start of a key's FLUSH_SIZE bytes, which end 7 bytes behind a word. */
static void ranges(long arg)
{
	static const struct {
		int64_t at;
		bool inside;
	} rows[] = {
		{ 0, true },
		{ WORD, true },
		{ FLUSH_SIZE - 7 - WORD, true },
		{ FLUSH_SIZE - 7, false },	/* one byte is outside */
		{ FLUSH_SIZE + 1, false },
		{ -(int64_t)WORD, false },
		{ -FLUSH_AT, false },
		{ INT64_MIN, false },
	};
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;
	char what[64];

	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct flush_target t = flush_target_open(&e, kind, IBV_ACCESS_LOCAL_WRITE |
							  IBV_ACCESS_REMOTE_WRITE);

		snprintf(what, sizeof(what), "the word at %lld", (long long)rows[i].at);
		expect(&e, t.start + (uint64_t)rows[i].at, t.rkey,
		       (size_t)(FLUSH_AT + rows[i].at),
		       rows[i].inside ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, what);
		flush_target_close(&t);
	}
	flush_close(&e);
}

/* Key and queue pair grant REMOTE_WRITE both; no other right will do. */
static void rights(long arg)
{
	const unsigned int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const unsigned int others = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_ATOMIC | ACCESS_GLOBAL;
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_target t;
	struct flush_env e;

	flush_open(&e);
	t = flush_target_open(&e, kind, others);
	expect(&e, t.start, t.rkey, 0, IBV_WC_REM_ACCESS_ERR, "without the key's right");
	flush_target_close(&t);
	e.r.b.conf.access &= ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
	ring_recover(&e.r);
	t = flush_target_open(&e, kind, write);
	expect(&e, t.start, t.rkey, 0, IBV_WC_REM_ACCESS_ERR, "without the queue pair's");
	flush_target_close(&t);
	e.r.b.conf.access = IBV_ACCESS_REMOTE_WRITE;
	ring_recover(&e.r);
	t = flush_target_open(&e, kind, write);
	expect(&e, t.start, t.rkey, FLUSH_AT, IBV_WC_SUCCESS, "with both");
	flush_target_close(&t);
	flush_close(&e);
}

/* Another key than @t's is refused, and so is that once it is gone. */
static void keys(long arg)
{
	const unsigned int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	static const uint32_t flips[] = { 1, 0x80, 0x100 };
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_target t;
	struct flush_env e;

	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(flips); i++) {
		t = flush_target_open(&e, kind, write);
		expect(&e, t.start, t.rkey ^ flips[i], 0, IBV_WC_REM_ACCESS_ERR,
		       "another key");
		flush_target_close(&t);
	}
	t = flush_target_open(&e, kind, write);
	expect(&e, t.start, t.rkey, FLUSH_AT, IBV_WC_SUCCESS, "the key");
	flush_target_close(&t);
	expect(&e, t.start, t.rkey, 0, IBV_WC_REM_ACCESS_ERR, "a key that is gone");
	flush_close(&e);
}

static void invalidated(long arg)
{
	struct flush_target t;
	struct flush_env e;
	struct rdma_wr w;

	flush_open(&e);
	t = flush_target_open(&e, (enum flush_kind)arg, IBV_ACCESS_REMOTE_WRITE);
	expect(&e, t.start, t.rkey, FLUSH_AT, IBV_WC_SUCCESS, "before LOCAL_INV");
	rdma_wr_local_inv(&w, t.rkey);
	check_eq(rdma_do(&e.r.b, &w, NULL), IBV_WC_SUCCESS, "LOCAL_INV");
	expect(&e, t.start, t.rkey, 0, IBV_WC_REM_ACCESS_ERR, "after LOCAL_INV");
	flush_target_close(&t);
	flush_close(&e);
}

/* The eight bytes are those of the request, whatever is said of elements and lengths. */
static void elements(long arg)
{
	static const uint32_t numbers[] = { 0, 1, 4, 7, 9, 33, 0x7fffffff, 0xffffffff };
	static const uint32_t flags[] = {
		0, IBV_SEND_INLINE, IBV_SEND_SOLICITED, IBV_SEND_FENCE, 0xffffffff,
	};
	struct flush_env e;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		for (size_t j = 0; j < ARRAY_SIZE(flags); j++) {
			uint64_t value = VALUE * (i * ARRAY_SIZE(flags) + j + 1);

			rdma_buf_fill(&e.memory, TAG);
			build(&e, &s, e.memory.iova + 64, e.memory.mr->rkey, value);
			s.wqe.wr.send_flags = flags[j] | IBV_SEND_SIGNALED;
			s.wqe.dma.num_sge = numbers[i];
			s.wqe.dma.length = numbers[(i + j) % ARRAY_SIZE(numbers)];
			flush_expect_slot(&e, &s, IBV_WC_SUCCESS, "what it does not have");
			expect_written(&e, 64, value);
		}
	flush_close(&e);
}

static void one_word(long arg)
{
	(void)arg;
	ring_one_word(ring_open, WR_ATOMIC_WRITE);
}

/* --- one after the other, whole --- */

#define DATA_AT		8192
#define DATA_LEN	3000
#define AT_ONCE		3	/* so many writes in flight, each with its word */

/* Both halves tell the round. */
static uint64_t word_of(uint32_t round)
{
	return (uint64_t)round << 32 | (uint32_t)~round;
}

struct watch {
	const struct flush_env *e;
	uint32_t round;		/* newest that was seen */
};

/* A byte tells rounds apart that are less than 128 away. */
static bool is_as_new(uint8_t byte, uint32_t round)
{
	return (int8_t)(byte - (uint8_t)round) >= 0;
}

static bool data_is_as_new(const uint8_t *data, uint32_t round)
{
	return is_as_new(data[0], round) && is_as_new(data[DATA_LEN / 2], round) &&
	       is_as_new(data[DATA_LEN - 1], round);
}

static uint64_t read_word(const struct watch *w)
{
	return __atomic_load_n((const uint64_t *)w->e->memory.addr, __ATOMIC_ACQUIRE);
}

/* As an application that polls the word, and takes the data once it has come. */
static bool look(struct meanwhile *m)
{
	struct watch *w = m->object;
	uint64_t word = read_word(w);
	uint32_t round = (uint32_t)(word >> 32);
	bool news = round != w->round;

	check(word == word_of(round), "a word is written whole (%#llx)",
	      (unsigned long long)word);
	check((int32_t)(round - w->round) >= 0, "none is written again after the next");
	/* This thread may have been away in between, for many rounds. */
	check(data_is_as_new(w->e->memory.addr + DATA_AT, round) ||
	      (read_word(w) >> 32) - round > 100, "what was written before it is there");
	__atomic_store_n(&w->round, round, __ATOMIC_RELAXED);
	return news;
}

static void put_round(struct flush_env *e, uint32_t round, bool last)
{
	size_t from = round % AT_ONCE * DATA_LEN;
	union ring_slot s;

	memset(e->r.abuf.addr + from, (int)round, DATA_LEN);
	ring_good_wqe(&e->r, &s.wqe);
	s.wqe.wr.send_flags = 0;
	s.wqe.wr.wr.rdma.remote_addr = e->memory.iova + DATA_AT;
	s.wqe.wr.wr.rdma.rkey = e->memory.mr->rkey;
	s.wqe.dma.length = DATA_LEN;
	s.wqe.dma.sge[0].addr += from;
	s.wqe.dma.sge[0].length = DATA_LEN;
	ring_put(&e->r, &s, sizeof(s));
	build(e, &s, e->memory.iova, e->memory.mr->rkey, word_of(round));
	s.wqe.wr.send_flags = last ? IBV_SEND_SIGNALED : 0;
	ring_put(&e->r, &s, sizeof(s));
}

static void after_writes(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 300;
	struct meanwhile watching;
	struct flush_env e;
	struct watch w = { .e = &e };
	uint32_t round = 0;
	struct ibv_wc wc;

	(void)arg;
	flush_open(&e);
	flush_insist(&e);
	memset(e.memory.addr, 0, e.memory.len);
	*(uint64_t *)e.memory.addr = word_of(0);
	meanwhile_start(&watching, look, &w);
	/* So many, and until one was seen. */
	while (round < rounds || !__atomic_load_n(&w.round, __ATOMIC_RELAXED)) {
		for (int i = 1; i <= AT_ONCE; i++)
			put_round(&e, ++round, i == AT_ONCE);
		check_errno(ring_doorbell(&e.r), 0, "the doorbell");
		check(rdma_wait_wc(e.r.a.scq, &wc, RDMA_WAIT_MS), "all complete");
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		check_eq(wc.opcode, WC_ATOMIC_WRITE, "opcode");
		check(*(uint64_t *)e.memory.addr == word_of(round), "the word is there");
		sched_yield();
	}
	ktap_note("%lu of %u words seen", meanwhile_stop(&watching), round);
	flush_close(&e);
}

/* It takes a place among READs and atomics in flight, at both ends. */
static void no_place(long arg)
{
	struct flush_env e;

	(void)arg;
	flush_open(&e);
	e.r.a.conf.rd_atomic = 0;
	ring_recover(&e.r);
	expect(&e, e.memory.iova, e.memory.mr->rkey, 0, IBV_WC_LOC_QP_OP_ERR,
	       "a requester without a place");
	e.r.a.conf.rd_atomic = 1;
	e.r.b.conf.rd_atomic = 0;
	ring_recover(&e.r);
	expect(&e, e.memory.iova, e.memory.mr->rkey, 0, IBV_WC_REM_INV_REQ_ERR,
	       "a responder without a place");
	e.r.b.conf.rd_atomic = 1;
	ring_recover(&e.r);
	expect(&e, e.memory.iova, e.memory.mr->rkey, 0, IBV_WC_SUCCESS, "one place");
	flush_close(&e);
}

static void unreliable(long arg)
{
	struct flush_env e;
	union ring_slot s;

	(void)arg;
	ring_open_unreliable(&e.r);
	build(&e, &s, e.r.bbuf.iova, e.r.bbuf.mr->rkey, VALUE);
	check_eq(flush_post(&e, &s), IBV_WC_LOC_QP_OP_ERR, "an ATOMIC WRITE on UC");
	ring_expect_no_harm(&e.r);
	ring_close(&e.r);
}

void ring_atomic_cases(void)
{
	ktap_add("only what is done is claimed", capability, 0, 0, "atomic-write.capability");
	ktap_add("eight bytes, those of the request", places, 0, 0, "atomic-write.places");
	ktap_add("eight bytes, those of the request", elements, 0, 0, "atomic-write.elements");
	ktap_add("misaligned: an invalid request", misaligned, 0, 0,
		 "atomic-write.misaligned");
	ktap_add("misaligned: an invalid request", odd_window, 0, 0,
		 "atomic-write.odd-window");
	for (long kind = FLUSH_OF_REGION; kind < FLUSH_KINDS; kind++) {
		ktap_add("all eight bytes are the key's", ranges, kind, 0,
			 "atomic-write.%s.ranges", flush_kind_name[kind]);
		ktap_add("the key and the queue pair grant REMOTE_WRITE", rights, kind, 0,
			 "atomic-write.%s.rights", flush_kind_name[kind]);
		ktap_add("the key is checked", keys, kind, 0, "atomic-write.%s.keys",
			 flush_kind_name[kind]);
	}
	for (long kind = FLUSH_OF_TYPE_2; kind < FLUSH_KINDS; kind++)
		ktap_add("revocation is a fence", invalidated, kind, 0,
			 "atomic-write.%s.invalidated", flush_kind_name[kind]);
	ktap_add("9.4.7: whole, and after what was written before", after_writes, 0, 60,
		 "atomic-write.after-writes");
	ktap_add("every field is an arbitrary number", one_word, 0, 120,
		 "atomic-write.one-word");
	ktap_add("it counts as a READ does", no_place, 0, 0, "atomic-write.no-place");
	ktap_add("RC alone", unreliable, 0, 0, "atomic-write.unreliable");
}
