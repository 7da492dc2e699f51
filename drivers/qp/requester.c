// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/requester.h>

#include <smw/ah.h>
#include <smw/carrier.h>
#include <smw/completer.h>
#include <smw/psn.h>
#include <smw/rd_atomic.h>
#include <smw/responder.h>
#include <smw/retry.h>
#include <smw/work.h>
#include <smw/wqe.h>

/* An acknowledgment is asked for at least this often, in packets. */
#define ACK_INTERVAL 32
/* A READ of more packets than this goes alone: at most 2^23 PSNs are out. */
#define ALONE_PACKETS BIT(22)
/* What a step costs besides its bytes, in bytes of SMW_TURN_BYTES. */
#define STEP_COST 512
/* A work request's Q_Key with this bit set means the queue pair's own (10.2.5). */
#define OWN_QKEY BIT(31)

static u32 in_flight(const struct smw_requester *req)
{
	return (req->psn - req->una) & SMW_PSN_MASK;
}

static void next_request(struct smw_requester *req)
{
	req->sending = smw_ring_next(&req->ring, req->sending);
	req->offset = 0;
}

static void move_psn(struct smw_requester *req, u32 psn)
{
	req->psn = psn;
	if (in_flight(req) > ((req->highest - req->una) & SMW_PSN_MASK))
		req->highest = psn;
}

/* SQD finishes the message it is in and what has to be sent again. */
static bool may_send(const struct smw_qp *qp)
{
	const struct smw_requester *req = &qp->requester;

	if (req->rnr_wait)
		return false;
	switch (smw_qp_state(qp)) {
	case IB_QPS_RTS:
		return true;
	case IB_QPS_SQD:
		return req->offset || req->psn != req->highest || req->reading;
	default:
		return false;
	}
}

/* The request to work on; local operations that were executed are passed by. */
static struct smw_send *current_request(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	struct smw_send *send;

	for (;;) {
		if (req->sending == req->fetched && !smw_wqe_fetch_send(qp))
			return NULL;
		send = smw_requester_send(req, req->sending);
		if (send->state != SMW_SEND_DONE)
			return send;
		next_request(req);
	}
}

/*
 * Local operations take no PSN, so the window does not bound how many of them wait for
 * one acknowledgment; this does, for it completes them all at once.
 */
static bool is_crowded(const struct smw_requester *req)
{
	return ((req->sending - req->ring.index) & req->ring.mask) >= SMW_FLUSH_TURN;
}

static bool all_before_complete(const struct smw_requester *req)
{
	return req->sending == req->ring.index;
}

/*
 * What was sent last did not ask for its acknowledgment, since more was to
 * follow, and now nothing does: send it again, and ask.
 */
static bool ask_again(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	if (!req->unacked || !in_flight(req))
		return false;
	req->unacked = 0;
	smw_requester_rewind(qp);
	return true;
}

/* An error completes in order: after everything before it. */
static bool settle_fault(struct smw_qp *qp, const struct smw_send *send)
{
	if (!all_before_complete(&qp->requester))
		return ask_again(qp);
	smw_completer_fail(qp, smw_reason_info(send->fault)->send_status);
	return false;
}

/*
 * Local operations are executed once, when their turn comes: an invalidate
 * after everything before it is complete (10.6.5.1), a bind at once unless it
 * is fenced or too many requests wait before it.
 */
static bool execute_local(struct smw_qp *qp, struct smw_send *send)
{
	struct smw_requester *req = &qp->requester;
	bool wait = send->opcode == IB_WR_LOCAL_INV || send->flags & IB_SEND_FENCE;

	if ((wait && !all_before_complete(req)) || is_crowded(req))
		return false;
	if (send->opcode == IB_WR_BIND_MW)
		send->fault = smw_window_bind(qp->link, qp->ibqp.pd, &qp->windows,
					      &send->bind);
	else if (send->opcode == IB_WR_REG_MR)
		send->fault = smw_mr_register(qp->link, qp->ibqp.pd, send->reg_key,
					      send->reg_access);
	else
		send->fault = smw_window_invalidate(qp->link, qp->ibqp.pd, &qp->windows,
						    send->invalidate);
	if (send->fault)
		return true;
	send->state = SMW_SEND_DONE;
	next_request(req);
	smw_completer_advance(qp);
	return true;
}

