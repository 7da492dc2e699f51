/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder: judges and executes requests, whichever carrier brings them.
 */
#ifndef SMW_RESPONDER_H
#define SMW_RESPONDER_H

#include <smw/qp.h>

enum smw_response_kind {
	SMW_RESPONSE_NONE,	/* accepted or dropped: nothing to say */
	SMW_RESPONSE_ACK,	/* ACK, NAK or RNR NAK: see @syndrome */
	SMW_RESPONSE_ATOMIC,	/* atomic acknowledge */
	SMW_RESPONSE_READ,	/* a READ was accepted: responses from @psn on */
};

/**
 * struct smw_response - what the responder answers
 * @kind: enum smw_response_kind
 * @syndrome: AETH syndrome
 * @psn: PSN of the answer
 * @msn: MSN of the answer
 * @original: of an atomic
 * @rd_atomic: the READ
 */
struct smw_response {
	u8 kind;
	u8 syndrome;
	u32 psn;
	u32 msn;
	u64 original;
	struct smw_rd_atomic *rd_atomic;
};

static inline void smw_response_set(struct smw_response *response,
				    enum smw_response_kind kind, u8 syndrome,
				    u32 psn, u32 msn)
{
	response->kind = kind;
	response->syndrome = syndrome;
	response->psn = psn;
	response->msn = msn;
}

/**
 * smw_responder_receive() - judge and execute one request packet
 * @qp: the responding queue pair, responder.lock held
 * @packet: a request
 * @payload: its payload, @packet->payload_len bytes
 * @response: out: what to answer; the carrier delivers it
 *
 * Return: false where it was dropped in silence, and counted.
 */
bool smw_responder_receive(struct smw_qp *qp, const struct smw_packet *packet,
			   struct smw_cursor *payload, struct smw_response *response);

/**
 * smw_responder_accepted() - a request was executed
 * @qp: the responding queue pair, responder.lock held
 *
 * The first one in RTR raises IB_EVENT_COMM_EST: the connection manager takes it for
 * the message that was to say so (IBTA 11.6.3.2).
 */
void smw_responder_accepted(struct smw_qp *qp);

/**
 * smw_responder_access() - judge an access that a packet asks of a queue pair
 * @qp: the responding queue pair, responder.lock held
 * @needed: the rights, as in struct smw_access
 * @rkey: key in the packet
 * @va: first byte
 * @bytes: bytes, likewise
 * @offset: out: byte in the region returned
 * @reason: out: SMW_OK or SMW_ACCESS_*
 *
 * Return: the region, held until smw_access_end(), or NULL.
 */
struct smw_mr *smw_responder_access(struct smw_qp *qp, u32 needed, u32 rkey, u64 va,
				    u64 bytes, u64 *offset, enum smw_reason *reason);

/**
 * smw_responder_access_whole() - the same of all that a key names
 * @qp: the responding queue pair, responder.lock held
 * @needed: the rights, as in struct smw_access
 * @rkey: key in the packet
 * @reason: out: SMW_OK or SMW_ACCESS_*
 *
 * Return: the region, held until smw_access_end(), or NULL.
 */
struct smw_mr *smw_responder_access_whole(struct smw_qp *qp, u32 needed, u32 rkey,
					  enum smw_reason *reason);

/**
 * smw_responder_read() - judge a part of a READ again and hold it
 * @qp: the responding queue pair, responder.lock held
 * @read: the READ
 * @psn: PSN of the response that the part begins with
 * @bytes: bytes of the part, > 0
 * @source: out: where they are, until smw_cursor_release()
 * @response: out: the NAK to send where the part is refused, if any
 *
 * Return: false where it is refused; unless a duplicate had asked for it, the
 * queue pair is in ERR then.
 */
bool smw_responder_read(struct smw_qp *qp, const struct smw_rd_atomic *read,
			u32 psn, u32 bytes, struct smw_cursor *source,
			struct smw_response *response);

/**
 * smw_responder_flush() - complete receives with a flush error
 * @qp: a queue pair in ERR; responder.lock is taken here
 *
 * Return: true where SMW_FLUSH_TURN were completed, and more may be left.
 */
bool smw_responder_flush(struct smw_qp *qp);

/**
 * smw_responder_reset() - empty the receive queue, unless it is shared, and forget the rest
 * @qp: a queue pair; responder.lock held
 */
void smw_responder_reset(struct smw_qp *qp);

#endif /* SMW_RESPONDER_H */
