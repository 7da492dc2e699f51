/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * READs, atomics, ATOMIC WRITEs and FLUSHes at the responder: what has a response
 * of its own, is remembered, and may be asked for again.
 */
#ifndef SMW_RD_ATOMIC_H
#define SMW_RD_ATOMIC_H

#include <smw/qp.h>
#include <smw/responder.h>

/* Bytes of the READ responses to it; an ATOMIC WRITE's and a FLUSH's is empty. */
static inline u32 smw_rd_atomic_response_length(const struct smw_rd_atomic *entry)
{
	return entry->kind == SMW_KIND_READ ? entry->length : 0;
}

/**
 * smw_rd_atomic_receive() - judge, execute and remember a request in sequence
 * @qp: the responding queue pair, responder.lock held
 * @packet: a READ, atomic, ATOMIC WRITE or FLUSH
 * @payload: the payload of an ATOMIC WRITE
 * @response: out: what to answer
 *
 * Return: SMW_OK, or why it is refused.
 */
enum smw_reason smw_rd_atomic_receive(struct smw_qp *qp, const struct smw_packet *packet,
				      struct smw_cursor *payload,
				      struct smw_response *response);

/**
 * smw_rd_atomic_repeat() - answer a duplicate of such a request
 * @qp: the responding queue pair, responder.lock held
 * @packet: a request whose PSN was executed already
 * @response: out: what to answer
 *
 * The access is judged again; nothing is executed twice.
 *
 * Return: SMW_OK, SMW_DROP_NO_RESOURCE, or why it is refused.
 */
enum smw_reason smw_rd_atomic_repeat(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_response *response);

/**
 * smw_rd_atomic_find_read() - the remembered READ that a PSN belongs to
 * @qp: the responding queue pair, responder.lock held
 * @psn: PSN of one of its responses
 *
 * An ATOMIC WRITE or a FLUSH is found too: it is answered by a READ response without
 * data.
 *
 * Return: the READ, or NULL where it is not remembered.
 */
struct smw_rd_atomic *smw_rd_atomic_find_read(struct smw_qp *qp, u32 psn);

#endif /* SMW_RD_ATOMIC_H */
