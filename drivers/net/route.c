// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address vectors and routes.
 */
#include <smw/route.h>

#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <rdma/ib_cache.h>

#include <smw/carrier.h>

#define DEFAULT_HOP_LIMIT 64

/*
 * The interface that packets leave by: the one that has the source address,
 * which for a VLAN or bond is not the link's own. 0, any, where the peer is this
 * host. Negative where the address is gone: routes to this host do not ask whose it is.
 */
static int output_ifindex(const struct smw_av *av, bool target_is_local)
{
	struct net_device *netdev;
	int ifindex;

	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(av->sgid);
	if (IS_ERR(netdev))
		ifindex = -ENETUNREACH;
	else
		ifindex = target_is_local ? 0 : netdev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

static struct dst_entry *find_ipv4(struct smw_link *link, const struct smw_av *av,
				   u32 *cookie)
{
	__be32 target = av->target.s6_addr32[3];
	bool local = inet_addr_type(link->net, target) == RTN_LOCAL;
	int ifindex = output_ifindex(av, local);
	struct flowi4 flow = {
		.flowi4_oif = ifindex,
		.flowi4_proto = IPPROTO_UDP,
		.saddr = av->source.s6_addr32[3],
		.daddr = target,
		.fl4_sport = htons(av->source_port),
		.fl4_dport = htons(SMW_UDP_PORT),
	};
	struct rtable *route;

	if (ifindex < 0)
		return ERR_PTR(ifindex);
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

static struct dst_entry *find_ipv6(struct smw_link *link, const struct smw_av *av,
				   u32 *cookie)
{
	bool local = ipv6_chk_addr(link->net, &av->target, NULL, 0);
	int ifindex = output_ifindex(av, local);
	struct flowi6 flow = {
		.flowi6_oif = ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.saddr = av->source,
		.daddr = av->target,
		.fl6_sport = htons(av->source_port),
		.fl6_dport = htons(SMW_UDP_PORT),
	};
	struct dst_entry *dst;

	if (ifindex < 0)
		return ERR_PTR(ifindex);
	dst = ipv6_stub->ipv6_dst_lookup_flow(link->net, NULL, &flow, NULL);
	if (!IS_ERR(dst))
		*cookie = rt6_get_cookie(dst_rt6_info(dst));
	return dst;
}

struct dst_entry *smw_route_find(struct smw_link *link, const struct smw_av *av,
				 u32 *cookie)
{
	struct dst_entry *dst = av->ipv4 ? find_ipv4(link, av, cookie) :
					   find_ipv6(link, av, cookie);

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
	struct dst_entry *dst;

	if (route->dst && dst_check(route->dst, route->cookie))
		return route->dst;
	dst_release(route->dst);
	route->dst = NULL;
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
	av->sgid = grh->sgid_attr;
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

int smw_carrier_connect(struct smw_qp *qp, const struct rdma_ah_attr *ah)
{
	struct smw_av av = {};
	struct dst_entry *dst;
	u32 cookie;
	int err;

	err = smw_av_fill(&av, ah, qp->ibqp.qp_num);
	/* A connected queue pair has one peer. */
	if (err || av.multicast)
		return err ?: -EINVAL;
	dst = smw_route_find(qp->link, &av, &cookie);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	dst_release(dst);
	rdma_hold_gid_attr(av.sgid);

	forget_path(qp);
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	swap(qp->av, av);
	qp->requester.peer_generation = 0;
	drop_routes(qp);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
	/* Pairs with smw_qp_av(): the path is whole. */
	smp_store_release(&qp->av_valid, true);
	if (av.sgid)
		rdma_put_gid_attr(av.sgid);
	return 0;
}

void smw_carrier_disconnect(struct smw_qp *qp)
{
	const struct ib_gid_attr *sgid;

	forget_path(qp);
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	sgid = qp->av.sgid;
	qp->av.sgid = NULL;
	drop_routes(qp);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
	if (sgid)
		rdma_put_gid_attr(sgid);
}
