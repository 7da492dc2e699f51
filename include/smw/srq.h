/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues.
 */
#ifndef SMW_SRQ_H
#define SMW_SRQ_H

#include <rdma/ib_verbs.h>
#include <smw/reason.h>
#include <smw/ring.h>

struct smw_receive;

/**
 * struct smw_srq - a shared receive queue
 * @ibsrq: what the RDMA core knows of it
 * @is_kernel: a kernel consumer posts to it; constant
 * @modify_lock: serialises modify; outside @lock
 * @post_lock: kernel consumers fill the ring under it, in any context
 * @lock: protects everything below; inside every responder.lock
 * @ring: the receives; @ring.index is the next one to take
 * @max_sge: elements of a receive
 * @limit: raise IB_EVENT_SRQ_LIMIT_REACHED once fewer receives than this are
 *         left; 0: not armed
 */
struct smw_srq {
	struct ib_srq ibsrq;
	bool is_kernel;
	struct mutex modify_lock;
	spinlock_t post_lock;
	spinlock_t lock;
	struct smw_ring ring;
	u32 max_sge;
	u32 limit;
};

static inline struct smw_srq *smw_srq_of(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct smw_srq, ibsrq);
}

/**
 * smw_srq_take() - take the next receive
 * @srq: the queue
 * @receive: out: a copy, with room for ->max_sge elements
 * @reason: out: as smw_wqe_take_receive() says
 *
 * Context: bottom halves disabled.
 *
 * Return: true where one was taken.
 */
bool smw_srq_take(struct smw_srq *srq, struct smw_receive *receive,
		  enum smw_reason *reason);

/* The RDMA core's operations on shared receive queues. */
int smw_srq_create(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata);
int smw_srq_modify(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int smw_srq_query(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int smw_srq_destroy(struct ib_srq *ibsrq, struct ib_udata *udata);

#endif /* SMW_SRQ_H */