static bool must_wait(const struct smw_qp *qp, const struct smw_send *send)
{
	const struct smw_requester *req = &qp->requester;

	if (send->state == SMW_SEND_POSTED && send->flags & IB_SEND_FENCE &&
	    req->rd_atomic)
		return true;
	if (smw_send_is_rd_atomic(send) && !send->rd_atomic &&
	    req->rd_atomic >= qp->max_rd_atomic)
		return true;
	if (in_flight(req) && smw_send_is_read(send) &&
	    smw_packet_count(send->length, qp->mtu) > ALONE_PACKETS)
		return true;
	return in_flight(req) >= req->window;
}

/*
 * UC has no READs and atomics: there max_rd_atomic is always 0. On RC it may become 0
 * in SQD, while requests wait.
 */
static bool never_allowed(const struct smw_qp *qp, const struct smw_send *send)
{
	return smw_send_is_rd_atomic(send) && !send->rd_atomic && !qp->max_rd_atomic;
}

/* Give a request its PSNs and its share of the READ and atomic limit. */
static void start_request(struct smw_qp *qp, struct smw_send *send)
{
	struct smw_requester *req = &qp->requester;

	if (send->state == SMW_SEND_POSTED) {
		u32 packets = smw_packet_count(send->length, qp->mtu);

		send->first_psn = req->psn;
		send->last_psn = smw_psn_add(req->psn, packets - 1);
		send->state = SMW_SEND_STARTED;
	}
	if (smw_send_is_rd_atomic(send) && !send->rd_atomic) {
		send->rd_atomic = true;
		req->rd_atomic++;
	}
}

/* Opcodes of a message's packets: in the middle, first, last, only. */
static const u8 request_opcodes[][4] = {
	[IB_WR_RDMA_WRITE] = {
		SMW_RC_WRITE_MIDDLE, SMW_RC_WRITE_FIRST,
		SMW_RC_WRITE_LAST, SMW_RC_WRITE_ONLY },
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		SMW_RC_WRITE_MIDDLE, SMW_RC_WRITE_FIRST,
		SMW_RC_WRITE_LAST_IMM, SMW_RC_WRITE_ONLY_IMM },
	[IB_WR_SEND] = {
		SMW_RC_SEND_MIDDLE, SMW_RC_SEND_FIRST,
		SMW_RC_SEND_LAST, SMW_RC_SEND_ONLY },
	[IB_WR_SEND_WITH_IMM] = {
		SMW_RC_SEND_MIDDLE, SMW_RC_SEND_FIRST,
		SMW_RC_SEND_LAST_IMM, SMW_RC_SEND_ONLY_IMM },
	[IB_WR_SEND_WITH_INV] = {
		SMW_RC_SEND_MIDDLE, SMW_RC_SEND_FIRST,
		SMW_RC_SEND_LAST_INV, SMW_RC_SEND_ONLY_INV },
	[IB_WR_RDMA_READ] = { [3] = SMW_RC_READ_REQUEST },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { [3] = SMW_RC_COMPARE_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { [3] = SMW_RC_FETCH_ADD },
	[IB_WR_FLUSH] = { [3] = SMW_RC_FLUSH },
	[IB_WR_ATOMIC_WRITE] = { [3] = SMW_RC_ATOMIC_WRITE },
};

static u8 request_opcode(const struct smw_send *send, u32 offset, u32 chunk)
{
	bool first = !offset || smw_send_is_read(send);
	bool last = offset + chunk == send->length;

	return request_opcodes[send->opcode][first | last << 1];
}

/*
 * Is an acknowledgment of this packet wanted now? Yes at the end of a burst:
 * where nothing follows that could carry the request itself, or where what
 * follows has to wait for it.
 */
static bool wants_ack(struct smw_qp *qp, bool last)
{
	struct smw_requester *req = &qp->requester;
	u32 next = smw_ring_next(&req->ring, req->sending);
	const struct smw_send *send;

	if (++req->unacked >= min_t(u32, ACK_INTERVAL, req->window / 2) ||
	    req->psn != req->highest ||
	    smw_qp_state(qp) != IB_QPS_RTS)
		return true;
	if (!last)
		return false;
	if (next == req->fetched && !smw_wqe_fetch_send(qp))
		return true;
	send = smw_requester_send(req, next);
	return send->fault || smw_send_is_local(send) || smw_send_is_rd_atomic(send) ||
	       send->flags & IB_SEND_FENCE;
}

static void fill_packet(struct smw_qp *qp, const struct smw_send *send, u32 chunk,
			struct smw_packet *packet)
{
	u32 offset = qp->requester.offset;

