// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ring is memory that a hostile process writes at any moment. Here each
 * field of a work request is read from it exactly once, into private memory;
 * everything is judged on the copy.
 */
#include <smw/wqe.h>

#include <smw/requester.h>
#include <smw/respond.h>
#include <smw/srq.h>

static_assert(sizeof(struct smw_sge) == sizeof(struct rxe_sge));
static_assert(offsetof(struct smw_sge, addr) == offsetof(struct rxe_sge, addr));
static_assert(offsetof(struct smw_sge, length) == offsetof(struct rxe_sge, length));
static_assert(offsetof(struct smw_sge, lkey) == offsetof(struct rxe_sge, lkey));
static_assert(SMW_PLACE_GLOBAL == IB_FLUSH_GLOBAL);
static_assert(SMW_PLACE_PERSISTENT == IB_FLUSH_PERSISTENT);
static_assert(SMW_SELECT_RANGE == IB_FLUSH_RANGE);
static_assert(SMW_SELECT_REGION == IB_FLUSH_MR);

/* A copy that the compiler may not turn into later reads of the source. */
static void copy_once(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	barrier();
}

static u64 sges_length(const struct smw_sge *sge, u32 count)
{
	u64 length = 0;

	while (count--)
		length += (sge++)->length;
	return length;
}

static enum smw_reason take_sges(struct smw_qp *qp, struct smw_send *send,
				 const struct rxe_send_wqe *wqe,
				 const struct rxe_send_wqe *shared)
{
	u64 length;

	if (wqe->dma.num_sge > qp->cap.max_send_sge)
		return SMW_WQE_SGES;
	send->num_sge = wqe->dma.num_sge;
	copy_once(send->sge, shared->dma.sge, send->num_sge * sizeof(*send->sge));
	length = sges_length(send->sge, send->num_sge);
	if (length > SMW_MAX_MESSAGE)
		return SMW_WQE_LENGTH;
	send->length = length;
	return SMW_OK;
}

static enum smw_reason take_inline(struct smw_qp *qp, struct smw_send *send,
				   const struct rxe_send_wqe *wqe,
				   const struct rxe_send_wqe *shared)
{
	if (wqe->dma.length > qp->cap.max_inline_data)
		return SMW_WQE_LENGTH;
	send->num_sge = 0;
	send->length = wqe->dma.length;
	copy_once(send->inline_data, shared->dma.inline_data, send->length);
	return SMW_OK;
}

static enum smw_reason take_data(struct smw_qp *qp, struct smw_send *send,
				 const struct rxe_send_wqe *wqe,
				 const struct rxe_send_wqe *shared)
{
	if (send->flags & IB_SEND_INLINE)
		return take_inline(qp, send, wqe, shared);
	return take_sges(qp, send, wqe, shared);
}

/* READ and atomics write to their scatter list: inline has no meaning. */
static enum smw_reason take_target(struct smw_qp *qp, struct smw_send *send,
				   const struct rxe_send_wqe *wqe,
				   const struct rxe_send_wqe *shared)
{
	if (send->flags & IB_SEND_INLINE)
		return SMW_WQE_OPCODE;
	return take_sges(qp, send, wqe, shared);
}

static enum smw_reason take_atomic(struct smw_qp *qp, struct smw_send *send,
				   const struct rxe_send_wqe *wqe,
				   const struct rxe_send_wqe *shared)
{
	enum smw_reason reason = take_target(qp, send, wqe, shared);

	if (reason)
		return reason;
	if (send->length < sizeof(u64))
		return SMW_WQE_LENGTH;
	send->length = sizeof(u64);
	send->va = wqe->wr.wr.atomic.remote_addr;
	send->rkey = wqe->wr.wr.atomic.rkey;
	if (send->opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		send->compare = wqe->wr.wr.atomic.compare_add;
		send->swap_add = wqe->wr.wr.atomic.swap;
	} else {
		send->swap_add = wqe->wr.wr.atomic.compare_add;
	}
	return SMW_OK;
}

static void take_remote(struct smw_send *send, const struct rxe_send_wqe *wqe)
{
	send->va = wqe->wr.wr.rdma.remote_addr;
	send->rkey = wqe->wr.wr.rdma.rkey;
}

/* Its eight bytes are in the work request, whatever the flags say. */
static enum smw_reason take_atomic_write(struct smw_qp *qp, struct smw_send *send,
					 const struct rxe_send_wqe *wqe,
					 const struct rxe_send_wqe *shared)
{
	if (qp->cap.max_inline_data < sizeof(u64))
		return SMW_WQE_OPCODE;
	take_remote(send, wqe);
	send->flags |= IB_SEND_INLINE;
	send->length = sizeof(u64);
	copy_once(send->inline_data, shared->dma.atomic_wr, sizeof(u64));
	return SMW_OK;
}

/*
 * It carries no data, whatever flags and elements say (oA19-2). The provider puts the
 * bytes of its range where those of a message would be.
 */
static enum smw_reason take_flush(struct smw_send *send, const struct rxe_send_wqe *wqe)
{
	send->va = wqe->wr.wr.flush.remote_addr;
	send->rkey = wqe->wr.wr.flush.rkey;
	send->placement = wqe->wr.wr.flush.type;
	send->selectivity = wqe->wr.wr.flush.level;
	send->range = wqe->dma.length;
	return smw_flush_exists(send->placement, send->selectivity, send->range) ?
	       SMW_OK : SMW_WQE_FLUSH;
}

static void take_bind(struct smw_send *send, const struct rxe_send_wqe *wqe)
{
	send->bind.addr = wqe->wr.wr.mw.addr;
	send->bind.length = wqe->wr.wr.mw.length;
	send->bind.lkey = wqe->wr.wr.mw.mr_lkey;
	send->bind.window_key = wqe->wr.wr.mw.mw_rkey;
	send->bind.new_key = wqe->wr.wr.mw.rkey;
	send->bind.rights = wqe->wr.wr.mw.access;
}

