// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From the wire to a queue pair. A packet is taken to its end here, in the
 * softirq that brought it.
 */
#include <smw/wire.h>

#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include <smw/carrier.h>
#include <smw/completer.h>
#include <smw/gid.h>
#include <smw/icrc.h>
#include <smw/mcast.h>
#include <smw/psn.h>
#include <smw/requester.h>
#include <smw/route.h>
#include <smw/work.h>

/* Requests that may wait for a READ's responses to be sent. */
#define BACKLOG_MAX 256
/* How many of them are executed in one turn. */
#define BACKLOG_TURN 16

/* What became of a packet. */
enum smw_fate {
	SMW_FATE_CONSUMED,
	SMW_FATE_KEPT,		/* it waits in a backlog */
	SMW_FATE_DROPPED,
};

/**
 * struct smw_arrival - a packet on its way up
 * @skb: the packet; skb->data is at the UDP header
 * @packet: its transport headers
 * @total: bytes of UDP payload
 * @fate: what became of it
 */
struct smw_arrival {
	struct sk_buff *skb;
	struct smw_packet packet;
	u32 total;
	enum smw_fate fate;
};

static void drop(struct smw_arrival *arrival, struct smw_link *link, enum smw_counter counter)
{
	arrival->fate = SMW_FATE_DROPPED;
	smw_count(link, counter);
}

/* No link is known for it: it counts on the namespace's first. */
static void drop_unclaimed(struct smw_arrival *arrival, struct net *net,
			   enum smw_counter counter)
{
	arrival->fate = SMW_FATE_DROPPED;
	smw_sock_count(net, counter);
}

/* Drop monitors tell who calls: not this one. */
static __always_inline void finish(const struct smw_arrival *arrival)
{
	switch (arrival->fate) {
	case SMW_FATE_CONSUMED:
		consume_skb(arrival->skb);
		break;
	case SMW_FATE_KEPT:
		break;
	case SMW_FATE_DROPPED:
		kfree_skb(arrival->skb);
		break;
	}
}

/* The headers that the ICRC is taken over must be plain and in one piece. */
static bool pull_headers(struct sk_buff *skb)
{
	u32 want = min_t(u32, skb->len, sizeof(struct udphdr) + SMW_HEADER_MAX);

	if (!pskb_may_pull(skb, want))
		return false;
	if (skb->protocol == htons(ETH_P_IP))
		return ip_hdr(skb)->ihl == sizeof(struct iphdr) / 4;
	return skb_network_header_len(skb) == sizeof(struct ipv6hdr);
}

static enum smw_reason parse(struct smw_arrival *arrival)
{
	struct sk_buff *skb = arrival->skb;
	const struct udphdr *udp = udp_hdr(skb);
	u32 len = ntohs(udp->len);

	if (len < sizeof(*udp) || len > skb->len)
		return SMW_DROP_TRUNCATED;
	arrival->total = len - sizeof(*udp);
	arrival->packet.span = 1;
	return smw_packet_parse(&arrival->packet, udp + 1,
				min_t(u32, arrival->total, skb_headlen(skb) - sizeof(*udp)),
				arrival->total);
}

/* CRC of @len bytes at @offset of a packet, however it lies in memory. */
static u32 crc_of(struct sk_buff *skb, u32 offset, u32 len, u32 crc)
{
	struct skb_seq_state seq;
	const u8 *run;
	u32 done = 0;
	u32 n;

	if (offset + len <= skb_headlen(skb))
		return crc32_le(crc, skb->data + offset, len);
	skb_prepare_seq_read(skb, offset, offset + len, &seq);
	while (done < len && (n = skb_seq_read(done, &run, &seq))) {
		/* A run may go on behind the end that was asked for. */
		n = min(n, len - done);
		crc = crc32_le(crc, run, n);
		done += n;
	}
	skb_abort_seq_read(&seq);
	return crc;
}

static bool icrc_matches(const struct smw_arrival *arrival)
{
	struct sk_buff *skb = arrival->skb;
	const u8 *bth = skb->data + sizeof(struct udphdr);
	u32 start = sizeof(struct udphdr) + SMW_BTH_LEN;
	u32 end = sizeof(struct udphdr) + arrival->total - SMW_ICRC_LEN;
	__le32 icrc;
	u32 crc;

	if (skb_copy_bits(skb, end, &icrc, sizeof(icrc)))
		return false;
	crc = skb->protocol == htons(ETH_P_IP) ?
	      smw_icrc_start_ipv4(ip_hdr(skb), udp_hdr(skb), bth) :
	      smw_icrc_start_ipv6(ipv6_hdr(skb), udp_hdr(skb), bth);
	return smw_icrc_finish(crc_of(skb, start, end - start, crc)) == icrc;
}