	packet->opcode = qp->transport | request_opcode(send, offset, chunk);
	packet->op = smw_opcode_lookup(packet->opcode);
	packet->solicited = send->flags & IB_SEND_SOLICITED &&
			    packet->op->flags & SMW_OP_RECV;
	packet->pkey = SMW_PKEY;
	packet->qpn = qp->dest_qpn;
	packet->psn = qp->requester.psn;
	packet->imm = send->imm;
	packet->invalidate = send->invalidate;
	if (packet->op->flags & SMW_OP_DETH) {
		packet->qpn = send->remote_qpn;
		packet->source_qpn = qp->ibqp.qp_num;
		packet->qkey = send->remote_qkey & OWN_QKEY ? qp->qkey : send->remote_qkey;
	}
	if (packet->op->flags & (SMW_OP_RETH | SMW_OP_ATOMICETH)) {
		packet->va = send->va + (smw_send_is_read(send) ? offset : 0);
		packet->rkey = send->rkey;
		packet->length = send->length - offset;
		packet->compare = send->compare;
		packet->swap_add = send->swap_add;
	}
	if (packet->op->flags & SMW_OP_FETH) {
		packet->placement = send->placement;
		packet->selectivity = send->selectivity;
		packet->length = send->range;
	}
	if (packet->op->flags & SMW_OP_PAYLOAD)
		packet->payload_len = chunk;
}

static void payload_cursor(struct smw_qp *qp, struct smw_send *send,
			   struct smw_cursor *cursor)
{
	if (send->flags & IB_SEND_INLINE)
		smw_cursor_flat(cursor, send->inline_data);
	else
		smw_cursor_sges(cursor, qp->link, qp->ibqp.pd, send->sge,
				send->num_sge, 0, SMW_HOLD_SEND);
	smw_cursor_skip(cursor, qp->requester.offset);
}

/* A packet, or a run of them, was handed to a carrier: move on. */
static void sent(struct smw_qp *qp, const struct smw_send *send, u32 chunk, u32 span)
{
	struct smw_requester *req = &qp->requester;
	bool whole = smw_send_is_rd_atomic(send);

	move_psn(req, whole ? smw_psn_add(send->last_psn, 1) :
			      smw_psn_add(req->psn, span));
	req->offset += chunk;
	if (whole || req->offset == send->length)
		next_request(req);
	if (smw_qp_is_unreliable(qp))
		smw_completer_sent(qp);
}

static void transmit_wire(struct smw_qp *qp, struct smw_send *send)
{
	struct smw_requester *req = &qp->requester;
	u32 chunk = smw_send_is_rd_atomic(send) ? send->length - req->offset :
		    min(send->length - req->offset, qp->mtu);
	struct smw_packet packet = { .span = 1 };
	struct smw_cursor payload;

	fill_packet(qp, send, chunk, &packet);
	packet.ack_request = !smw_qp_is_unreliable(qp) &&
			     wants_ack(qp, packet.op->flags & SMW_OP_END);
	payload_cursor(qp, send, &payload);
	if (!smw_carrier_send(qp, SMW_ROUTE_REQUESTER, &packet,
			      packet.payload_len ? &payload : NULL)) {
		send->fault = payload.fault;
		return;
	}
	if (packet.ack_request)
		req->unacked = 0;
	sent(qp, send, chunk, 1);
	smw_work_arm_retransmit(qp);
}

/* UD: a message is a packet, and each goes its own way. */
static void transmit_datagram(struct smw_qp *qp, struct smw_send *send)
{
	struct smw_packet packet = { .span = 1 };
	struct smw_ah_path *path;
	struct smw_cursor payload;

	fill_packet(qp, send, send->length, &packet);
	payload_cursor(qp, send, &payload);
	rcu_read_lock();
	path = smw_ah_find(send->ah, qp->ibqp.pd);
	if (!path)
		send->fault = SMW_WQE_AH;
	else if (!smw_carrier_send_datagram(qp->link, path, &packet,
					    packet.payload_len ? &payload : NULL))
		send->fault = payload.fault;
	rcu_read_unlock();
	if (!send->fault)
		sent(qp, send, send->length, 1);
}

/* False where the peer answers a READ from the wire, which this must not overtake. */
static bool exchange_local(struct smw_qp *peer, const struct smw_packet *packet,
			   struct smw_cursor *payload, struct smw_response *response)
{
	bool idle;

	spin_lock(&peer->responder.lock);
	idle = !peer->responder.stream && skb_queue_empty(&peer->responder.backlog);
	if (idle)
		smw_responder_receive(peer, packet, payload, response);
	spin_unlock(&peer->responder.lock);
	return idle;
}

