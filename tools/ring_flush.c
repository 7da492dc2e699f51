// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA FLUSH: what may be asked for and by which key, and requests that are none. */
#include "flush_env.h"

#include <stdio.h>

#define CAP_GLOBAL		(1ULL << 38)
#define CAP_PERSISTENT		(1ULL << 39)

static void capabilities(long arg)
{
	uint64_t flags = flush_device_flags();

	(void)arg;
	check(flags & CAP_GLOBAL, "the device flushes to global visibility");
	check(!(flags & CAP_PERSISTENT), "and not to persistence");
}

static void cannot_register(struct flush_env *e, unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(e->r.b.pd, e->memory.addr, FLUSH_LEN,
			(int)(access | IBV_ACCESS_LOCAL_WRITE));
	check(!mr, "no region is registered as persistent");
	check_errno(errno, EOPNOTSUPP, "registering persistent memory");
	check_errno(rdma_rereg_mr(e->memory.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  (int)(access | IBV_ACCESS_LOCAL_WRITE)),
		    EOPNOTSUPP, "making a region persistent");
}

/* Nothing here makes memory persistent, so none is registered as if it were. */
static void registration(long arg)
{
	struct flush_env e;
	struct flush f;

	(void)arg;
	flush_open(&e);
	cannot_register(&e, ACCESS_PERSISTENT);
	cannot_register(&e, ACCESS_PERSISTENT | ACCESS_GLOBAL);
	f = flush_good(&e);
	flush_expect(&e, &f, IBV_WC_SUCCESS, "a FLUSH after that");
	check_errno(rdma_rereg_mr(e.memory.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE), 0, "taking the right away");
	f = flush_good(&e);
	flush_expect(&e, &f, IBV_WC_REM_ACCESS_ERR, "a FLUSH without the region's right");
	check_errno(rdma_rereg_mr(e.memory.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE | (int)ACCESS_GLOBAL), 0,
		    "giving it back");
	f = flush_good(&e);
	flush_expect(&e, &f, IBV_WC_SUCCESS, "a FLUSH with it again");
	flush_close(&e);
}

/* What was written before is there when the FLUSH completes, and not before it. */
static void after_writes(long arg)
{
	struct flush_env e;
	struct ibv_wc wc;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	flush_insist(&e);
	for (uint32_t round = 1; round <= 50; round++) {
		struct flush f = round % 2 ? flush_good(&e) : flush_whole(e.memory.mr->rkey);

		memset(e.r.abuf.addr, (int)round, FLUSH_LEN);
		ring_good_wqe(&e.r, &s.wqe);
		s.wqe.wr.send_flags = 0;
		s.wqe.wr.wr.rdma.remote_addr = e.memory.iova;
		s.wqe.wr.wr.rdma.rkey = e.memory.mr->rkey;
		s.wqe.dma.length = FLUSH_LEN;
		s.wqe.dma.sge[0].length = FLUSH_LEN;
		ring_put(&e.r, &s, sizeof(s));
		flush_build(&e, &s, &f);
		check_eq(flush_post(&e, &s), IBV_WC_SUCCESS, "a FLUSH behind a WRITE");
		check(e.memory.addr[0] == round && e.memory.addr[FLUSH_LEN / 2] == round &&
		      e.memory.addr[FLUSH_LEN - 1] == round, "what was written is there");
	}
	check(!rdma_wait_wc(e.r.a.scq, &wc, 1), "nothing else completes");
	flush_close(&e);
}

/* Bytes from @at of a key's FLUSH_SIZE bytes on; some of them are outside. */
struct range_row {
	int64_t at;
	uint32_t len;
	bool inside;
};

static const struct range_row range_rows[] = {
	{ 0, FLUSH_SIZE, true },
	{ 0, 1, true },
	{ FLUSH_SIZE - 1, 1, true },
	{ 3, 4099, true },
	{ 0, 0, true },
	{ FLUSH_SIZE, 0, true },
	{ -1, 0, false },
	{ FLUSH_SIZE + 1, 0, false },
	{ -1, 1, false },
	{ FLUSH_SIZE, 1, false },
	{ 0, FLUSH_SIZE + 1, false },
	{ -1, FLUSH_SIZE, false },
	{ 1, FLUSH_SIZE, false },
	{ 1, 0x7fffffff, false },
	{ INT64_MIN, FLUSH_SIZE, false },
	{ -FLUSH_SIZE, 2 * FLUSH_SIZE, false },
};

