/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests: from the user's ring to private memory, once.
 */
#ifndef SMW_WQE_H
#define SMW_WQE_H

#include <smw/qp.h>

/**
 * smw_wqe_fetch_send() - copy the next send request out of the ring
 * @qp: a queue pair; requester.lock held
 *
 * What cannot be executed is marked in ->fault, to fail in its turn.
 *
 * Return: false where there is none.
 */
bool smw_wqe_fetch_send(struct smw_qp *qp);

/**
 * smw_wqe_take_receive() - take the next receive request out of a ring
 * @ring: a receive queue's ring, its lock held
 * @max_sge: elements that @receive has room for
 * @receive: out: a copy
 * @reason: out: SMW_OK, SMW_RNR where there is none, or SMW_RECV_PROTECTION
 *          where it was taken but cannot be used
 *
 * Return: true where one was taken.
 */
bool smw_wqe_take_receive(struct smw_ring *ring, u32 max_sge,
			  struct smw_receive *receive, enum smw_reason *reason);

/**
 * smw_wqe_fetch_receive() - take the next receive request of a queue pair
 * @qp: a queue pair; responder.lock held; responder.have_receive is false
 * @reason: out: as smw_wqe_take_receive() says
 *
 * Return: true where one was taken, from its own queue or its shared one.
 */
bool smw_wqe_fetch_receive(struct smw_qp *qp, enum smw_reason *reason);

/* What a send request is to the requester; any opcode that is none of these
 * carries a fault.
 */
static inline bool smw_send_is_local(const struct smw_send *send)
{
	return send->opcode == IB_WR_BIND_MW || send->opcode == IB_WR_LOCAL_INV ||
	       send->opcode == IB_WR_REG_MR;
}

static inline bool smw_send_is_read(const struct smw_send *send)
{
	return send->opcode == IB_WR_RDMA_READ;
}

static inline bool smw_send_is_atomic(const struct smw_send *send)
{
	return send->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       send->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool smw_send_is_atomic_write(const struct smw_send *send)
{
	return send->opcode == IB_WR_ATOMIC_WRITE;
}

static inline bool smw_send_is_flush(const struct smw_send *send)
{
	return send->opcode == IB_WR_FLUSH;
}

/* Does it wait for a response of its own, not just an acknowledgment? */
static inline bool smw_send_is_rd_atomic(const struct smw_send *send)
{
	return smw_send_is_read(send) || smw_send_is_atomic(send) ||
	       smw_send_is_atomic_write(send) || smw_send_is_flush(send);
}

/* Bytes of the READ responses it waits for; an ATOMIC WRITE's and a FLUSH's is empty. */
static inline u32 smw_send_response_length(const struct smw_send *send)
{
	return smw_send_is_read(send) ? send->length : 0;
}

#endif /* SMW_WQE_H */
