// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The UDP sockets of a namespace: open while it has links.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <smw/wire.h>

#include <linux/if_vlan.h>
#include <linux/rculist.h>
#include <linux/udp.h>
#include <net/netns/generic.h>
#include <net/udp_tunnel.h>

#include <smw/gid.h>

/**
 * struct smw_sock_net - the sockets of one namespace
 * @lock: protects the rest
 * @links: links of the namespace; readers under RCU
 * @ipv4: open while there are @links
 * @ipv6: likewise, NULL where the kernel has IPv6 turned off
 */
struct smw_sock_net {
	struct mutex lock;
	struct list_head links;
	struct socket *ipv4;
	struct socket *ipv6;
};

static unsigned int sock_net_id;

static int open_ipv4(struct net *net, struct socket **sock)
{
	struct udp_port_cfg port = {
		.family = AF_INET,
		.local_udp_port = htons(SMW_UDP_PORT),
	};

	return udp_sock_create4(net, &port, sock);
}

/* RoCE's UDP checksum may be zero over IPv6 too; the ICRC covers the packet. */
static int open_ipv6(struct net *net, struct socket **sock)
{
	struct udp_port_cfg port = {
		.family = AF_INET6,
		.local_udp_port = htons(SMW_UDP_PORT),
		.ipv6_v6only = true,
	};
	int err = udp_sock_create6(net, &port, sock);

	/* Not built in, or booted with ipv6.disable=1. */
	return err == -EAFNOSUPPORT || err == -EPFNOSUPPORT ? 0 : err;
}

static void receive_from(struct net *net, struct socket *sock)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = smw_rx_packet,
	};

	if (sock)
		setup_udp_tunnel_sock(net, sock, &tunnel);
}

static void close_socket(struct socket **sock)
{
	if (*sock)
		udp_tunnel_sock_release(*sock);
	*sock = NULL;
}

static int open_sockets(struct net *net, struct smw_sock_net *socks)
{
	int err;

	err = open_ipv4(net, &socks->ipv4);
	if (err)
		return err;
	err = open_ipv6(net, &socks->ipv6);
	if (err) {
		close_socket(&socks->ipv4);
		return err;
	}
	receive_from(net, socks->ipv4);
	receive_from(net, socks->ipv6);
	return 0;
}

int smw_sock_get(struct smw_link *link)
{
	struct smw_sock_net *socks = net_generic(link->net, sock_net_id);
	int err = 0;

	mutex_lock(&socks->lock);
	if (list_empty(&socks->links))
		err = open_sockets(link->net, socks);
	if (!err)
		list_add_tail_rcu(&link->sock_node, &socks->links);
	mutex_unlock(&socks->lock);
	if (err == -EADDRINUSE)
		pr_err("UDP port %d is taken in this network namespace (by rdma_rxe?)\n",
		       SMW_UDP_PORT);
	else if (err)
		pr_err("UDP port %d cannot be opened: error %d\n", SMW_UDP_PORT, err);
	return err;
}

void smw_sock_put(struct smw_link *link)
{
	struct smw_sock_net *socks = net_generic(link->net, sock_net_id);

	mutex_lock(&socks->lock);
	list_del_rcu(&link->sock_node);
	if (list_empty(&socks->links)) {
		close_socket(&socks->ipv4);
		close_socket(&socks->ipv6);
	}
	mutex_unlock(&socks->lock);
	/* No packet counts on this link any more. */
	synchronize_rcu();
	/* No address handle's route is left, which the namespace must not go before. */
	rcu_barrier();
}

void smw_sock_count(struct net *net, enum smw_counter counter)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);
	struct smw_link *link;

	rcu_read_lock();
	link = list_first_or_null_rcu(&socks->links, struct smw_link, sock_node);
	if (link)
		smw_count(link, counter);
	rcu_read_unlock();
}

static const struct net_device *without_vlan(const struct net_device *netdev)
{
	return netdev && is_vlan_dev(netdev) ? vlan_dev_real_dev(netdev) : netdev;
}

/* A VLAN has the link of the netdev below it. */
static bool is_on(const struct smw_link *link, const struct net_device *netdev)
{
	return netdev && rcu_access_pointer(link->netdev) == without_vlan(netdev);
}

/* Other masters take no IP packets, or (a VRF) leave the netdev that they came by. */
static bool takes_packets(const struct net_device *master)
{
	return netif_is_lag_master(master) || netif_is_bridge_master(master) ||
	       netif_is_failover(master);
}

static struct net_device *rx_netdev_of(struct net_device *netdev)
{
	struct net_device *master;

	while (netdev && (master = netdev_master_upper_dev_get_rcu(netdev)) &&
	       takes_packets(master))
		netdev = master;
	return netdev;
}

int smw_sock_rx_ifindex(struct smw_link *link)
{
	const struct net_device *netdev;
	int ifindex;

	rcu_read_lock();
	netdev = rx_netdev_of(rcu_dereference(link->netdev));
	ifindex = netdev ? netdev->ifindex : 0;
	rcu_read_unlock();
	return ifindex;
}

/* Of a bond's legs the active one has the addresses, in other modes than that each. */
static bool hears(struct smw_link *link, const struct net_device *netdev)
{
	if (is_on(link, netdev))
		return true;
	return netdev && rx_netdev_of(rcu_dereference(link->netdev)) == without_vlan(netdev) &&
	       smw_gid_any(link, netdev->ifindex);
}

struct smw_link *smw_sock_link(struct net *net, int ifindex, struct smw_link *after)
{
	const struct net_device *netdev = dev_get_by_index_rcu(net, ifindex);
	struct smw_sock_net *socks = net_generic(net, sock_net_id);
	struct smw_link *link;

	link = list_prepare_entry(after, &socks->links, sock_node);
	list_for_each_entry_continue_rcu(link, &socks->links, sock_node)
		if (hears(link, netdev))
			return link;
	return NULL;
}

struct smw_link *smw_sock_find(struct net *net, const struct in6_addr *address, int ifindex)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);
	struct smw_link *link, *other = NULL;

	list_for_each_entry_rcu(link, &socks->links, sock_node) {
		if (smw_gid_lives(link, address, ifindex))
			return link;
		if (!other && smw_gid_exists(link, address, ifindex))
			other = link;
	}
	return other;
}

static int __net_init sock_net_init(struct net *net)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);

	mutex_init(&socks->lock);
	INIT_LIST_HEAD(&socks->links);
	return 0;
}

/* dev/ has taken the namespace's links away before. */
static void __net_exit sock_net_exit(struct net *net)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);

	WARN_ON_ONCE(!list_empty(&socks->links));
}

static struct pernet_operations sock_net_ops = {
	.init = sock_net_init,
	.exit = sock_net_exit,
	.id = &sock_net_id,
	.size = sizeof(struct smw_sock_net),
};

int smw_sock_init(void)
{
	return register_pernet_subsys(&sock_net_ops);
}

void smw_sock_exit(void)
{
	unregister_pernet_subsys(&sock_net_ops);
}