/* The key is good for its bytes and no others, and for all of them at once. */
static void ranges(long arg)
{
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;
	struct flush_target t;
	struct flush f;
	char what[64];

	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(range_rows); i++) {
		const struct range_row *row = &range_rows[i];

		t = flush_target_open(&e, kind, ACCESS_GLOBAL);
		f = flush_good(&e);
		f.rkey = t.rkey;
		f.va = t.start + (uint64_t)row->at;
		f.len = row->len;
		snprintf(what, sizeof(what), "%u bytes from %lld", row->len,
			 (long long)row->at);
		flush_expect(&e, &f, row->inside ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, what);
		flush_target_close(&t);
	}
	t = flush_target_open(&e, kind, ACCESS_GLOBAL);
	f = flush_whole(t.rkey);
	flush_expect(&e, &f, IBV_WC_SUCCESS, "all of it, whatever the range");
	flush_target_close(&t);
	flush_close(&e);
}

/* Three ways to ask for bytes that the key does not let anyone flush. */
static void refused_by_key(struct flush_env *e, uint32_t rkey, uint8_t type, uint64_t start,
			   unsigned int way, const char *what)
{
	struct flush f = flush_good(e);

	f.rkey = rkey;
	f.type = type;
	f.va = start;
	/* The key counts for no bytes, too (oA19-13). */
	f.len = way == 1 ? 0 : FLUSH_SIZE;
	if (way == 2)
		f.level = FLUSH_REGION;
	flush_expect(e, &f, IBV_WC_REM_ACCESS_ERR, what);
}

/* A refusal makes b's window Free: there is a new one for each way. */
static void lacks_right(struct flush_env *e, enum flush_kind kind, unsigned int access,
			uint8_t type, const char *what)
{
	for (unsigned int way = 0; way < 3; way++) {
		struct flush_target t = flush_target_open(e, kind, access);

		refused_by_key(e, t.rkey, type, t.start, way, what);
		flush_target_close(&t);
	}
}

/* Key and queue pair grant it both, each guarantee by its own flag. */
static void rights(long arg)
{
	const unsigned int others = RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE;
	const uint8_t both = FLUSH_PERSISTENT | FLUSH_GLOBAL;
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;

	flush_open_with(&e, ACCESS_GLOBAL | ACCESS_PERSISTENT, ACCESS_GLOBAL);
	lacks_right(&e, kind, others, FLUSH_GLOBAL, "visibility without the key's right");
	lacks_right(&e, kind, ACCESS_GLOBAL, FLUSH_PERSISTENT, "persistence");
	lacks_right(&e, kind, ACCESS_GLOBAL, both, "persistence and visibility");
	flush_close(&e);
	flush_open_with(&e, 0, ACCESS_GLOBAL);
	lacks_right(&e, kind, others | ACCESS_GLOBAL, FLUSH_GLOBAL,
		    "visibility without the queue pair's right");
	flush_close(&e);
}

static void keys_refused(struct flush_env *e, uint32_t rkey, const char *what)
{
	for (unsigned int way = 0; way < 3; way++)
		refused_by_key(e, rkey, FLUSH_GLOBAL, e->memory.iova + FLUSH_AT, way, what);
}

static void keys(long arg)
{
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;
	struct ibv_mr *mr;
	struct flush_target t;

	flush_open(&e);
	keys_refused(&e, 0, "key 0");
	t = flush_target_open(&e, kind, ACCESS_GLOBAL);
	keys_refused(&e, t.rkey ^ 1, "another key byte");
	keys_refused(&e, t.rkey ^ 0x100, "another index");
	flush_target_close(&t);
	keys_refused(&e, t.rkey, "a key that is gone");
	mr = ibv_reg_mr(e.r.c.pd, e.memory.addr, FLUSH_LEN, (int)ACCESS_GLOBAL);
	check(mr, "a region of another domain");
	keys_refused(&e, mr->rkey, "another domain's region");
	check_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	flush_close(&e);
}

/* A window's right to FLUSH is its region's first. */
static void binds(long arg)
{
	static const unsigned int wanted[] = {
		ACCESS_GLOBAL, ACCESS_PERSISTENT, ACCESS_GLOBAL | ACCESS_PERSISTENT,
		ACCESS_GLOBAL | IBV_ACCESS_REMOTE_READ,
	};
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;
	struct flush_target t;

	for (unsigned int has = 0; has < 2; has++) {
		flush_open_with(&e, ACCESS_GLOBAL, has ? ACCESS_GLOBAL : 0);
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
			bool may = has && !(wanted[i] & ACCESS_PERSISTENT);

			check_eq(flush_bind(&e, kind, wanted[i], &t),
				 may ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR, "a bind");
			check_errno(ibv_dealloc_mw(t.mw), 0, "ibv_dealloc_mw");
			if (!may)
				ring_recover(&e.r);
		}
		flush_close(&e);
	}
}