static void addresses(const struct sk_buff *skb, struct in6_addr *source,
		      struct in6_addr *target)
{
	if (skb->protocol == htons(ETH_P_IP)) {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, source);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, target);
	} else {
		*source = ipv6_hdr(skb)->saddr;
		*target = ipv6_hdr(skb)->daddr;
	}
}

/*
 * The netdev that a packet came in by: of one in a VRF skb->dev is the VRF's by now. This
 * host's own over IPv4 come in by lo, or by a VRF's netdev; over IPv6, by the address's.
 */
static int came_by(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IPV6) ? IP6CB(skb)->iif : IPCB(skb)->iif;
}

/*
 * A connected queue pair listens to its peer's address alone (C9-49, A17.4.3), a
 * datagram queue pair to everyone who knows an address of its link.
 */
static bool addressed_to(const struct smw_qp *qp, const struct sk_buff *skb)
{
	const struct smw_av *av = smw_qp_av(qp);
	struct in6_addr source, target;

	addresses(skb, &source, &target);
	if (smw_qp_is_datagram(qp))
		return smw_gid_exists(qp->link, &target, came_by(skb));
	return av && ipv6_addr_equal(&source, &av->target) &&
	       ipv6_addr_equal(&target, &av->source) &&
	       smw_av_counts_on(av, qp->link->net, came_by(skb));
}

/* The whole header of IPv6, or IPv4's where the last bytes of a GRH would be (A17.4.5). */
static void copy_grh(const struct sk_buff *skb, u8 *grh)
{
	u32 len = skb->protocol == htons(ETH_P_IP) ? sizeof(struct iphdr) :
						     sizeof(struct ipv6hdr);

	memset(grh, 0, SMW_GRH_LEN - len);
	memcpy(grh + SMW_GRH_LEN - len, skb_network_header(skb), len);
}

/*
 * What is the same for every queue pair of a transport service. A damaged packet whose
 * headers could be right says nothing, of its opcode and partition neither.
 */
static enum smw_reason judge_packet(const struct smw_arrival *arrival, u8 transport)
{
	if (!icrc_matches(arrival))
		return SMW_DROP_ICRC;
	if ((arrival->packet.opcode & SMW_OPCODE_TRANSPORT_MASK) != transport)
		return SMW_DROP_OPCODE;
	/* The membership bit aside, there is one partition. */
	if ((arrival->packet.pkey ^ SMW_PKEY) & 0x7fff)
		return SMW_DROP_PKEY;
	return SMW_OK;
}

static enum smw_reason judge(const struct smw_qp *qp, const struct smw_arrival *arrival)
{
	if (!addressed_to(qp, arrival->skb))
		return SMW_DROP_ADDRESS;
	return judge_packet(arrival, qp->transport);
}

static void payload_cursor(const struct smw_arrival *arrival, struct smw_cursor *cursor)
{
	smw_cursor_skb(cursor, arrival->skb,
		       sizeof(struct udphdr) + arrival->packet.header_len);
}

/* Under responder.lock. */
static void execute_request(struct smw_qp *qp, struct smw_arrival *arrival)
{
	struct smw_response response;
	struct smw_cursor payload;
	bool taken;

	payload_cursor(arrival, &payload);
	taken = smw_responder_receive(qp, &arrival->packet, &payload, &response);
	arrival->fate = taken ? SMW_FATE_CONSUMED : SMW_FATE_DROPPED;
	smw_wire_answer(qp, &response);
}

/*
 * The requester asks again for the READ that is being answered: it lost a
 * response and takes no later one. Begin where it asks; what waits behind the
 * READ it will send again too.
 */
static void begin_stream_again(struct smw_qp *qp, const struct smw_packet *packet)
{
	struct smw_responder *rsp = &qp->responder;

	if (!rsp->stream || packet->op->kind != SMW_KIND_READ ||
	    smw_psn_diff(packet->psn, rsp->stream->first_psn) < 0 ||
	    smw_psn_diff(packet->psn, rsp->stream->last_psn) > 0)
		return;
	rsp->stream = NULL;
	__skb_queue_purge(&rsp->backlog);
}

static bool must_wait(const struct smw_responder *rsp)
{
	return rsp->stream || !skb_queue_empty(&rsp->backlog);
}

