// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/qp.h>

#include <linux/random.h>
#include <linux/xarray.h>

#include <smw/carrier.h>
#include <smw/post.h>
#include <smw/requester.h>
#include <smw/responder.h>
#include <smw/work.h>

/* QP 0 and SMW_GSI_QPN are special and the last one is for multicast. */
#define QPN_MIN 16
#define QPN_MAX 0xfffffe

/* Turns of SMW_TURN_BYTES that a post takes in its caller's context. */
#define POST_TURNS 256

/* What a queue pair may cost besides its rings, at a depth that applications use. */
#define USUAL_RD_ATOMIC 32
static_assert(IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ||
	      sizeof(struct smw_qp) +
	      USUAL_RD_ATOMIC * sizeof(struct smw_rd_atomic) <= SZ_4K);

/*
 * Queue pairs of all links by number. A number is unique in the module, so
 * that a packet finds its queue pair and with it its link in one step; the
 * addresses decide whether the packet may have it.
 */
static DEFINE_XARRAY_ALLOC(qp_table);
static u32 qp_table_next;

void smw_qp_init(void)
{
	qp_table_next = QPN_MIN + get_random_u32_below(QPN_MAX - QPN_MIN);
}

void smw_qp_exit(void)
{
	WARN_ON(!xa_empty(&qp_table));
	xa_destroy(&qp_table);
}

struct smw_qp *smw_qp_hold(const struct net *net, u32 qpn, enum smw_hold_slot slot)
{
	struct smw_qp *qp = xa_load(&qp_table, qpn);

	if (!qp)
		return NULL;
	smw_hold_take(slot, qp);
	/* Still there now that it is held? Only then may it be touched. */
	if (xa_load(&qp_table, qpn) == qp && net_eq(qp->link->net, net))
		return qp;
	smw_hold_drop(slot);
	return NULL;
}

struct smw_qp *smw_qp_hold_gsi(struct smw_link *link, enum smw_hold_slot slot)
{
	struct smw_qp *qp = READ_ONCE(link->gsi);

	if (!qp)
		return NULL;
	smw_hold_take(slot, qp);
	if (READ_ONCE(link->gsi) == qp)
		return qp;
	smw_hold_drop(slot);
	return NULL;
}

/* Give a queue pair its number; from here on packets find it. */
static int publish(struct smw_qp *qp)
{
	u32 *number = &qp->ibqp.qp_num;
	int err;

	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		*number = SMW_GSI_QPN;
		return cmpxchg(&qp->link->gsi, NULL, qp) ? -EBUSY : 0;
	}
	err = xa_alloc_cyclic(&qp_table, number, qp, XA_LIMIT(QPN_MIN, QPN_MAX),
			      &qp_table_next, GFP_KERNEL);
	return min(err, 0);
}

static void retract(struct smw_qp *qp)
{
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		WRITE_ONCE(qp->link->gsi, NULL);
	else
		xa_erase(&qp_table, qp->ibqp.qp_num);
}

static bool fail_to(struct smw_qp *qp, enum ib_qp_state to)
{
	enum ib_qp_state state = smw_qp_state(qp);

	/* A concurrent reset wins: it does not come back from RESET. */
	do {
		if (state == IB_QPS_RESET || state == IB_QPS_ERR || state == to)
			return false;
	} while (!try_cmpxchg(&qp->state, &state, to));
	smw_work_note(qp, SMW_NOTE_FLUSH);
	return true;
}

bool smw_qp_fail(struct smw_qp *qp)
{
	return fail_to(qp, IB_QPS_ERR);
}

void smw_qp_fail_send(struct smw_qp *qp)
{
	fail_to(qp, smw_qp_is_datagram(qp) ? IB_QPS_SQE : IB_QPS_ERR);
}

void smw_qp_lost_completion(struct smw_qp *qp, enum ib_wc_status status)
{
	/* It was to tell why the queue pair is in ERR. */
	bool first_error = status != IB_WC_SUCCESS && status != IB_WC_WR_FLUSH_ERR;

	if (smw_qp_fail(qp) || first_error)
		smw_qp_event(qp, IB_EVENT_QP_FATAL);
}

