/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which addresses are a link's own: the RDMA core's GID table, as a packet can
 * look at it.
 */
#ifndef SMW_GID_H
#define SMW_GID_H

#include <linux/in6.h>
#include <smw/link.h>

/* Such an address says nothing without its netdev: others may have it elsewhere. */
static inline bool smw_gid_is_link_local(const struct in6_addr *address)
{
	return (address->s6_addr32[0] & htonl(0xffc00000)) == htonl(0xfe800000);
}

/**
 * smw_gid_ifindex() - the netdev of an entry
 * @attr: the entry
 *
 * The core's table also has the addresses of netdevs that lie above the link's, but in
 * another namespace: a VLAN that was given to a container. Packets for them do not
 * come here.
 *
 * Context: any.
 *
 * Return: its index in the link's namespace, or -EADDRNOTAVAIL where it is not there.
 */
int smw_gid_ifindex(const struct ib_gid_attr *attr);

/**
 * smw_gid_add() - ops.add_gid: the core's table has an address more
 * @attr: the entry
 * @context: out: what smw_gid_del() gets
 *
 * The core calls for one entry at a time. Context: may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int smw_gid_add(const struct ib_gid_attr *attr, void **context);

/* ops.del_gid: the reverse. */
int smw_gid_del(const struct ib_gid_attr *attr, void **context);

/**
 * smw_gid_lives() - is this address the link's, on this netdev?
 * @link: the link
 * @address: an address, an IPv4 one mapped into IPv6
 * @ifindex: a netdev of the link's namespace
 *
 * The entry may be another one than before: the core takes a bond's addresses away and
 * gives them back when another leg becomes active, and likewise with a new MAC.
 *
 * Context: any.
 */
bool smw_gid_lives(struct smw_link *link, const struct in6_addr *address, int ifindex);

/**
 * smw_gid_any() - has this netdev any of the link's addresses?
 * @link: the link
 * @ifindex: a netdev of the link's namespace
 *
 * Context: any.
 */
bool smw_gid_any(struct smw_link *link, int ifindex);

/**
 * smw_gid_exists() - is a packet to this address for the link?
 * @link: the link
 * @address: an address, an IPv4 one mapped into IPv6
 * @ifindex: the netdev that it came in by, which has to be the address's own where
 *           that is link-local, or else in the same VRF
 *
 * Context: any.
 */
bool smw_gid_exists(struct smw_link *link, const struct in6_addr *address, int ifindex);

/**
 * smw_gid_vlan() - the VLAN that an address of the link's is on
 * @link: the link
 * @address: the address, an IPv4 one mapped into IPv6
 * @ifindex: the netdev that counts where several have it
 *
 * Context: any.
 *
 * Return: its identifier, or SMW_VLAN_NONE.
 */
u16 smw_gid_vlan(struct smw_link *link, const struct in6_addr *address, int ifindex);

#endif /* SMW_GID_H */