/*
 * What waits takes the kernel's memory at a peer's word. A packet longer than any that
 * is right, of up to 64 KiB, is refused when it comes again and need not wait.
 */
static bool may_wait(const struct smw_qp *qp, const struct smw_packet *packet)
{
	return skb_queue_len(&qp->responder.backlog) < BACKLOG_MAX &&
	       packet->payload_len <= qp->mtu;
}

/*
 * Responses leave in the order of their requests, so what comes while a READ
 * is being answered waits.
 */
static void take_request(struct smw_qp *qp, struct smw_arrival *arrival)
{
	struct smw_responder *rsp = &qp->responder;

	spin_lock(&rsp->lock);
	begin_stream_again(qp, &arrival->packet);
	if (!must_wait(rsp)) {
		execute_request(qp, arrival);
		if (rsp->stream)
			smw_work_note(qp, SMW_NOTE_STREAM);
	} else if (may_wait(qp, &arrival->packet)) {
		/* A borrowed route must not outlive this softirq. */
		skb_dst_drop(arrival->skb);
		__skb_queue_tail(&rsp->backlog, arrival->skb);
		arrival->fate = SMW_FATE_KEPT;
	} else {
		drop(arrival, qp->link, SMW_COUNT_DROPPED);
	}
	spin_unlock(&rsp->lock);
}

/* What waited was checked when it came, so only its headers are read again. */
static void execute_backlog(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_arrival arrival = {};
	u32 budget = BACKLOG_TURN;

	while (!rsp->stream && budget-- &&
	       (arrival.skb = __skb_dequeue(&rsp->backlog))) {
		if (!parse(&arrival))
			execute_request(qp, &arrival);
		finish(&arrival);
	}
}

bool smw_carrier_stream(struct smw_qp *qp)
{
	smw_wire_stream(qp);
	execute_backlog(qp);
	return must_wait(&qp->responder);
}

/*
 * Only the kernel asks for it: the management datagrams' address handles are found by
 * address and VLAN.
 */
static u16 vlan_of(const struct smw_qp *qp, const struct sk_buff *skb)
{
	struct in6_addr source, target;

	if (!qp->is_kernel)
		return SMW_VLAN_NONE;
	addresses(skb, &source, &target);
	return smw_gid_vlan(qp->link, &target, came_by(skb));
}

/* Nothing answers a datagram, and it waits for nothing. */
static void take_datagram(struct smw_qp *qp, struct smw_arrival *arrival)
{
	u8 grh[SMW_GRH_LEN];

	copy_grh(arrival->skb, grh);
	arrival->packet.grh = grh;
	arrival->packet.vlan_id = vlan_of(qp, arrival->skb);
	spin_lock(&qp->responder.lock);
	execute_request(qp, arrival);
	spin_unlock(&qp->responder.lock);
}

static void complete_read(struct smw_qp *qp, struct smw_arrival *arrival)
{
	const struct smw_packet *packet = &arrival->packet;
	struct smw_read_response response = {
		.psn = packet->psn,
		.span = 1,
		.bytes = packet->payload_len,
		.syndrome = packet->syndrome,
		.last = packet->op->flags & SMW_OP_END,
	};
	struct smw_cursor payload;

	payload_cursor(arrival, &payload);
	if (!smw_completer_read(qp, &response, &payload))
		drop(arrival, qp->link, SMW_COUNT_DROPPED);
}

static void complete_other(struct smw_qp *qp, struct smw_arrival *arrival)
{
	const struct smw_packet *packet = &arrival->packet;
	struct smw_response response = {
		.kind = packet->op->kind == SMW_KIND_ATOMIC_ACK ? SMW_RESPONSE_ATOMIC :
								  SMW_RESPONSE_ACK,
		.syndrome = packet->syndrome,
		.psn = packet->psn,
		.msn = packet->msn,
		.original = packet->original,
	};

	if (!smw_completer_response(qp, &response))
		drop(arrival, qp->link, SMW_COUNT_DROPPED);
}

static void take_response(struct smw_qp *qp, struct smw_arrival *arrival)
{
	bool more;

	spin_lock(&qp->requester.lock);
	if (arrival->packet.op->kind == SMW_KIND_READ_RESPONSE)
		complete_read(qp, arrival);
	else
		complete_other(qp, arrival);
	more = smw_requester_run(qp);
	spin_unlock(&qp->requester.lock);
	if (more)
		smw_work_note(qp, SMW_NOTE_SEND);
}

