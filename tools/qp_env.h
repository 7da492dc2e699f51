/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the queue pair cases begin with: two connected ends, a and b, each with
 * registered memory. a is the requester unless a case says otherwise.
 */
#ifndef SMW_TOOLS_QP_ENV_H
#define SMW_TOOLS_QP_ENV_H

#include "ktap.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QP_TAG_A	0x80	/* pattern of a's memory */
#define QP_TAG_B	0x00	/* pattern of b's memory */
#define QP_QUIET_MS	200	/* an event that has not come by then does not come */
#define QP_REGION_RIGHTS (RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE)

enum qp_op { QP_SEND, QP_SEND_IMM, QP_WRITE, QP_WRITE_IMM, QP_READ, QP_CAS,
	     QP_FADD, QP_OPS };
#define QP_DATA_OPS	QP_CAS	/* those before it carry data of any length */

extern const char *const qp_op_name[QP_OPS];

struct qp_env {
	struct rdma_dev dev;
	struct rdma_end a;
	struct rdma_end b;
	struct rdma_buf abuf;
	struct rdma_buf bbuf;
};

void qp_open(struct qp_env *e, const struct rdma_conf *conf, size_t len);
/* The ends are made, but in RESET. */
void qp_open_unconnected(struct qp_env *e, const struct rdma_conf *conf,
			 size_t len);
void qp_close(struct qp_env *e);

/* Wait for a completion and see that it is the one. */
void qp_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	       const char *what);
void qp_expect_wc(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t wr_id,
		  enum ibv_wc_status status, const char *what);
void qp_expect_none(struct ibv_cq *cq, const char *what);

/* Build a request of a's for @len bytes at offset @off of both memories. */
void qp_build(struct qp_env *e, struct rdma_wr *w, enum qp_op op, size_t off,
	      uint32_t len);
/* Does the operation consume a receive of the other end? */
bool qp_takes_recv(enum qp_op op);
/* Move data by @op and see that it arrived, whole, and nowhere else. */
void qp_transfer(struct qp_env *e, enum qp_op op, size_t off, uint32_t len);
/* Fill both memories, and see afterwards what a transfer has done. */
void qp_fill(struct qp_env *e);
void qp_expect_moved(struct qp_env *e, enum qp_op op, size_t off, size_t len);
/* The connection works: a short message each way. */
void qp_expect_works(struct qp_env *e);

/* So says the device, or the kernel where it looks for the address before that. */
void qp_expect_no_peer(int err, const char *address);

/*
 * @len bytes of addresses over the same @piece bytes of memory again and again;
 * NULL if that cannot be had. To be unmapped with munmap().
 */
uint8_t *qp_map_repeated(size_t len, size_t piece);

void qp_transfer_cases(void);
void qp_poll_cases(void);
void qp_post_cases(void);
void qp_retry_cases(void);
void qp_error_cases(void);
void qp_modify_cases(void);
void qp_state_cases(void);
void qp_limit_cases(void);
void qp_mr_cases(void);
void qp_rereg_cases(void);
void qp_cq_cases(void);
void qp_stress_cases(void);
void qp_srq_cases(void);
void qp_unreliable_cases(void);
void qp_isolate_cases(void);
void qp_ud_cases(void);
void qp_ah_cases(void);
void qp_mcast_cases(void);
void qp_answers_cases(void);

#endif
