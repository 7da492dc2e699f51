/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Why something was refused. Every check answers with one of these; one table
 * says what each means to the peer, to the application and to the operator.
 */
#ifndef SMW_REASON_H
#define SMW_REASON_H

#include <linux/types.h>

enum smw_reason {
	SMW_OK = 0,

	/* A packet that is dropped without an answer. */
	SMW_DROP_TRUNCATED,	/* shorter than its headers, padding and ICRC */
	SMW_DROP_VERSION,	/* transport header version is not 0 */
	SMW_DROP_OPCODE,	/* unknown, or of another transport service */
	SMW_DROP_PAD,		/* padding longer than what it pads */
	SMW_DROP_ICRC,
	SMW_DROP_QKEY,		/* not the datagram queue pair's Q_Key */
	SMW_DROP_ADDRESS,	/* not between the QP's own two addresses */
	SMW_DROP_PKEY,
	SMW_DROP_STATE,		/* the QP's state takes no such packet */
	SMW_DROP_NO_RESOURCE,	/* duplicate READ or atomic no longer remembered */
	SMW_DROP_UNSENT,	/* no packet: the direct path's sender could not read it */

	/* A request's place in the stream. */
	SMW_DUPLICATE,
	SMW_OUT_OF_SEQUENCE,
	SMW_BAD_ORDER,		/* opcode cannot follow the one before */
	SMW_BAD_LENGTH,		/* payload not as long as opcode or RETH demand */
	SMW_BAD_RD_ATOMIC,	/* more READs and atomics than the responder's depth */
	SMW_BAD_ALIGNMENT,	/* atomic target not 8-byte aligned */
	SMW_BAD_FLUSH,		/* of a placement, selectivity or length that there is not */
	SMW_BAD_MESSAGE,	/* DMA length over 2^31 */

	/* Receive side. */
	SMW_RNR,		/* no receive posted */
	SMW_RECV_TOO_SHORT,	/* message longer than the posted receive */
	SMW_RECV_PROTECTION,	/* the receive's own sges are not usable */

	/* Remote access by key. */
	SMW_ACCESS_NO_KEY,	/* no window or region with this index */
	SMW_ACCESS_OLD_KEY,	/* index exists, key byte differs */
	SMW_ACCESS_UNBOUND,	/* window not bound, or region being deregistered */
	SMW_ACCESS_PD,		/* of another protection domain */
	SMW_ACCESS_QP,		/* type 2 window bound to another QP */
	SMW_ACCESS_RIGHT,	/* window or region does not grant the operation */
	SMW_ACCESS_QP_RIGHT,	/* the QP does not grant it */
	SMW_ACCESS_RANGE,	/* a byte outside */

	/* Local access by lkey. */
	SMW_LOCAL_NO_KEY,
	SMW_LOCAL_PD,
	SMW_LOCAL_RIGHT,
	SMW_LOCAL_RANGE,

	/* Bind. */
	SMW_BIND_NO_WINDOW,	/* no window with this index */
	SMW_BIND_KEY,		/* not the window's current key */
	SMW_BIND_NOT_FREE,	/* type 2 is bound (o10-37.2.30) */
	SMW_BIND_PD,		/* C10-72 */
	SMW_BIND_REGION,	/* lkey names no live region */
	SMW_BIND_ZERO_BASED_REGION,
	SMW_BIND_REGION_RIGHT,	/* region lacks MW_BIND (C10-73) */
	SMW_BIND_LOCAL_WRITE,	/* write or atomic need LOCAL_WRITE (C10-74) */
	SMW_BIND_FLUSH,		/* FLUSH rights that the region has not */
	SMW_BIND_FLAGS,		/* access flags not allowed for the type */
	SMW_BIND_RANGE,		/* not inside the region (C10-75) */
	SMW_BIND_LENGTH,	/* type 2 of length 0 (o10-37.2.40) */

	/* Invalidate. */
	SMW_INV_NO_KEY,
	SMW_INV_KEY,		/* key byte differs */
	SMW_INV_TYPE_1,		/* o10-37.2.26 */
	SMW_INV_REGION,		/* a user's region */
	SMW_INV_FREE,		/* the window is Free already */
	SMW_INV_PD,
	SMW_INV_QP,		/* bound to another QP */

