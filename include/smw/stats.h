/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Counters and resources as `rdma statistic` and `rdma resource` show them.
 */
#ifndef SMW_STATS_H
#define SMW_STATS_H

#include <rdma/ib_verbs.h>
#include <smw/reason.h>

struct smw_link;

/* The RDMA core's operations on counters. */
struct rdma_hw_stats *smw_stats_alloc(struct ib_device *ibdev, u32 port);
int smw_stats_get(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
		  int index);

/**
 * smw_stats_sum() - the value of a counter
 * @link: the link
 * @counter: enum smw_counter
 */
u64 smw_stats_sum(const struct smw_link *link, enum smw_counter counter);

/**
 * smw_stats_fill_mr() - add what the core does not know of a region
 * @msg: the message to user space
 * @ibmr: the region
 *
 * Adds how many windows are bound to it.
 *
 * Return: 0 or -EMSGSIZE.
 */
int smw_stats_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr);

#endif /* SMW_STATS_H */
