// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <smw/links.h>

#include <linux/ctype.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>

#include <smw/key.h>
#include <smw/loopback.h>
#include <smw/netdev.h>
#include <smw/verbs.h>
#include <smw/wire.h>

static DEFINE_SPINLOCK(links_lock);	/* protects links */
static LIST_HEAD(links);
static struct workqueue_struct *workqueue;

static struct smw_link *find_link(const struct net_device *netdev)
{
	struct smw_link *link;

	lockdep_assert_held(&links_lock);
	list_for_each_entry(link, &links, node)
		if (link->held == netdev)
			return link;
	return NULL;
}

struct smw_link *smw_links_find(const struct net_device *netdev)
{
	struct smw_link *link;

	spin_lock_bh(&links_lock);
	link = find_link(netdev);
	if (link)
		get_device(&link->ibdev.dev);
	spin_unlock_bh(&links_lock);
	return link;
}

/* Any link of a namespace, or any at all; its memory is kept. */
static struct smw_link *first_link(const struct net *net)
{
	struct smw_link *link;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node) {
		if (net && link->net != net)
			continue;
		get_device(&link->ibdev.dev);
		spin_unlock_bh(&links_lock);
		return link;
	}
	spin_unlock_bh(&links_lock);
	return NULL;
}

static void unregister_and_put(struct smw_link *link)
{
	ib_unregister_device(&link->ibdev);
	put_device(&link->ibdev.dev);
}

/*
 * Whoever removes the link, its teardown ends in this module's code and under
 * the core's lock. Unregistering once more does nothing but wait for that lock,
 * so after this no code of ours runs for the link.
 */
static void reap_link(struct work_struct *work)
{
	unregister_and_put(container_of(work, struct smw_link, reap));
}

/*
 * A device that moves to another RDMA namespace is not registered for a moment, and
 * nobody gets a reference then. So none is asked for: this waits for the end of the
 * move. Of a netdev that moves too there is no second notification.
 */
static void remove_link(struct work_struct *work)
{
	unregister_and_put(container_of(work, struct smw_link, removal));
}

void smw_links_remove_later(struct smw_link *link)
{
	get_device(&link->ibdev.dev);
	if (!smw_links_queue(&link->removal))
		put_device(&link->ibdev.dev);
}

/* Each link is in the list, or its reaping is queued, or nothing of it runs. */
void smw_links_remove(const struct net *net)
{
	struct smw_link *link;

	while ((link = first_link(net))) {
		ib_unregister_device(&link->ibdev);
		smw_links_put(link);
	}
	flush_workqueue(workqueue);
}

bool smw_links_queue(struct work_struct *work)
{
	return queue_work(workqueue, work);
}

/*
 * Nobody hears the reason but through the log: the core passes newlink no
 * netlink_ext_ack.
 */
static int refuse(const char *name, const struct net_device *netdev,
		  const char *reason, int err)
{
	pr_err("cannot add link %s on %s: %s\n", name, netdev->name, reason);
	return err;
}

/* The core takes any string; this one becomes a file name in sysfs and debugfs. */
static bool name_valid(const char *name)
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++)
		if (*name == '/' || isspace(*name) || !isprint(*name))
			return false;
	return true;
}

static int check_request(const char *name, const struct net_device *netdev)
{
	if (!name_valid(name))
		return refuse("(bad name)", netdev, "not a name for a device", -EINVAL);
	if (is_vlan_dev(netdev))
		return refuse(name, netdev,
			      "a VLAN; a link on the netdev below has its addresses too",
			      -EOPNOTSUPP);
	if (netdev->type != ARPHRD_ETHER && netdev->type != ARPHRD_LOOPBACK)
		return refuse(name, netdev, "not an Ethernet netdev", -EOPNOTSUPP);
	return 0;
}

static void set_identity(struct ib_device *ibdev, const struct net_device *netdev)
{
	u8 mac[ETH_ALEN];

	ether_addr_copy(mac, netdev->dev_addr);
	if (!is_valid_ether_addr(mac))
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, mac);
	strscpy(ibdev->node_desc, KBUILD_MODNAME);
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
		BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
}

static bool list_link(struct smw_link *link)
{
	bool first;

	spin_lock_bh(&links_lock);
	first = !find_link(link->held);
	if (first)
		list_add_tail(&link->node, &links);
	spin_unlock_bh(&links_lock);
	return first;
}

/*
 * Under RTNL no notification can come between the look at the netdev and the
 * list; from then on the notifier keeps the link right. The namespace is held
 * by the creator until the link is registered or gone, so that the namespace's
 * exit finds no half-made link.
 */
