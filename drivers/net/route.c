// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address vectors and routes.
 */
#include <smw/route.h>

#include <linux/ipv6.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/ipv6_stubs.h>
#include <net/l3mdev.h>
#include <net/route.h>

#include <smw/carrier.h>
#include <smw/gid.h>
#include <smw/wire.h>

#define DEFAULT_HOP_LIMIT 64

/* Index of the VRF's netdev, 0 outside of all, -1 where the netdev is gone. */
static int vrf_of(struct net *net, int ifindex)
{
	struct net_device *netdev;
	int vrf;

	rcu_read_lock();
	netdev = dev_get_by_index_rcu(net, ifindex);
	vrf = netdev ? l3mdev_master_ifindex_rcu(netdev) : -1;
	rcu_read_unlock();
	return vrf;
}

bool smw_route_same_vrf(struct net *net, int one, int other)
{
	int vrf = vrf_of(net, one);

	return vrf >= 0 && vrf == vrf_of(net, other);
}

/*
 * A netdev keeps IPv4 to its own routes, and of this host's addresses another netdev may
 * have the target. A VRF has a table of them too, which goes by the VRF's netdev.
 */
static int ipv4_way_out(struct net *net, const struct smw_av *av)
{
	u32 table = l3mdev_fib_table_by_index(net, av->ifindex) ?: RT_TABLE_LOCAL;

	if (inet_addr_type_table(net, av->target.s6_addr32[3], table) != RTN_LOCAL)
		return av->ifindex;
	return l3mdev_master_ifindex_by_index(net, av->ifindex);
}

static struct dst_entry *find_ipv4(struct smw_link *link, const struct smw_av *av,
				   u32 *cookie)
{
	struct flowi4 flow = {
		.flowi4_oif = ipv4_way_out(link->net, av),
		.flowi4_proto = IPPROTO_UDP,
		.saddr = av->source.s6_addr32[3],
		.daddr = av->target.s6_addr32[3],
		.fl4_sport = htons(av->source_port),
		.fl4_dport = htons(SMW_UDP_PORT),
	};
	struct rtable *route;

	route = ip_route_output_key(link->net, &flow);
	*cookie = 0;
	if (IS_ERR(route))
		return ERR_CAST(route);
	/* Which addresses are a subnet's broadcast only the routes know. */
	if (route->rt_flags & RTCF_BROADCAST) {
		ip_rt_put(route);
		return ERR_PTR(-EINVAL);
	}
	return &route->dst;
}

/*
 * Does the netdev have it, or, if @around, any netdev of this host in the same VRF or
 * outside of all? Until it is known to be unique the netdev may send from it, but no route
 * leads to it.
 */
static bool has_ipv6(struct net *net, int ifindex, bool around, const struct in6_addr *address)
{
	u32 banned = around ? IFA_F_TENTATIVE : 0;
	struct net_device *netdev;
	bool found;

	rcu_read_lock();
	netdev = dev_get_by_index_rcu(net, ifindex);
	found = netdev && ipv6_chk_addr_and_flags(net, address, netdev, around, 1, banned);
	rcu_read_unlock();
	return found;
}

/*
 * To the routes of IPv6 the netdev is a wish, and a default route may lead elsewhere; an
 * address of this host's is reached by lo or the VRF's netdev. What that one itself has
 * leaves by any netdev in the VRF.
 */
static bool leads_elsewhere(struct net *net, const struct dst_entry *dst,
			    const struct smw_av *av)
{
	struct net_device *netdev;
	bool elsewhere;

	rcu_read_lock();
	netdev = dst_dev_rcu(dst);
	elsewhere = !dst->error && netdev->ifindex != av->ifindex &&
		    l3mdev_master_ifindex_rcu(netdev) != av->ifindex &&
		    !has_ipv6(net, av->ifindex, true, &av->target);
	rcu_read_unlock();
	return elsewhere;
}

static struct dst_entry *find_ipv6(struct smw_link *link, const struct smw_av *av,
				   u32 *cookie)
{
	struct flowi6 flow = {
		.flowi6_oif = av->ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.saddr = av->source,
		.daddr = av->target,
		.fl6_sport = htons(av->source_port),
		.fl6_dport = htons(SMW_UDP_PORT),
	};
	struct dst_entry *dst;

	/* Booted with ipv6.disable=1, the core's table has the MAC's address all the same. */
	if (!ipv6_mod_enabled())
		return ERR_PTR(-EAFNOSUPPORT);
	/*
	 * The routes do not look, as those of IPv4 do; and the core's table has an address
	 * made of the MAC, which the netdev need not have.
	 */
	if (!has_ipv6(link->net, av->ifindex, false, &av->source))
		return ERR_PTR(-EADDRNOTAVAIL);
	dst = ipv6_stub->ipv6_dst_lookup_flow(link->net, NULL, &flow, NULL);
	if (IS_ERR(dst))
		return dst;
	if (leads_elsewhere(link->net, dst, av)) {
		dst_release(dst);
		return ERR_PTR(-ENETUNREACH);
	}
	*cookie = rt6_get_cookie(dst_rt6_info(dst));
	return dst;
}

