/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Address handles.
 *
 * A datagram's work request names its handle by number. The requester finds it in
 * a table and holds it (hold.h) while the packet is built and handed over; destroy
 * takes it out of the table and waits until no CPU holds it.
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
 * struct smw_ah - an address handle
 * @ibah: what the RDMA core knows of it; ibah.sgid_attr is referenced by the core
 * @number: what a work request names it by, never 0; constant
 * @av: where its packets go; constant
 * @attr: what it was made of, for query; without references
 * @route: the route that packets took last, or NULL; replaced under RCU by any
 *         queue pair that sends by the handle
 */
struct smw_ah {
	struct ib_ah ibah;
	u32 number;
	struct smw_av av;
	struct rdma_ah_attr attr;
	struct smw_ah_route __rcu *route;
};

static inline struct smw_ah *smw_ah_of(struct ib_ah *ibah)
{
	return container_of(ibah, struct smw_ah, ibah);
}

/**
 * smw_ah_hold() - find an address handle by number and hold it
 * @number: any number
 * @pd: protection domain of the queue pair
 *
 * Takes slot SMW_HOLD_AH on success.
 * Context: bottom halves disabled.
 *
 * Return: the handle, held until smw_hold_drop(), or NULL where the domain has none
 * of this number.
 */
struct smw_ah *smw_ah_hold(u32 number, const struct ib_pd *pd);

/* The RDMA core's operations on address handles. */
int smw_ah_create(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int smw_ah_query(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int smw_ah_destroy(struct ib_ah *ibah, u32 flags);

/* Module end. */
void smw_ah_exit(void);

#endif /* SMW_AH_H */
