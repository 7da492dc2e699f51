/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device, and two queue pairs on it that are connected to each other.
 *
 * Functions that cannot do what their name says end the process with a
 * message: a program that wants to see an error calls libibverbs itself.
 * Nothing here sleeps for luck: what waits, waits for something, until a
 * deadline.
 */
#ifndef SMW_TOOLS_RDMA_PAIR_H
#define SMW_TOOLS_RDMA_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDMA_WAIT_MS	5000	/* for what should happen at once */

/* Every remote right that the device opened last can grant. */
extern unsigned int rdma_all_remote;
#define RDMA_ALL_REMOTE	rdma_all_remote

struct rdma_dev {
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	int gid_index;
	uint8_t port;
};

/* How a queue pair is made and connected. */
struct rdma_conf {
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	unsigned int access;	/* of the queue pair */
	enum ibv_mtu mtu;
	uint32_t psn;		/* first PSN sent, on both ends */
	uint32_t qkey;		/* of UD */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	int cqe;
	bool sq_sig_all;
	bool wr_api;		/* post with ibv_wr_*() */
	struct ibv_srq *srq;	/* receive from it; NULL: from a queue of its own */
};

/* One end: a queue pair, its protection domain, its completion queues. */
struct rdma_end {
	struct rdma_dev *dev;
	struct rdma_conf conf;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;	/* of the receive CQ */
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;	/* NULL unless conf.wr_api */
	union ibv_gid dgid;	/* of the other end's device */
	bool own_pd;
};

_Noreturn void rdma_die(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

extern unsigned int rdma_scale;	/* multiplies every deadline */

uint64_t rdma_now_us(void);

/* @name NULL: the first device named smw*; @gid_index -1: the first IPv4 one */
void rdma_dev_open(struct rdma_dev *dev, const char *name, int gid_index);
void rdma_dev_close(struct rdma_dev *dev);

struct rdma_conf rdma_conf_default(void);

/* @pd NULL: one of its own */
void rdma_end_create(struct rdma_end *end, struct rdma_dev *dev,
		     struct ibv_pd *pd, const struct rdma_conf *conf);
struct ibv_qp *rdma_qp_create(struct rdma_end *end);
void rdma_end_destroy(struct rdma_end *end);

/* The steps of connecting; each returns 0 or the errno. UD needs no other end. */
int rdma_to_init(struct rdma_end *end);
int rdma_to_rtr(struct rdma_end *end, uint32_t remote_qpn, uint32_t psn);
int rdma_to_rts(struct rdma_end *end);
int rdma_to_state(struct rdma_end *end, enum ibv_qp_state state);

void rdma_connect(struct rdma_end *a, struct rdma_end *b);
/* RESET both, forget their completions, connect again. */
void rdma_reconnect(struct rdma_end *a, struct rdma_end *b);
enum ibv_qp_state rdma_state(struct ibv_qp *qp);
bool rdma_wait_state(struct ibv_qp *qp, enum ibv_qp_state state);

/* Wait for a completion; false if none came within @ms. */
bool rdma_wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms);
/* Throw away what is there; returns how many. */
unsigned int rdma_drain(struct ibv_cq *cq);

/* Wait for an asynchronous event about @element; others are passed over. */
bool rdma_wait_event(struct rdma_dev *dev, enum ibv_event_type type,
		     const void *element, unsigned int ms);

/* Registered memory with bytes around it that belong to nobody. */
struct rdma_buf {
	uint8_t *map;		/* all of it */
	size_t map_len;
	uint8_t *addr;		/* the part that is registered */
	size_t len;
	uint64_t iova;		/* the address the device knows it by */
	struct ibv_mr *mr;
};

#define RDMA_BUF_MARGIN	4096

void rdma_buf_create(struct rdma_buf *buf, struct ibv_pd *pd, size_t len,
		     size_t offset, unsigned int access);
void rdma_buf_create_iova(struct rdma_buf *buf, struct ibv_pd *pd, size_t len,
			  size_t offset, uint64_t iova_page,
			  unsigned int access);
void rdma_buf_destroy(struct rdma_buf *buf);
/*
 * ibv_rereg_mr(3), which not every provider has, by the kernel's own command;
 * 0 or an errno.
 */
int rdma_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access);
/* Fill everything with the pattern @tag; see rdma_buf_byte(). */
void rdma_buf_fill(struct rdma_buf *buf, uint8_t tag);
uint8_t rdma_buf_byte(uint8_t tag, size_t map_index);
/*
 * The first byte outside [skip, skip + skip_len) of the registered part that
 * differs from the pattern, as an offset into the whole map; -1 if none.
 */
long rdma_buf_touched(const struct rdma_buf *buf, uint8_t tag, size_t skip,
		      size_t skip_len);

#endif
