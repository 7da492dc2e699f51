// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/responder.h>

#include <linux/atomic.h>

#include <smw/psn.h>
#include <smw/retry.h>
#include <smw/wqe.h>

static bool takes_requests(const struct smw_qp *qp)
{
	switch (smw_qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		return true;
	default:
		return false;
	}
}

static void answer(struct smw_response *response, enum smw_response_kind kind,
		   u8 syndrome, u32 psn, u32 msn)
{
	response->kind = kind;
	response->syndrome = syndrome;
	response->psn = psn;
	response->msn = msn;
}

/* Complete the receive in use. @packet is NULL where no message ended it. */
static void complete_receive(struct smw_qp *qp, const struct smw_packet *packet,
			     enum ib_wc_status status)
{
	struct smw_responder *rsp = &qp->responder;
	struct ib_uverbs_wc wc = {
		.wr_id = rsp->receive->wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.byte_len = rsp->offset,
		.qp_num = qp->ibqp.qp_num,
		.src_qp = qp->dest_qpn,
		.port_num = SMW_PORT,
	};

	if (packet && packet->op->kind == SMW_KIND_WRITE)
		wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
	if (packet && packet->op->flags & SMW_OP_IMM) {
		wc.wc_flags |= SMW_WC_WITH_IMM;
		wc.ex.imm_data = packet->imm;
	}
	if (packet && packet->op->flags & SMW_OP_IETH) {
		wc.wc_flags |= SMW_WC_WITH_INV;
		wc.ex.invalidate_rkey = packet->invalidate;
	}
	rsp->have_receive = false;
	if (!smw_cq_post(qp->recv_cq, &wc, status || (packet && packet->solicited))) {
		smw_qp_event(qp, IB_EVENT_QP_FATAL);
		smw_qp_fail(qp);
	}
}

static void raise_event(struct smw_qp *qp, u8 event)
{
	switch (event) {
	case SMW_EVENT_QP_REQUEST:
		smw_qp_event(qp, IB_EVENT_QP_REQ_ERR);
		break;
	case SMW_EVENT_QP_ACCESS:
		smw_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
		break;
	case SMW_EVENT_QP_FATAL:
		smw_qp_event(qp, IB_EVENT_QP_FATAL);
		break;
	default:
		break;
	}
}

/* An error that ends the connection: complete, tell, and go to ERR. */
static void fail(struct smw_qp *qp, const struct smw_packet *packet,
		 const struct smw_reason_info *info)
{
	if (info->recv_status && qp->responder.have_receive)
		complete_receive(qp, packet, info->recv_status);
	smw_qp_fail(qp);
	raise_event(qp, info->event);
}

/* Do what the table says of a refused request. */
static void refuse(struct smw_qp *qp, const struct smw_packet *packet, u32 psn,
		   enum smw_reason reason, struct smw_response *response)
{
	const struct smw_reason_info *info = smw_reason_info(reason);
	struct smw_responder *rsp = &qp->responder;

	if (info->counter < SMW_COUNTERS)
		smw_count(qp->link, info->counter);
	switch (info->answer) {
	case SMW_ANSWER_RNR:
		rsp->nak_sent = true;
		answer(response, SMW_RESPONSE_ACK, SMW_AETH_RNR | qp->min_rnr_timer,
		       psn, rsp->msn);
		break;
	case SMW_ANSWER_NAK:
		answer(response, SMW_RESPONSE_ACK, SMW_AETH_NAK | info->nak, psn,
		       rsp->msn);
		fail(qp, packet, info);
		break;
	case SMW_ANSWER_SILENT_ERROR:
		fail(qp, packet, info);
		break;
	default:
		break;
	}
}

