// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/post.h>

#include <smw/ah.h>
#include <smw/requester.h>
#include <smw/srq.h>
#include <smw/work.h>

#define SEND_FLAGS (IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | \
		    IB_SEND_INLINE)

static_assert(sizeof(struct ib_sge) == sizeof(struct rxe_sge));
static_assert(offsetof(struct ib_sge, addr) == offsetof(struct rxe_sge, addr));
static_assert(offsetof(struct ib_sge, length) == offsetof(struct rxe_sge, length));
static_assert(offsetof(struct ib_sge, lkey) == offsetof(struct rxe_sge, lkey));

/* The element to fill next, or NULL where the queue is full. */
static void *free_element(const struct smw_ring *ring)
{
	u32 producer = smw_ring_user_producer(ring);

	if (smw_ring_next(ring, producer) == smw_ring_user_consumer(ring))
		return NULL;
	return smw_ring_element(ring, producer);
}

static void element_filled(struct smw_ring *ring)
{
	u32 producer = smw_ring_user_producer(ring);

	smw_ring_user_produced(ring, smw_ring_next(ring, producer));
}

static void put_sges(struct rxe_dma_info *dma, const struct ib_sge *sge, u32 count)
{
	dma->num_sge = count;
	memcpy(dma->sge, sge, count * sizeof(*sge));
}

static int put_inline(const struct smw_qp *qp, struct rxe_dma_info *dma,
		      const struct ib_send_wr *wr)
{
	u8 *at = dma->inline_data;
	u32 left = qp->cap.max_inline_data;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > left)
			return -EINVAL;
		/* Inline data is named by address alone; only kernel code gets here. */
		memcpy(at, (const void *)(uintptr_t)sge->addr, sge->length);
		at += sge->length;
		left -= sge->length;
	}
	dma->length = at - dma->inline_data;
	return 0;
}

static int put_payload(const struct smw_qp *qp, struct rxe_dma_info *dma,
		       const struct ib_send_wr *wr)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return put_inline(qp, dma, wr);
	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	put_sges(dma, wr->sg_list, wr->num_sge);
	return 0;
}

static void put_rdma(struct rxe_send_wr *to, const struct ib_send_wr *wr)
{
	to->wr.rdma.remote_addr = rdma_wr(wr)->remote_addr;
	to->wr.rdma.rkey = rdma_wr(wr)->rkey;
}

static void put_atomic(struct rxe_send_wr *to, const struct ib_send_wr *wr)
{
	to->wr.atomic.remote_addr = atomic_wr(wr)->remote_addr;
	to->wr.atomic.compare_add = atomic_wr(wr)->compare_add;
	to->wr.atomic.swap = atomic_wr(wr)->swap;
	to->wr.atomic.rkey = atomic_wr(wr)->rkey;
}

static int put_datagram(struct rxe_send_wr *to, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah)
		return -EINVAL;
	to->wr.ud.ah_num = smw_ah_of(ud->ah)->number;
	to->wr.ud.remote_qpn = ud->remote_qpn;
	to->wr.ud.remote_qkey = ud->remote_qkey;
	return 0;
}

/* What the opcode has besides payload. The transport's own rules are the fetch's. */
static int put_opcode(const struct smw_qp *qp, struct rxe_send_wr *to,
		      const struct ib_send_wr *wr)
{
	to->opcode = wr->opcode;
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		to->ex.imm_data = wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		return smw_qp_is_datagram(qp) ? put_datagram(to, wr) : 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		to->ex.invalidate_rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		to->ex.imm_data = wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		put_rdma(to, wr);
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		put_atomic(to, wr);
		return 0;
	case IB_WR_REG_MR:
		to->wr.reg.key = reg_wr(wr)->key;
		to->wr.reg.access = reg_wr(wr)->access;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int put_send(struct smw_qp *qp, const struct ib_send_wr *wr)
{
	struct smw_ring *ring = &qp->requester.ring;
	struct rxe_send_wqe *wqe = free_element(ring);
	int err;

	if (!wqe)
		return -ENOMEM;
	if (wr->send_flags & ~SEND_FLAGS)
		return -EOPNOTSUPP;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = wr->wr_id;
	wqe->wr.send_flags = wr->send_flags;
	err = put_opcode(qp, &wqe->wr, wr);
	if (!err)
		err = put_payload(qp, &wqe->dma, wr);
	if (err)
		return err;
	element_filled(ring);
	return 0;
}

/*
 * Whoever puts the queue pair into ERR or SQE has it flushed after that; what was
 * posted later is flushed here.
 */
static void flush_late(struct smw_qp *qp)
{
	/* Pairs with the cmpxchg of the state: one of the two sees the other. */
	smp_mb();
	if (smw_requester_flushes(qp))
		smw_work_posted(qp, SMW_NOTE_FLUSH);
}

static int may_post_sends(const struct smw_qp *qp)
{
	/* A list from user space, whose addresses are not the kernel's to read. */
	if (!qp->is_kernel)
		return -EOPNOTSUPP;
	return smw_qp_state(qp) < IB_QPS_RTS ? -EINVAL : 0;
}

/* *bad is written on failure alone: some consumers see by that whether there was one. */
int smw_post_sends(struct smw_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad)
{
	int err = may_post_sends(qp);
	unsigned long irqs;

	if (err) {
		*bad = wr;
		return err;
	}
	spin_lock_irqsave(&qp->post_lock, irqs);
	for (; wr && !err; wr = wr->next) {
		err = put_send(qp, wr);
		if (err)
			*bad = wr;
	}
	spin_unlock_irqrestore(&qp->post_lock, irqs);
	smw_work_posted(qp, SMW_NOTE_SEND);
	flush_late(qp);
	return err;
}

static int put_receive(struct smw_ring *ring, u32 max_sge, const struct ib_recv_wr *wr)
{
	struct rxe_recv_wqe *wqe = free_element(ring);

	if (!wqe)
		return -ENOMEM;
	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	put_sges(&wqe->dma, wr->sg_list, wr->num_sge);
	element_filled(ring);
	return 0;
}

static int put_receives(struct smw_ring *ring, u32 max_sge, spinlock_t *lock,
			const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	unsigned long irqs;
	int err = 0;

	spin_lock_irqsave(lock, irqs);
	for (; wr && !err; wr = wr->next) {
		err = put_receive(ring, max_sge, wr);
		if (err)
			*bad = wr;
	}
	spin_unlock_irqrestore(lock, irqs);
	return err;
}

static int may_post_receives(const struct smw_qp *qp)
{
	if (!qp->is_kernel)
		return -EOPNOTSUPP;
	return qp->ibqp.srq || smw_qp_state(qp) == IB_QPS_RESET ? -EINVAL : 0;
}

int smw_post_recvs(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	struct smw_qp *qp = smw_qp_of(ibqp);
	int err = may_post_receives(qp);

	if (err) {
		*bad = wr;
		return err;
	}
	err = put_receives(&qp->responder.ring, qp->cap.max_recv_sge, &qp->post_lock,
			   wr, bad);
	flush_late(qp);
	return err;
}

int smw_post_srq_recvs(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct smw_srq *srq = smw_srq_of(ibsrq);

	if (!srq->is_kernel) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	return put_receives(&srq->ring, srq->max_sge, &srq->post_lock, wr, bad);
}
