/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The completer: what responses mean to the send queue.
 */
#ifndef SMW_COMPLETER_H
#define SMW_COMPLETER_H

#include <smw/qp.h>
#include <smw/responder.h>

/**
 * smw_completer_response() - take an ACK, NAK or atomic acknowledge
 * @qp: the requesting queue pair; requester.lock held
 * @response: the response, from whichever carrier
 *
 * Return: false where nothing waits for it.
 */
bool smw_completer_response(struct smw_qp *qp, const struct smw_response *response);

/**
 * struct smw_read_response - a READ response; of the direct path, a run of them
 * @psn: PSN of its first packet
 * @span: how many packets it covers
 * @bytes: bytes of data
 * @syndrome: AETH syndrome, or an ACK's where the opcode has no AETH
 * @last: its opcode says that it is the READ's last
 */
struct smw_read_response {
	u32 psn;
	u32 span;
	u32 bytes;
	u8 syndrome;
	bool last;
};

/**
 * smw_completer_read() - take a READ response
 * @qp: the requesting queue pair; requester.lock held
 * @response: the response, from whichever carrier
 * @data: its data
 *
 * One that is not as it should be, or cannot be placed, completes the request with an
 * error.
 *
 * Return: false where nothing waits for it.
 */
bool smw_completer_read(struct smw_qp *qp, const struct smw_read_response *response,
			struct smw_cursor *data);

/**
 * smw_completer_fail() - complete the oldest send with an error
 * @qp: the queue pair; goes to ERR, UD to SQE. requester.lock held
 * @status: enum ib_wc_status
 */
void smw_completer_fail(struct smw_qp *qp, enum ib_wc_status status);

/**
 * smw_completer_advance() - complete sends whose time has come, in order
 * @qp: the queue pair; requester.lock held
 */
void smw_completer_advance(struct smw_qp *qp);

/**
 * smw_completer_sent() - nothing will answer: what was sent is done with
 * @qp: an unreliable queue pair; requester.lock held
 */
void smw_completer_sent(struct smw_qp *qp);

/**
 * smw_completer_check_drained() - is a send queue in SQD drained?
 * @qp: the queue pair; requester.lock held
 *
 * Raises IB_EVENT_SQ_DRAINED once for each stay in SQD.
 */
void smw_completer_check_drained(struct smw_qp *qp);

/**
 * smw_completer_flush_one() - complete the oldest send with a flush error
 * @qp: the queue pair; requester.lock held, a request was fetched
 */
void smw_completer_flush_one(struct smw_qp *qp);

#endif /* SMW_COMPLETER_H */
