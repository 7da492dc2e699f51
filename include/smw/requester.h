/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester: turns send work requests into request packets.
 */
#ifndef SMW_REQUESTER_H
#define SMW_REQUESTER_H

#include <smw/qp.h>

/**
 * smw_requester_run() - send until there is nothing to send or the turn is over
 * @qp: a queue pair; requester.lock held
 *
 * Return: true where the turn ended with work left.
 */
bool smw_requester_run(struct smw_qp *qp);

/**
 * smw_requester_rewind() - go back to the oldest unacknowledged PSN
 * @qp: a queue pair; requester.lock held
 */
void smw_requester_rewind(struct smw_qp *qp);

/**
 * smw_requester_retry() - send again after a loss, or fail where no retry is left
 * @qp: a queue pair; requester.lock held
 */
void smw_requester_retry(struct smw_qp *qp);

/**
 * smw_requester_flush() - complete sends with a flush error
 * @qp: a queue pair in ERR, or UD in SQE (UC goes to ERR too); requester.lock is
 *      taken here
 *
 * Return: true where SMW_FLUSH_TURN were completed, and more may be left.
 */
bool smw_requester_flush(struct smw_qp *qp);

/**
 * smw_requester_discard() - forget what was posted in a state that takes none
 * @qp: a queue pair before RTS; requester.lock is taken here
 *
 * The post was refused, so it must not take effect once the queue pair is in
 * RTS (IBTA 10.3.1).
 */
void smw_requester_discard(struct smw_qp *qp);

/**
 * smw_requester_reset() - empty the send queue and forget what it was doing
 * @qp: a queue pair; requester.lock held
 */
void smw_requester_reset(struct smw_qp *qp);

/* Is every send request completed with a flush error? */
static inline bool smw_requester_flushes(const struct smw_qp *qp)
{
	enum ib_qp_state state = smw_qp_state(qp);

	return state == IB_QPS_ERR || state == IB_QPS_SQE;
}

static inline struct smw_send *smw_requester_send(const struct smw_requester *req,
						  u32 slot)
{
	return req->sends + (size_t)slot * req->send_size;
}

#endif /* SMW_REQUESTER_H */
