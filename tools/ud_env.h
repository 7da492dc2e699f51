/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the datagram cases begin with: two UD queue pairs of one device, a and b,
 * and an address handle of each other's, which is the device's own address.
 */
#ifndef SMW_TOOLS_UD_ENV_H
#define SMW_TOOLS_UD_ENV_H

#include "qp_env.h"

#define UD_GRH		40	/* what comes in front of a datagram's data */
#define UD_QKEY		0x11111111
#define UD_OWN_QKEY	0x80000000U
#define UD_LEN		8192

struct ud_env {
	struct qp_env e;
	struct ibv_ah *ah;	/* a's, to b */
	uint32_t mtu;		/* the longest datagram */
};

/* Bring an end to RTS. */
void ud_ready(struct rdma_end *end);
/* @conf NULL: as usual */
void ud_open(struct ud_env *u, const struct rdma_conf *conf);
void ud_close(struct ud_env *u);

bool ud_is_ipv4(const union ibv_gid *gid);
/* Use an address of that kind from here on, or skip the case. */
void ud_use_gid(struct rdma_dev *dev, bool ipv4);

/* The path to an address of this device's. */
struct ibv_ah_attr ud_path(const struct rdma_dev *dev, const union ibv_gid *dgid);
struct ibv_ah *ud_ah(struct rdma_end *end);
/* Make a handle and destroy it; 0 or why there is none. */
int ud_try_ah(struct rdma_end *end, struct ibv_ah_attr *path);

/* A request of @len bytes at @off of a's memory to a queue pair by number. */
void ud_build(struct ud_env *u, struct rdma_wr *w, size_t off, uint32_t len,
	      uint32_t qpn, uint32_t qkey);
/* Send to b, and see that the send itself ends well. */
void ud_send(struct ud_env *u, size_t off, uint32_t len, uint32_t qkey);
/* Post a receive of b's with room for @len bytes behind the header. */
void ud_recv(struct ud_env *u, uint64_t wr_id, size_t off, uint32_t len);
/* A datagram of @len bytes arrives at b; it takes the receive @wr_id at @off. */
void ud_expect(struct ud_env *u, uint64_t wr_id, size_t off, size_t from, uint32_t len,
	       struct ibv_wc *wc);
/* What was sent before has not arrived, but what is sent now does. */
void ud_expect_lost(struct ud_env *u);
/*
 * a is in SQE: what it sends is flushed, what it gets arrives, and after a modify
 * to RTS it sends again (IBTA 10.3.1.6).
 */
void ud_expect_send_error(struct ud_env *u);

#endif
