/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups: which queue pairs of a link are attached to which.
 */
#ifndef SMW_MCAST_H
#define SMW_MCAST_H

#include <linux/in6.h>
#include <rdma/ib_verbs.h>
#include <smw/link.h>

/**
 * smw_mcast_members() - the queue pairs that are attached to a group
 * @link: the link that the packet came in by
 * @mgid: the group, an IPv4 one mapped into IPv6
 * @qpns: out: room for SMW_MAX_MCAST_QP numbers
 *
 * A queue pair may be gone by the time that its number is used.
 * Context: any.
 *
 * Return: how many.
 */
u32 smw_mcast_members(struct smw_link *link, const struct in6_addr *mgid, u32 *qpns);

/**
 * smw_mcast_follow() - netdevs went, or into or out of bonds and bridges, or lost a
 *                      family by their MTU, or have it again
 *
 * @net: their namespace
 *
 * Groups are joined where their links hear now. Context: under RTNL.
 */
void smw_mcast_follow(const struct net *net);

/* The RDMA core's operations on multicast groups. */
int smw_mcast_attach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int smw_mcast_detach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* Module start and end. */
int smw_mcast_init(void);
void smw_mcast_exit(void);

#endif /* SMW_MCAST_H */
