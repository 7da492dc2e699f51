/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Cached routes of queue pairs.
 */
#ifndef SMW_ROUTE_H
#define SMW_ROUTE_H

#include <smw/qp.h>

/**
 * smw_route_get() - the route of a queue pair's packets
 * @qp: a connected queue pair
 * @user: whose packets; requester.lock or responder.lock held accordingly
 *
 * Return: the route, owned by the queue pair and valid while the lock is
 * held; NULL where there is none now.
 */
struct dst_entry *smw_route_get(struct smw_qp *qp, enum smw_route_user user);

#endif /* SMW_ROUTE_H */
