// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/netdev.h>

#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include <smw/carrier.h>
#include <smw/links.h>
#include <smw/mcast.h>
#include <smw/wire.h>

struct net_device *smw_netdev_get(struct ib_device *ibdev, u32 port)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = rcu_dereference(smw_link_of(ibdev)->netdev);
	dev_hold(netdev);
	rcu_read_unlock();
	return netdev;
}

enum ib_mtu smw_netdev_mtu(const struct net_device *netdev)
{
	unsigned int mtu = READ_ONCE(netdev->mtu);
	enum ib_mtu fits;

	for (fits = IB_MTU_4096; fits >= IB_MTU_256; fits--)
		if (mtu >= ib_mtu_enum_to_int(fits) + SMW_WIRE_OVERHEAD)
			return fits;
	return 0;
}

static bool usable(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev) &&
		smw_netdev_mtu(netdev);
}

/*
 * The device reference keeps the core from freeing the device before the event
 * is delivered; there is none before registration and after removal, and then
 * nobody listens.
 */
static void port_event(struct smw_link *link, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &link->ibdev,
		.element.port_num = SMW_PORT,
		.event = type,
	};

	if (!ib_device_try_get(&link->ibdev))
		return;
	ib_dispatch_event(&event);
	ib_device_put(&link->ibdev);
}

void smw_netdev_refresh(struct smw_link *link, const struct net_device *netdev)
{
	bool up = usable(netdev);
	bool changed = up != link->up;

	WRITE_ONCE(link->mtu, ib_mtu_enum_to_int(smw_netdev_mtu(netdev) ?: IB_MTU_256));
	WRITE_ONCE(link->up, up);
	smw_carrier_changed();
	if (changed)
		port_event(link, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/*
 * The netdev goes, or moves to another namespace. Removing the link takes RTNL,
 * which is held here, so it is done later; whoever unregisters the netdev waits for
 * the link's reference afterwards. Where the link is not registered yet, its creator
 * finds out.
 */
static void netdev_gone(struct smw_link *link)
{
	RCU_INIT_POINTER(link->netdev, NULL);
	WRITE_ONCE(link->up, false);
	smw_carrier_changed();
	smw_mcast_follow(link->net);
	/* Either the creator sees the netdev gone or this sees it registered. */
	smp_mb();
	if (READ_ONCE(link->registered))
		smw_links_remove_later(link);
}

static int netdev_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	struct smw_link *link;

	/* Also of a bond, or one that goes into a bridge: no netdev of a link's own. */
	if (event == NETDEV_CHANGEUPPER || event == NETDEV_CHANGEMTU)
		smw_mcast_follow(dev_net(netdev));
	link = smw_links_find(netdev);
	if (!link)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UNREGISTER:
		netdev_gone(link);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
		/* One that went to another namespace may come up there: not as this link's. */
		if (rcu_access_pointer(link->netdev))
			smw_netdev_refresh(link, netdev);
		break;
	}
	smw_links_put(link);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = {
	.notifier_call = netdev_event,
};

/*
 * A physical netdev moves out of a dying namespace without waiting for its
 * link; so the namespace waits here.
 */
static void __net_exit netdev_net_exit(struct net *net)
{
	smw_links_remove(net);
}

static struct pernet_operations netdev_net_ops = {
	.exit = netdev_net_exit,
};

int smw_netdev_init(void)
{
	int err = register_pernet_subsys(&netdev_net_ops);

	if (err)
		return err;
	err = register_netdevice_notifier(&netdev_notifier);
	if (err)
		unregister_pernet_subsys(&netdev_net_ops);
	return err;
}

void smw_netdev_exit(void)
{
	unregister_netdevice_notifier(&netdev_notifier);
	unregister_pernet_subsys(&netdev_net_ops);
}

static u32 megabits(struct net_device *netdev)
{
	struct ethtool_link_ksettings settings = {};
	int err = -ENODEV;

	rtnl_lock();
	if (netdev->reg_state == NETREG_REGISTERED)
		err = __ethtool_get_link_ksettings(netdev, &settings);
	rtnl_unlock();
	if (err || settings.base.speed == (u32)SPEED_UNKNOWN)
		return SPEED_1000;
	return settings.base.speed;
}

/* The first row that is fast enough. */
static const struct speed_row {
	u32 megabits;
	u16 speed;
	u8 width;
} speed_rows[] = {
	{ SPEED_2500, IB_SPEED_SDR, IB_WIDTH_1X },
	{ SPEED_5000, IB_SPEED_DDR, IB_WIDTH_1X },
	{ SPEED_10000, IB_SPEED_FDR10, IB_WIDTH_1X },
	{ SPEED_20000, IB_SPEED_DDR, IB_WIDTH_4X },
	{ SPEED_25000, IB_SPEED_EDR, IB_WIDTH_1X },
	{ SPEED_40000, IB_SPEED_FDR10, IB_WIDTH_4X },
	{ SPEED_50000, IB_SPEED_EDR, IB_WIDTH_2X },
	{ SPEED_100000, IB_SPEED_EDR, IB_WIDTH_4X },
	{ SPEED_200000, IB_SPEED_HDR, IB_WIDTH_4X },
	{ SPEED_400000, IB_SPEED_NDR, IB_WIDTH_4X },
	{ U32_MAX, IB_SPEED_XDR, IB_WIDTH_4X },
};

void smw_netdev_speed(struct net_device *netdev, u16 *speed, u8 *width)
{
	u32 wanted = netdev ? megabits(netdev) : 0;
	const struct speed_row *row = speed_rows;

	while (row->megabits < wanted)
		row++;
	*speed = row->speed;
	*width = row->width;
}
