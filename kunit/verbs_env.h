/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the suites of kernel verbs share: two queue pairs on link smw0, which has to be
 * there and active, driven through the RDMA core as a kernel consumer does.
 */
#ifndef SMW_VERBS_ENV_H
#define SMW_VERBS_ENV_H

#include <kunit/test.h>
#include <rdma/ib_verbs.h>
#include <smw/link.h>

#define DEPTH		8
#define CQ_DEPTH	64
#define BUFFER_LENGTH	(16 * 1024)
#define MESSAGE_LENGTH	5000		/* some packets, and not a whole number */
#define INLINE_LENGTH	64
#define DEADLINE	msecs_to_jiffies(10000)

/**
 * struct verbs_end - one queue pair and what belongs to it
 * @cq: completions of both its queues
 * @qp: the queue pair
 * @srq: its shared receive queue, or NULL
 * @buffer: BUFFER_LENGTH bytes
 * @dma: their address in work requests
 * @called: completion handler calls
 * @running: completion handlers running now
 * @overlapped: two ran at once
 * @echo: messages that the handler still has to send back
 * @seen: state of @qp that the handler found
 */
struct verbs_end {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_srq *srq;
	u8 *buffer;
	u64 dma;
	atomic_t called;
	atomic_t running;
	bool overlapped;
	u32 echo;
	enum ib_qp_state seen;
};

/**
 * struct verbs_world - what every case has
 * @device: the link
 * @pd: a PD whose one key reaches all memory
 * @gid_index: a RoCE v2 GID of the link
 * @gid: the same
 * @ends: queue pairs connected to each other, both in RTS
 */
struct verbs_world {
	struct ib_device *device;
	struct ib_pd *pd;
	int gid_index;
	union ib_gid gid;
	struct verbs_end ends[2];
};

/* A completion queue and a queue pair of that type, with a shared receive queue or its own. */
void verbs_end_make(struct kunit *test, struct verbs_end *end, enum ib_qp_type type,
		    bool shared);

/* The steps of a connected queue pair to RTS. */
void verbs_to_init(struct kunit *test, struct ib_qp *qp);
void verbs_to_rtr(struct kunit *test, struct ib_qp *qp, u32 peer);
void verbs_to_rts(struct kunit *test, struct ib_qp *qp);

/* Connect the two ends with each other. */
void verbs_connect(struct kunit *test);

/* For suites: init and exit. */
int verbs_world_init(struct kunit *test);
void verbs_world_exit(struct kunit *test);

/* The usual ends, for cases that need no others: RC, connected, in RTS. */
struct verbs_end *verbs_ends_make(struct kunit *test);

/* For cases that make them again; the buffers stay. */
void verbs_ends_free(struct kunit *test);

/* An end's buffer from its start. */
struct ib_sge verbs_sge(struct kunit *test, const struct verbs_end *end, u32 length);

/* Post a receive of the whole buffer, to whichever queue the end has. */
int verbs_post_receive(struct kunit *test, struct verbs_end *end, u64 id);

/* A signaled request from an end's buffer to its peer's, by the PD's key. */
int verbs_post_rdma(struct kunit *test, struct verbs_end *end, enum ib_wr_opcode opcode,
		    const struct verbs_end *peer, u32 length);

/* Poll one completion, with a deadline. */
struct ib_wc verbs_expect_wc(struct kunit *test, struct verbs_end *end);

/* ... which is a success in all its particulars. */
void verbs_expect_done(struct kunit *test, struct verbs_end *end, u64 id,
		       enum ib_wc_opcode opcode);

/* Fill the buffer with a pattern of its own for each seed. */
void verbs_fill(struct verbs_end *end, u8 seed);

/* The first bytes of both buffers are the same. */
void verbs_expect_same(struct kunit *test, const struct verbs_end *ends, u32 length);

#endif /* SMW_VERBS_ENV_H */
