/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests: one constructor for each operation, one way to post them by
 * either of the two programming interfaces.
 */
#ifndef SMW_TOOLS_RDMA_POST_H
#define SMW_TOOLS_RDMA_POST_H

#include "rdma_pair.h"

/* A work request with room for what it points to: it must not be copied. */
struct rdma_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mw mw;	/* names the window by the rkey wanted */
	struct ibv_mr mr;	/* likewise the region */
};

/* A window as the user has to follow it: the library does not for type 2. */
struct rdma_bind {
	struct ibv_mw *mw;
	uint32_t current_rkey;	/* what the request names the window by */
	uint32_t new_rkey;
	uint32_t mr_lkey;
	uint64_t addr;
	uint64_t length;
	unsigned int access;
};

/* All of them: signaled, with a wr_id that no other request has. */
void rdma_wr_send(struct rdma_wr *w, const void *addr, uint32_t len,
		  uint32_t lkey);
void rdma_wr_write(struct rdma_wr *w, const void *addr, uint32_t len,
		   uint32_t lkey, uint64_t raddr, uint32_t rkey);
void rdma_wr_read(struct rdma_wr *w, void *addr, uint32_t len, uint32_t lkey,
		  uint64_t raddr, uint32_t rkey);
void rdma_wr_cas(struct rdma_wr *w, void *addr, uint32_t lkey, uint64_t raddr,
		 uint32_t rkey, uint64_t compare, uint64_t swap);
void rdma_wr_fadd(struct rdma_wr *w, void *addr, uint32_t lkey, uint64_t raddr,
		  uint32_t rkey, uint64_t add);
void rdma_wr_bind(struct rdma_wr *w, const struct rdma_bind *bind);
void rdma_wr_local_inv(struct rdma_wr *w, uint32_t rkey);
void rdma_wr_send_inv(struct rdma_wr *w, const void *addr, uint32_t len,
		      uint32_t lkey, uint32_t rkey);

/* Make one list of @n requests in an array. */
struct ibv_send_wr *rdma_wr_chain(struct rdma_wr *w, size_t n);

/* Post by the interface that the end was made for; 0 or an errno. */
int rdma_try_post(struct rdma_end *end, struct ibv_send_wr *list);
void rdma_post(struct rdma_end *end, struct ibv_send_wr *list);
int rdma_try_recv(struct rdma_end *end, uint64_t wr_id, void *addr,
		  uint32_t len, uint32_t lkey);
void rdma_recv(struct rdma_end *end, uint64_t wr_id, void *addr, uint32_t len,
	       uint32_t lkey);

/* Post one request, wait for its completion, return its status. */
enum ibv_wc_status rdma_do(struct rdma_end *end, struct rdma_wr *w,
			   struct ibv_wc *wc);

#endif
