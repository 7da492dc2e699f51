// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/cq.h>

#include <rdma/uverbs_ioctl.h>

#include <smw/link.h>

/* A cache line for each completion. */
#define CQE_SIZE 64
/* How many are looked at with interrupts off. */
#define CQ_TURN 256

static_assert(sizeof(struct smw_cqe) <= CQE_SIZE);
static_assert(offsetof(struct smw_cqe, wc) == 0);
/* Statuses and opcodes are written as user space reads them. */
static_assert((int)IB_WC_RECV == 128);
static_assert((int)IB_WC_GENERAL_ERR == 21);
static_assert((int)IB_WC_LOCAL_INV == (int)IB_UVERBS_WC_LOCAL_INV);

/* Locked with interrupts off, and in hard interrupts; user space's are not. */
static struct lock_class_key kernel_cq_lock;

static int cq_check_size(int cqe)
{
	return cqe < 1 || cqe > SMW_MAX_CQE ? -EINVAL : 0;
}

int smw_cq_create(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct smw_link *link = smw_link_of(ibcq->device);
	struct smw_cq *cq = smw_cq_of(ibcq);
	struct rxe_create_cq_resp resp = {};
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if ((udata && udata->outlen < sizeof(resp)) || cq_check_size(attr->cqe))
		return -EINVAL;
	err = smw_link_claim(link, SMW_OBJECT_CQ, !udata, SMW_MAX_CQ);
	if (err)
		return err;
	mutex_init(&cq->resize_lock);
	spin_lock_init(&cq->handler_lock);
	spin_lock_init(&cq->lock);
	cq->is_kernel = !udata;
	if (cq->is_kernel)
		lockdep_set_class(&cq->lock, &kernel_cq_lock);
	err = smw_ring_create(&cq->ring, udata, attr->cqe, CQE_SIZE,
			      &resp.mi);
	if (err)
		goto err_release;
	err = udata ? ib_copy_to_udata(udata, &resp, sizeof(resp)) : 0;
	if (err)
		goto err_ring;
	ibcq->cqe = cq->ring.mask;
	return 0;

err_ring:
	smw_ring_destroy(&cq->ring);
err_release:
	smw_link_release(link, SMW_OBJECT_CQ, cq->is_kernel);
	return err;
}

int smw_cq_destroy(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct smw_cq *cq = smw_cq_of(ibcq);

	smw_ring_destroy(&cq->ring);
	smw_link_release(smw_link_of(ibcq->device), SMW_OBJECT_CQ, cq->is_kernel);
	return 0;
}

/*
 * Completions that wait move to the new ring, which then takes the place of the
 * old one. False where they do not fit.
 */
static bool cq_change_ring(struct smw_cq *cq, struct smw_ring *to)
{
	struct smw_ring *from = &cq->ring;
	bool fits;
	u32 done;

	spin_lock_bh(&cq->lock);
	fits = smw_ring_carry(to, from, smw_ring_user_consumer(from), &from->index,
			      to->mask, &cq->lock, &done);
	if (fits) {
		smw_ring_produce(to, done);
		swap(*from, *to);
		cq->ibcq.cqe = from->mask;
	}
	spin_unlock_bh(&cq->lock);
	return fits;
}

int smw_cq_resize(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct rxe_resize_cq_resp resp = {};
	struct smw_cq *cq = smw_cq_of(ibcq);
	struct smw_ring ring = {};
	int err;

	/* Not of a kernel consumer's: it would poll meanwhile. */
	if (cq->is_kernel)
		return -EOPNOTSUPP;
	if (udata->outlen < sizeof(resp) || cq_check_size(cqe))
		return -EINVAL;
	err = smw_ring_create(&ring, udata, cqe, CQE_SIZE, &resp.mi);
	if (err)
		return err;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		goto out;
	/* The user keeps from polling meanwhile: what it consumed would come again. */
	mutex_lock(&cq->resize_lock);
	err = cq_change_ring(cq, &ring) ? 0 : -EINVAL;
	mutex_unlock(&cq->resize_lock);
out:
	smw_ring_destroy(&ring);
	return err;
}

int smw_cq_req_notify(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct smw_cq *cq = smw_cq_of(ibcq);
	unsigned long irqs;
	int waiting;

	/* Kernel consumers ask in any context. */
	spin_lock_irqsave(&cq->lock, irqs);
	/* A request for any completion covers one for solicited ones; some ask for both. */
	cq->notify |= flags & IB_CQ_SOLICITED_MASK;
	waiting = cq->ring.index != smw_ring_user_consumer(&cq->ring);
	spin_unlock_irqrestore(&cq->lock, irqs);
	return flags & IB_CQ_REPORT_MISSED_EVENTS ? waiting : 0;
}

