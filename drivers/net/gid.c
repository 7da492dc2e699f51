// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/gid.h>

#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include <smw/carrier.h>
#include <smw/packet.h>
#include <smw/route.h>

/**
 * struct smw_gid - an address of a link
 * @node: in link->gids
 * @address: the address. There may be two of one, of two netdevs
 * @ifindex: the netdev that has it
 * @vlan_id: that netdev's VLAN, or SMW_VLAN_NONE
 * @rcu: frees the structure after the last look at it
 */
struct smw_gid {
	struct hlist_node node;
	struct in6_addr address;
	int ifindex;
	u16 vlan_id;
	struct rcu_head rcu;
};

int smw_gid_ifindex(const struct ib_gid_attr *attr)
{
	const struct smw_link *link = smw_link_of(attr->device);
	struct net_device *netdev;
	int ifindex = -EADDRNOTAVAIL;

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	if (netdev && net_eq(dev_net(netdev), link->net))
		ifindex = netdev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

int smw_gid_add(const struct ib_gid_attr *attr, void **context)
{
	struct smw_link *link = smw_link_of(attr->device);
	int ifindex = smw_gid_ifindex(attr);
	struct smw_gid *gid;

	/* Another namespace's: in the core's table, but not for use. */
	if (ifindex < 0)
		return 0;
	gid = kmalloc(sizeof(*gid), GFP_KERNEL);
	if (!gid)
		return -ENOMEM;
	memcpy(&gid->address, &attr->gid, sizeof(gid->address));
	gid->ifindex = ifindex;
	gid->vlan_id = SMW_VLAN_NONE;
	/* Only where the netdev is gone does it fail: then nothing comes from there. */
	rdma_read_gid_l2_fields(attr, &gid->vlan_id, NULL);
	hash_add_rcu(link->gids, &gid->node, ipv6_addr_hash(&gid->address));
	*context = gid;
	smw_carrier_changed();
	return 0;
}

int smw_gid_del(const struct ib_gid_attr *attr, void **context)
{
	struct smw_gid *gid = *context;

	if (!gid)
		return 0;
	hash_del_rcu(&gid->node);
	kfree_rcu(gid, rcu);
	smw_carrier_changed();
	return 0;
}

bool smw_gid_lives(struct smw_link *link, const struct in6_addr *address, int ifindex)
{
	const struct smw_gid *gid;
	bool found = false;

	rcu_read_lock();
	hash_for_each_possible_rcu(link->gids, gid, node, ipv6_addr_hash(address))
		found |= gid->ifindex == ifindex && ipv6_addr_equal(&gid->address, address);
	rcu_read_unlock();
	return found;
}

bool smw_gid_any(struct smw_link *link, int ifindex)
{
	const struct smw_gid *gid;
	bool found = false;
	int bucket;

	rcu_read_lock();
	hash_for_each_rcu(link->gids, bucket, gid, node)
		found |= gid->ifindex == ifindex;
	rcu_read_unlock();
	return found;
}

/* Is it this address, on this netdev or on one in the same VRF? */
static bool counts_on(struct smw_link *link, const struct smw_gid *gid,
		      const struct in6_addr *address, int ifindex)
{
	return ipv6_addr_equal(&gid->address, address) &&
	       (gid->ifindex == ifindex ||
		smw_route_same_vrf(link->net, gid->ifindex, ifindex));
}

bool smw_gid_exists(struct smw_link *link, const struct in6_addr *address, int ifindex)
{
	const struct smw_gid *gid;
	bool found = false;

	if (smw_gid_is_link_local(address))
		return smw_gid_lives(link, address, ifindex);
	rcu_read_lock();
	hash_for_each_possible_rcu(link->gids, gid, node, ipv6_addr_hash(address)) {
		found = counts_on(link, gid, address, ifindex);
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

u16 smw_gid_vlan(struct smw_link *link, const struct in6_addr *address, int ifindex)
{
	u16 vlan_id = SMW_VLAN_NONE;
	const struct smw_gid *gid;

	rcu_read_lock();
	hash_for_each_possible_rcu(link->gids, gid, node, ipv6_addr_hash(address)) {
		if (!counts_on(link, gid, address, ifindex))
			continue;
		vlan_id = gid->vlan_id;
		if (gid->ifindex == ifindex)
			break;
	}
	rcu_read_unlock();
	return vlan_id;
}