/* After LOCAL_INV no byte is flushed by the key, nor all of them. */
static void invalidated(long arg)
{
	enum flush_kind kind = (enum flush_kind)arg;
	struct flush_env e;

	flush_open(&e);
	for (unsigned int way = 0; way < 3; way++) {
		struct flush_target t = flush_target_open(&e, kind, ACCESS_GLOBAL);
		struct flush f = flush_whole(t.rkey);
		struct rdma_wr w;

		flush_expect(&e, &f, IBV_WC_SUCCESS, "before LOCAL_INV");
		rdma_wr_local_inv(&w, t.rkey);
		check_eq(rdma_do(&e.r.b, &w, NULL), IBV_WC_SUCCESS, "LOCAL_INV");
		refused_by_key(&e, t.rkey, FLUSH_GLOBAL, t.start, way, "after LOCAL_INV");
		flush_target_close(&t);
	}
	flush_close(&e);
}

/* A placement or selectivity that there is not never reaches the peer. */
static void unknown_kinds(long arg)
{
	static const uint8_t odd[] = { 0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 0x80, 0xff };
	struct flush_env e;
	struct flush f;

	(void)arg;
	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		for (size_t j = 0; j < ARRAY_SIZE(odd); j++) {
			f = flush_good(&e);
			f.type = odd[i];
			f.level = odd[j];
			if (odd[i] >= 1 && odd[i] <= 3 && odd[j] <= 1)
				continue;
			flush_expect(&e, &f, IBV_WC_LOC_QP_OP_ERR, "a kind that there is not");
		}
	f = flush_good(&e);
	f.len = 0x80000000;
	flush_expect(&e, &f, IBV_WC_LOC_QP_OP_ERR, "a range of 2^31 bytes");
	f.len = 0xffffffff;
	flush_expect(&e, &f, IBV_WC_LOC_QP_OP_ERR, "a range of 2^32 - 1 bytes");
	flush_close(&e);
}

/* It has neither elements nor inline data, whatever is said of them. */
static void no_payload(long arg)
{
	static const uint32_t counts[] = { 0, 1, 4, 5, 33, 0x7fffffff, 0xffffffff };
	static const uint32_t flags[] = {
		0, IBV_SEND_INLINE, IBV_SEND_SOLICITED, IBV_SEND_FENCE,
		0xffffffff,
	};
	struct flush_env e;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t j = 0; j < ARRAY_SIZE(flags); j++) {
			struct flush f = flush_good(&e);

			flush_build(&e, &s, &f);
			s.wqe.wr.send_flags = flags[j] | IBV_SEND_SIGNALED;
			s.wqe.dma.num_sge = counts[i];
			for (size_t k = 0; k < 4; k++)
				s.wqe.dma.sge[k] = (struct rxe_sge){
					ring_random(&e.r), ring_random(&e.r),
					ring_random(&e.r),
				};
			check_eq(flush_post(&e, &s), IBV_WC_SUCCESS, "what it does not have");
		}
	flush_close(&e);
}

/* A good FLUSH with one word of it changed, each word in turn. */
static void one_word(long arg)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 0x101, 0x7fffffff, 0x80000000, 0xffffffff };
	struct flush_env e;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	for (size_t word = 0; word < (sizeof(s.wqe) + 16) / 4; word++)
		for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
			struct flush f = flush_good(&e);

			flush_build(&e, &s, &f);
			s.words[word] = odd[i];
			ring_mend(&e.r, ring_post(&e.r, &s));
		}
	flush_close(&e);
}

static void garbage(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 300;
	struct flush_env e;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	for (unsigned int i = 0; i < rounds; i++) {
		for (unsigned int j = 0; j <= ring_random(&e.r) % 8; j++) {
			struct flush f = flush_good(&e);

			f.va += ring_random(&e.r) % 4 ? ring_random(&e.r) % FLUSH_LEN :
							(uint64_t)ring_random(&e.r) << 20;
			f.len = ring_random(&e.r) % 4 ? ring_random(&e.r) % FLUSH_LEN :
							ring_random(&e.r);
			f.type = ring_random(&e.r) % 8 ? FLUSH_GLOBAL :
							 (uint8_t)ring_random(&e.r);
			f.level = ring_random(&e.r) % 8 ? ring_random(&e.r) % 2 :
							  (uint8_t)ring_random(&e.r);
			if (!(ring_random(&e.r) % 8))
				f.rkey = ring_random(&e.r);
			flush_build(&e, &s, &f);
			s.wqe.dma.num_sge = ring_random(&e.r);
			s.wqe.wr.send_flags = ring_random(&e.r);
			ring_put(&e.r, &s, sizeof(s));
		}
		ring_doorbell(&e.r);
		ring_mend(&e.r, ring_settle(&e.r));
	}
	flush_close(&e);
}