static void cq_raise_overrun(struct smw_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Is anyone to be woken for this completion? Asked once for each request. */
static bool cq_take_notify(struct smw_cq *cq, bool solicited)
{
	if (!(cq->notify & IB_CQ_NEXT_COMP || (cq->notify && solicited)))
		return false;
	cq->notify = 0;
	return true;
}

/* What adding a completion leaves to do once the lock is free. */
enum {
	CQ_LOST = BIT(0),	/* there was no room */
	CQ_OVERRUN = BIT(1),	/* ... for the first time */
	CQ_WAKE = BIT(2),	/* somebody waits for it */
};

static int cq_add(struct smw_cq *cq, struct ib_qp *qp, const struct ib_uverbs_wc *wc,
		  bool solicited)
{
	u32 next = smw_ring_next(&cq->ring, cq->ring.index);
	struct smw_cqe *cqe;

	if (cq->overrun)
		return CQ_LOST;
	if (next == smw_ring_user_consumer(&cq->ring)) {
		cq->overrun = true;
		return CQ_LOST | CQ_OVERRUN;
	}
	cqe = smw_ring_element(&cq->ring, cq->ring.index);
	memcpy(&cqe->wc, wc, sizeof(*wc));
	/* No address of the kernel's goes to memory that a user maps. */
	if (cq->is_kernel)
		cqe->qp = qp;
	smw_ring_produce(&cq->ring, next);
	return cq_take_notify(cq, solicited) ? CQ_WAKE : 0;
}

static int cq_add_locked(struct smw_cq *cq, struct ib_qp *qp,
			 const struct ib_uverbs_wc *wc, bool solicited)
{
	unsigned long irqs;
	int todo;

	if (cq->is_kernel) {
		spin_lock_irqsave(&cq->lock, irqs);
		todo = cq_add(cq, qp, wc, solicited);
		spin_unlock_irqrestore(&cq->lock, irqs);
	} else {
		spin_lock(&cq->lock);
		todo = cq_add(cq, qp, wc, solicited);
		spin_unlock(&cq->lock);
	}
	return todo;
}

static void cq_call_handler(struct smw_cq *cq)
{
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * User space's handler only leaves an event and may run on several CPUs; a kernel
 * consumer's may not. It may post, poll and ask for the next call: none of that
 * takes a lock that is held here.
 */
static void cq_wake(struct smw_cq *cq)
{
	if (!cq->is_kernel) {
		cq_call_handler(cq);
		return;
	}
	spin_lock(&cq->handler_lock);
	cq_call_handler(cq);
	spin_unlock(&cq->handler_lock);
}

bool smw_cq_post(struct smw_cq *cq, struct ib_qp *qp, const struct ib_uverbs_wc *wc,
		 bool solicited)
{
	int todo = cq_add_locked(cq, qp, wc, solicited);

	if (todo & CQ_WAKE)
		cq_wake(cq);
	if (todo & CQ_OVERRUN)
		cq_raise_overrun(cq);
	return !(todo & CQ_LOST);
}

static int kernel_flags(u32 flags)
{
	return (flags & SMW_WC_GRH ? IB_WC_GRH : 0) |
	       (flags & SMW_WC_WITH_IMM ? IB_WC_WITH_IMM : 0) |
	       (flags & SMW_WC_WITH_VLAN ? IB_WC_WITH_VLAN : 0) |
	       (flags & SMW_WC_WITH_INV ? IB_WC_WITH_INVALIDATE : 0);
}

static void fill_kernel_wc(struct ib_wc *wc, const struct smw_cqe *cqe)
{
	*wc = (struct ib_wc) {
		.wr_id = cqe->wc.wr_id,
		.status = cqe->wc.status,
		.opcode = cqe->wc.opcode,
		.byte_len = cqe->wc.byte_len,
		.qp = cqe->qp,
		.ex.invalidate_rkey = cqe->wc.ex.invalidate_rkey,
		.src_qp = cqe->wc.src_qp,
		.wc_flags = kernel_flags(cqe->wc.wc_flags),
		.pkey_index = cqe->wc.pkey_index,
		.port_num = cqe->wc.port_num,
		.vlan_id = cqe->wc.slid,
	};
}

/* One turn of polling; @more: there may be something left that was not looked at. */
static int cq_poll_turn(struct smw_cq *cq, int count, struct ib_wc *wc, bool *more)
{
	u32 index = smw_ring_user_consumer(&cq->ring);
	u32 left = CQ_TURN;
	int polled = 0;

	for (; left && polled < count && index != cq->ring.index;
	     index = smw_ring_next(&cq->ring, index), left--) {
		const struct smw_cqe *cqe = smw_ring_element(&cq->ring, index);

		if (cqe->qp)
			fill_kernel_wc(&wc[polled++], cqe);
	}
	smw_ring_user_consumed(&cq->ring, index);
	*more = !left;
	return polled;
}

int smw_cq_poll(struct ib_cq *ibcq, int count, struct ib_wc *wc)
{
	struct smw_cq *cq = smw_cq_of(ibcq);
	unsigned long irqs;
	int polled = 0;
	bool more;

	/* User space polls its own memory; what stands there is not to be believed. */
	if (!cq->is_kernel)
		return -EOPNOTSUPP;
	do {
		spin_lock_irqsave(&cq->lock, irqs);
		polled += cq_poll_turn(cq, count - polled, wc + polled, &more);
		spin_unlock_irqrestore(&cq->lock, irqs);
	} while (more);
	return polled;
}

static u32 cq_waiting(const struct smw_cq *cq, u32 from)
{
	return (cq->ring.index - from) & cq->ring.mask;
}

static void cq_forget_turn(struct smw_cq *cq, const struct ib_qp *qp, u32 index, u32 count)
{
	while (count--) {
		struct smw_cqe *cqe = smw_ring_element(&cq->ring, index++);

		if (cqe->qp == qp)
			cqe->qp = NULL;
	}
}

/*
 * The queue pair completes nothing any more, so its completions are among those that wait
 * now. Between turns the consumer may poll some, and others come in their place.
 */
void smw_cq_forget(struct smw_cq *cq, const struct ib_qp *qp)
{
	u32 index, left, turn;
	unsigned long irqs;

	if (!cq->is_kernel)
		return;
	spin_lock_irqsave(&cq->lock, irqs);
	index = smw_ring_user_consumer(&cq->ring);
	left = cq_waiting(cq, index);
	spin_unlock_irqrestore(&cq->lock, irqs);
	for (; left; index += turn, left -= turn) {
		turn = min_t(u32, left, CQ_TURN);
		spin_lock_irqsave(&cq->lock, irqs);
		cq_forget_turn(cq, qp, index, turn);
		spin_unlock_irqrestore(&cq->lock, irqs);
		cond_resched();
	}
}
