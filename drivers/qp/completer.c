// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/completer.h>

#include <smw/psn.h>
#include <smw/requester.h>
#include <smw/retry.h>
#include <smw/work.h>
#include <smw/wqe.h>

/* Completion opcode of a work request, as user space reads it. */
static const u8 completion_opcodes[] = {
	[IB_WR_RDMA_WRITE] = IB_UVERBS_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_UVERBS_WC_RDMA_WRITE,
	[IB_WR_SEND] = IB_UVERBS_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_UVERBS_WC_SEND,
	[IB_WR_SEND_WITH_INV] = IB_UVERBS_WC_SEND,
	[IB_WR_RDMA_READ] = IB_UVERBS_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_UVERBS_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_UVERBS_WC_FETCH_ADD,
	[IB_WR_FLUSH] = IB_UVERBS_WC_FLUSH,
	[IB_WR_ATOMIC_WRITE] = IB_UVERBS_WC_ATOMIC_WRITE,
	[IB_WR_BIND_MW] = IB_UVERBS_WC_BIND_MW,
	[IB_WR_LOCAL_INV] = IB_UVERBS_WC_LOCAL_INV,
	[IB_WR_REG_MR] = IB_WC_REG_MR,
};

static u32 completion_opcode(const struct smw_send *send)
{
	return send->opcode < ARRAY_SIZE(completion_opcodes) ?
	       completion_opcodes[send->opcode] : IB_UVERBS_WC_SEND;
}

static void post_completion(struct smw_qp *qp, const struct smw_send *send,
			    enum ib_wc_status status)
{
	struct ib_uverbs_wc wc = {
		.wr_id = send->wr_id,
		.status = status,
		.opcode = completion_opcode(send),
		.qp_num = qp->ibqp.qp_num,
		.port_num = SMW_PORT,
	};

	/* An error is reported even if the request was unsignaled (10.7.3.1). */
	if (!status && !qp->sq_signal_all && !(send->flags & IB_SEND_SIGNALED))
		return;
	if (!status && smw_send_is_rd_atomic(send))
		wc.byte_len = send->length;
	if (!smw_cq_post(qp->send_cq, &qp->ibqp, &wc, status))
		smw_qp_lost_completion(qp, status);
}

static void complete_oldest(struct smw_qp *qp, enum ib_wc_status status)
{
	struct smw_requester *req = &qp->requester;
	struct smw_send *send = smw_requester_send(req, req->ring.index);
	u32 next = smw_ring_next(&req->ring, req->ring.index);

	if (send->rd_atomic)
		req->rd_atomic--;
	send->rd_atomic = false;
	if (req->sending == req->ring.index) {
		req->sending = next;
		req->offset = 0;
	}
	/* Who sees the completion may post in its place at once. */
	smw_ring_consume(&req->ring, next);
	post_completion(qp, send, status);
}

void smw_completer_flush_one(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	complete_oldest(qp, IB_WC_WR_FLUSH_ERR);
	/* Nothing is in flight any more, for the timer's sake. */
	req->una = req->highest;
	req->psn = req->highest;
	req->reading = false;
}

void smw_completer_fail(struct smw_qp *qp, enum ib_wc_status status)
{
	struct smw_requester *req = &qp->requester;
	/* The first error counts; what comes after it is flushed. */
	bool first = !smw_requester_flushes(qp);

	req->reading = false;
	/*
	 * Who sees the completion finds the state that it tells of, and may leave it. No
	 * flush comes before it, for whoever flushes waits for the lock.
	 */
	smw_qp_fail_send(qp);
	if (first && req->ring.index != req->fetched)
		complete_oldest(qp, status);
}

static bool is_complete(const struct smw_requester *req, const struct smw_send *send)
{
	if (send->state == SMW_SEND_DONE)
		return true;
	return send->state == SMW_SEND_STARTED &&
	       smw_psn_diff(req->una, send->last_psn) > 0;
}

void smw_completer_advance(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	while (req->ring.index != req->fetched &&
	       is_complete(req, smw_requester_send(req, req->ring.index)))
		complete_oldest(qp, IB_WC_SUCCESS);
}

