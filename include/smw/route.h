/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Address vectors, and the routes of queue pairs.
 */
#ifndef SMW_ROUTE_H
#define SMW_ROUTE_H

#include <smw/gid.h>
#include <smw/qp.h>

/**
 * smw_route_same_vrf() - are two netdevs in the same VRF, or both outside of all?
 * @net: their namespace
 * @one: ifindex of a netdev, or of a VRF's own
 * @other: likewise
 *
 * Two VRFs may have the same addresses, and hosts of each are none of the other's.
 * Context: any.
 *
 * Return: true if so; false where a netdev is gone.
 */
bool smw_route_same_vrf(struct net *net, int one, int other);

/**
 * smw_av_counts_on() - do a path's addresses mean the same hosts on this netdev?
 * @av: the path
 * @net: its namespace
 * @ifindex: the netdev
 *
 * They do on @av's own netdev, and unless one is link-local on others of the same VRF.
 * Context: any.
 *
 * Return: true if so.
 */
static inline bool smw_av_counts_on(const struct smw_av *av, struct net *net, int ifindex)
{
	if (ifindex == av->ifindex)
		return true;
	return !smw_gid_is_link_local(&av->source) && !smw_gid_is_link_local(&av->target) &&
	       smw_route_same_vrf(net, ifindex, av->ifindex);
}

/**
 * smw_av_fill() - an address vector of a path
 * @av: out
 * @ah: the path, checked by the RDMA core
 * @entropy: spreads UDP source ports where the path has no flow label
 *
 * The reference on the GID stays the caller's. Context: any.
 *
 * Return: 0; -EINVAL where the path is none of this device's, -EADDRNOTAVAIL where its
 * source is no address of the link's namespace.
 */
int smw_av_fill(struct smw_av *av, const struct rdma_ah_attr *ah, u32 entropy);

/**
 * smw_route_find() - find a route
 * @link: the link that packets leave by
 * @av: where they go
 * @cookie: out: for dst_check()
 *
 * Return: the route, referenced, or an ERR_PTR().
 */
struct dst_entry *smw_route_find(struct smw_link *link, const struct smw_av *av,
				 u32 *cookie);

/**
 * smw_route_get() - the route of a queue pair's packets
 * @qp: a connected queue pair
 * @user: whose packets; requester.lock or responder.lock held accordingly
 *
 * Return: the route, owned by the queue pair and valid while the lock is
 * held; NULL where there is none now.
 */
struct dst_entry *smw_route_get(struct smw_qp *qp, enum smw_route_user user);

#endif /* SMW_ROUTE_H */
