/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues.
 */
#ifndef SMW_CQ_H
#define SMW_CQ_H

#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>
#include <smw/ring.h>

/* IBV_WC_* flags as user space reads them; the kernel's IB_WC_* differ. */
#define SMW_WC_GRH	BIT(0)
#define SMW_WC_WITH_IMM	BIT(1)
#define SMW_WC_WITH_INV	BIT(3)
/* For a kernel consumer alone: what slid holds, which Ethernet has no use for. */
#define SMW_WC_WITH_VLAN	BIT(31)

/*
 * What sl holds in the completion of a datagram, which Ethernet has no use for either: the
 * kind of its network header (A17.4.5.1), for which libibverbs has no field. The values are
 * those of mlx5, by which UCX finds the destination in the header.
 */
#define SMW_SL_IPV6	9
#define SMW_SL_IPV4	10

/**
 * struct smw_cqe - a completion in a ring
 * @wc: in user space's values
 * @qp: a kernel consumer's queue pair, NULL once that is destroyed; NULL in a
 *      ring that user space maps
 */
struct smw_cqe {
	struct ib_uverbs_wc wc;
	struct ib_qp *qp;
};

/**
 * struct smw_cq - a completion queue
 * @ibcq: what the RDMA core knows of it
 * @resize_lock: serialises resize; outside @lock
 * @is_kernel: a kernel consumer polls it; constant
 * @handler_lock: a kernel consumer's completion handler is called under it, since
 *                one at a time may run; inside every lock of a queue pair
 * @lock: protects everything below; of a kernel consumer's queue with interrupts
 *        off, since it may be polled in any context
 * @ring: completions, struct smw_cqe in 64-byte elements
 * @notify: what req_notify_cq asked for and has not had: IB_CQ_SOLICITED,
 *          IB_CQ_NEXT_COMP, both or nothing
 * @overrun: a completion was lost; nothing is written any more
 */
struct smw_cq {
	struct ib_cq ibcq;
	struct mutex resize_lock;
	bool is_kernel;
	spinlock_t handler_lock;
	spinlock_t lock;
	struct smw_ring ring;
	u8 notify;
	bool overrun;
};

static inline struct smw_cq *smw_cq_of(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct smw_cq, ibcq);
}

/**
 * smw_cq_post() - add a completion
 * @cq: the queue
 * @qp: the queue pair that completes something
 * @wc: the completion, in user space's values
 * @solicited: wakes an IB_CQ_SOLICITED request too
 *
 * A full queue is overrun: the completion is lost and IB_EVENT_CQ_ERR raised,
 * once (IBTA 10.8.2.2).
 * Context: bottom halves disabled.
 *
 * Return: false where the completion was lost.
 */
bool smw_cq_post(struct smw_cq *cq, struct ib_qp *qp, const struct ib_uverbs_wc *wc,
		 bool solicited);

/**
 * smw_cq_forget() - drop what a queue pair that goes has completed
 * @cq: a queue of any kind; user space sorts out its own
 * @qp: the queue pair; it completes nothing any more
 *
 * Context: may sleep.
 */
void smw_cq_forget(struct smw_cq *cq, const struct ib_qp *qp);

/* The RDMA core's operations on completion queues. */
int smw_cq_create(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs);
int smw_cq_destroy(struct ib_cq *ibcq, struct ib_udata *udata);
int smw_cq_resize(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int smw_cq_poll(struct ib_cq *ibcq, int count, struct ib_wc *wc);
int smw_cq_req_notify(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif /* SMW_CQ_H */
