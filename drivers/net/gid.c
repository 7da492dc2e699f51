// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/gid.h>

#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include <smw/carrier.h>

/**
 * struct smw_gid - an address of a link
 * @node: in link->gids
 * @address: the address. There may be two of one, of two netdevs
 * @rcu: frees the structure after the last look at it
 */
struct smw_gid {
	struct hlist_node node;
	struct in6_addr address;
	struct rcu_head rcu;
};

int smw_gid_add(const struct ib_gid_attr *attr, void **context)
{
	struct smw_link *link = smw_link_of(attr->device);
	struct smw_gid *gid = kmalloc(sizeof(*gid), GFP_KERNEL);

	if (!gid)
		return -ENOMEM;
	memcpy(&gid->address, &attr->gid, sizeof(gid->address));
	hash_add_rcu(link->gids, &gid->node, ipv6_addr_hash(&gid->address));
	*context = gid;
	smw_carrier_changed();
	return 0;
}

int smw_gid_del(const struct ib_gid_attr *attr, void **context)
{
	struct smw_gid *gid = *context;

	hash_del_rcu(&gid->node);
	kfree_rcu(gid, rcu);
	smw_carrier_changed();
	return 0;
}

bool smw_gid_exists(struct smw_link *link, const struct in6_addr *address)
{
	const struct smw_gid *gid;
	bool found = false;

	rcu_read_lock();
	hash_for_each_possible_rcu(link->gids, gid, node, ipv6_addr_hash(address))
		found |= ipv6_addr_equal(&gid->address, address);
	rcu_read_unlock();
	return found;
}