	/* Fast registration. */
	SMW_REG_REGION,		/* no region for fast registration with this index */
	SMW_REG_PD,
	SMW_REG_IN_USE,		/* registered already */
	SMW_REG_RIGHT,		/* access flags that it cannot have */
	SMW_REG_RANGE,		/* a byte without a mapped page */

	/* A work request that cannot be executed. */
	SMW_WQE_OPCODE,		/* unknown or kernel-only opcode */
	SMW_WQE_SGES,		/* more sges than the queue was made for */
	SMW_WQE_FLUSH,		/* as SMW_BAD_FLUSH */
	SMW_WQE_RD_ATOMIC,	/* a READ or atomic where the QP may have none in flight */
	SMW_WQE_AH,		/* no such address handle in the QP's domain */
	SMW_WQE_LENGTH,		/* inline, atomic or message length out of range */

	SMW_REASON_COUNT
};

/* What a reason does at the responder of an RC queue pair. */
enum smw_answer {
	SMW_ANSWER_NONE,	/* drop silently */
	SMW_ANSWER_RNR,		/* RNR NAK */
	SMW_ANSWER_NAK,		/* NAK with the row's code */
	SMW_ANSWER_SILENT_ERROR,/* class J: no answer, QP to ERR */
};

/* Affiliated asynchronous event that a reason raises at the responder. */
enum smw_reason_event {
	SMW_EVENT_NONE,
	SMW_EVENT_QP_REQUEST,	/* IB_EVENT_QP_REQ_ERR */
	SMW_EVENT_QP_ACCESS,	/* IB_EVENT_QP_ACCESS_ERR */
};

/* Counters of a link, in the order in which they are shown. */
enum smw_counter {
	SMW_COUNT_SENT_PACKETS,
	SMW_COUNT_RECEIVED_PACKETS,
	SMW_COUNT_SENT_LOCAL,		/* requests carried without packets */
	SMW_COUNT_DUPLICATE_REQUEST,
	SMW_COUNT_OUT_OF_SEQUENCE,
	SMW_COUNT_RNR_NAK_SENT,
	SMW_COUNT_RNR_NAK_RECEIVED,
	SMW_COUNT_RNR_RETRY,		/* requests sent again for one */
	SMW_COUNT_PACKET_SEQ_ERROR,	/* sequence NAKs received */
	SMW_COUNT_ACK_TIMEOUT,
	SMW_COUNT_RETRY_EXCEEDED,
	SMW_COUNT_RNR_RETRY_EXCEEDED,
	SMW_COUNT_ACCESS_REFUSED,	/* at the responder */
	SMW_COUNT_INVALID_REQUEST,	/* at the responder */
	SMW_COUNT_REMOTE_ACCESS_ERROR,	/* at the requester */
	SMW_COUNT_ICRC_ERROR,
	SMW_COUNT_PKEY_VIOLATION,
	SMW_COUNT_QKEY_VIOLATION,
	SMW_COUNT_MALFORMED,
	SMW_COUNT_DROPPED,
	SMW_COUNT_WINDOW_BIND,
	SMW_COUNT_WINDOW_BIND_ERROR,
	SMW_COUNT_WINDOW_INVALIDATE,
	SMW_COUNT_WINDOW_INVALIDATE_ERROR,
	SMW_COUNT_WINDOW_REFUSED,	/* accesses refused through a window's key */
	SMW_COUNTERS
};

/**
 * struct smw_reason_info - what a reason means
 * @name: short identifier for traces, lower case with dashes
 * @text: one sentence for people, without a full stop
 * @answer: enum smw_answer at the responder
 * @nak: SMW_NAK_* where @answer is SMW_ANSWER_NAK
 * @recv_status: status of the receive completion, an enum ibv_wc_status
 *               value; 0 where the receive (if any) stays as it is
 * @send_status: status of the send completion where the reason is found at the
 *               requester itself (local errors, bind, invalidate); 0 otherwise
 * @event: enum smw_reason_event
 * @counter: enum smw_counter to count it under, SMW_COUNTERS for none
 */
struct smw_reason_info {
	const char *name;
	const char *text;
	u8 answer;
	u8 nak;
	u8 recv_status;
	u8 send_status;
	u8 event;
	u8 counter;
};

/**
 * smw_reason_info() - the row of a reason
 * @reason: any value; one out of range answers with the row of SMW_OK
 *
 * Return: never NULL.
 */
const struct smw_reason_info *smw_reason_info(enum smw_reason reason);

#endif /* SMW_REASON_H */