/*
 * Take the answer of the direct path, as from the wire. None, or one that does
 * not fit what was asked, is a loss: the timer sees to it.
 */
static void answered(struct smw_qp *qp, const struct smw_response *response)
{
	struct smw_requester *req = &qp->requester;
	u32 una = req->una;

	if (response->kind == SMW_RESPONSE_READ)
		req->reading = true;
	else if (response->kind != SMW_RESPONSE_NONE)
		smw_completer_response(qp, response);
	/*
	 * The run began with what had come by packets before, whose acknowledgment was
	 * lost: that is what was answered. Nobody carries the rest.
	 */
	if (req->una != una && in_flight(req))
		smw_requester_rewind(qp);
	if (in_flight(req) && !req->reading)
		smw_work_arm_retransmit(qp);
}

/* False where nothing was done, since only the wire has a queue at the peer. */
static bool transmit_local(struct smw_qp *qp, struct smw_qp *peer, struct smw_send *send)
{
	struct smw_requester *req = &qp->requester;
	u32 chunk = smw_send_is_rd_atomic(send) ? send->length - req->offset :
		    min_t(u32, send->length - req->offset, SMW_TURN_BYTES);
	struct smw_packet packet = { .ack_request = true };
	struct smw_response response;
	struct smw_cursor payload;
	bool taken;

	fill_packet(qp, send, chunk, &packet);
	packet.span = smw_packet_count(packet.payload_len, qp->mtu);
	payload_cursor(qp, send, &payload);
	taken = exchange_local(peer, &packet, &payload, &response);
	smw_cursor_release(&payload);
	if (!taken)
		return false;
	if (payload.fault) {
		send->fault = payload.fault;
		return true;
	}
	smw_count(qp->link, SMW_COUNT_SENT_LOCAL);
	sent(qp, send, chunk, packet.span);
	answered(qp, &response);
	return true;
}

/* To a queue pair of this kernel, if that is where it goes. */
static bool try_local(struct smw_qp *qp, struct smw_send *send)
{
	struct smw_qp *peer;
	bool taken;

	/*
	 * What is on the wire must not be overtaken. On UC nothing tells how far
	 * that is: where the path changes, what comes late counts as a gap.
	 */
	if (in_flight(&qp->requester))
		return false;
	peer = smw_carrier_peer(qp);
	if (!peer)
		return false;
	taken = transmit_local(qp, peer, send);
	smw_hold_drop(SMW_HOLD_PEER);
	return taken;
}

static void spend(u32 *budget, u32 bytes)
{
	u32 cost = min_t(u32, bytes, SMW_TURN_BYTES) + STEP_COST;

	*budget -= min(*budget, cost);
}

static bool transmit(struct smw_qp *qp, struct smw_send *send, u32 *budget)
{
	u32 left = send->length - qp->requester.offset;

	if (must_wait(qp, send))
		return false;
	start_request(qp, send);
	if (smw_qp_is_datagram(qp)) {
		spend(budget, left);
		transmit_datagram(qp, send);
	} else if (try_local(qp, send)) {
		spend(budget, left);
	} else {
		spend(budget, qp->mtu);
		transmit_wire(qp, send);
	}
	return true;
}

/* Copy the next part of the READ at the head of the queue from the peer. */
static void read_part(struct smw_qp *qp, struct smw_qp *peer, u32 bytes, u32 offset)
{
	struct smw_requester *req = &qp->requester;
	const struct smw_send *send = smw_requester_send(req, req->ring.index);
	struct smw_read_response part = {
		.psn = req->una,
		.span = smw_packet_count(bytes, qp->mtu),
		.bytes = bytes,
		.syndrome = SMW_AETH_ACK_NO_CREDIT,
		.last = offset + bytes == smw_send_response_length(send),
	};
	struct smw_response refusal = {};
	struct smw_rd_atomic *read;
	struct smw_cursor source;

	smw_cursor_flat(&source, NULL);
	spin_lock(&peer->responder.lock);
	read = smw_rd_atomic_find_read(peer, req->una);
	if (!read)
		req->reading = false;
	else if (!bytes || smw_responder_read(peer, read, req->una, bytes, &source, &refusal))
		smw_completer_read(qp, &part, &source);
	smw_cursor_release(&source);
	spin_unlock(&peer->responder.lock);
	if (refusal.kind == SMW_RESPONSE_ACK)
		smw_completer_response(qp, &refusal);
	if (part.last)
		req->reading = false;
}

