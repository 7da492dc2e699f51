// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagram requests that no library would build. */
#include "ring.h"

union slot {
	struct rxe_send_wqe wqe;
	uint8_t bytes[RING_SLOT_MAX];
	uint32_t words[RING_SLOT_MAX / 4];
};

static enum ibv_wc_status post(struct ring_env *e, const union slot *s)
{
	ring_put(e, s, sizeof(*s));
	ring_doorbell(e);
	return ring_settle(e);
}

/* Address handles that are not there, or are another domain's. */
static void ah_numbers(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 100;
	uint32_t numbers[6] = { 0, 0x80000000, 0xffffffff };
	struct ring_env e;
	union slot s;

	(void)arg;
	ring_open_datagrams(&e);
	numbers[3] = e.ah + 1000;
	numbers[4] = ring_create_ah(&e, e.c.pd);
	check(e.ah && numbers[4] && numbers[4] != e.ah, "numbers of their own");
	for (unsigned int i = 0; i < rounds; i++) {
		ring_good_wqe(&e, &s.wqe);
		check_eq(post(&e, &s), IBV_WC_SUCCESS, "a good request");
		numbers[5] = ring_random(&e) | 0x10000000;
		s.wqe.wr.wr.ud.ah_num = numbers[i % ARRAY_SIZE(numbers)];
		check_eq(post(&e, &s), IBV_WC_LOC_QP_OP_ERR, "a wrong number");
		check_eq(rdma_state(e.a.qp), IBV_QPS_SQE, "the state");
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void opcodes(long arg)
{
	struct ring_env e;
	union slot s;

	(void)arg;
	ring_open_datagrams(&e);
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		bool known = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;

		ring_good_wqe(&e, &s.wqe);
		s.wqe.wr.opcode = opcode;
		check_eq(post(&e, &s), known ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR,
			 "status");
		if (!known)
			ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

/* A good request with one word of it changed, each word in turn. */
static void one_word(long arg)
{
	static const uint32_t odd_numbers[] = { 0, 1, 65, 65536, 0x80000000, 0xffffffff };
	struct ring_env e;
	union slot s;

	(void)arg;
	ring_open_datagrams(&e);
	for (size_t word = 0; word < (sizeof(s.wqe) + 16) / 4; word++) {
		for (size_t i = 0; i < ARRAY_SIZE(odd_numbers); i++) {
			ring_good_wqe(&e, &s.wqe);
			s.words[word] = odd_numbers[i];
			if (post(&e, &s) != IBV_WC_SUCCESS ||
			    rdma_state(e.a.qp) != IBV_QPS_RTS)
				ring_recover(&e);
		}
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void garbage(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 400;
	struct ring_env e;
	union slot s;

	(void)arg;
	ring_open_datagrams(&e);
	for (unsigned int i = 0; i < rounds; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(s.words); k++)
			s.words[k] = ring_random(&e);
		s.wqe.wr.opcode = IBV_WR_SEND + (i & 1);
		if (i & 2)
			s.wqe.wr.wr.ud.ah_num = e.ah;
		if (i & 4)
			s.wqe.dma.num_sge %= 5;
		ring_put(&e, &s, sizeof(s));
		ring_doorbell(&e);
		ring_settle(&e);
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

void ring_ud_cases(void)
{
	ktap_add("the address handle is an arbitrary number", ah_numbers, 0, 60,
		 "ud.ah-numbers");
	ktap_add("opcode is an arbitrary number", opcodes, 0, 60, "ud.opcodes");
	ktap_add("every field is an arbitrary number", one_word, 0, 120, "ud.one-word");
	ktap_add("every field is an arbitrary number", garbage, 0, 120, "ud.garbage");
}
