/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Everything that makes a queue pair work later: its tasklet and its timers.
 */
#ifndef SMW_WORK_H
#define SMW_WORK_H

#include <smw/qp.h>

/* Bits of qp->notes. */
enum smw_note {
	SMW_NOTE_SEND,		/* the requester has work left */
	SMW_NOTE_STREAM,	/* a READ is being answered */
	SMW_NOTE_FLUSH,		/* the queue pair is in ERR or SQE */
};

/**
 * smw_work_init() - set up tasklet and timers
 * @qp: a new queue pair
 */
void smw_work_init(struct smw_qp *qp);

/**
 * smw_work_pause() - stop tasklet and timers
 * @qp: a queue pair in RESET; none of them runs on return, and none will be
 *      started while it stays there
 *
 * Context: may sleep.
 */
void smw_work_pause(struct smw_qp *qp);

/**
 * smw_work_note() - leave a note for the tasklet
 * @qp: a queue pair
 * @note: what to do
 */
void smw_work_note(struct smw_qp *qp, enum smw_note note);

/**
 * smw_work_flush() - flush a turn of both queues, and leave a note for the rest
 * @qp: a queue pair in ERR or SQE, no lock held
 */
void smw_work_flush(struct smw_qp *qp);

/**
 * smw_work_flush_wait() - have the tasklet flush a turn of both queues
 * @qp: a queue pair in SQE, modify_lock held
 *
 * The caller leaves a note afterwards, or one left meanwhile may lie.
 * Context: may sleep.
 *
 * Return: true where there is more to flush.
 */
bool smw_work_flush_wait(struct smw_qp *qp);

/**
 * smw_work_posted() - a kernel consumer has posted
 * @qp: the queue pair
 * @note: what to do
 *
 * As smw_work_note(), and at once where softirqs can run. Context: any.
 */
void smw_work_posted(struct smw_qp *qp, enum smw_note note);

/**
 * smw_work_arm_retransmit() - start the retransmit timer unless it runs
 * @qp: a queue pair with packets in flight; requester.lock held
 *
 * The timer is lazy: it is not moved by each acknowledgment. When it fires
 * and una has moved since it was armed, it is armed again; otherwise the
 * timeout has passed once to twice.
 */
void smw_work_arm_retransmit(struct smw_qp *qp);

/**
 * smw_work_start_rnr() - start the wait that an RNR NAK asks for
 * @qp: a queue pair; requester.lock held
 * @ns: how long
 */
void smw_work_start_rnr(struct smw_qp *qp, u64 ns);

#endif /* SMW_WORK_H */
