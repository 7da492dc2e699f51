/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Address handles.
 *
 * A datagram's work request names its handle by number. What the requester needs of it
 * is found in a table, under RCU, and outlives the handle by a grace period: nobody
 * waits for whoever still sends by it, since destroy may be called in any context.
 */
#ifndef SMW_AH_H
#define SMW_AH_H

#include <smw/qp.h>

/**
 * struct smw_ah_route - a route that an address handle has found
 * @dst: the route, referenced
 * @cookie: for dst_check()
 * @generation: generation of the addresses when it was found (carrier.h)
 * @rcu: frees the structure after the last look at it
 */
struct smw_ah_route {
	struct dst_entry *dst;
	u32 cookie;
	u32 generation;
	struct rcu_head rcu;
};

/**
 * struct smw_ah_path - what a datagram's sender needs of an address handle
 * @pd: the handle's protection domain; constant
 * @av: where packets go; constant
 * @route: the route that they took last, or NULL; replaced under RCU by any queue pair
 *         that sends by the handle
 * @rcu: frees the structure and the route after the last look at it
 */
struct smw_ah_path {
	const struct ib_pd *pd;
	struct smw_av av;
	struct smw_ah_route __rcu *route;
	struct rcu_head rcu;
};

/**
 * struct smw_ah - an address handle
 * @ibah: what the RDMA core knows of it
 * @number: what a work request names it by, never 0; constant
 * @is_kernel: a kernel consumer's; constant
 * @attr: what it was made of, for query; without references
 * @path: what senders need of it
 */
struct smw_ah {
	struct ib_ah ibah;
	u32 number;
	bool is_kernel;
	struct rdma_ah_attr attr;
	struct smw_ah_path *path;
};

static inline struct smw_ah *smw_ah_of(struct ib_ah *ibah)
{
	return container_of(ibah, struct smw_ah, ibah);
}

/**
 * smw_ah_find() - find the path of an address handle by its number
 * @number: any number
 * @pd: protection domain of the queue pair
 *
 * Context: under rcu_read_lock().
 *
 * Return: the path, or NULL where the domain has no handle of this number.
 */
struct smw_ah_path *smw_ah_find(u32 number, const struct ib_pd *pd);

/* The RDMA core's operations on address handles. */
int smw_ah_create(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int smw_ah_query(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int smw_ah_destroy(struct ib_ah *ibah, u32 flags);

/* Module end. */
void smw_ah_exit(void);

#endif /* SMW_AH_H */
