// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From a packet in host order to the wire.
 */
#include <smw/carrier.h>

#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/ip6_route.h>

#include <smw/icrc.h>
#include <smw/route.h>
#include <smw/tx.h>

#define IP_HEADER_MAX sizeof(struct ipv6hdr)

static void push_udp(struct sk_buff *skb, const struct smw_av *av)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(av->source_port);
	udp->dest = htons(SMW_UDP_PORT);
	udp->len = htons(skb->len);
	/* The ICRC covers more than the checksum would. */
	udp->check = 0;
}

static void push_ipv4(struct sk_buff *skb, const struct smw_av *av)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = av->traffic_class;
	ip->tot_len = htons(skb->len);
	/* Never fragmented, so it needs no identification (RFC 6864). */
	ip->id = 0;
	ip->frag_off = htons(IP_DF);
	ip->ttl = av->hop_limit;
	ip->protocol = IPPROTO_UDP;
	ip->check = 0;
	ip->saddr = av->source.s6_addr32[3];
	ip->daddr = av->target.s6_addr32[3];
}

static void push_ipv6(struct sk_buff *skb, const struct smw_av *av)
{
	u16 payload_len = skb->len;
	struct ipv6hdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IPV6);
	ip6_flow_hdr(ip, av->traffic_class, htonl(av->flow_label));
	ip->payload_len = htons(payload_len);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = av->hop_limit;
	ip->saddr = av->source;
	ip->daddr = av->target;
}

/* The ICRC goes last, over headers that are final but for what it masks. */
static void put_icrc(struct sk_buff *skb, const struct smw_av *av, u8 *bth)
{
	__le32 *icrc = (__le32 *)(skb_tail_pointer(skb) - SMW_ICRC_LEN);
	u8 *rest = bth + SMW_BTH_LEN;
	u32 crc;

	crc = av->ipv4 ? smw_icrc_start_ipv4(ip_hdr(skb), udp_hdr(skb), bth) :
			 smw_icrc_start_ipv6(ipv6_hdr(skb), udp_hdr(skb), bth);
	crc = crc32_le(crc, rest, (u8 *)icrc - rest);
	put_unaligned(smw_icrc_finish(crc), icrc);
}

static bool put_payload(struct sk_buff *skb, const struct smw_packet *packet,
			struct smw_cursor *payload)
{
	struct smw_cursor target;
	bool copied;

	smw_cursor_flat(&target, skb_put(skb, packet->payload_len));
	copied = smw_copy(&target, payload, packet->payload_len);
	smw_cursor_release(payload);
	return copied;
}

/* Build the UDP payload; NULL for a packet that is lost or cannot be read. */
static struct sk_buff *build(const struct net_device *netdev, struct smw_packet *packet,
			     struct smw_cursor *payload, bool *readable)
{
	u32 reserve = LL_RESERVED_SPACE(netdev) + IP_HEADER_MAX + sizeof(struct udphdr);
	struct sk_buff *skb;
	u32 header_len;

	skb = alloc_skb(reserve + SMW_HEADER_MAX + packet->payload_len + 3 + SMW_ICRC_LEN,
			GFP_ATOMIC);
	if (!skb) {
		if (payload)
			smw_cursor_release(payload);
		return NULL;
	}
	skb_reserve(skb, reserve);
	header_len = smw_packet_build(packet, skb_tail_pointer(skb));
	skb_put(skb, header_len);
	if (payload && !put_payload(skb, packet, payload)) {
		*readable = false;
		kfree_skb(skb);
		return NULL;
	}
	skb_put_zero(skb, packet->pad + SMW_ICRC_LEN);
	return skb;
}

static void transmit(struct smw_link *link, const struct smw_av *av, struct sk_buff *skb)
{
	u8 *bth = skb->data;

	push_udp(skb, av);
	if (av->ipv4)
		push_ipv4(skb, av);
	else
		push_ipv6(skb, av);
	put_icrc(skb, av, bth);
	smw_count(link, SMW_COUNT_SENT_PACKETS);
	if (av->ipv4)
		ip_local_out(link->net, NULL, skb);
	else
		ip6_local_out(link->net, NULL, skb);
}

bool smw_tx_packet(struct smw_link *link, const struct smw_av *av, struct dst_entry *dst,
		   struct smw_packet *packet, struct smw_cursor *payload)
{
	bool readable = true;
	struct sk_buff *skb;

	if (!dst || !READ_ONCE(link->up)) {
		if (payload)
			smw_cursor_release(payload);
		return true;	/* lost */
	}
	skb = build(dst->dev, packet, payload, &readable);
	if (skb) {
		skb_dst_set_noref(skb, dst);
		transmit(link, av, skb);
	}
	return readable;
}

bool smw_carrier_send(struct smw_qp *qp, enum smw_route_user user,
		      struct smw_packet *packet, struct smw_cursor *payload)
{
	bool readable;

	rcu_read_lock();
	readable = smw_tx_packet(qp->link, &qp->av, smw_route_get(qp, user), packet, payload);
	rcu_read_unlock();
	return readable;
}
