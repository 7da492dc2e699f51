// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Each attachment of a queue pair to a group joins the group on the netdev that the link
 * hears by, so that filters and switches let its packets through; the network stack
 * counts how often, and forgets routes that do not lead back here. RTNL, which joining
 * takes anyway, protects the attachments.
 */
#include <smw/mcast.h>

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rhashtable.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>

#include <smw/wire.h>

/**
 * struct smw_group - what names a group
 * @link: a group of one link is none of another's
 * @mgid: its address, an IPv4 one mapped into IPv6
 */
struct smw_group {
	struct smw_link *link;
	struct in6_addr mgid;
};

/**
 * struct smw_member - a queue pair's attachment to a group
 * @node: in members
 * @attached: in attachments
 * @group: the group
 * @qpn: the queue pair
 * @ifindex: the netdev that the group was joined on, 0 where none was
 * @rcu: frees the structure after the last look at it
 */
struct smw_member {
	struct rhlist_head node;
	struct list_head attached;
	struct smw_group group;
	u32 qpn;
	int ifindex;
	struct rcu_head rcu;
};

static struct rhltable members;
static LIST_HEAD(attachments);

static const struct rhashtable_params member_params = {
	.key_offset = offsetof(struct smw_member, group),
	.key_len = sizeof(struct smw_group),
	.head_offset = offsetof(struct smw_member, node),
	.automatic_shrinking = true,
};

int smw_mcast_init(void)
{
	return rhltable_init(&members, &member_params);
}

void smw_mcast_exit(void)
{
	rhltable_destroy(&members);
}

u32 smw_mcast_members(struct smw_link *link, const struct in6_addr *mgid, u32 *qpns)
{
	struct smw_group group = { .link = link, .mgid = *mgid };
	struct rhlist_head *list, *at;
	struct smw_member *member;
	u32 count = 0;

	rcu_read_lock();
	list = rhltable_lookup(&members, &group, member_params);
	rhl_for_each_entry_rcu(member, at, list, node)
		if (count < SMW_MAX_MCAST_QP)
			qpns[count++] = member->qpn;
	rcu_read_unlock();
	return count;
}

static struct smw_member *find(const struct smw_group *group, u32 qpn, u32 *count)
{
	struct smw_member *member, *found = NULL;
	struct rhlist_head *list, *at;

	ASSERT_RTNL();
	*count = 0;
	rcu_read_lock();
	list = rhltable_lookup(&members, group, member_params);
	rhl_for_each_entry_rcu(member, at, list, node) {
		if (member->qpn == qpn)
			found = member;
		(*count)++;
	}
	rcu_read_unlock();
	return found;
}

/* The stack says nothing of it where it had no memory to join. */
static bool is_joined(const struct in_device *in_dev, __be32 address)
{
	const struct ip_mc_list *at;

	for (at = rtnl_dereference(in_dev->mc_list); at; at = rtnl_dereference(at->next_rcu))
		if (at->multiaddr == address)
			return true;
	return false;
}

static int join(const struct smw_group *group, int ifindex)
{
	struct net_device *netdev = __dev_get_by_index(group->link->net, ifindex);
	struct in_device *in_dev;

	if (!netdev)
		return -ENODEV;
	if (!ipv6_addr_v4mapped(&group->mgid))
		return ipv6_dev_mc_inc(netdev, &group->mgid);
	in_dev = __in_dev_get_rtnl(netdev);
	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, group->mgid.s6_addr32[3]);
	return is_joined(in_dev, group->mgid.s6_addr32[3]) ? 0 : -ENOMEM;
}

/* A netdev that goes takes its memberships along. */
static void leave(const struct smw_group *group, int ifindex)
{
	struct net_device *netdev = __dev_get_by_index(group->link->net, ifindex);
	struct in_device *in_dev;

	if (!netdev)
		return;
	if (!ipv6_addr_v4mapped(&group->mgid)) {
		ipv6_dev_mc_dec(netdev, &group->mgid);
		return;
	}
	in_dev = __in_dev_get_rtnl(netdev);
	if (in_dev)
		ip_mc_dec_group(in_dev, group->mgid.s6_addr32[3]);
}

static int insert(const struct smw_group *group, u32 qpn, int ifindex)
{
	struct smw_member *member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	int err;

	if (!member)
		return -ENOMEM;
	member->group = *group;
	member->qpn = qpn;
	member->ifindex = ifindex;
	err = rhltable_insert(&members, &member->node, member_params);
	if (err) {
		kfree(member);
		return err;
	}
	list_add(&member->attached, &attachments);
	return 0;
}

static int attach(const struct smw_group *group, u32 qpn)
{
	int ifindex = smw_sock_rx_ifindex(group->link);
	u32 count;
	int err;

	if (find(group, qpn, &count))
		return -EINVAL;
	if (count == SMW_MAX_MCAST_QP)
		return -ENOMEM;
	err = join(group, ifindex);
	if (err)
		return err;
	err = insert(group, qpn, ifindex);
	if (err)
		leave(group, ifindex);
	return err;
}

/* Below a family's smallest MTU a netdev has nothing of it, memberships neither. */
static bool can_join(const struct smw_group *group, int ifindex)
{
	struct net_device *netdev = __dev_get_by_index(group->link->net, ifindex);

	if (!netdev)
		return false;
	return ipv6_addr_v4mapped(&group->mgid) ? !!__in_dev_get_rtnl(netdev) :
						  !!__in6_dev_get(netdev);
}

/* Without memory to join again it hears nothing, until the next change. */
static void follow(struct smw_member *member)
{
	int ifindex = smw_sock_rx_ifindex(member->group.link);

	if (!can_join(&member->group, ifindex))
		ifindex = 0;
	if (ifindex == member->ifindex)
		return;
	leave(&member->group, member->ifindex);
	member->ifindex = join(&member->group, ifindex) ? 0 : ifindex;
}

void smw_mcast_follow(const struct net *net)
{
	struct smw_member *member;

	ASSERT_RTNL();
	list_for_each_entry(member, &attachments, attached)
		if (member->group.link->net == net)
			follow(member);
}

static void group_of(struct smw_group *group, const struct ib_qp *ibqp,
		     const union ib_gid *gid)
{
	group->link = smw_link_of(ibqp->device);
	memcpy(&group->mgid, gid, sizeof(group->mgid));
}

int smw_mcast_attach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct smw_group group;
	int err;

	group_of(&group, ibqp, gid);
	err = smw_link_claim(group.link, SMW_OBJECT_MCAST, false, SMW_MAX_MCAST);
	if (err)
		return err;
	rtnl_lock();
	err = attach(&group, ibqp->qp_num);
	rtnl_unlock();
	if (err)
		smw_link_release(group.link, SMW_OBJECT_MCAST, false);
	return err;
}

int smw_mcast_detach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct smw_member *member;
	struct smw_group group;
	u32 count;

	group_of(&group, ibqp, gid);
	rtnl_lock();
	member = find(&group, ibqp->qp_num, &count);
	if (member) {
		rhltable_remove(&members, &member->node, member_params);
		list_del(&member->attached);
		leave(&group, member->ifindex);
	}
	rtnl_unlock();
	if (!member)
		return -EINVAL;
	kfree_rcu(member, rcu);
	smw_link_release(group.link, SMW_OBJECT_MCAST, false);
	return 0;
}