/* It takes a place among READs and atomics in flight, at both ends. */
static void no_place(long arg)
{
	struct flush_env e;
	struct flush f;

	(void)arg;
	flush_open(&e);
	f = flush_good(&e);
	e.r.a.conf.rd_atomic = 0;
	ring_recover(&e.r);
	flush_expect(&e, &f, IBV_WC_LOC_QP_OP_ERR, "a requester without a place");
	e.r.a.conf.rd_atomic = 1;
	e.r.b.conf.rd_atomic = 0;
	ring_recover(&e.r);
	flush_expect(&e, &f, IBV_WC_REM_INV_REQ_ERR, "a responder without a place");
	e.r.b.conf.rd_atomic = 1;
	ring_recover(&e.r);
	flush_expect(&e, &f, IBV_WC_SUCCESS, "one place");
	flush_close(&e);
}

/* READs, WRITEs and FLUSHes by turns complete in their order. */
static void many(long arg)
{
	static const uint32_t others[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE };
	struct flush_env e;
	struct ibv_wc wc;
	union ring_slot s;

	(void)arg;
	flush_open(&e);
	flush_insist(&e);
	for (uint64_t i = 0; i < 60; i++) {
		struct flush f = flush_good(&e);

		if (i % 3) {
			flush_build(&e, &s, &f);
		} else {
			ring_good_wqe(&e.r, &s.wqe);
			s.wqe.wr.opcode = others[i / 3 % 2];
			/* A READ of some packets is still being answered. */
			s.wqe.dma.sge[0].length = FLUSH_LEN;
		}
		s.wqe.wr.wr_id = i;
		ring_put(&e.r, &s, sizeof(s));
	}
	check_errno(ring_doorbell(&e.r), 0, "the doorbell");
	for (uint64_t i = 0; i < 60; i++) {
		check(rdma_wait_wc(e.r.a.scq, &wc, RDMA_WAIT_MS), "all complete");
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		check_eq(wc.wr_id, i, "the order");
		check_eq(wc.opcode, i % 3 ? WC_FLUSH : i / 3 % 2 ? IBV_WC_RDMA_WRITE :
			 IBV_WC_RDMA_READ, "opcode");
	}
	flush_close(&e);
}

static void unreliable(long arg)
{
	struct flush_env e;
	struct flush f;
	union ring_slot s;

	(void)arg;
	ring_open_unreliable(&e.r);
	f = flush_whole(e.r.bbuf.mr->rkey);
	flush_build(&e, &s, &f);
	check_eq(flush_post(&e, &s), IBV_WC_LOC_QP_OP_ERR, "a FLUSH on UC");
	ring_expect_no_harm(&e.r);
	ring_close(&e.r);
}

void ring_flush_cases(void)
{
	ktap_add("only what is done is claimed", capabilities, 0, 0, "flush.capabilities");
	ktap_add("only what is done is claimed", registration, 0, 0, "flush.registration");
	ktap_add("oA19-1: after what was written before", after_writes, 0, 0,
		 "flush.after-writes");
	for (long kind = FLUSH_OF_REGION; kind < FLUSH_KINDS; kind++) {
		ktap_add("A19.4.1: a range, or all of what the key names", ranges, kind, 0,
			 "flush.%s.ranges", flush_kind_name[kind]);
		ktap_add("the key and the queue pair grant it", rights, kind, 0,
			 "flush.%s.rights", flush_kind_name[kind]);
		ktap_add("oA19-13: the key is always checked", keys, kind, 0,
			 "flush.%s.keys", flush_kind_name[kind]);
	}
	for (long kind = FLUSH_OF_TYPE_1; kind < FLUSH_KINDS; kind++)
		ktap_add("a window has what its region has", binds, kind, 0,
			 "flush.%s.binds", flush_kind_name[kind]);
	for (long kind = FLUSH_OF_TYPE_2; kind < FLUSH_KINDS; kind++)
		ktap_add("revocation is a fence", invalidated, kind, 0,
			 "flush.%s.invalidated", flush_kind_name[kind]);
	ktap_add("A19.4.1: reserved values", unknown_kinds, 0, 60, "flush.unknown-kinds");
	ktap_add("oA19-2: no payload", no_payload, 0, 0, "flush.no-payload");
	ktap_add("every field is an arbitrary number", one_word, 0, 120, "flush.one-word");
	ktap_add("every field is an arbitrary number", garbage, 0, 120, "flush.garbage");
	ktap_add("it counts as a READ does", no_place, 0, 0, "flush.no-place");
	ktap_add("responses come in order", many, 0, 0, "flush.many");
	ktap_add("RC alone", unreliable, 0, 0, "flush.unreliable");
}