/* It makes memory of the kernel's accessible: no user's ring may ask for it. */
static enum smw_reason take_registration(const struct smw_qp *qp, struct smw_send *send,
					 const struct rxe_send_wqe *wqe)
{
	if (!qp->is_kernel)
		return SMW_WQE_OPCODE;
	send->reg_key = wqe->wr.wr.reg.key;
	send->reg_access = wqe->wr.wr.reg.access;
	return SMW_OK;
}

/* Of UD: one packet, to be sent by an address handle. */
static enum smw_reason take_datagram(struct smw_qp *qp, struct smw_send *send,
				     const struct rxe_send_wqe *wqe,
				     const struct rxe_send_wqe *shared)
{
	enum smw_reason reason;

	if (send->opcode == IB_WR_SEND_WITH_IMM)
		send->imm = wqe->wr.ex.imm_data;
	else if (send->opcode != IB_WR_SEND)
		return SMW_WQE_OPCODE;
	send->ah = wqe->wr.wr.ud.ah_num;
	send->remote_qpn = wqe->wr.wr.ud.remote_qpn;
	send->remote_qkey = wqe->wr.wr.ud.remote_qkey;
	reason = take_data(qp, send, wqe, shared);
	if (!reason && send->length > READ_ONCE(qp->link->mtu))
		return SMW_WQE_LENGTH;
	return reason;
}

/* What is allowed is listed; anything else is a fault. */
static enum smw_reason take_request(struct smw_qp *qp, struct smw_send *send,
				    const struct rxe_send_wqe *wqe,
				    const struct rxe_send_wqe *shared)
{
	switch (send->opcode) {
	case IB_WR_SEND_WITH_INV:
		if (smw_qp_is_unreliable(qp))
			return SMW_WQE_OPCODE;
		send->invalidate = wqe->wr.ex.invalidate_rkey;
		return take_data(qp, send, wqe, shared);
	case IB_WR_SEND_WITH_IMM:
		send->imm = wqe->wr.ex.imm_data;
		return take_data(qp, send, wqe, shared);
	case IB_WR_SEND:
		return take_data(qp, send, wqe, shared);
	case IB_WR_RDMA_WRITE_WITH_IMM:
		send->imm = wqe->wr.ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
		take_remote(send, wqe);
		return take_data(qp, send, wqe, shared);
	case IB_WR_RDMA_READ:
		take_remote(send, wqe);
		return take_target(qp, send, wqe, shared);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return take_atomic(qp, send, wqe, shared);
	case IB_WR_ATOMIC_WRITE:
		return take_atomic_write(qp, send, wqe, shared);
	case IB_WR_FLUSH:
		return take_flush(send, wqe);
	case IB_WR_BIND_MW:
		take_bind(send, wqe);
		return SMW_OK;
	case IB_WR_LOCAL_INV:
		send->invalidate = wqe->wr.ex.invalidate_rkey;
		return SMW_OK;
	case IB_WR_REG_MR:
		return take_registration(qp, send, wqe);
	default:
		return SMW_WQE_OPCODE;
	}
}

bool smw_wqe_fetch_send(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	struct smw_send *send = smw_requester_send(req, req->fetched);
	const struct rxe_send_wqe *shared;
	struct rxe_send_wqe wqe;

	/* Every slot but one may hold a request that is not complete. */
	if (smw_ring_next(&req->ring, req->fetched) == req->ring.index ||
	    req->fetched == smw_ring_user_producer(&req->ring))
		return false;
	shared = smw_ring_element(&req->ring, req->fetched);
	copy_once(&wqe, shared, sizeof(wqe));
	memset(send, 0, sizeof(*send));
	send->wr_id = wqe.wr.wr_id;
	send->opcode = wqe.wr.opcode;
	send->flags = wqe.wr.send_flags;
	send->fault = smw_qp_is_datagram(qp) ? take_datagram(qp, send, &wqe, shared) :
					       take_request(qp, send, &wqe, shared);
	req->fetched = smw_ring_next(&req->ring, req->fetched);
	return true;
}

bool smw_wqe_take_receive(struct smw_ring *ring, u32 max_sge,
			  struct smw_receive *receive, enum smw_reason *reason)
{
	const struct rxe_recv_wqe *shared;
	struct rxe_recv_wqe wqe;
	u64 length;

	*reason = SMW_RNR;
	if (ring->index == smw_ring_user_producer(ring))
		return false;
	shared = smw_ring_element(ring, ring->index);
	copy_once(&wqe, shared, sizeof(wqe));
	receive->wr_id = wqe.wr_id;
	receive->num_sge = min(wqe.dma.num_sge, max_sge);
	copy_once(receive->sge, shared->dma.sge,
		  receive->num_sge * sizeof(*receive->sge));
	length = sges_length(receive->sge, receive->num_sge);
	receive->length = min_t(u64, length, U32_MAX);
	smw_ring_consume(ring, smw_ring_next(ring, ring->index));
	*reason = wqe.dma.num_sge > max_sge ? SMW_RECV_PROTECTION : SMW_OK;
	return true;
}

bool smw_wqe_fetch_receive(struct smw_qp *qp, enum smw_reason *reason)
{
	struct smw_responder *rsp = &qp->responder;

	if (rsp->srq)
		rsp->have_receive = smw_srq_take(rsp->srq, rsp->receive, reason);
	else
		rsp->have_receive = smw_wqe_take_receive(&rsp->ring, rsp->max_sge,
							 rsp->receive, reason);
	return rsp->have_receive;
}
