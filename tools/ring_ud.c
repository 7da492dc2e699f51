// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagram requests that no library would build. */
#include "ring.h"

/* Address handles that are not there, or are another domain's. */
static void ah_numbers(long arg)
{
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : 100;
	uint32_t numbers[6] = { 0, 0x80000000, 0xffffffff };
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open_datagrams(&e);
	numbers[3] = e.ah + 1000;
	numbers[4] = ring_create_ah(&e, e.c.pd);
	check(e.ah && numbers[4] && numbers[4] != e.ah, "numbers of their own");
	for (unsigned int i = 0; i < rounds; i++) {
		ring_good_wqe(&e, &s.wqe);
		check_eq(ring_post(&e, &s), IBV_WC_SUCCESS, "a good request");
		numbers[5] = ring_random(&e) | 0x10000000;
		s.wqe.wr.wr.ud.ah_num = numbers[i % ARRAY_SIZE(numbers)];
		check_eq(ring_post(&e, &s), IBV_WC_LOC_QP_OP_ERR, "a wrong number");
		check_eq(rdma_state(e.a.qp), IBV_QPS_SQE, "the state");
		ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void opcodes(long arg)
{
	struct ring_env e;
	union ring_slot s;

	(void)arg;
	ring_open_datagrams(&e);
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		bool known = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;

		ring_good_wqe(&e, &s.wqe);
		s.wqe.wr.opcode = opcode;
		check_eq(ring_post(&e, &s), known ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR,
			 "status");
		if (!known)
			ring_recover(&e);
	}
	ring_expect_no_harm(&e);
	ring_close(&e);
}

static void one_word(long arg)
{
	(void)arg;
	ring_one_word(ring_open_datagrams, IBV_WR_SEND);
}

/* A datagram's opcode, and often a handle or a number of pieces that there may be. */
static void datagram(struct ring_env *e, union ring_slot *s)
{
	uint32_t bits = ring_random(e);

	s->wqe.wr.opcode = bits & 1 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
	if (bits & 2)
		s->wqe.wr.wr.ud.ah_num = e->ah;
	if (bits & 4)
		s->wqe.dma.num_sge %= 5;
}

static void garbage(long arg)
{
	(void)arg;
	ring_garbage(ring_open_datagrams, datagram);
}

void ring_ud_cases(void)
{
	ktap_add("the address handle is an arbitrary number", ah_numbers, 0, 60,
		 "ud.ah-numbers");
	ktap_add("opcode is an arbitrary number", opcodes, 0, 60, "ud.opcodes");
	ktap_add("every field is an arbitrary number", one_word, 0, 120, "ud.one-word");
	ktap_add("every field is an arbitrary number", garbage, 0, 120, "ud.garbage");
}
