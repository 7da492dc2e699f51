/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Posting for kernel consumers. Their work requests go into the queue pair's rings
 * in the format in which user space writes them, and are fetched by the same path
 * under the same rules (wqe.h).
 */
#ifndef SMW_POST_H
#define SMW_POST_H

#include <smw/qp.h>

/**
 * smw_post_sends() - post a kernel consumer's send requests
 * @qp: its queue pair
 * @wr: a list of one or more
 * @bad: out: the first that was not posted; written on failure alone
 *
 * Context: any.
 *
 * Return: 0 or a negative errno.
 */
int smw_post_sends(struct smw_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad);

/* The RDMA core's operations for receives; user space has none but its ring. */
int smw_post_recvs(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);
int smw_post_srq_recvs(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

#endif /* SMW_POST_H */
