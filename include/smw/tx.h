/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets into the network stack.
 */
#ifndef SMW_TX_H
#define SMW_TX_H

#include <smw/qp.h>

/**
 * smw_tx_packet() - build one packet and hand it to the stack
 * @link: the link that it leaves by
 * @av: where it goes
 * @dst: its route, valid while rcu_read_lock() is held; NULL where there is none now
 * @packet: its headers
 * @payload: where ->payload_len bytes come from, or NULL; its holds are released
 *
 * Context: bottom halves disabled, under rcu_read_lock().
 *
 * Return: false where the payload could not be read and nothing was sent. A packet
 * that cannot be sent is lost.
 */
bool smw_tx_packet(struct smw_link *link, const struct smw_av *av, struct dst_entry *dst,
		   struct smw_packet *packet, struct smw_cursor *payload);

#endif /* SMW_TX_H */