struct dst_entry *smw_route_find(struct smw_link *link, const struct smw_av *av,
				 u32 *cookie)
{
	struct dst_entry *dst;

	if (!smw_gid_lives(link, &av->source, av->ifindex))
		return ERR_PTR(-EADDRNOTAVAIL);
	dst = av->ipv4 ? find_ipv4(link, av, cookie) : find_ipv6(link, av, cookie);
	if (!IS_ERR(dst) && dst->error) {
		int err = dst->error;

		dst_release(dst);
		return ERR_PTR(err);
	}
	return dst;
}

struct dst_entry *smw_route_get(struct smw_qp *qp, enum smw_route_user user)
{
	struct smw_route *route = &qp->route[user];
	u32 generation = smw_carrier_generation();
	struct dst_entry *dst;

	if (route->dst && route->generation == generation &&
	    dst_check(route->dst, route->cookie))
		return route->dst;
	dst_release(route->dst);
	route->dst = NULL;
	route->generation = generation;
	dst = smw_route_find(qp->link, &qp->av, &route->cookie);
	if (IS_ERR(dst))
		return NULL;
	route->dst = dst;
	return dst;
}

static void drop_routes(struct smw_qp *qp)
{
	int user;

	for (user = 0; user < SMW_ROUTES; user++) {
		dst_release(qp->route[user].dst);
		qp->route[user].dst = NULL;
	}
}

static bool is_multicast(const struct in6_addr *address)
{
	if (ipv6_addr_v4mapped(address))
		return ipv4_is_multicast(address->s6_addr32[3]);
	return ipv6_addr_is_multicast(address);
}

static bool names_somebody(const struct smw_av *av)
{
	__be32 target = av->target.s6_addr32[3];

	if (av->ipv4)
		return !ipv4_is_zeronet(target) && !ipv4_is_lbcast(target);
	return !ipv6_addr_any(&av->target);
}

int smw_av_fill(struct smw_av *av, const struct rdma_ah_attr *ah, u32 entropy)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	if (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH) || !grh->sgid_attr ||
	    grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;
	memcpy(&av->source, &grh->sgid_attr->gid, sizeof(av->source));
	memcpy(&av->target, &grh->dgid, sizeof(av->target));
	av->ipv4 = ipv6_addr_v4mapped(&av->source);
	av->multicast = is_multicast(&av->target);
	if (av->ipv4 != ipv6_addr_v4mapped(&av->target) || !names_somebody(av))
		return -EINVAL;
	av->ifindex = smw_gid_ifindex(grh->sgid_attr);
	if (av->ifindex < 0)
		return av->ifindex;
	av->flow_label = grh->flow_label & 0xfffff;
	av->traffic_class = grh->traffic_class;
	av->hop_limit = grh->hop_limit ?: DEFAULT_HOP_LIMIT;
	/* Not by both ends' numbers: a factor of 0 would make all ports the same. */
	av->source_port = rdma_get_udp_sport(grh->flow_label, entropy, 1);
	return 0;
}

/* From here on nobody reads the path but under a lock. */
static void forget_path(struct smw_qp *qp)
{
	if (!qp->av_valid)
		return;
	WRITE_ONCE(qp->av_valid, false);
	smw_hold_drain(qp);
}

/* Larger packets would not be fragmented but dropped, every time. */
static int check_path(struct smw_link *link, const struct smw_av *av, u32 mtu)
{
	struct dst_entry *dst;
	u32 cookie;
	int err;

	dst = smw_route_find(link, av, &cookie);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	err = dst_mtu(dst) < mtu + SMW_WIRE_OVERHEAD ? -EINVAL : 0;
	dst_release(dst);
	return err;
}

int smw_carrier_connect(struct smw_qp *qp, const struct rdma_ah_attr *ah, u32 mtu)
{
	struct smw_av av = {};
	int err;

	err = smw_av_fill(&av, ah, qp->ibqp.qp_num);
	/* A connected queue pair has one peer. */
	if (err || av.multicast)
		return err ?: -EINVAL;
	err = check_path(qp->link, &av, mtu);
	if (err)
		return err;

	forget_path(qp);
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	qp->av = av;
	qp->requester.peer_generation = 0;
	drop_routes(qp);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
	/* Pairs with smw_qp_av(): the path is whole. */
	smp_store_release(&qp->av_valid, true);
	return 0;
}

void smw_carrier_disconnect(struct smw_qp *qp)
{
	forget_path(qp);
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	drop_routes(qp);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
}