static bool read_local(struct smw_qp *qp, u32 *budget)
{
	struct smw_requester *req = &qp->requester;
	const struct smw_send *send = smw_requester_send(req, req->ring.index);
	u32 offset = ((req->una - send->first_psn) & SMW_PSN_MASK) * qp->mtu;
	u32 bytes = min_t(u32, smw_send_response_length(send) - offset, SMW_TURN_BYTES);
	struct smw_qp *peer;

	/* Responses that came by the wire have ended it. */
	if (req->una == req->psn) {
		req->reading = false;
		return true;
	}
	peer = smw_carrier_peer(qp);
	spend(budget, bytes);
	if (peer) {
		read_part(qp, peer, bytes, offset);
		smw_hold_drop(SMW_HOLD_PEER);
	} else {
		req->reading = false;
	}
	/* Given up half way: ask again, by whatever way there is now. */
	if (!req->reading && req->una != req->psn)
		smw_requester_rewind(qp);
	return true;
}

/* One step of work; false where there is none that can be done now. */
static bool step(struct smw_qp *qp, u32 *budget)
{
	struct smw_send *send;

	if (!may_send(qp))
		return smw_qp_state(qp) == IB_QPS_SQD && ask_again(qp);
	if (qp->requester.reading)
		return read_local(qp, budget);
	send = current_request(qp);
	if (!send)
		return false;
	if (!send->fault && never_allowed(qp, send))
		send->fault = SMW_WQE_RD_ATOMIC;
	if (send->fault)
		return settle_fault(qp, send);
	if (!smw_send_is_local(send))
		return transmit(qp, send, budget);
	spend(budget, 0);
	return execute_local(qp, send);
}

bool smw_requester_run(struct smw_qp *qp)
{
	u32 budget = SMW_TURN_BYTES;

	while (step(qp, &budget))
		if (!budget)
			return true;
	smw_completer_check_drained(qp);
	return false;
}

/* Does this request hold the oldest unacknowledged PSN, or anything later? */
static bool at_una(const struct smw_requester *req, const struct smw_send *send)
{
	if (send->state == SMW_SEND_DONE)
		return false;
	return send->state == SMW_SEND_POSTED ||
	       smw_psn_diff(send->last_psn, req->una) >= 0;
}

void smw_requester_rewind(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	struct smw_send *send = NULL;
	u32 slot;

	req->reading = false;
	req->psn = req->una;
	req->offset = 0;
	for (slot = req->ring.index; slot != req->fetched;
	     slot = smw_ring_next(&req->ring, slot)) {
		send = smw_requester_send(req, slot);
		if (at_una(req, send))
			break;
	}
	req->sending = slot;
	if (slot != req->fetched && send->state == SMW_SEND_STARTED)
		req->offset = ((req->una - send->first_psn) & SMW_PSN_MASK) * qp->mtu;
}

void smw_requester_retry(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	if (!req->retries) {
		smw_count(qp->link, SMW_COUNT_RETRY_EXCEEDED);
		smw_completer_fail(qp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	req->retries--;
	req->window = max_t(u32, SMW_WINDOW_MIN, req->window / 2);
	smw_requester_rewind(qp);
	req->retransmitting = true;
}

bool smw_requester_flush(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	u32 left = SMW_FLUSH_TURN;

	spin_lock_bh(&req->lock);
	while (left && smw_requester_flushes(qp) &&
	       (req->ring.index != req->fetched || smw_wqe_fetch_send(qp))) {
		smw_completer_flush_one(qp);
		left--;
	}
	spin_unlock_bh(&req->lock);
	return !left;
}

void smw_requester_discard(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	u32 producer;

	spin_lock_bh(&req->lock);
	producer = smw_ring_user_producer(&req->ring);
	if (smw_qp_state(qp) < IB_QPS_RTS) {
		smw_ring_consume(&req->ring, producer);
		req->fetched = producer;
		req->sending = producer;
	}
	spin_unlock_bh(&req->lock);
}

void smw_requester_reset(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	smw_ring_reset(&req->ring);
	req->fetched = 0;
	req->sending = 0;
	req->offset = 0;
	req->psn = 0;
	req->una = 0;
	req->highest = 0;
	req->unacked = 0;
	req->rd_atomic = 0;
	req->rnr_repeated = 0;
	req->timer_armed = false;
	req->rnr_wait = false;
	req->retransmitting = false;
	req->reading = false;
}