void smw_qp_event(struct smw_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = type,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/*
 * Send until there is nothing to send, letting others run between turns. The
 * call must end, whatever goes on being posted: what is left after a while is
 * the tasklet's.
 */
static void run_requester(struct smw_qp *qp)
{
	u32 turns = POST_TURNS;
	bool more;

	do {
		spin_lock_bh(&qp->requester.lock);
		more = smw_requester_run(qp);
		spin_unlock_bh(&qp->requester.lock);
		cond_resched();
	} while (more && --turns && !fatal_signal_pending(current));
	if (more)
		smw_work_note(qp, SMW_NOTE_SEND);
}

/* An error may have come meanwhile; receives have no doorbell. */
static void flush(struct smw_qp *qp)
{
	if (smw_requester_flushes(qp))
		smw_work_flush(qp);
}

int smw_qp_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct smw_qp *qp = smw_qp_of(ibqp);

	/* User space writes the ring itself and calls without a list. */
	if (wr)
		return smw_post_sends(qp, wr, bad);
	switch (smw_qp_state(qp)) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		run_requester(qp);
		break;
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		break;
	default:
		smw_requester_discard(qp);
		return -EINVAL;
	}
	flush(qp);
	return 0;
}

static int qp_transport(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return SMW_OPCODE_RC;
	case IB_QPT_UC:
		return SMW_OPCODE_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return SMW_OPCODE_UD;
	default:
		return -EOPNOTSUPP;
	}
}

static int qp_check(const struct ib_qp_init_attr *init, bool is_kernel)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (qp_transport(init->qp_type) < 0 || init->create_flags || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (init->qp_type == IB_QPT_GSI && !is_kernel)
		return -EPERM;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > SMW_MAX_QP_WR || cap->max_send_sge > SMW_MAX_SGE ||
	    cap->max_inline_data > SMW_MAX_INLINE)
		return -EINVAL;
	if (!init->srq &&
	    (cap->max_recv_wr > SMW_MAX_QP_WR || cap->max_recv_sge > SMW_MAX_SGE))
		return -EINVAL;
	return 0;
}

/* Bytes that a send's scatter list or inline data may take. */
static u32 send_tail(const struct ib_qp_cap *cap)
{
	return max_t(u32, cap->max_send_sge * sizeof(struct smw_sge),
		     cap->max_inline_data);
}

static int create_send_side(struct smw_qp *qp, struct ib_udata *udata,
			    struct ib_qp_cap *cap, struct mminfo *info)
{
	struct smw_requester *req = &qp->requester;
	u32 tail = send_tail(cap);
	int err;

	spin_lock_init(&req->lock);
	err = smw_ring_create(&req->ring, udata, max(cap->max_send_wr, 1u),
			      sizeof(struct rxe_send_wqe) + tail, info);
	if (err)
		return err;
	req->send_size = ALIGN(sizeof(struct smw_send) + tail, 8);
	req->sends = kvcalloc(req->ring.mask + 1, req->send_size,
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!req->sends) {
		smw_ring_destroy(&req->ring);
		return -ENOMEM;
	}
	cap->max_send_wr = min_t(u32, req->ring.mask, SMW_MAX_QP_WR);
	cap->max_inline_data = tail;
	return 0;
}

static void destroy_send_side(struct smw_qp *qp)
{
	kvfree(qp->requester.sends);
	smw_ring_destroy(&qp->requester.ring);
}

static int create_receive_ring(struct smw_responder *rsp, struct ib_udata *udata,
			       struct ib_qp_cap *cap, struct mminfo *info)
{
	/* With a shared receive queue the sizes of an own one have no meaning. */
	if (rsp->srq) {
		rsp->max_sge = rsp->srq->max_sge;
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	rsp->max_sge = max(cap->max_recv_sge, 1u);
	cap->max_recv_sge = rsp->max_sge;
	return smw_ring_create(&rsp->ring, udata, max(cap->max_recv_wr, 1u),
			       struct_size_t(struct rxe_recv_wqe, dma.sge, rsp->max_sge),
			       info);
}

static int create_receive_side(struct smw_qp *qp, struct ib_udata *udata,
			       struct ib_qp_cap *cap, struct mminfo *info)
{
	struct smw_responder *rsp = &qp->responder;
	int err;

