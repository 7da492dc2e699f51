/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The queues that driver and process share, seen from the side of a process
 * that does not keep to the rules. A correct driver lets it harm itself only.
 */
#ifndef SMW_TOOLS_RING_H
#define SMW_TOOLS_RING_H

#include "ktap.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <string.h>

#define RING_SLOT_MAX	4096	/* no element of these queues is longer */
#define RING_BUF_LEN	65536
#define RING_AHS	4

/* Opcodes that Debian 12's headers do not name. */
#define WR_FLUSH	14
#define WR_ATOMIC_WRITE	15

/* One mapped queue. */
struct ring {
	struct rxe_queue_buf *q;
	size_t map_len;
	size_t slot_len;
	uint32_t mask;
};

/*
 * A pair whose owner posts what it likes, and a bystander pair of the same
 * process that must not notice.
 */
struct ring_env {
	struct rdma_dev dev;
	struct rdma_end a;	/* its rings are abused */
	struct rdma_end b;	/* its peer */
	struct rdma_end c;	/* bystanders */
	struct rdma_end d;
	struct rdma_buf abuf;
	struct rdma_buf bbuf;
	struct rdma_buf secret;	/* of the bystanders' PD */
	struct ibv_srq *srq;	/* a's, where rq is that of a shared queue */
	uint32_t ah;		/* UD: number of an address handle of a's */
	uint32_t ah_handles[RING_AHS];	/* what they are to the kernel */
	unsigned int ah_count;
	struct ring sq;
	struct ring rq;
	struct ring scq;
	struct ring rcq;
	unsigned int seed;
};

void ring_open(struct ring_env *e);
/* a receives from a shared receive queue, and that is the ring abused. */
void ring_open_shared(struct ring_env *e);
/* a and b are UC queue pairs. */
void ring_open_unreliable(struct ring_env *e);
/* a and b are UD queue pairs. */
void ring_open_datagrams(struct ring_env *e);
/* The number of a new address handle, one of at most RING_AHS. */
uint32_t ring_create_ah(struct ring_env *e, struct ibv_pd *pd);
/* Everything can still be destroyed, at once. */
void ring_close(struct ring_env *e);
/* RESET and connect a and b again. */
void ring_recover(struct ring_env *e);
/* The same where what was posted came to @status, or the state is no longer RTS. */
void ring_mend(struct ring_env *e, enum ibv_wc_status status);
/* Make another queue pair in the place of a's, and another shared queue. */
void ring_replace_qp(struct ring_env *e);

uint32_t ring_random(struct ring_env *e);
uint32_t ring_pick(struct ring_env *e, const uint32_t *from, size_t n);

/* A request as the library would build it: a write, or datagram, of 64 bytes. */
void ring_good_wqe(const struct ring_env *e, struct rxe_send_wqe *wqe);
/* A place in the send queue, and what it may hold. */
union ring_slot {
	struct rxe_send_wqe wqe;
	uint32_t words[RING_SLOT_MAX / 4];
};

/* Put @len bytes at the send queue's producer and step it. */
void ring_put(struct ring_env *e, const void *wqe, size_t len);
/* Tell the driver to look. */
int ring_doorbell(struct ring_env *e);

/*
 * Put a marker behind what was posted and wait for its completion: whatever
 * came before has been dealt with. The status of the first completion of a
 * request other than the marker is returned; IBV_WC_SUCCESS if none was bad.
 */
enum ibv_wc_status ring_settle(struct ring_env *e);
/* Post one slot and wait until it is dealt with. */
enum ibv_wc_status ring_post(struct ring_env *e, const union ring_slot *s);

/*
 * Cases of every kind of pair; @open makes one. A good request of @opcode with one
 * word of it changed, each word in turn; and slots full of random bytes, made somewhat
 * plausible by @temper, which may be NULL.
 */
void ring_one_word(void (*open)(struct ring_env *e), uint32_t opcode);
void ring_garbage(void (*open)(struct ring_env *e),
		  void (*temper)(struct ring_env *e, union ring_slot *s));

/*
 * A command of the kernel's, without the library; 0 or an errno. @cmd begins with a
 * header, which is filled in here, and where there is a @resp has its address next.
 */
int ring_command(int fd, uint32_t number, void *cmd, size_t len, void *resp,
		 size_t resp_len);

/* The bystanders work, and nobody touched what is theirs. */
void ring_expect_no_harm(struct ring_env *e);

void ring_wqe_cases(void);
void ring_index_cases(void);
void ring_recv_cases(void);
void ring_race_cases(void);
void ring_life_cases(void);
void ring_ud_cases(void);
void ring_crowd_cases(void);
void ring_rights_cases(void);
void ring_flush_cases(void);
void ring_atomic_cases(void);

#endif
