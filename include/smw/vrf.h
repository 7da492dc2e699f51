/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * VRFs: an address counts in its own alone, as for a socket that is bound to one
 * (Documentation/networking/vrf.rst of the kernel).
 */
#ifndef SMW_VRF_H
#define SMW_VRF_H

#include <linux/netdevice.h>
#include <smw/carrier.h>

/* For smw_vrf_of(): look, and remember. */
int smw_vrf_look(struct smw_vrf *vrf, struct net *net, int ifindex);

/**
 * smw_vrf_of() - the VRF that a netdev is in
 * @vrf: what was seen of that netdev
 * @net: its namespace
 * @ifindex: the netdev, the same each time
 *
 * Context: any.
 *
 * Return: index of the VRF's netdev, or 0 outside of all.
 */
static inline int smw_vrf_of(struct smw_vrf *vrf, struct net *net, int ifindex)
{
	u64 seen = READ_ONCE(vrf->seen);

	if (likely(upper_32_bits(seen) == smw_carrier_generation()))
		return (int)lower_32_bits(seen);
	return smw_vrf_look(vrf, net, ifindex);
}

/* The VRF that a packet came in by: skb->dev is that one's netdev by now. */
static inline int smw_vrf_of_packet(const struct sk_buff *skb)
{
	return netif_is_l3_master(skb->dev) ? skb->dev->ifindex : 0;
}

#endif /* SMW_VRF_H */