static int attach_locked(struct smw_link *link, struct net_device *netdev)
{
	if (netdev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	link->net = maybe_get_net(dev_net(netdev));
	if (!link->net)
		return -ENODEV;
	link->held = netdev;
	if (!list_link(link)) {
		put_net(link->net);
		return -EEXIST;
	}
	get_device(&link->ibdev.dev);
	netdev_hold(netdev, &link->netdev_tracker, GFP_KERNEL);
	rcu_assign_pointer(link->netdev, netdev);
	smw_netdev_refresh(link, netdev);
	return 0;
}

static int attach(struct smw_link *link, struct net_device *netdev)
{
	int err;

	rtnl_lock();
	err = attach_locked(link, netdev);
	rtnl_unlock();
	return err;
}

/* The memory stays until the reaping is done with it. */
static void detach(struct smw_link *link)
{
	struct net_device *held = link->held;

	RCU_INIT_POINTER(link->netdev, NULL);
	/* Not to be found by the address of a netdev that may be gone. */
	spin_lock_bh(&links_lock);
	link->held = NULL;
	spin_unlock_bh(&links_lock);
	netdev_put(held, &link->netdev_tracker);
	spin_lock_bh(&links_lock);
	queue_work(workqueue, &link->reap);
	list_del(&link->node);
	spin_unlock_bh(&links_lock);
}

static struct smw_link *alloc_link(const struct net_device *netdev)
{
	struct smw_link *link = ib_alloc_device(smw_link, ibdev);

	if (!link)
		return NULL;
	set_identity(&link->ibdev, netdev);
	link->same_host = true;
	INIT_LIST_HEAD(&link->windows);
	spin_lock_init(&link->windows_lock);
	INIT_WORK(&link->rescan, smw_loopback_rescan);
	INIT_WORK(&link->removal, remove_link);
	INIT_WORK(&link->reap, reap_link);
	link->counters = alloc_percpu(struct smw_counters);
	if (!link->counters)
		goto free_device;
	if (smw_keytab_init(&link->keys, SMW_KEY_INDEX_BITS))
		goto free_counters;
	return link;

free_counters:
	free_percpu(link->counters);
free_device:
	ib_dealloc_device(&link->ibdev);
	return NULL;
}

static void free_link(struct smw_link *link)
{
	smw_keytab_destroy(&link->keys);
	free_percpu(link->counters);
}

void smw_link_dealloc(struct ib_device *ibdev)
{
	struct smw_link *link = smw_link_of(ibdev);

	smw_sock_put(link);
	free_link(link);
	detach(link);
}

/*
 * From here on it is the core that takes the link down, with
 * ops.dealloc_driver, even where the registration fails.
 */
static int register_link(struct smw_link *link, const char *name)
{
	int err;

	ib_set_device_ops(&link->ibdev, &smw_verbs_ops);
	err = ib_register_device(&link->ibdev, name, NULL);
	if (err) {
		ib_dealloc_device(&link->ibdev);
		return err == -ENFILE ? -EEXIST : err;
	}
	WRITE_ONCE(link->registered, true);
	/* A netdev that went before does not remove the link. See netdev_gone(). */
	smp_mb();
	if (!rcu_access_pointer(link->netdev)) {
		ib_unregister_device(&link->ibdev);
		return -ENODEV;
	}
	return 0;
}

static int make_link(struct smw_link *link, const char *name,
		     struct net_device *netdev)
{
	int err;

	err = attach(link, netdev);
	if (err) {
		refuse(name, netdev, err == -EEXIST ? "it has a link already" :
		       "the netdev is going", err);
		goto free_link;
	}
	err = smw_sock_get(link);
	if (err) {
		put_net(link->net);
		detach(link);
		goto free_link;
	}
	err = register_link(link, name);
	if (err == -EEXIST)
		refuse(name, netdev, "the name is taken", err);
	else if (!err)
		/* Not by the device: who renames it frees the name that it had. */
		pr_info("%s: link on %s\n", name, netdev->name);
	put_net(link->net);
	return err;

free_link:
	free_link(link);
	ib_dealloc_device(&link->ibdev);
	return err;
}

static int newlink(const char *name, struct net_device *netdev)
{
	struct smw_link *link;
	int err;

	err = check_request(name, netdev);
	if (err)
		return err;
	link = alloc_link(netdev);
	if (!link)
		return -ENOMEM;
	/* Once registered, the link can be gone at any time. */
	get_device(&link->ibdev.dev);
	err = make_link(link, name, netdev);
	smw_links_put(link);
	return err;
}

static struct rdma_link_ops link_ops = {
	.type = KBUILD_MODNAME,
	.newlink = newlink,
};

void smw_links_open(void)
{
	rdma_link_register(&link_ops);
}

void smw_links_close(void)
{
	rdma_link_unregister(&link_ops);
	smw_links_remove(NULL);
}

int smw_links_init(void)
{
	workqueue = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND, 0);
	return workqueue ? 0 : -ENOMEM;
}

void smw_links_exit(void)
{
	destroy_workqueue(workqueue);
}
