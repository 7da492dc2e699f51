// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests that no library would build. */
#include "ring.h"

#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <unistd.h>

/* Kernel opcodes that user space has no use of. */
#define WR_LSO			10
#define WR_READ_WITH_INV	11
#define WR_MASKED_ATOMICS	12	/* and 13 */
#define WR_REG_MR		0x20

static const uint32_t odd_numbers[] = {
	0, 1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 4095, 4096, 65535,
	65536, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffff0, 0xfffffffe,
	0xffffffff,
};

static bool may_succeed(uint32_t opcode)
{
	return opcode < WR_LSO || opcode == WR_FLUSH ||
	       opcode == WR_ATOMIC_WRITE;
}

/* Every opcode there can be: known ones work or fail, others fail. */
static void opcodes(long arg)
{
	uint32_t high = (uint32_t)arg;
	enum ibv_wc_status status;
	struct ring_env e;
	union ring_slot s;

	ring_open(&e);
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		ring_good_wqe(&e, &s.wqe);
		s.wqe.wr.opcode = opcode | high;
		status = ring_post(&e, &s);
		if (high || !may_succeed(opcode))
			check(status != IBV_WC_SUCCESS,
			      "opcode %#x is refused", opcode | high);
		ring_mend(&e, status);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* A user's ring cannot register memory, whatever it names. */
static void reg_mr(long arg)
{
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open(&e);
	for (int i = 0; i < 200; i++) {
		ring_good_wqe(&e, &s.wqe);
		for (size_t j = 5; j < sizeof(s.wqe) / 4; j++)
			s.words[j] = ring_random(&e);
		s.wqe.wr.opcode = WR_REG_MR + (uint32_t)(i & 1);
		s.wqe.wr.send_flags = IBV_SEND_SIGNALED;
		check(ring_post(&e, &s) != IBV_WC_SUCCESS, "REG_MR is refused");
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void num_sge(long arg)
{
	static const uint32_t opcodes_with_data[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
	};
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(opcodes_with_data); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(odd_numbers); j++) {
			uint32_t n = odd_numbers[j];
			enum ibv_wc_status status;

			ring_good_wqe(&e, &s.wqe);
			s.wqe.wr.opcode = opcodes_with_data[i];
			s.wqe.dma.num_sge = n;
			for (size_t k = 1; k < 32; k++)
				s.wqe.dma.sge[k] = s.wqe.dma.sge[0];
			status = ring_post(&e, &s);
			/* a slot cannot hold that many */
			if (n > e.sq.slot_len / sizeof(struct rxe_sge))
				check(status != IBV_WC_SUCCESS,
				      "%u elements are refused", n);
			ring_mend(&e, status);
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* The lengths of the elements, and the length that is said of them all. */
static void lengths(long arg)
{
	struct ring_env e;
	union ring_slot s;

	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(odd_numbers); j++) {
			enum ibv_wc_status status;

			ring_good_wqe(&e, &s.wqe);
			s.wqe.wr.opcode = (uint32_t)arg;
			s.wqe.dma.num_sge = 2;
			s.wqe.dma.sge[1] = s.wqe.dma.sge[0];
			s.wqe.dma.sge[0].length = odd_numbers[i];
			s.wqe.dma.length = odd_numbers[j];
			s.wqe.dma.resid = odd_numbers[(i + j) %
						      ARRAY_SIZE(odd_numbers)];
			status = ring_post(&e, &s);
			if (odd_numbers[i] > RING_BUF_LEN &&
			    arg != IBV_WR_ATOMIC_FETCH_AND_ADD)
				check(status != IBV_WC_SUCCESS,
				      "an element of %u bytes is refused",
				      odd_numbers[i]);
			ring_mend(&e, status);
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Many elements whose lengths together wrap 2^32. */
static void sum_wraps(long arg)
{
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open(&e);
	for (uint32_t n = 2; n <= 4; n++) {
		ring_good_wqe(&e, &s.wqe);
		s.wqe.dma.num_sge = n;
		for (uint32_t k = 0; k < n; k++) {
			s.wqe.dma.sge[k] = s.wqe.dma.sge[0];
			s.wqe.dma.sge[k].length = (uint32_t)((1ULL << 32) / n);
		}
		check(ring_post(&e, &s) != IBV_WC_SUCCESS,
		      "elements of 4 GiB together are refused");
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void inline_lengths(long arg)
{
	enum ibv_wc_status status;
	struct ring_env e;
	union ring_slot s;

	ring_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
		uint32_t n = odd_numbers[i];

		for (size_t j = 0; j < ARRAY_SIZE(odd_numbers); j++) {
			ring_good_wqe(&e, &s.wqe);
			s.wqe.wr.opcode = (uint32_t)arg;
			s.wqe.wr.send_flags |= IBV_SEND_INLINE;
			s.wqe.dma.length = n;
			s.wqe.dma.num_sge = odd_numbers[j];
			status = ring_post(&e, &s);
			if (n > e.sq.slot_len && (arg == IBV_WR_SEND ||
						  arg == IBV_WR_RDMA_WRITE))
				check(status != IBV_WC_SUCCESS,
				      "%u bytes inline are refused", n);
			ring_mend(&e, status);
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Each bit of the flags, with each operation. */
static void flags(long arg)
{
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open(&e);
	for (uint32_t opcode = 0; opcode < WR_LSO; opcode++) {
		for (int bit = 0; bit < 32; bit++) {
			ring_good_wqe(&e, &s.wqe);
			s.wqe.wr.opcode = opcode;
			s.wqe.wr.send_flags = 1U << bit;
			ring_mend(&e, ring_post(&e, &s));
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* Binds of any window to any region with any rights: none reaches others. */
static void binds(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 1500;
	struct ibv_mw *mine[2], *other;
	uint32_t keys[6];
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open(&e);
	mine[0] = ibv_alloc_mw(e.a.pd, IBV_MW_TYPE_1);
	mine[1] = ibv_alloc_mw(e.a.pd, IBV_MW_TYPE_2);
	other = ibv_alloc_mw(e.c.pd, IBV_MW_TYPE_2);
	check(mine[0] && mine[1] && other, "windows");
	keys[0] = mine[0]->rkey;
	keys[1] = mine[1]->rkey;
	keys[2] = other->rkey;
	keys[3] = e.abuf.mr->lkey;
	keys[4] = e.secret.mr->lkey;
	for (unsigned int i = 0; i < rounds; i++) {
		keys[5] = ring_random(&e);
		ring_good_wqe(&e, &s.wqe);
		s.wqe.wr.opcode = IBV_WR_BIND_MW;
		s.wqe.wr.wr.mw.mw_rkey = ring_pick(&e, keys, 6);
		s.wqe.wr.wr.mw.mr_lkey = ring_pick(&e, keys, 6);
		s.wqe.wr.wr.mw.rkey = ring_random(&e);
		s.wqe.wr.wr.mw.addr = ring_random(&e) & 1 ? e.abuf.iova :
				      (uint64_t)ring_random(&e) << 32;
		s.wqe.wr.wr.mw.length = ring_random(&e) & 1 ? 64 :
					(uint64_t)ring_random(&e) << 20;
		s.wqe.wr.wr.mw.access = ring_random(&e) & 1 ?
			RDMA_ALL_REMOTE : ring_random(&e);
		ring_mend(&e, ring_post(&e, &s));
	}
	check_errno(ibv_dereg_mr(e.secret.mr), 0,
		    "nothing is bound to a region of others");
	e.secret.mr = ibv_reg_mr(e.c.pd, e.secret.addr, e.secret.len,
				 IBV_ACCESS_LOCAL_WRITE);
	check(e.secret.mr, "ibv_reg_mr");
	ring_expect_no_harm(&e);
	check_errno(ibv_dealloc_mw(mine[0]), 0, "ibv_dealloc_mw");
	check_errno(ibv_dealloc_mw(mine[1]), 0, "ibv_dealloc_mw");
	check_errno(ibv_dealloc_mw(other), 0, "ibv_dealloc_mw");
	ring_close(&e);
}

static void invalidates(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 500;
	struct ibv_mw *other;
	uint32_t keys[6];
	struct ring_env e;
	union ring_slot s;

	ring_open(&e);
	other = ibv_alloc_mw(e.c.pd, IBV_MW_TYPE_2);
	check(other, "a window");
	keys[0] = other->rkey;
	keys[1] = e.secret.mr->rkey;
	keys[2] = e.abuf.mr->rkey;
	keys[3] = 0;
	keys[4] = 0xffffffff;
	for (unsigned int i = 0; i < rounds; i++) {
		keys[5] = ring_random(&e);
		ring_good_wqe(&e, &s.wqe);
		s.wqe.wr.opcode = (uint32_t)arg;
		s.wqe.wr.ex.invalidate_rkey = ring_pick(&e, keys, 6);
		s.wqe.dma.num_sge = 0;
		s.wqe.dma.length = 0;
		if (arg == IBV_WR_SEND_WITH_INV && i & 1)
			rdma_recv(&e.b, 1, NULL, 0, 0);
		check(ring_post(&e, &s) != IBV_WC_SUCCESS,
		      "nothing here can be invalidated");
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	check_errno(ibv_dealloc_mw(other), 0, "ibv_dealloc_mw");
	ring_close(&e);
}

/* Opcodes that exist, and often a number of pieces that there may be. */
static void known_opcode(struct ring_env *e, union ring_slot *s)
{
	s->wqe.wr.opcode %= 16;
	if (ring_random(e) & 1)
		s->wqe.dma.num_sge %= 5;
}

static void garbage(long arg)
{
	ring_garbage(ring_open, arg ? known_opcode : NULL);
}

void ring_garbage(void (*open)(struct ring_env *e),
		  void (*temper)(struct ring_env *e, union ring_slot *s))
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 400;
	struct ring_env e;
	union ring_slot s;

	open(&e);
	for (unsigned int i = 0; i < rounds; i++) {
		for (unsigned int j = 0; j <= ring_random(&e) % 8; j++) {
			for (size_t k = 0; k < ARRAY_SIZE(s.words); k++)
				s.words[k] = ring_random(&e);
			if (temper)
				temper(&e, &s);
			ring_put(&e, &s, sizeof(s));
		}
		ring_doorbell(&e);
		ring_settle(&e);
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void one_word(long arg)
{
	ring_one_word(ring_open, (uint32_t)arg);
}

void ring_one_word(void (*open)(struct ring_env *e), uint32_t opcode)
{
	struct ring_env e;
	union ring_slot s;

	open(&e);
	for (size_t word = 0; word < (sizeof(s.wqe) + 16) / 4; word++) {
		for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i += 3) {
			ring_good_wqe(&e, &s.wqe);
			s.wqe.wr.opcode = opcode;
			s.words[word] = odd_numbers[i];
			ring_mend(&e, ring_post(&e, &s));
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/*
 * The command can carry a list. Inline data in one would be named by address alone,
 * and taken from the kernel's memory: this device takes lists from kernel code only.
 */
static void posted_list(long arg)
{
	struct ib_uverbs_post_send_resp resp = { 0 };
	struct ib_uverbs_cmd_hdr hdr = {
		.command = IB_USER_VERBS_CMD_POST_SEND,
		.out_words = sizeof(resp) / 4,
	};
	struct ib_uverbs_post_send core = {
		.response = (uintptr_t)&resp,
		.wr_count = 1,
		.sge_count = 1,
		.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};
	struct ib_uverbs_send_wr wr = {
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (uint32_t)arg,
	};
	struct ib_uverbs_sge sge = { .length = 16 };
	uint8_t cmd[sizeof(hdr) + sizeof(core) + sizeof(wr) + sizeof(sge)];
	struct ring_env e;
	uint8_t *at = cmd;

	ring_open(&e);
	hdr.in_words = sizeof(cmd) / 4;
	core.qp_handle = e.a.qp->handle;
	sge.addr = 0xffffffff81000000;	/* where a kernel is */
	at = mempcpy(at, &hdr, sizeof(hdr));
	at = mempcpy(at, &core, sizeof(core));
	at = mempcpy(at, &wr, sizeof(wr));
	mempcpy(at, &sge, sizeof(sge));
	errno = 0;
	check(write(e.dev.ctx->cmd_fd, cmd, sizeof(cmd)) < 0, "a list is refused");
	check_errno(errno, EOPNOTSUPP, "a list");
	check(ring_settle(&e) == IBV_WC_SUCCESS, "nothing of it was posted");
	ring_expect_no_harm(&e);
	ring_close(&e);
}

void ring_wqe_cases(void)
{
	static const struct {
		const char *name;
		uint32_t opcode;
	} ops[] = {
		{ "write", IBV_WR_RDMA_WRITE },
		{ "send", IBV_WR_SEND },
		{ "read", IBV_WR_RDMA_READ },
		{ "fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD },
		{ "bind", IBV_WR_BIND_MW },
		{ "local-inv", IBV_WR_LOCAL_INV },
	};

	ktap_add("opcode is an arbitrary number", opcodes, 0, 60,
		 "wqe.opcodes");
	ktap_add("opcode is an arbitrary number", opcodes, 0x100, 60,
		 "wqe.opcodes-9-bits");
	ktap_add("opcode is an arbitrary number", opcodes, 0x40000000, 60,
		 "wqe.opcodes-31-bits");
	ktap_add("kernel-only opcodes", reg_mr, 0, 60, "wqe.reg-mr");
	ktap_add("a list in the command", posted_list, 0, 0, "wqe.list");
	ktap_add("a list in the command", posted_list, IBV_SEND_INLINE, 0,
		 "wqe.list.inline");
	ktap_add("num_sge is an arbitrary number", num_sge, 0, 60,
		 "wqe.num-sge");
	ktap_add("lengths are arbitrary numbers", sum_wraps, 0, 0,
		 "wqe.sum-wraps");
	for (size_t i = 0; i < 4; i++) {
		ktap_add("lengths are arbitrary numbers", lengths,
			 ops[i].opcode, 120, "wqe.lengths-%s", ops[i].name);
		ktap_add("lengths are arbitrary numbers", inline_lengths,
			 ops[i].opcode, 120, "wqe.inline-%s", ops[i].name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		ktap_add("every field is an arbitrary number", one_word,
			 ops[i].opcode, 120, "wqe.one-word-%s", ops[i].name);
	ktap_add("flags are arbitrary numbers", flags, 0, 120, "wqe.flags");
	ktap_add("access bits are arbitrary numbers", binds, 0, 120,
		 "wqe.binds");
	ktap_add("keys are arbitrary numbers", invalidates, IBV_WR_LOCAL_INV,
		 60, "wqe.local-inv");
	ktap_add("keys are arbitrary numbers", invalidates,
		 IBV_WR_SEND_WITH_INV, 60, "wqe.send-with-inv");
	ktap_add("every field is an arbitrary number", garbage, 0, 120,
		 "wqe.garbage");
	ktap_add("every field is an arbitrary number", garbage, 1, 120,
		 "wqe.garbage-known-opcodes");
}
