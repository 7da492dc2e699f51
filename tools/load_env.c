// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "load.h"

#include <time.h>

#define IDLE_NS	500000

uint64_t load_until_us(void)
{
	unsigned int seconds = ktap_opt.seconds ? ktap_opt.seconds : LOAD_SECONDS;

	return rdma_now_us() + 1000000ULL * seconds;
}

void load_idle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS }, NULL);
}

/* xorshift32, which never leaves its only cycle unless it is 0. */
static uint32_t next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

uint32_t load_draw(uint32_t *seed, uint32_t below)
{
	return next(seed) % below;
}

void load_fill(uint32_t *seed, void *at, size_t len)
{
	uint8_t *byte = at;

	for (size_t i = 0; i < len; i += 4) {
		uint32_t word = next(seed);

		memcpy(byte + i, &word, len - i < 4 ? len - i : 4);
	}
}

/* FNV-1a. */
uint64_t load_sum(const void *at, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325;
	const uint8_t *byte = at;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ byte[i]) * 0x100000001b3;
	return sum;
}

struct rdma_conf load_conf(enum ibv_qp_type type)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = type;
	conf.mtu = IBV_MTU_1024;	/* LOAD_MTU */
	conf.timeout = 16;	/* 268 ms */
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	return conf;
}