static void deliver(struct smw_qp *qp, struct smw_arrival *arrival)
{
	enum smw_reason reason = judge(qp, arrival);

	if (reason) {
		drop(arrival, qp->link, smw_reason_info(reason)->counter);
		return;
	}
	smw_count(qp->link, SMW_COUNT_RECEIVED_PACKETS);
	if (smw_qp_is_datagram(qp))
		take_datagram(qp, arrival);
	else if (arrival->packet.op->flags & SMW_OP_REQUEST)
		take_request(qp, arrival);
	else
		take_response(qp, arrival);
}

/* Returns true where it was taken. */
static bool deliver_to_member(struct smw_link *link, struct smw_arrival *arrival, u32 qpn)
{
	struct smw_qp *qp = smw_qp_hold(link->net, qpn, SMW_HOLD_QP);
	bool taken = false;

	if (!qp)
		return false;
	/* It may be another one by now. */
	if (qp->link == link && smw_qp_is_datagram(qp)) {
		take_datagram(qp, arrival);
		taken = arrival->fate == SMW_FATE_CONSUMED;
	}
	smw_hold_drop(SMW_HOLD_QP);
	return taken;
}

/* One packet for every queue pair that is attached to its group. Returns true where taken. */
static bool deliver_to_group(struct smw_link *link, struct smw_arrival *arrival)
{
	enum smw_reason reason = judge_packet(arrival, SMW_OPCODE_UD);
	u32 qpns[SMW_MAX_MCAST_QP];
	struct in6_addr source, group;
	bool taken = false;
	u32 count;

	addresses(arrival->skb, &source, &group);
	count = reason ? 0 : smw_mcast_members(link, &group, qpns);
	if (!count) {
		smw_count(link, reason ? smw_reason_info(reason)->counter :
					 SMW_COUNT_DROPPED);
		return false;
	}
	smw_count(link, SMW_COUNT_RECEIVED_PACKETS);
	while (count--)
		taken |= deliver_to_member(link, arrival, qpns[count]);
	return taken;
}

/* A bond's links hear the same packets: its own and those of its legs. */
static void receive_group(struct net *net, struct smw_arrival *arrival)
{
	int ifindex = came_by(arrival->skb);
	struct smw_link *link;
	bool taken = false;

	rcu_read_lock();
	link = smw_sock_link(net, ifindex, NULL);
	if (!link)
		smw_sock_count(net, SMW_COUNT_DROPPED);
	for (; link; link = smw_sock_link(net, ifindex, link))
		taken |= deliver_to_group(link, arrival);
	rcu_read_unlock();
	arrival->fate = taken ? SMW_FATE_CONSUMED : SMW_FATE_DROPPED;
}

/* Each link has a queue pair of this number; the address says whose it is. */
static struct smw_qp *hold_gsi(struct net *net, const struct sk_buff *skb)
{
	struct in6_addr source, target;
	struct smw_qp *qp = NULL;
	struct smw_link *link;

	addresses(skb, &source, &target);
	rcu_read_lock();
	link = smw_sock_find(net, &target, came_by(skb));
	if (link)
		qp = smw_qp_hold_gsi(link, SMW_HOLD_QP);
	rcu_read_unlock();
	return qp;
}

static struct smw_qp *hold_target(struct net *net, const struct smw_arrival *arrival)
{
	if (unlikely(arrival->packet.qpn == SMW_GSI_QPN))
		return hold_gsi(net, arrival->skb);
	return smw_qp_hold(net, arrival->packet.qpn, SMW_HOLD_QP);
}

static void receive(struct net *net, struct smw_arrival *arrival)
{
	struct smw_qp *qp;

	if (!pull_headers(arrival->skb) || parse(arrival)) {
		drop_unclaimed(arrival, net, SMW_COUNT_MALFORMED);
		return;
	}
	if (arrival->packet.qpn == SMW_QPN_MULTICAST) {
		receive_group(net, arrival);
		return;
	}
	qp = hold_target(net, arrival);
	if (!qp) {
		drop_unclaimed(arrival, net, SMW_COUNT_DROPPED);
		return;
	}
	deliver(qp, arrival);
	smw_hold_drop(SMW_HOLD_QP);
}

int smw_rx_packet(struct sock *sk, struct sk_buff *skb)
{
	struct smw_arrival arrival = { .skb = skb };

	receive(sock_net(sk), &arrival);
	finish(&arrival);
	return 0;
}
