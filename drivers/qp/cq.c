// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/cq.h>

#include <rdma/uverbs_ioctl.h>

#include <smw/link.h>

/* A cache line for each completion. */
#define CQE_SIZE 64

static_assert(sizeof(struct ib_uverbs_wc) <= CQE_SIZE);
/* Statuses and opcodes are written as user space reads them. */
static_assert((int)IB_WC_RECV == 128);
static_assert((int)IB_WC_GENERAL_ERR == 21);
static_assert((int)IB_WC_LOCAL_INV == (int)IB_UVERBS_WC_LOCAL_INV);

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

	if (!udata || attr->flags)
		return -EOPNOTSUPP;
	if (udata->outlen < sizeof(resp) || cq_check_size(attr->cqe))
		return -EINVAL;
	err = smw_link_claim(link, SMW_OBJECT_CQ, SMW_MAX_CQ);
	if (err)
		return err;
	mutex_init(&cq->resize_lock);
	spin_lock_init(&cq->lock);
	err = smw_ring_create(&cq->ring, udata, attr->cqe, CQE_SIZE,
			      &resp.mi);
	if (err)
		goto err_release;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		goto err_ring;
	ibcq->cqe = cq->ring.mask;
	return 0;

err_ring:
	smw_ring_destroy(&cq->ring);
err_release:
	smw_link_release(link, SMW_OBJECT_CQ);
	return err;
}

int smw_cq_destroy(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct smw_cq *cq = smw_cq_of(ibcq);

	smw_ring_destroy(&cq->ring);
	smw_link_release(smw_link_of(ibcq->device), SMW_OBJECT_CQ);
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

	if (!udata || udata->outlen < sizeof(resp) || cq_check_size(cqe))
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
	int waiting;

	spin_lock_bh(&cq->lock);
	/* A request for any completion covers one for solicited ones. */
	if (cq->notify != IB_CQ_NEXT_COMP)
		cq->notify = flags & IB_CQ_SOLICITED_MASK;
	waiting = cq->ring.index != smw_ring_user_consumer(&cq->ring);
	spin_unlock_bh(&cq->lock);
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
	if (cq->notify != IB_CQ_NEXT_COMP &&
	    !(cq->notify == IB_CQ_SOLICITED && solicited))
		return false;
	cq->notify = 0;
	return true;
}

bool smw_cq_post(struct smw_cq *cq, const struct ib_uverbs_wc *wc, bool solicited)
{
	bool wake = false, overrun = false;
	bool posted;
	u32 next;

	spin_lock(&cq->lock);
	next = smw_ring_next(&cq->ring, cq->ring.index);
	posted = !cq->overrun && next != smw_ring_user_consumer(&cq->ring);
	if (posted) {
		memcpy(smw_ring_element(&cq->ring, cq->ring.index), wc, sizeof(*wc));
		smw_ring_produce(&cq->ring, next);
		wake = cq_take_notify(cq, solicited);
	} else {
		overrun = !cq->overrun;
		cq->overrun = true;
	}
	spin_unlock(&cq->lock);
	if (wake)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	if (overrun)
		cq_raise_overrun(cq);
	return posted;
}