/* The request was executed: expect the next one, and acknowledge if asked. */
static void finish(struct smw_qp *qp, const struct smw_packet *packet, u8 message,
		   struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	bool end = packet->op->flags & SMW_OP_END;

	rsp->message = end ? SMW_MESSAGE_NONE : message;
	rsp->psn = smw_psn_add(rsp->psn, packet->span);
	if (end)
		rsp->msn = (rsp->msn + 1) & SMW_PSN_MASK;
	if (packet->ack_request)
		answer(response, SMW_RESPONSE_ACK, SMW_AETH_ACK_NO_CREDIT,
		       smw_psn_add(rsp->psn, SMW_PSN_MASK), rsp->msn);
}

static enum smw_reason take_receive(struct smw_qp *qp)
{
	enum smw_reason reason = SMW_OK;

	if (!qp->responder.have_receive)
		smw_wqe_fetch_receive(qp, &reason);
	return reason;
}

static enum smw_reason place_in_receive(struct smw_qp *qp, u32 bytes,
					struct smw_cursor *payload)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_cursor target;

	if (bytes > rsp->receive->length - rsp->offset)
		return SMW_RECV_TOO_SHORT;
	smw_cursor_sges(&target, qp->link, qp->ibqp.pd, rsp->receive->sge,
			rsp->receive->num_sge, SMW_LOCAL_WRITE, SMW_HOLD_RECEIVE);
	smw_cursor_skip(&target, rsp->offset);
	smw_copy(&target, payload, bytes);
	smw_cursor_release(&target);
	if (target.fault)
		return SMW_RECV_PROTECTION;
	/* The sender's own memory failed: it never sent this. */
	if (payload->fault)
		return SMW_DROP_UNEXPECTED;
	rsp->offset += bytes;
	return SMW_OK;
}

static enum smw_reason receive_send(struct smw_qp *qp, const struct smw_packet *packet,
				    struct smw_cursor *payload,
				    struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	enum smw_reason reason;

	if (packet->op->flags & SMW_OP_START) {
		rsp->offset = 0;
		reason = take_receive(qp);
		if (reason)
			return reason;
	}
	reason = place_in_receive(qp, packet->payload_len, payload);
	if (reason)
		return reason;
	/* After the payload is placed, before the completion. */
	if (packet->op->flags & SMW_OP_IETH) {
		reason = smw_window_invalidate(qp->link, qp->ibqp.pd, &qp->windows,
					       packet->invalidate);
		if (reason)
			return reason;
	}
	finish(qp, packet, SMW_MESSAGE_SEND, response);
	if (packet->op->flags & SMW_OP_END)
		complete_receive(qp, packet, IB_WC_SUCCESS);
	return SMW_OK;
}

static struct smw_mr *begin_access(struct smw_qp *qp, u32 needed, u32 rkey, u64 va,
				   u64 bytes, u64 *offset, enum smw_reason *reason)
{
	struct smw_access access = {
		.pd = qp->ibqp.pd,
		.owner = &qp->windows,
		.qp_rights = qp->rights,
		.needed = needed,
		.rkey = rkey,
		.va = va,
		.bytes = bytes,
	};

	return smw_access_begin(qp->link, &access, offset, reason);
}

/*
 * Judge @judged bytes of the message in progress from its current offset and
 * place the payload under the same hold. The first packet judges the whole
 * message, later ones their own part again: the window may have gone.
 */
static enum smw_reason place_in_target(struct smw_qp *qp, u32 judged, u32 bytes,
				       struct smw_cursor *payload)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_cursor target;
	enum smw_reason reason;
	struct smw_mr *mr;
	u64 offset;

	/* C9-88: nothing to move, no key to check. */
	if (!judged)
		return SMW_OK;
	mr = begin_access(qp, SMW_REMOTE_WRITE, rsp->rkey, rsp->va + rsp->offset, judged,
			  &offset, &reason);
	if (!mr)
		return reason;
	smw_cursor_region(&target, mr, offset);
	smw_copy(&target, payload, bytes);
	smw_cursor_release(&target);
	if (payload->fault)
		return SMW_DROP_UNEXPECTED;
	rsp->offset += bytes;
	return SMW_OK;
}

