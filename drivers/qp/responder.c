// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/responder.h>

#include <smw/psn.h>
#include <smw/rd_atomic.h>
#include <smw/retry.h>
#include <smw/wqe.h>

static bool takes_requests(const struct smw_qp *qp)
{
	switch (smw_qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

static void describe_datagram(const struct smw_qp *qp, const struct smw_packet *packet,
			      struct ib_uverbs_wc *wc)
{
	wc->wc_flags |= SMW_WC_GRH;
	wc->src_qp = packet->source_qpn;
	wc->sl = packet->grh[0] >> 4 == 6 ? SMW_SL_IPV6 : SMW_SL_IPV4;
	if (qp->is_kernel && packet->vlan_id != SMW_VLAN_NONE) {
		wc->wc_flags |= SMW_WC_WITH_VLAN;
		wc->slid = packet->vlan_id;
	}
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

	if (packet && packet->op->flags & SMW_OP_DETH)
		describe_datagram(qp, packet, &wc);
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
	if (!smw_cq_post(qp->recv_cq, &qp->ibqp, &wc,
			 status || (packet && packet->solicited)))
		smw_qp_lost_completion(qp, status);
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
	default:
		break;
	}
}

/*
 * An error that ends the connection: go to ERR, complete, and tell. Who sees the
 * completion finds the state; no flush comes before it, for that takes the lock.
 */
static void fail(struct smw_qp *qp, const struct smw_packet *packet,
		 const struct smw_reason_info *info)
{
	smw_qp_fail(qp);
	if (info->recv_status && qp->responder.have_receive)
		complete_receive(qp, packet, info->recv_status);
	raise_event(qp, info->event);
}

static void count_reason(struct smw_qp *qp, const struct smw_reason_info *info)
{
	if (info->counter < SMW_COUNTERS)
		smw_count(qp->link, info->counter);
}

static void answer_nak(struct smw_qp *qp, const struct smw_reason_info *info, u32 psn,
		       struct smw_response *response)
{
	smw_response_set(response, SMW_RESPONSE_ACK, SMW_AETH_NAK | info->nak, psn,
			 qp->responder.msn);
}

/* Do what the table says of a refused request. */
static void refuse(struct smw_qp *qp, const struct smw_packet *packet, u32 psn,
		   enum smw_reason reason, struct smw_response *response)
{
	const struct smw_reason_info *info = smw_reason_info(reason);
	struct smw_responder *rsp = &qp->responder;

	count_reason(qp, info);
	switch (info->answer) {
	case SMW_ANSWER_RNR:
		rsp->nak_sent = true;
		smw_response_set(response, SMW_RESPONSE_ACK, SMW_AETH_RNR | qp->min_rnr_timer,
				 psn, rsp->msn);
		break;
	case SMW_ANSWER_NAK:
		answer_nak(qp, info, psn, response);
		fail(qp, packet, info);
		break;
	case SMW_ANSWER_SILENT_ERROR:
		fail(qp, packet, info);
		break;
	default:
		break;
	}
}

/*
 * Of a duplicate: the requester may have had its answer long ago, and then does
 * not listen. One that still waits takes the NAK for the end; to the responder it
 * is none, for the request was in order when it was executed.
 */
static void refuse_duplicate(struct smw_qp *qp, u32 psn, enum smw_reason reason,
			     struct smw_response *response)
{
	const struct smw_reason_info *info = smw_reason_info(reason);

	count_reason(qp, info);
	if (info->answer == SMW_ANSWER_NAK)
		answer_nak(qp, info, psn, response);
}

void smw_responder_accepted(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;

	/* Datagrams establish nothing. */
	if (likely(smw_qp_state(qp) != IB_QPS_RTR) || rsp->established ||
	    smw_qp_is_datagram(qp))
		return;
	rsp->established = true;
	smw_qp_event(qp, IB_EVENT_COMM_EST);
}

/* The request was executed: expect the next one, and acknowledge if asked. */
static void finish(struct smw_qp *qp, const struct smw_packet *packet, u8 message,
		   struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	bool end = packet->op->flags & SMW_OP_END;

	smw_responder_accepted(qp);
	rsp->message = end ? SMW_MESSAGE_NONE : message;
	rsp->psn = smw_psn_add(rsp->psn, packet->span);
	if (end)
		rsp->msn = (rsp->msn + 1) & SMW_PSN_MASK;
	if (packet->ack_request)
		smw_response_set(response, SMW_RESPONSE_ACK, SMW_AETH_ACK_NO_CREDIT,
				 smw_psn_add(rsp->psn, SMW_PSN_MASK), rsp->msn);
}

static enum smw_reason take_receive(struct smw_qp *qp)
{
	enum smw_reason reason = SMW_OK;

	if (!qp->responder.have_receive)
		smw_wqe_fetch_receive(qp, &reason);
	return reason;
}

/* A receive's lkeys are of the domain of the queue that it was posted to. */
static const struct ib_pd *receive_pd(const struct smw_qp *qp)
{
	return qp->responder.srq ? qp->responder.srq->ibsrq.pd : qp->ibqp.pd;
}

/* A datagram's payload comes behind the network header that it came with. */
static bool place_grh(struct smw_cursor *target, const u8 *grh)
{
	struct smw_cursor source;

	smw_cursor_flat(&source, (u8 *)grh);
	return smw_copy(target, &source, SMW_GRH_LEN);
}

static enum smw_reason place_in_receive(struct smw_qp *qp, const struct smw_packet *packet,
					struct smw_cursor *payload)
{
	u32 bytes = packet->payload_len + (packet->grh ? SMW_GRH_LEN : 0);
	struct smw_responder *rsp = &qp->responder;
	struct smw_cursor target;

	if (bytes > rsp->receive->length - rsp->offset)
		return SMW_RECV_TOO_SHORT;
	smw_cursor_sges(&target, qp->link, receive_pd(qp), rsp->receive->sge,
			rsp->receive->num_sge, SMW_LOCAL_WRITE, SMW_HOLD_RECEIVE);
	smw_cursor_skip(&target, rsp->offset);
	/* Not in the header's place: the region may be there again, by a rereg. */
	if (!packet->grh || place_grh(&target, packet->grh))
		smw_copy(&target, payload, packet->payload_len);
	smw_cursor_release(&target);
	smw_cursor_release(payload);
	if (target.fault)
		return SMW_RECV_PROTECTION;
	/* The sender's own memory failed: it never sent this. */
	if (payload->fault)
		return SMW_DROP_UNSENT;
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
	reason = place_in_receive(qp, packet, payload);
	if (reason)
		return reason;
	/*
	 * After the payload is placed, before the completion. No region is held any
	 * more: the sender's may be what is invalidated.
	 */
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

static struct smw_access access_of(const struct smw_qp *qp, u32 needed, u32 rkey)
{
	struct smw_access access = {
		.pd = qp->ibqp.pd,
		.owner = &qp->windows,
		.qp_rights = qp->rights,
		.needed = needed,
		.rkey = rkey,
	};

	return access;
}

struct smw_mr *smw_responder_access(struct smw_qp *qp, u32 needed, u32 rkey, u64 va,
				    u64 bytes, u64 *offset, enum smw_reason *reason)
{
	struct smw_access access = access_of(qp, needed, rkey);

	access.va = va;
	access.bytes = bytes;
	return smw_access_begin(qp->link, &access, offset, reason);
}

struct smw_mr *smw_responder_access_whole(struct smw_qp *qp, u32 needed, u32 rkey,
					  enum smw_reason *reason)
{
	struct smw_access access = access_of(qp, needed, rkey);
	u64 offset;

	access.whole = true;
	return smw_access_begin(qp->link, &access, &offset, reason);
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
	mr = smw_responder_access(qp, SMW_REMOTE_WRITE, rsp->rkey, rsp->va + rsp->offset, judged,
				  &offset, &reason);
	if (!mr)
		return reason;
	smw_cursor_region(&target, mr, offset);
	smw_copy(&target, payload, bytes);
	smw_cursor_release(&target);
	smw_cursor_release(payload);
	if (payload->fault)
		return SMW_DROP_UNSENT;
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
	default:
		return smw_rd_atomic_receive(qp, packet, payload, response);
	}
}

static enum smw_reason repeat(struct smw_qp *qp, const struct smw_packet *packet,
			      struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;

	count_reason(qp, smw_reason_info(SMW_DUPLICATE));
	if (packet->op->kind != SMW_KIND_SEND && packet->op->kind != SMW_KIND_WRITE)
		return smw_rd_atomic_repeat(qp, packet, response);
	/* Its acknowledgment was lost: say again how far we are. */
	smw_response_set(response, SMW_RESPONSE_ACK, SMW_AETH_ACK_NO_CREDIT,
			 smw_psn_add(rsp->psn, SMW_PSN_MASK), rsp->msn);
	return SMW_OK;
}

/* Ask once for what is missing; until it comes the rest is dropped. */
static void report_gap(struct smw_qp *qp, struct smw_response *response)
{
	const struct smw_reason_info *info = smw_reason_info(SMW_OUT_OF_SEQUENCE);
	struct smw_responder *rsp = &qp->responder;

	count_reason(qp, info);
	if (rsp->nak_sent)
		return;
	rsp->nak_sent = true;
	answer_nak(qp, info, rsp->psn, response);
}

static void receive_reliable(struct smw_qp *qp, const struct smw_packet *packet,
			     struct smw_cursor *payload, struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;
	enum smw_reason reason;

	reason = smw_respond_psn(packet->psn, rsp->psn);
	if (reason == SMW_OUT_OF_SEQUENCE) {
		report_gap(qp, response);
		return;
	}
	if (reason == SMW_DUPLICATE) {
		reason = repeat(qp, packet, response);
		if (reason)
			refuse_duplicate(qp, packet->psn, reason, response);
		return;
	}
	rsp->nak_sent = false;
	reason = execute(qp, packet, payload, response);
	if (reason)
		refuse(qp, packet, packet->psn, reason, response);
}

/* Count what an unreliable queue pair refuses in silence. */
static void drop(struct smw_qp *qp, const struct smw_packet *packet,
		 enum smw_reason reason)
{
	const struct smw_reason_info *info = smw_reason_info(reason);

	/* The rest of a message that was given up is no mistake of the sender's. */
	if (reason == SMW_RNR || reason == SMW_BAD_ORDER)
		smw_count(qp->link, SMW_COUNT_DROPPED);
	else
		count_reason(qp, info);
	/* The receive itself is at fault: no message will ever fit. */
	if (reason == SMW_RECV_PROTECTION)
		fail(qp, packet, info);
}

/*
 * A gap ends the message that it is in; the first packet of a message is taken
 * whatever came before (IBTA 9.8.2.1). What is refused is dropped in silence,
 * with the rest of its message (9.9.4), and the receive waits for the next one,
 * also where it came from a shared queue.
 */
static bool receive_unreliable(struct smw_qp *qp, const struct smw_packet *packet,
			       struct smw_cursor *payload)
{
	struct smw_responder *rsp = &qp->responder;
	bool gap = packet->psn != rsp->psn;
	struct smw_response nobody_waits_for;
	enum smw_reason reason;

	if (gap)
		smw_count(qp->link, SMW_COUNT_OUT_OF_SEQUENCE);
	if (gap || packet->op->flags & SMW_OP_START)
		rsp->message = SMW_MESSAGE_NONE;
	rsp->psn = packet->psn;
	reason = execute(qp, packet, payload, &nobody_waits_for);
	if (!reason)
		return true;
	rsp->message = SMW_MESSAGE_NONE;
	rsp->psn = smw_psn_add(packet->psn, packet->span);
	drop(qp, packet, reason);
	return false;
}

/*
 * Each datagram stands for itself. One without a receive, or longer than it, is
 * dropped, and the receive waits for the next one.
 */
static bool receive_datagram(struct smw_qp *qp, const struct smw_packet *packet,
			     struct smw_cursor *payload)
{
	enum smw_reason reason = SMW_DROP_QKEY;
	struct smw_response nobody_waits_for;

	if (packet->qkey == qp->qkey)
		reason = execute(qp, packet, payload, &nobody_waits_for);
	if (reason)
		drop(qp, packet, reason);
	return !reason;
}

bool smw_responder_receive(struct smw_qp *qp, const struct smw_packet *packet,
			   struct smw_cursor *payload, struct smw_response *response)
{
	response->kind = SMW_RESPONSE_NONE;
	if (!takes_requests(qp)) {
		smw_count(qp->link, SMW_COUNT_DROPPED);
		return false;
	}
	if (smw_qp_is_datagram(qp))
		return receive_datagram(qp, packet, payload);
	if (smw_qp_is_unreliable(qp))
		return receive_unreliable(qp, packet, payload);
	receive_reliable(qp, packet, payload, response);
	return true;
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
		mr = smw_responder_access(qp, SMW_REMOTE_READ, read->rkey, read->va + done, bytes,
					  &offset, &reason);
	if (mr) {
		smw_cursor_region(source, mr, offset);
		return true;
	}
	if (read->repeated)
		refuse_duplicate(qp, psn, reason, response);
	else
		refuse(qp, NULL, psn, reason, response);
	return false;
}

bool smw_responder_flush(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;
	u32 left = SMW_FLUSH_TURN;
	enum smw_reason reason;
	bool last = false;

	spin_lock_bh(&rsp->lock);
	/* Shared receives are not this queue pair's until it takes them. */
	while (left && smw_qp_state(qp) == IB_QPS_ERR &&
	       (rsp->have_receive || (!rsp->srq && smw_wqe_fetch_receive(qp, &reason)))) {
		complete_receive(qp, NULL, IB_WC_WR_FLUSH_ERR);
		left--;
	}
	if (smw_qp_state(qp) == IB_QPS_ERR) {
		last = rsp->srq && !rsp->last_raised;
		rsp->last_raised = true;
		rsp->message = SMW_MESSAGE_NONE;
		rsp->stream = NULL;
		__skb_queue_purge(&rsp->backlog);
	}
	spin_unlock_bh(&rsp->lock);
	/* It takes no more receives from the shared queue (ibv_get_async_event(3)). */
	if (last)
		smw_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	return !left;
}

void smw_responder_reset(struct smw_qp *qp)
{
	struct smw_responder *rsp = &qp->responder;

	if (!rsp->srq)
		smw_ring_reset(&rsp->ring);
	rsp->have_receive = false;
	rsp->last_raised = false;
	rsp->established = false;
	rsp->message = SMW_MESSAGE_NONE;
	rsp->nak_sent = false;
	rsp->psn = 0;
	rsp->msn = 0;
	rsp->offset = 0;
	rsp->stream = NULL;
	/* Packets may still arrive in RESET, and look whether others wait. */
	__skb_queue_purge(&rsp->backlog);
	rsp->rd_atomic_next = 0;
	memset(rsp->rd_atomics, 0, rsp->rd_atomic_count * sizeof(*rsp->rd_atomics));
}
