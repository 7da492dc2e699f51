/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The carrier: what requester and responder need of whatever moves their
 * packets. net/ implements it; above it nothing knows of sockets.
 */
#ifndef SMW_CARRIER_H
#define SMW_CARRIER_H

#include <smw/qp.h>

struct smw_ah_path;

/**
 * smw_carrier_connect() - fill a queue pair's address vector
 * @qp: a queue pair on its way to RTR, modify_lock held
 * @ah: the path from modify, checked by the RDMA core
 * @mtu: the path MTU, bytes
 *
 * Finds a route, so that an unreachable peer, or a route that does not carry the MTU,
 * is an errno now and not a hang later. Context: may sleep.
 *
 * Return: 0 or a negative errno; on failure the old address vector stays.
 */
int smw_carrier_connect(struct smw_qp *qp, const struct rdma_ah_attr *ah, u32 mtu);

/**
 * smw_carrier_disconnect() - drop the routes
 * @qp: a queue pair that no packet finds any more
 */
void smw_carrier_disconnect(struct smw_qp *qp);

/**
 * smw_carrier_send() - put one packet on the wire
 * @qp: the sender, its requester's or responder's lock held
 * @user: whose packet it is
 * @packet: a request or a response
 * @payload: where ->payload_len bytes come from; its holds are released before
 *           the packet enters the stack. NULL where there is no payload
 *
 * A packet that cannot be sent (no memory, no route, device down) is lost as
 * on any wire: the retransmit timer sees to it.
 *
 * Return: false where the payload could not be read (@payload->fault) and
 * nothing was sent.
 */
bool smw_carrier_send(struct smw_qp *qp, enum smw_route_user user,
		      struct smw_packet *packet, struct smw_cursor *payload);

/**
 * smw_carrier_stream() - send the next turn of a READ's responses
 * @qp: a queue pair; responder.lock held
 *
 * Return: true where responses are left for another turn.
 */
bool smw_carrier_stream(struct smw_qp *qp);

/**
 * smw_carrier_peer() - the queue pair at the other end, if it is of this kernel
 * @qp: a connected queue pair, requester lock held
 *
 * Takes slot SMW_HOLD_PEER on success.
 * Context: bottom halves disabled.
 *
 * Return: the peer, or NULL: take the wire.
 */
struct smw_qp *smw_carrier_peer(struct smw_qp *qp);

/**
 * smw_carrier_open() - fill an address handle's address vector
 * @link: its link
 * @path: of a new address handle
 * @attr: the path, checked by the RDMA core
 * @may_sleep: find a route, so that an unreachable peer is an errno; without it the
 *             context may be any
 *
 * Return: 0 or a negative errno.
 */
int smw_carrier_open(struct smw_link *link, struct smw_ah_path *path,
		     const struct rdma_ah_attr *attr, bool may_sleep);

/**
 * smw_carrier_close() - drop an address handle's route
 * @path: of an address handle that nobody finds any more, a grace period ago
 */
void smw_carrier_close(struct smw_ah_path *path);

/**
 * smw_carrier_send_datagram() - put one datagram on the wire
 * @link: the sender's link
 * @path: where it goes
 * @packet: the datagram
 * @payload: as for smw_carrier_send()
 *
 * Context: bottom halves disabled, under rcu_read_lock().
 *
 * Return: false where the payload could not be read (@payload->fault) and nothing
 * was sent.
 */
bool smw_carrier_send_datagram(struct smw_link *link, struct smw_ah_path *path,
			       struct smw_packet *packet, struct smw_cursor *payload);

/*
 * A GID, address or netdev changed: every direct path and every route is looked at
 * again.
 */
void smw_carrier_changed(void);

/* Changes whenever that was called. */
u32 smw_carrier_generation(void);

#endif /* SMW_CARRIER_H */