/* Payload against the RETH's length: the message must end exactly there. */
static enum smw_reason check_write_length(const struct smw_responder *rsp,
					  const struct smw_packet *packet)
{
	u32 left = rsp->length - rsp->offset;
	bool end = packet->op->flags & SMW_OP_END;

	if (end ? packet->payload_len != left : packet->payload_len >= left)
		return SMW_BAD_LENGTH;
	return SMW_OK;
}

static enum smw_reason receive_write(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_cursor *payload,
				     struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	bool start = packet->op->flags & SMW_OP_START;
	enum smw_reason reason;

	if (start) {
		if (packet->length > SMW_MAX_MESSAGE)
			return SMW_BAD_MESSAGE;
		rsp->offset = 0;
		rsp->va = packet->va;
		rsp->rkey = packet->rkey;
		rsp->length = packet->length;
	}
	reason = check_write_length(rsp, packet);
	if (!reason && packet->op->flags & SMW_OP_IMM)
		reason = take_receive(qp);
	if (!reason)
		reason = place_in_target(qp, start ? rsp->length : packet->payload_len,
					 packet->payload_len, payload);
	if (reason)
		return reason;
	finish(qp, packet, SMW_MESSAGE_WRITE, response);
	if (packet->op->flags & SMW_OP_IMM)
		complete_receive(qp, packet, IB_WC_SUCCESS);
	return SMW_OK;
}

/* Judge a range without touching it; a READ is judged again part by part. */
static enum smw_reason check_read(struct smw_qp *qp, u32 rkey, u64 va, u32 length)
{
	enum smw_reason reason = SMW_OK;
	u64 offset;

	if (length && begin_access(qp, SMW_REMOTE_READ, rkey, va, length, &offset, &reason))
		smw_access_end();
	return reason;
}

static struct smw_rd_atomic *remember(struct smw_responder *rsp,
				      const struct smw_packet *packet, u32 packets)
{
	struct smw_rd_atomic *entry = &rsp->rd_atomics[rsp->rd_atomic_next];

	rsp->rd_atomic_next = (rsp->rd_atomic_next + 1) % rsp->rd_atomic_count;
	entry->kind = packet->op->kind;
	entry->first_psn = packet->psn;
	entry->last_psn = smw_psn_add(packet->psn, packets - 1);
	entry->va = packet->va;
	entry->rkey = packet->rkey;
	entry->length = packet->length;
	rsp->psn = smw_psn_add(entry->last_psn, 1);
	rsp->msn = (rsp->msn + 1) & SMW_PSN_MASK;
	entry->msn = rsp->msn;
	return entry;
}

static enum smw_reason receive_read(struct smw_qp *qp, const struct smw_packet *packet,
				    struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_rd_atomic *read;
	enum smw_reason reason;

	if (packet->length > SMW_MAX_MESSAGE)
		return SMW_BAD_MESSAGE;
	if (!rsp->rd_atomic_count)
		return SMW_BAD_RD_ATOMIC;
	reason = check_read(qp, packet->rkey, packet->va, packet->length);
	if (reason)
		return reason;
	read = remember(rsp, packet, smw_packet_count(packet->length, qp->mtu));
	answer(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, packet->psn,
	       read->msn);
	response->rd_atomic = read;
	return SMW_OK;
}

static u64 execute_atomic(u64 *target, const struct smw_packet *packet)
{
	if (packet->opcode == SMW_RC_COMPARE_SWAP)
		return cmpxchg64(target, packet->compare, packet->swap_add);
	return atomic64_fetch_add(packet->swap_add, (atomic64_t *)target);
}

/*
 * The device promises IB_ATOMIC_GLOB: the operation is one instruction on the
 * memory itself, so it is atomic against the CPU and every other QP. That asks
 * for alignment of the address in memory too, which an iova of other low bits
 * can take away.
 */