	spin_lock_init(&rsp->lock);
	skb_queue_head_init(&rsp->backlog);
	err = create_receive_ring(rsp, udata, cap, info);
	if (err)
		return err;
	rsp->receive = kzalloc(struct_size(rsp->receive, sge, rsp->max_sge),
			       GFP_KERNEL_ACCOUNT);
	if (!rsp->receive) {
		smw_ring_destroy(&rsp->ring);
		return -ENOMEM;
	}
	cap->max_recv_wr = min_t(u32, rsp->ring.mask, SMW_MAX_QP_WR);
	return 0;
}

static void destroy_receive_side(struct smw_qp *qp)
{
	kfree(qp->responder.rd_atomics);
	kfree(qp->responder.receive);
	smw_ring_destroy(&qp->responder.ring);
}

static void qp_init_fields(struct smw_qp *qp, const struct ib_qp_init_attr *init,
			   bool is_kernel)
{
	qp->link = smw_link_of(qp->ibqp.device);
	mutex_init(&qp->modify_lock);
	spin_lock_init(&qp->post_lock);
	qp->transport = qp_transport(init->qp_type);
	if (smw_qp_is_datagram(qp))
		qp->mtu = ib_mtu_enum_to_int(IB_MTU_4096);
	qp->state = IB_QPS_RESET;
	qp->is_kernel = is_kernel;
	qp->sq_signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->send_cq = smw_cq_of(init->send_cq);
	qp->recv_cq = smw_cq_of(init->recv_cq);
	qp->responder.srq = init->srq ? smw_srq_of(init->srq) : NULL;
	spin_lock_init(&qp->windows.lock);
	INIT_LIST_HEAD(&qp->windows.windows);
	smw_work_init(qp);
}

/* Make the rings and tell user space where they are. */
static int qp_create_queues(struct smw_qp *qp, struct ib_qp_init_attr *init,
			    struct ib_udata *udata)
{
	struct rxe_create_qp_resp resp = {};
	int err;

	err = create_send_side(qp, udata, &init->cap, &resp.sq_mi);
	if (err)
		return err;
	err = create_receive_side(qp, udata, &init->cap, &resp.rq_mi);
	if (err)
		goto err_send;
	qp->cap = init->cap;
	err = udata ? ib_copy_to_udata(udata, &resp, sizeof(resp)) : 0;
	if (err)
		goto err_receive;
	return 0;

err_receive:
	destroy_receive_side(qp);
err_send:
	destroy_send_side(qp);
	return err;
}

int smw_qp_create(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct smw_qp *qp = smw_qp_of(ibqp);
	int err;

	err = qp_check(init, !udata);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(struct rxe_create_qp_resp))
		return -EINVAL;
	qp_init_fields(qp, init, !udata);
	err = smw_link_claim(qp->link, SMW_OBJECT_QP, qp->is_kernel, SMW_MAX_QP);
	if (err)
		return err;
	err = qp_create_queues(qp, init, udata);
	if (err)
		goto err_release;
	err = publish(qp);
	if (err)
		goto err_queues;
	qp->windows.qpn = ibqp->qp_num;
	return 0;

err_queues:
	destroy_receive_side(qp);
	destroy_send_side(qp);
err_release:
	smw_link_release(qp->link, SMW_OBJECT_QP, qp->is_kernel);
	return err;
}

/*
 * The state is RESET already: nothing new begins. First whoever holds the
 * queue pair goes, then the tasklet and timers that it may have started.
 */
void smw_qp_reset(struct smw_qp *qp)
{
	smw_hold_drain(qp);
	smw_work_pause(qp);
	spin_lock_bh(&qp->requester.lock);
	spin_lock(&qp->responder.lock);
	smw_requester_reset(qp);
	smw_responder_reset(qp);
	spin_unlock(&qp->responder.lock);
	spin_unlock_bh(&qp->requester.lock);
	smw_window_release_all(&qp->windows);
	smw_carrier_disconnect(qp);
}

int smw_qp_destroy(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct smw_qp *qp = smw_qp_of(ibqp);

	mutex_lock(&qp->modify_lock);
	retract(qp);
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	WRITE_ONCE(qp->dying, true);
	smw_qp_reset(qp);
	mutex_unlock(&qp->modify_lock);
	smw_cq_forget(qp->send_cq, ibqp);
	smw_cq_forget(qp->recv_cq, ibqp);
	destroy_receive_side(qp);
	destroy_send_side(qp);
	smw_link_release(qp->link, SMW_OBJECT_QP, qp->is_kernel);
	/*
	 * modify_lock stays usable: not every kernel keeps `rdma resource` from querying
	 * a queue pair until the core frees it.
	 */
	return 0;
}
