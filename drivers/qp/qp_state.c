// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Modify and query: the state machine of queue pairs as the verbs see it.
 */
#include <smw/qp.h>

#include <rdma/ib_cache.h>

#include <smw/carrier.h>
#include <smw/link.h>
#include <smw/psn.h>
#include <smw/requester.h>
#include <smw/responder.h>
#include <smw/work.h>

#define REMOTE_RIGHTS (SMW_REMOTE_WRITE | SMW_REMOTE_READ | SMW_REMOTE_ATOMIC | \
		       SMW_FLUSH_RIGHTS)

/* Attributes that this device has no use for: there is one port, one path. */
#define UNSUPPORTED_MASK (IB_QP_ALT_PATH | IB_QP_RATE_LIMIT)

/* There is no path to migrate to; and to ARMED a device goes by itself. */
static int check_migration(enum ib_mig_state state)
{
	if (state == IB_MIG_MIGRATED)
		return 0;
	return state == IB_MIG_REARM ? -EOPNOTSUPP : -EINVAL;
}

static int check_numbers(const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != SMW_PORT)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num >= SMW_QPN_MULTICAST)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SMW_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > SMW_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return -EINVAL;
	if (mask & IB_QP_PATH_MIG_STATE)
		return check_migration(attr->path_mig_state);
	return 0;
}

static int check_mtu(const struct smw_qp *qp, enum ib_mtu mtu)
{
	if (mtu < IB_MTU_256 || mtu > IB_MTU_4096)
		return -EINVAL;
	return ib_mtu_enum_to_int(mtu) > READ_ONCE(qp->link->mtu) ? -EINVAL : 0;
}

static int check_modify(const struct smw_qp *qp, const struct ib_qp_attr *attr,
			int mask, enum ib_qp_state from, enum ib_qp_state to)
{
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & UNSUPPORTED_MASK)
		return -EOPNOTSUPP;
	if (from != smw_qp_state(qp))
		return -EINVAL;
	if (!ib_modify_qp_is_ok(from, to, qp->ibqp.qp_type, mask))
		return -EINVAL;
	err = check_numbers(attr, mask);
	if (err)
		return err;
	if (mask & IB_QP_PATH_MTU)
		return check_mtu(qp, attr->path_mtu);
	return 0;
}

/* Room to remember READs and atomics for duplicates. */
static int reserve_depth(const struct smw_qp *qp, u32 depth,
			 struct smw_rd_atomic **fresh)
{
	*fresh = NULL;
	if (!depth || depth == qp->responder.rd_atomic_count)
		return 0;
	*fresh = kcalloc(depth, sizeof(**fresh), GFP_KERNEL_ACCOUNT);
	return *fresh ? 0 : -ENOMEM;
}

/*
 * The same depth keeps what is remembered. Another one, which SQD allows, forgets it, and
 * ends a READ that is being answered: the peer's duplicates are not answered any more, so
 * whoever changes it has to know that the peer waits for nothing.
 */
static void set_depth(struct smw_qp *qp, u32 depth, struct smw_rd_atomic *fresh)
{
	struct smw_responder *rsp = &qp->responder;

	if (depth == rsp->rd_atomic_count)
		return;
	spin_lock_bh(&rsp->lock);
	swap(rsp->rd_atomics, fresh);
	rsp->rd_atomic_count = depth;
	rsp->rd_atomic_next = 0;
	rsp->stream = NULL;
	spin_unlock_bh(&rsp->lock);
	kfree(fresh);
}

static int set_path(struct smw_qp *qp, const struct rdma_ah_attr *ah, u32 mtu)
{
	int err = smw_carrier_connect(qp, ah, mtu);

	if (err)
		return err;
	rdma_copy_ah_attr(&qp->attr.ah_attr, ah);
	/* The core holds the GID for as long as the queue pair has this path. */
	rdma_destroy_ah_attr(&qp->attr.ah_attr);
	return 0;
}

/* What can fail, before anything is changed: ibv_modify_qp() changes all or nothing. */
static int prepare(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u32 depth = mask & IB_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic :
						      qp->responder.rd_atomic_count;
	u32 mtu = mask & IB_QP_PATH_MTU ? ib_mtu_enum_to_int(attr->path_mtu) : qp->mtu;
	struct smw_rd_atomic *fresh;
	int err;

	err = reserve_depth(qp, depth, &fresh);
	if (err)
		return err;
	if (mask & IB_QP_AV) {
		err = set_path(qp, &attr->ah_attr, mtu);
		if (err) {
			kfree(fresh);
			return err;
		}
	}
	set_depth(qp, depth, fresh);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	return 0;
}

static void set_requester(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct smw_requester *req = &qp->requester;

	if (mask & IB_QP_SQ_PSN) {
		req->psn = attr->sq_psn & SMW_PSN_MASK;
		req->una = req->psn;
		req->highest = req->psn;
		req->window = SMW_WINDOW_MAX;
	}
	if (mask & IB_QP_TIMEOUT)
		qp->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT) {
		qp->retry_cnt = attr->retry_cnt;
		req->retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		qp->rnr_retry = attr->rnr_retry;
		req->rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qp->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		WRITE_ONCE(qp->dest_qpn, attr->dest_qp_num);
}