static enum smw_reason access_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				     u64 *original, bool replay)
{
	enum smw_reason reason;
	u32 run = sizeof(u64);
	struct smw_mr *mr;
	u64 offset;
	u64 *target;

	if (packet->va & (sizeof(u64) - 1))
		return SMW_BAD_ALIGNMENT;
	mr = begin_access(qp, SMW_REMOTE_ATOMIC, packet->rkey, packet->va, sizeof(u64),
			  &offset, &reason);
	if (!mr)
		return reason;
	target = smw_mr_run(mr, offset, &run);
	if (!IS_ALIGNED((uintptr_t)target, sizeof(u64)))
		reason = SMW_BAD_ALIGNMENT;
	else if (!replay)
		*original = execute_atomic(target, packet);
	smw_access_end();
	return reason;
}

static void answer_atomic(const struct smw_rd_atomic *entry, struct smw_response *response)
{
	answer(response, SMW_RESPONSE_ATOMIC, SMW_AETH_ACK_NO_CREDIT, entry->first_psn,
	       entry->msn);
	response->original = entry->original;
}

static enum smw_reason receive_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				      struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_rd_atomic *entry;
	enum smw_reason reason;
	u64 original;

	if (!rsp->rd_atomic_count)
		return SMW_BAD_RD_ATOMIC;
	reason = access_atomic(qp, packet, &original, false);
	if (reason)
		return reason;
	entry = remember(rsp, packet, 1);
	entry->original = original;
	answer_atomic(entry, response);
	return SMW_OK;
}

/* Find the eight aligned bytes of an ATOMIC WRITE; the access is held. */
static enum smw_reason begin_atomic_write(struct smw_qp *qp,
					  const struct smw_packet *packet, u64 **target)
{
	enum smw_reason reason;
	u32 run = sizeof(u64);
	struct smw_mr *mr;
	u64 offset;

	if (packet->va & (sizeof(u64) - 1))
		return SMW_BAD_ALIGNMENT;
	if (packet->length != sizeof(u64) || packet->payload_len != sizeof(u64))
		return SMW_BAD_LENGTH;
	mr = begin_access(qp, SMW_REMOTE_WRITE, packet->rkey, packet->va, sizeof(u64),
			  &offset, &reason);
	if (!mr)
		return reason;
	*target = smw_mr_run(mr, offset, &run);
	if (IS_ALIGNED((uintptr_t)*target, sizeof(u64)))
		return SMW_OK;
	smw_access_end();
	return SMW_BAD_ALIGNMENT;
}

/* The answer is a READ response without data. */
static void answer_atomic_write(struct smw_rd_atomic *entry,
				struct smw_response *response)
{
	answer(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, entry->first_psn,
	       entry->msn);
	response->rd_atomic = entry;
}

static enum smw_reason receive_atomic_write(struct smw_qp *qp,
					    const struct smw_packet *packet,
					    struct smw_cursor *payload,
					    struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_rd_atomic *entry;
	struct smw_cursor value_cursor;
	enum smw_reason reason;
	u64 *target;
	u64 value;

	if (!rsp->rd_atomic_count)
		return SMW_BAD_RD_ATOMIC;
	reason = begin_atomic_write(qp, packet, &target);
	if (reason)
		return reason;
	smw_cursor_flat(&value_cursor, &value);
	if (smw_copy(&value_cursor, payload, sizeof(value)))
		smp_store_release(target, value);
	smw_access_end();
	if (payload->fault)
		return SMW_DROP_UNEXPECTED;
	entry = remember(rsp, packet, 1);
	entry->length = 0;
	answer_atomic_write(entry, response);
	return SMW_OK;
}

static enum smw_reason execute(struct smw_qp *qp, const struct smw_packet *packet,
			       struct smw_cursor *payload, struct smw_response *response)
{
	enum smw_reason reason;

