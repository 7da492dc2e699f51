// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The UDP sockets of a namespace: open while it has links.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <smw/wire.h>

#include <linux/udp.h>
#include <net/netns/generic.h>
#include <net/udp_tunnel.h>

/**
 * struct smw_sock_net - the sockets of one namespace
 * @lock: protects the rest
 * @users: links of the namespace
 * @ipv4: open while there are @users
 * @ipv6: likewise, NULL where the kernel has IPv6 turned off
 */
struct smw_sock_net {
	struct mutex lock;
	unsigned int users;
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

int smw_sock_get(struct net *net, struct netlink_ext_ack *extack)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);
	int err = 0;

	mutex_lock(&socks->lock);
	if (!socks->users)
		err = open_sockets(net, socks);
	if (!err)
		socks->users++;
	mutex_unlock(&socks->lock);
	if (err == -EADDRINUSE) {
		NL_SET_ERR_MSG(extack, "UDP port 4791 is taken in this network namespace");
		pr_err("UDP port %d is taken in this network namespace (by rdma_rxe?)\n",
		       SMW_UDP_PORT);
	} else if (err) {
		NL_SET_ERR_MSG(extack, "UDP port 4791 cannot be opened");
		pr_err("UDP port %d cannot be opened: error %d\n", SMW_UDP_PORT, err);
	}
	return err;
}

void smw_sock_put(struct net *net)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);

	mutex_lock(&socks->lock);
	if (!--socks->users) {
		close_socket(&socks->ipv4);
		close_socket(&socks->ipv6);
	}
	mutex_unlock(&socks->lock);
}

static int __net_init sock_net_init(struct net *net)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);

	mutex_init(&socks->lock);
	return 0;
}

/* dev/ has taken the namespace's links away before. */
static void __net_exit sock_net_exit(struct net *net)
{
	struct smw_sock_net *socks = net_generic(net, sock_net_id);

	WARN_ON_ONCE(socks->users);
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