static void set_responder(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_RQ_PSN)
		qp->responder.psn = attr->rq_psn & SMW_PSN_MASK;
	if (mask & IB_QP_MIN_RNR_TIMER)
		qp->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->rights = attr->qp_access_flags & REMOTE_RIGHTS;
	if (mask & IB_QP_PATH_MTU)
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
}

/* Remember what was set, for query. */
static void remember(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn & SMW_PSN_MASK;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn & SMW_PSN_MASK;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = attr->en_sqd_async_notify;
}

/* Whether its end is to be told is asked anew for each stay in SQD. */
static void begin_drain(struct smw_requester *req, const struct ib_qp_attr *attr, int mask)
{
	req->drained = false;
	req->notify_drained = mask & IB_QP_EN_SQD_ASYNC_NOTIFY &&
			      attr->en_sqd_async_notify;
}

static void set_attributes(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask,
			   enum ib_qp_state from, enum ib_qp_state to)
{
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	set_requester(qp, attr, mask);
	set_responder(qp, attr, mask);
	remember(qp, attr, mask);
	if (to == IB_QPS_SQD && from != to)
		begin_drain(&qp->requester, attr, mask);
	/* A fault that came meanwhile has put the queue pair into ERR: it stays. */
	if (to != from)
		try_cmpxchg(&qp->state, &from, to);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
}

/*
 * Requests are executed under this lock, and look at the state there: in ERR not
 * one more byte of a request moves.
 */
static void await_responder(struct smw_qp *qp)
{
	spin_lock_bh(&qp->responder.lock);
	spin_unlock_bh(&qp->responder.lock);
}

/* A kernel consumer's handler is not called from within its own call. */
static bool flush_turn(struct smw_qp *qp)
{
	return qp->is_kernel ? smw_work_flush_wait(qp) : smw_requester_flush(qp);
}

/* At most a ring full: a hostile user may go on producing. */
static void flush_posted(struct smw_qp *qp)
{
	u32 turns = qp->requester.ring.mask / SMW_FLUSH_TURN + 1;

	while (flush_turn(qp) && --turns)
		cond_resched();
}

static int modify_locked(struct smw_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from, to;
	int err;

	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : smw_qp_state(qp);
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	err = check_modify(qp, attr, mask, from, to);
	if (err)
		return err;
	switch (to) {
	case IB_QPS_RESET:
		WRITE_ONCE(qp->state, IB_QPS_RESET);
		smw_qp_reset(qp);
		return 0;
	case IB_QPS_ERR:
		/* From ERR to ERR: receives may have been posted since. */
		if (!smw_qp_fail(qp))
			smw_work_note(qp, SMW_NOTE_FLUSH);
		await_responder(qp);
		return 0;
	default:
		break;
	}
	err = prepare(qp, attr, mask);
	if (err)
		return err;
	/* What was posted in SQE is not for RTS. */
	if (from == IB_QPS_SQE)
		flush_posted(qp);
	set_attributes(qp, attr, mask, from, to);
	/* RTS and SQD both have something to look at. */
	if (to == IB_QPS_RTS || to == IB_QPS_SQD)
		smw_work_note(qp, SMW_NOTE_SEND);
	return 0;
}

int smw_qp_modify(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct smw_qp *qp = smw_qp_of(ibqp);
	int err;

	mutex_lock(&qp->modify_lock);
	err = modify_locked(qp, attr, mask);
	mutex_unlock(&qp->modify_lock);
	return err;
}

static void query_path(const struct smw_qp *qp, struct ib_qp_attr *attr)
{
	attr->ah_attr = qp->attr.ah_attr;
	/* The caller gets numbers; references stay with the address vector. */
	attr->ah_attr.grh.sgid_attr = NULL;
	attr->dest_qp_num = qp->dest_qpn;
	attr->timeout = qp->timeout;
	attr->retry_cnt = qp->retry_cnt;
	attr->rnr_retry = qp->rnr_retry;
	attr->max_rd_atomic = qp->max_rd_atomic;
	attr->min_rnr_timer = qp->min_rnr_timer;
}

/* The completer says when it is drained. */
static bool is_draining(struct smw_qp *qp)
{
	bool draining;

	spin_lock_bh(&qp->requester.lock);
	draining = smw_qp_state(qp) == IB_QPS_SQD && !qp->requester.drained;
	spin_unlock_bh(&qp->requester.lock);
	return draining;
}

int smw_qp_query(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct smw_qp *qp = smw_qp_of(ibqp);

	mutex_lock(&qp->modify_lock);
	*attr = qp->attr;
	query_path(qp, attr);
	attr->qp_state = smw_qp_state(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = is_draining(qp);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->cap = qp->cap;
	mutex_unlock(&qp->modify_lock);

	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sq_signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->port_num = SMW_PORT;
	return 0;
}
