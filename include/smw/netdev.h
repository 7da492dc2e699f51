/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a link sees of its netdev.
 */
#ifndef SMW_NETDEV_H
#define SMW_NETDEV_H

#include <linux/netdevice.h>
#include <smw/link.h>

/* Module start and end: notifications of netdevs and namespaces. */
int smw_netdev_init(void);
void smw_netdev_exit(void);

/**
 * smw_netdev_get() - ops.get_netdev
 * @ibdev: the link's device
 * @port: SMW_PORT
 *
 * Return: the netdev, referenced, or NULL once it is going.
 */
struct net_device *smw_netdev_get(struct ib_device *ibdev, u32 port);

/**
 * smw_netdev_mtu() - the largest path MTU that a netdev carries
 * @netdev: the netdev
 *
 * Return: the MTU, or 0 where not even the smallest one fits.
 */
enum ib_mtu smw_netdev_mtu(const struct net_device *netdev);

/**
 * smw_netdev_refresh() - bring link->up and link->mtu in line with the netdev
 * @link: the link
 * @netdev: its netdev
 *
 * Tells applications of a change by a port event. Context: under RTNL.
 */
void smw_netdev_refresh(struct smw_link *link, const struct net_device *netdev);

/**
 * smw_netdev_speed() - the netdev's speed in the words of InfiniBand
 * @netdev: the netdev
 * @speed: out: enum ib_port_speed of a lane
 * @width: out: enum ib_port_width
 *
 * Context: may sleep, without RTNL.
 */
void smw_netdev_speed(struct net_device *netdev, u16 *speed, u8 *width);

#endif /* SMW_NETDEV_H */