void smw_completer_check_drained(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;

	if (smw_qp_state(qp) != IB_QPS_SQD || req->drained ||
	    req->una != req->highest || req->offset)
		return;
	req->drained = true;
	if (req->notify_drained)
		smw_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

void smw_completer_sent(struct smw_qp *qp)
{
	qp->requester.una = qp->requester.psn;
	smw_completer_advance(qp);
}

/* Move the oldest unacknowledged PSN; retry budgets begin anew. */
static void set_una(struct smw_qp *qp, u32 una)
{
	struct smw_requester *req = &qp->requester;

	if (una == req->una)
		return;
	req->window = min_t(u32, SMW_WINDOW_MAX,
			    req->window + ((una - req->una) & SMW_PSN_MASK));
	req->una = una;
	req->progress++;
	req->retries = qp->retry_cnt;
	req->rnr_retries = qp->rnr_retry;
	req->rnr_repeated = 0;
	req->rnr_wait = false;
	req->retransmitting = false;
	smw_completer_advance(qp);
	/* Acknowledged beyond what was sent again: skip that. */
	if (smw_psn_diff(una, req->psn) > 0)
		smw_requester_rewind(qp);
}

/*
 * PSNs before @limit were received. That says nothing of READ data and atomic
 * results on the way back: the acknowledgment stops at the first one missing.
 */
static u32 acknowledged(const struct smw_requester *req, u32 limit)
{
	const struct smw_send *send;
	u32 slot;

	if (!req->rd_atomic || limit == req->una)
		return limit;	/* the common cases, in one look */
	for (slot = req->ring.index; slot != req->fetched;
	     slot = smw_ring_next(&req->ring, slot)) {
		send = smw_requester_send(req, slot);
		if (!send->rd_atomic)
			continue;
		if (smw_psn_diff(send->first_psn, limit) >= 0)
			return limit;
		return smw_psn_diff(send->first_psn, req->una) > 0 ?
		       send->first_psn : req->una;
	}
	return limit;
}

/* Something was lost: send again from the oldest unacknowledged PSN. */
static void go_back(struct smw_qp *qp)
{
	if (!qp->requester.retransmitting)
		smw_requester_retry(qp);
}

static void acknowledge_before(struct smw_qp *qp, u32 limit)
{
	u32 una = acknowledged(&qp->requester, limit);

	set_una(qp, una);
	if (una != limit)
		go_back(qp);
}

/* IBTA 9.7.5.2.8. */
static void wait_for_receive(struct smw_qp *qp, u8 timer)
{
	struct smw_requester *req = &qp->requester;
	u64 wait = smw_rnr_timer_ns(timer);

	smw_count(qp->link, SMW_COUNT_RNR_NAK_RECEIVED);
	/* Nothing was sent since the last one: the wire brought it twice. */
	if (req->rnr_wait)
		return;
	if (qp->rnr_retry == SMW_RNR_RETRY_FOREVER) {
		wait = smw_rnr_wait_ns(timer, req->rnr_repeated++);
	} else {
		if (!req->rnr_retries) {
			smw_count(qp->link, SMW_COUNT_RNR_RETRY_EXCEEDED);
			smw_completer_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		req->rnr_retries--;
	}
	smw_count(qp->link, SMW_COUNT_RNR_RETRY);
	/* The responder is alive: its answer is progress for the transport timer. */
	req->progress++;
	req->retries = qp->retry_cnt;
	smw_requester_rewind(qp);
	smw_work_start_rnr(qp, wait);
}

static void refused(struct smw_qp *qp, u8 code)
{
	switch (code) {
	case SMW_NAK_PSN_SEQUENCE:
		smw_count(qp->link, SMW_COUNT_PACKET_SEQ_ERROR);
		go_back(qp);
		break;
	case SMW_NAK_INVALID_REQUEST:
		smw_completer_fail(qp, IB_WC_REM_INV_REQ_ERR);
		break;
	case SMW_NAK_REMOTE_ACCESS:
		smw_count(qp->link, SMW_COUNT_REMOTE_ACCESS_ERROR);
		smw_completer_fail(qp, IB_WC_REM_ACCESS_ERR);
		break;
	case SMW_NAK_REMOTE_OPERATIONAL:
		smw_completer_fail(qp, IB_WC_REM_OP_ERR);
		break;
	default:
		break;	/* reserved codes are ignored */
	}
}

static void take_ack(struct smw_qp *qp, const struct smw_response *response)
{
	u8 value = response->syndrome & SMW_AETH_VALUE_MASK;

	switch (response->syndrome & SMW_AETH_KIND_MASK) {
	case SMW_AETH_ACK:
		acknowledge_before(qp, smw_psn_add(response->psn, 1));
		break;
	case SMW_AETH_RNR:
		acknowledge_before(qp, response->psn);
		if (qp->requester.una == response->psn)
			wait_for_receive(qp, value);
		break;
	case SMW_AETH_NAK:
		acknowledge_before(qp, response->psn);
		/* A READ before it whose response is missing has its turn first. */
		if (qp->requester.una == response->psn)
			refused(qp, value);
		break;
	default:
		break;	/* reserved */
	}
}

/* The request that everything before was completed of, if it wants data. */
static struct smw_send *oldest_rd_atomic(struct smw_requester *req)
{
	struct smw_send *send;

	if (req->ring.index == req->fetched)
		return NULL;
	send = smw_requester_send(req, req->ring.index);
	return send->state == SMW_SEND_STARTED && send->rd_atomic ? send : NULL;
}

/* Write a response's data where the request wants it. */
static bool place(struct smw_qp *qp, const struct smw_send *send, u32 offset,
		  struct smw_cursor *data, u32 bytes)
{
	struct smw_cursor target;

	smw_cursor_sges(&target, qp->link, qp->ibqp.pd, send->sge, send->num_sge,
			SMW_LOCAL_WRITE, SMW_HOLD_SEND);
	smw_cursor_skip(&target, offset);
	smw_copy(&target, data, bytes);
	/* No region is held while completions are told: consumers take their time. */
	smw_cursor_release(&target);
	smw_cursor_release(data);
	if (!target.fault)
		return true;
	smw_completer_fail(qp, smw_reason_info(target.fault)->send_status);
	return false;
}

/* Who refuses sends a NAK; what says so in an answer's place is neither. */
static bool is_positive(u8 syndrome)
{
	return (syndrome & SMW_AETH_KIND_MASK) == SMW_AETH_ACK;
}

static void take_atomic(struct smw_qp *qp, const struct smw_response *response)
{
	struct smw_requester *req = &qp->requester;
	u64 original = response->original;
	struct smw_cursor data;
	struct smw_send *send;

	acknowledge_before(qp, response->psn);
	send = oldest_rd_atomic(req);
	if (req->una != response->psn)
		return;
	if (!send || !smw_send_is_atomic(send) || !is_positive(response->syndrome)) {
		smw_completer_fail(qp, IB_WC_BAD_RESP_ERR);
		return;
	}
	smw_cursor_flat(&data, &original);
	if (place(qp, send, 0, &data, sizeof(original)))
		set_una(qp, smw_psn_add(response->psn, 1));
}

/* Is @psn one that an answer is waited for? Anything else is old or forged. */
static bool is_outstanding(const struct smw_requester *req, u32 psn)
{
	return ((psn - req->una) & SMW_PSN_MASK) <
	       ((req->highest - req->una) & SMW_PSN_MASK);
}

bool smw_completer_response(struct smw_qp *qp, const struct smw_response *response)
{
	enum ib_qp_state state = smw_qp_state(qp);

	if ((state != IB_QPS_RTS && state != IB_QPS_SQD) ||
	    !is_outstanding(&qp->requester, response->psn))
		return false;
	if (response->kind == SMW_RESPONSE_ATOMIC)
		take_atomic(qp, response);
	else
		take_ack(qp, response);
	return true;
}

static bool response_fits(const struct smw_send *send, u32 mtu, u32 offset,
			  const struct smw_read_response *response)
{
	u32 left = smw_send_response_length(send) - offset;

	return is_positive(response->syndrome) &&
	       response->bytes == min_t(u64, left, (u64)response->span * mtu) &&
	       response->last == (response->bytes == left);
}

bool smw_completer_read(struct smw_qp *qp, const struct smw_read_response *response,
			struct smw_cursor *data)
{
	enum ib_qp_state state = smw_qp_state(qp);
	struct smw_requester *req = &qp->requester;
	u32 psn = response->psn;
	struct smw_send *send;
	u32 offset;

	if ((state != IB_QPS_RTS && state != IB_QPS_SQD) || !is_outstanding(req, psn))
		return false;
	if (psn != req->una)
		acknowledge_before(qp, psn);
	send = oldest_rd_atomic(req);
	if (psn != req->una)
		return false;
	if (!send || smw_send_is_atomic(send)) {
		smw_completer_fail(qp, IB_WC_BAD_RESP_ERR);
		return true;
	}
	offset = ((psn - send->first_psn) & SMW_PSN_MASK) * qp->mtu;
	if (!response_fits(send, qp->mtu, offset, response))
		smw_completer_fail(qp, IB_WC_BAD_RESP_ERR);
	else if (place(qp, send, offset, data, response->bytes))
		set_una(qp, smw_psn_add(psn, response->span));
	return true;
}