	reason = smw_respond_order(qp->responder.message, packet->op);
	if (!reason)
		reason = smw_respond_length(packet, qp->mtu);
	if (reason)
		return reason;
	switch (packet->op->kind) {
	case SMW_KIND_SEND:
		return receive_send(qp, packet, payload, response);
	case SMW_KIND_WRITE:
		return receive_write(qp, packet, payload, response);
	case SMW_KIND_READ:
		return receive_read(qp, packet, response);
	case SMW_KIND_ATOMIC:
		return receive_atomic(qp, packet, response);
	case SMW_KIND_ATOMIC_WRITE:
		return receive_atomic_write(qp, packet, payload, response);
	default:
		return SMW_DROP_OPCODE;
	}
}

/* Newest first: PSNs come round again, and an old entry may hold the same. */
static struct smw_rd_atomic *find_rd_atomic(struct smw_responder *rsp, u8 kind, u32 psn)
{
	u32 count = rsp->rd_atomic_count;
	u32 i;

	for (i = 1; i <= count; i++) {
		struct smw_rd_atomic *entry =
			&rsp->rd_atomics[(rsp->rd_atomic_next + count - i) % count];

		if (entry->kind == kind && smw_psn_diff(psn, entry->first_psn) >= 0 &&
		    smw_psn_diff(psn, entry->last_psn) <= 0)
			return entry;
	}
	return NULL;
}

struct smw_rd_atomic *smw_responder_find_read(struct smw_qp *qp, u32 psn)
{
	struct smw_rd_atomic *read;

	read = find_rd_atomic(&qp->responder, SMW_KIND_READ, psn);
	if (read)
		return read;
	return find_rd_atomic(&qp->responder, SMW_KIND_ATOMIC_WRITE, psn);
}

/*
 * A READ may be asked again from its beginning or from any of its packets, and
 * for nothing else: neither another key nor another range.
 */
static enum smw_reason repeat_read(struct smw_qp *qp, const struct smw_packet *packet,
				   struct smw_response *response)
{
	struct smw_rd_atomic *read;
	enum smw_reason reason;
	u32 done;

	read = find_rd_atomic(&qp->responder, SMW_KIND_READ, packet->psn);
	if (!read)
		return SMW_DROP_NO_RESOURCE;
	done = ((packet->psn - read->first_psn) & SMW_PSN_MASK) * qp->mtu;
	if (packet->rkey != read->rkey || packet->va != read->va + done ||
	    packet->length != read->length - done)
		return SMW_DROP_NO_RESOURCE;
	reason = check_read(qp, packet->rkey, packet->va, packet->length);
	if (reason)
		return reason;
	answer(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, packet->psn,
	       read->msn);
	response->rd_atomic = read;
	return SMW_OK;
}

/* An atomic is never executed twice; its result is sent again. */
static enum smw_reason repeat_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_response *response)
{
	const struct smw_rd_atomic *entry;
	enum smw_reason reason;

	entry = find_rd_atomic(&qp->responder, SMW_KIND_ATOMIC, packet->psn);
	if (!entry || entry->va != packet->va || entry->rkey != packet->rkey)
		return SMW_DROP_NO_RESOURCE;
	reason = access_atomic(qp, packet, NULL, true);
	if (!reason)
		answer_atomic(entry, response);
	return reason;
}

static enum smw_reason repeat_atomic_write(struct smw_qp *qp,
					   const struct smw_packet *packet,
					   struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	enum smw_reason reason;
	u64 *target;

	entry = find_rd_atomic(&qp->responder, SMW_KIND_ATOMIC_WRITE, packet->psn);
	if (!entry || entry->va != packet->va || entry->rkey != packet->rkey)
		return SMW_DROP_NO_RESOURCE;
	reason = begin_atomic_write(qp, packet, &target);
	if (reason)
		return reason;
	smw_access_end();
	answer_atomic_write(entry, response);
	return SMW_OK;
}

