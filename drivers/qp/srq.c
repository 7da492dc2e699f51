// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/srq.h>

#include <rdma/uverbs_ioctl.h>

#include <smw/link.h>
#include <smw/wqe.h>

static u32 left(const struct smw_ring *ring)
{
	return (smw_ring_user_producer(ring) - ring->index) & ring->mask;
}

static void raise_limit(struct smw_srq *srq)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

bool smw_srq_take(struct smw_srq *srq, struct smw_receive *receive,
		  enum smw_reason *reason)
{
	bool limit, taken;

	spin_lock(&srq->lock);
	taken = smw_wqe_take_receive(&srq->ring, srq->max_sge, receive, reason);
	/* Once for each time it is set (ibv_modify_srq(3)). */
	limit = taken && srq->limit && left(&srq->ring) < srq->limit;
	if (limit)
		srq->limit = 0;
	spin_unlock(&srq->lock);
	if (limit)
		raise_limit(srq);
	return taken;
}

static u32 usable(const struct smw_ring *ring)
{
	return min_t(u32, ring->mask, SMW_MAX_SRQ_WR);
}

static int create_ring(struct smw_srq *srq, struct smw_ring *ring, u32 max_wr,
		       struct ib_udata *udata, struct mminfo *info)
{
	return smw_ring_create(ring, udata, max_wr,
			       struct_size_t(struct rxe_recv_wqe, dma.sge, srq->max_sge),
			       info);
}

int smw_srq_create(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct smw_link *link = smw_link_of(ibsrq->device);
	struct smw_srq *srq = smw_srq_of(ibsrq);
	struct ib_srq_attr *attr = &init->attr;
	struct rxe_create_srq_resp resp = {};
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if ((udata && udata->outlen < sizeof(resp)) || !attr->max_wr ||
	    attr->max_wr > SMW_MAX_SRQ_WR || attr->max_sge > SMW_MAX_SGE)
		return -EINVAL;
	err = smw_link_claim(link, SMW_OBJECT_SRQ, !udata, SMW_MAX_SRQ);
	if (err)
		return err;
	mutex_init(&srq->modify_lock);
	spin_lock_init(&srq->post_lock);
	spin_lock_init(&srq->lock);
	srq->is_kernel = !udata;
	srq->max_sge = max(attr->max_sge, 1u);
	err = create_ring(srq, &srq->ring, attr->max_wr, udata, &resp.mi);
	if (err)
		goto err_release;
	/* resp.srq_num names a queue to XRC, which is not here. */
	err = udata ? ib_copy_to_udata(udata, &resp, sizeof(resp)) : 0;
	if (err)
		goto err_ring;
	attr->max_wr = usable(&srq->ring);
	attr->max_sge = srq->max_sge;
	return 0;

err_ring:
	smw_ring_destroy(&srq->ring);
err_release:
	smw_link_release(link, SMW_OBJECT_SRQ, srq->is_kernel);
	return err;
}

int smw_srq_destroy(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct smw_srq *srq = smw_srq_of(ibsrq);

	smw_ring_destroy(&srq->ring);
	smw_link_release(smw_link_of(ibsrq->device), SMW_OBJECT_SRQ, srq->is_kernel);
	return 0;
}

/*
 * Receives that wait move to the new ring, which then takes the place of the old
 * one; packets take some of them meanwhile. False where they do not fit.
 */
static bool change_ring(struct smw_srq *srq, struct smw_ring *to)
{
	struct smw_ring *from = &srq->ring;
	u32 start, taken, done;
	bool fits;

	spin_lock_bh(&srq->lock);
	start = from->index;
	fits = smw_ring_carry(to, from, start, &from->buf->producer_index, usable(to),
			      &srq->lock, &done);
	if (fits) {
		taken = (from->index - start) & from->mask;
		smw_ring_user_produced(to, done);
		smw_ring_consume(to, min(taken, done));
		swap(*from, *to);
	}
	spin_unlock_bh(&srq->lock);
	return fits;
}

static int resize(struct smw_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct rxe_modify_srq_cmd cmd;
	struct smw_ring ring = {};
	struct mminfo info = {};
	int err;

	err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (err)
		return err;
	err = create_ring(srq, &ring, max_wr, udata, &info);
	if (err)
		return err;
	if (copy_to_user(u64_to_user_ptr(cmd.mmap_info_addr), &info, sizeof(info)))
		err = -EFAULT;
	else if (!change_ring(srq, &ring))
		err = -EINVAL;
	smw_ring_destroy(&ring);
	return err;
}

static int check_modify(const struct smw_srq *srq, const struct ib_srq_attr *attr,
			enum ib_srq_attr_mask mask, const struct ib_udata *udata)
{
	u32 limit = mask & IB_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	u32 max_wr = mask & IB_SRQ_MAX_WR ? attr->max_wr : usable(&srq->ring);

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (!max_wr || max_wr > SMW_MAX_SRQ_WR || limit > max_wr)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR &&
	    (!udata || udata->inlen < sizeof(struct rxe_modify_srq_cmd)))
		return -EINVAL;
	return 0;
}

static int modify_locked(struct smw_srq *srq, const struct ib_srq_attr *attr,
			 enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	int err;

	spin_lock_bh(&srq->lock);
	err = check_modify(srq, attr, mask, udata);
	spin_unlock_bh(&srq->lock);
	if (!err && mask & IB_SRQ_MAX_WR)
		err = resize(srq, attr->max_wr, udata);
	if (err || !(mask & IB_SRQ_LIMIT))
		return err;
	spin_lock_bh(&srq->lock);
	srq->limit = attr->srq_limit;
	spin_unlock_bh(&srq->lock);
	return 0;
}

int smw_srq_modify(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct smw_srq *srq = smw_srq_of(ibsrq);
	int err;

	mutex_lock(&srq->modify_lock);
	err = modify_locked(srq, attr, mask, udata);
	mutex_unlock(&srq->modify_lock);
	return err;
}

int smw_srq_query(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct smw_srq *srq = smw_srq_of(ibsrq);

	spin_lock_bh(&srq->lock);
	attr->max_wr = usable(&srq->ring);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	spin_unlock_bh(&srq->lock);
	return 0;
}
