/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What wireload is made of: mixed traffic whose every byte is checked, for as long as
 * it is told. Data is drawn, so that no two messages are the same.
 */
#ifndef SMW_TOOLS_LOAD_H
#define SMW_TOOLS_LOAD_H

#include "ktap.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOAD_SECONDS	10	/* where the command line does not say */
#define LOAD_MTU	1024	/* of connections */
#define LOAD_SILENCE_S	60	/* without a completion: a request is lost */

/* When to stop sending. */
uint64_t load_until_us(void);
/* There was nothing to do: an answer takes many milliseconds on such a wire. */
void load_idle(void);

uint32_t load_draw(uint32_t *seed, uint32_t below);
void load_fill(uint32_t *seed, void *at, size_t len);
uint64_t load_sum(const void *at, size_t len);

/* Packets that a message takes. */
static inline uint32_t load_packets(uint32_t len)
{
	return len ? (len - 1) / LOAD_MTU + 1 : 1;
}

/*
 * A wire with a round trip of 100 ms that loses a tenth: the timer is longer than a
 * round trip, and there are as many retries as can be had.
 */
struct rdma_conf load_conf(enum ibv_qp_type type);

void load_reliable_cases(void);
void load_unreliable_cases(void);

#endif