static enum smw_reason repeat(struct smw_qp *qp, const struct smw_packet *packet,
			      struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;

	smw_count(qp->link, SMW_COUNT_DUPLICATE_REQUEST);
	switch (packet->op->kind) {
	case SMW_KIND_READ:
		return repeat_read(qp, packet, response);
	case SMW_KIND_ATOMIC:
		return repeat_atomic(qp, packet, response);
	case SMW_KIND_ATOMIC_WRITE:
		return repeat_atomic_write(qp, packet, response);
	default:
		/* Its acknowledgment was lost: say again how far we are. */
		answer(response, SMW_RESPONSE_ACK, SMW_AETH_ACK_NO_CREDIT,
		       smw_psn_add(rsp->psn, SMW_PSN_MASK), rsp->msn);
		return SMW_OK;
	}
}

/* Ask once for what is missing; until it comes the rest is dropped. */
static void report_gap(struct smw_qp *qp, struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;

	smw_count(qp->link, SMW_COUNT_OUT_OF_SEQUENCE);
	if (rsp->nak_sent)
		return;
	rsp->nak_sent = true;
	answer(response, SMW_RESPONSE_ACK, SMW_AETH_NAK | SMW_NAK_PSN_SEQUENCE,
	       rsp->psn, rsp->msn);
}

void smw_responder_receive(struct smw_qp *qp, const struct smw_packet *packet,
			   struct smw_cursor *payload, struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	enum smw_reason reason;

	response->kind = SMW_RESPONSE_NONE;
	if (!takes_requests(qp)) {
		smw_count(qp->link, SMW_COUNT_DROPPED);
		return;
	}
	reason = smw_respond_psn(packet->psn, rsp->psn);
	if (reason == SMW_OUT_OF_SEQUENCE) {
		report_gap(qp, response);
		return;
	}
	if (reason == SMW_DUPLICATE) {
		reason = repeat(qp, packet, response);
	} else {
		rsp->nak_sent = false;
		reason = execute(qp, packet, payload, response);
	}
	if (reason)
		refuse(qp, packet, packet->psn, reason, response);
}

bool smw_responder_read(struct smw_qp *qp, const struct smw_rd_atomic *read, u32 psn,
			u32 bytes, struct smw_cursor *source,
			struct smw_response *response)
{
	u32 done = ((psn - read->first_psn) & SMW_PSN_MASK) * qp->mtu;
	enum smw_reason reason = SMW_DROP_STATE;
	struct smw_mr *mr = NULL;
	u64 offset;

	if (takes_requests(qp))
		mr = begin_access(qp, SMW_REMOTE_READ, read->rkey, read->va + done, bytes,
				  &offset, &reason);
	if (mr) {
		smw_cursor_region(source, mr, offset);
		return true;
	}
	refuse(qp, NULL, psn, reason, response);
	return false;
}

void smw_responder_flush(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;
	enum smw_reason reason;
	u32 slots;

	spin_lock_bh(&rsp->lock);
	/* At most a ring full: a hostile user may go on producing. */
	for (slots = rsp->ring.mask + 1; slots; slots--) {
		if (smw_qp_state(qp) != IB_QPS_ERR)
			break;
		if (!rsp->have_receive && !smw_wqe_fetch_receive(qp, &reason))
			break;
		complete_receive(qp, NULL, IB_WC_WR_FLUSH_ERR);
	}
	rsp->message = SMW_MESSAGE_NONE;
	rsp->stream = NULL;
	spin_unlock_bh(&rsp->lock);
}

void smw_responder_reset(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;

	smw_ring_reset(&rsp->ring);
	rsp->have_receive = false;
	rsp->message = SMW_MESSAGE_NONE;
	rsp->nak_sent = false;
	rsp->psn = 0;
	rsp->msn = 0;
	rsp->offset = 0;
	rsp->stream = NULL;
	rsp->rd_atomic_next = 0;
	memset(rsp->rd_atomics, 0, rsp->rd_atomic_count * sizeof(*rsp->rd_atomics));
}
