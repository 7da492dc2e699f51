// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/loopback.h>

#include <linux/inetdevice.h>
#include <net/addrconf.h>

#include <smw/links.h>
#include <smw/netdev.h>

/*
 * There is no call to take one GID back. So where an address went they all go,
 * and those whose address is still there come again.
 */
void smw_loopback_rescan(struct work_struct *work)
{
	struct smw_link *link = container_of(work, struct smw_link, rescan);
	struct net_device *netdev = smw_netdev_get(&link->ibdev, SMW_PORT);

	if (netdev) {
		if (xchg(&link->stale_gids, false))
			roce_del_all_netdev_gids(&link->ibdev, SMW_PORT, netdev);
		rdma_roce_rescan_port(&link->ibdev, SMW_PORT);
		dev_put(netdev);
	}
	ib_device_put(&link->ibdev);
}

static void address_changed(const struct net_device *netdev, bool gone)
{
	struct smw_link *link;

	if (!(netdev->flags & IFF_LOOPBACK))
		return;
	link = smw_links_find(netdev);
	if (!link)
		return;
	if (gone)
		WRITE_ONCE(link->stale_gids, true);
	if (ib_device_try_get(&link->ibdev) && !smw_links_queue(&link->rescan))
		ib_device_put(&link->ibdev);
	smw_links_put(link);
}

static int ipv4_event(struct notifier_block *block, unsigned long event, void *info)
{
	const struct in_ifaddr *address = info;

	address_changed(address->ifa_dev->dev, event == NETDEV_DOWN);
	return NOTIFY_DONE;
}

static struct notifier_block ipv4_notifier = {
	.notifier_call = ipv4_event,
};

/* May come from a softirq. */
static int ipv6_event(struct notifier_block *block, unsigned long event, void *info)
{
	const struct inet6_ifaddr *address = info;

	address_changed(address->idev->dev, event == NETDEV_DOWN);
	return NOTIFY_DONE;
}

static struct notifier_block ipv6_notifier = {
	.notifier_call = ipv6_event,
};

int smw_loopback_init(void)
{
	int err = register_inetaddr_notifier(&ipv4_notifier);

	if (err)
		return err;
	err = register_inet6addr_notifier(&ipv6_notifier);
	if (err)
		unregister_inetaddr_notifier(&ipv4_notifier);
	return err;
}

void smw_loopback_exit(void)
{
	unregister_inet6addr_notifier(&ipv6_notifier);
	unregister_inetaddr_notifier(&ipv4_notifier);
}
