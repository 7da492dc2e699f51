/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire carrier's two ends: the UDP sockets of a namespace, and what comes
 * in through them.
 */
#ifndef SMW_WIRE_H
#define SMW_WIRE_H

#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/sock.h>
#include <smw/packet.h>
#include <smw/qp.h>
#include <smw/responder.h>

/* The most that a packet with payload has around it: a WRITE with immediate. */
#define SMW_WIRE_OVERHEAD (sizeof(struct ipv6hdr) + sizeof(struct udphdr) +	\
			   SMW_BTH_LEN + SMW_RETH_LEN + SMW_IMM_LEN + SMW_ICRC_LEN)

/**
 * smw_sock_get() - have the UDP port of a link's namespace open
 * @link: the link; goes into the namespace's list
 *
 * The first link of a namespace opens the IPv4 and IPv6 sockets, the last
 * closes them. A failure is told in the log. Context: may sleep.
 *
 * Return: 0 or a negative errno (-EADDRINUSE where the port is taken).
 */
int smw_sock_get(struct smw_link *link);

/**
 * smw_sock_put() - the reverse of smw_sock_get()
 * @link: the link
 *
 * Context: may sleep.
 */
void smw_sock_put(struct smw_link *link);

/**
 * smw_sock_count() - count a packet that belongs to no queue pair
 * @net: the namespace it came in
 * @counter: enum smw_counter
 *
 * It counts on the namespace's first link, so that it can be seen.
 */
void smw_sock_count(struct net *net, enum smw_counter counter);

/**
 * smw_sock_rx_ifindex() - the netdev by which a link's packets come in
 * @link: the link
 *
 * A bond or bridge takes what comes from the netdevs in it and passes it on as its own.
 * Context: any.
 *
 * Return: its index, or 0 where the link's netdev is gone.
 */
int smw_sock_rx_ifindex(struct smw_link *link);

/**
 * smw_sock_link() - the links that hear what comes in by a netdev
 * @net: its namespace
 * @ifindex: the netdev; a VLAN has the links of the netdev below it
 * @after: the one before, or NULL
 *
 * Context: under rcu_read_lock().
 *
 * Return: the next link, valid as long as that, or NULL.
 */
struct smw_link *smw_sock_link(struct net *net, int ifindex, struct smw_link *after);

/**
 * smw_sock_find() - the link of a namespace that has an address
 * @net: the namespace
 * @address: the address, an IPv4 one mapped into IPv6
 * @ifindex: the netdev that the packet came in by
 *
 * Of links that have the address on that netdev it is the oldest, as the connection
 * manager chooses when a program names an address; without one, the oldest in that VRF.
 *
 * Context: under rcu_read_lock().
 *
 * Return: the link, valid as long as that, or NULL.
 */
struct smw_link *smw_sock_find(struct net *net, const struct in6_addr *address, int ifindex);

/* Module start and end. */
int smw_sock_init(void);
void smw_sock_exit(void);

/**
 * smw_rx_packet() - take one packet from the socket
 * @sk: the socket
 * @skb: the packet, UDP header at its transport header
 *
 * An encap_rcv handler: softirq context.
 *
 * Return: 0: the packet is consumed.
 */
int smw_rx_packet(struct sock *sk, struct sk_buff *skb);

/**
 * smw_wire_answer() - send what the responder answers
 * @qp: a queue pair; responder.lock held
 * @response: the answer; a READ becomes responder.stream and its first turn
 *            of responses is sent
 */
void smw_wire_answer(struct smw_qp *qp, const struct smw_response *response);

/**
 * smw_wire_stream() - send the next turn of responder.stream's responses
 * @qp: a queue pair; responder.lock held
 */
void smw_wire_stream(struct smw_qp *qp);

#endif /* SMW_WIRE_H */
