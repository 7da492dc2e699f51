/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs.
 *
 * Locks, outer to inner:
 *
 *	modify_lock (mutex)	modify, query, destroy
 *	  requester.lock	send queue: requester and completer
 *	    responder.lock	receive side, of this or, on the direct path, of
 *				the peer queue pair
 *	      srq->lock, cq->lock, window->lock (mw.h has what is inside)
 *	      cq->handler_lock -> post_lock	(kernel consumers)
 *
 * All but the mutex are taken with bottom halves disabled, post_lock and a kernel
 * consumer's cq->lock with interrupts disabled. A responder never
 * takes a requester's lock: what it has to tell the send side (an error to
 * flush) it leaves as a note for the queue pair's tasklet (work.h). So a chain
 * of locks has at most one requester and one responder in it, in that order,
 * and queue pairs sending to each other or to themselves cannot deadlock.
 *
 * The state is read without a lock by both sides at every step. It goes to ERR or
 * SQE from anywhere (smw_qp_fail(), smw_qp_fail_send()), and to RESET by modify and
 * destroy, which then wait for whoever still runs; every other change is made by
 * modify with both locks held.
 */
#ifndef SMW_QP_H
#define SMW_QP_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <rdma/ib_verbs.h>
#include <smw/copy.h>
#include <smw/cq.h>
#include <smw/link.h>
#include <smw/mw.h>
#include <smw/packet.h>
#include <smw/respond.h>
#include <smw/ring.h>
#include <smw/srq.h>

/**
 * struct smw_av - where a queue pair's packets go
 * @source: own address, an IPv4 one mapped into IPv6
 * @target: the peer's address, likewise
 * @ifindex: the netdev that has @source: the link's, or one above it, such as a VLAN
 * @source_port: UDP source port, constant for the connection
 * @flow_label: IPv6 flow label, 20 bits
 * @traffic_class: TOS or traffic class
 * @hop_limit: TTL or hop limit
 * @ipv4: both addresses are IPv4
 * @multicast: @target is a group, of an address handle only
 */
struct smw_av {
	struct in6_addr source;
	struct in6_addr target;
	int ifindex;
	u16 source_port;
	u32 flow_label;
	u8 traffic_class;
	u8 hop_limit;
	bool ipv4;
	bool multicast;
};

/**
 * struct smw_route - a cached route
 * @dst: the route, referenced, or NULL
 * @cookie: for dst_check()
 * @generation: generation of the addresses when it was found (carrier.h)
 */
struct smw_route {
	struct dst_entry *dst;
	u32 cookie;
	u32 generation;
};

/* Whose route it is: each has its own, under its own lock. */
enum smw_route_user {
	SMW_ROUTE_REQUESTER,
	SMW_ROUTE_RESPONDER,
	SMW_ROUTES
};

/* Bounds of the requester's window on the wire, packets. */
#define SMW_WINDOW_MIN 4
#define SMW_WINDOW_MAX 128

enum smw_send_state {
	SMW_SEND_POSTED,	/* fetched, nothing sent */
	SMW_SEND_STARTED,	/* has its PSNs */
	SMW_SEND_DONE,		/* a local operation, executed once */
};

/**
 * struct smw_send - a send work request, copied out of the ring once
 * @wr_id: the application's
 * @opcode: enum ib_wr_opcode, one that user space may post
 * @flags: IB_SEND_*
 * @length: message bytes
 * @num_sge: elements in @sge; 0 where @inline_data is used
 * @state: enum smw_send_state
 * @rd_atomic: was sent and waits for its response: counts against
 *             max_rd_atomic, and bounds what an ACK can acknowledge
 * @fault: why the request cannot be executed, enum smw_reason; it is completed
 *         with that error once everything before it is complete
 * @placement: FLUSH: placement type
 * @selectivity: FLUSH: selectivity level
 * @first_psn: first PSN of the message, once SMW_SEND_STARTED
 * @last_psn: last PSN of the message, for a READ of its last response
 * @imm: immediate data
 * @invalidate: key to invalidate here (LOCAL_INV) or there (SEND_WITH_INV)
 * @va: remote address
 * @rkey: remote key
 * @range: FLUSH: bytes of its range, none of which are in its message
 * @compare: compare operand
 * @swap_add: swap or add operand
 * @ah: UD: number of its address handle
 * @remote_qpn: UD: where it goes
 * @remote_qkey: UD: Q_Key to send, or with the top bit set the queue pair's own
 * @bind: of BIND_MW
 * @reg_key: of REG_MR: the key, which names the region too
 * @reg_access: of REG_MR: IB_ACCESS_* rights
 * @sge: scatter list
 * @inline_data: the message itself
 */
struct smw_send {
	u64 wr_id;
	u32 opcode;
	u32 flags;
	u32 length;
	u16 num_sge;
	u8 state;
	bool rd_atomic;
	u8 fault;
	u8 placement;
	u8 selectivity;
	u32 first_psn;
	u32 last_psn;
	__be32 imm;
	u32 invalidate;
	union {
		struct {
			u64 va;
			u64 compare;
			u64 swap_add;
			u32 rkey;
			u32 range;
		};
		struct {
			u32 ah;
			u32 remote_qpn;
			u32 remote_qkey;
		};
		struct smw_bind bind;
		struct {
			u32 reg_key;
			u32 reg_access;
		};
	};
	union {
		DECLARE_FLEX_ARRAY(struct smw_sge, sge);
		DECLARE_FLEX_ARRAY(u8, inline_data);
	};
};

/**
 * struct smw_requester - the send side: requester and completer
 * @lock: protects everything below
 * @ring: the send queue; @ring.index is the oldest request not completed
 * @sends: private copies, one slot for each slot of @ring
 * @send_size: bytes of a slot of @sends
 * @fetched: first slot not yet copied out of the ring
 * @sending: slot being sent, from @ring.index to @fetched
 * @offset: bytes of the current message already sent
 * @psn: PSN of the next packet to send
 * @una: oldest PSN not acknowledged; equal to @psn where nothing is in flight,
 *       as always on UC and UD
 * @highest: first PSN never sent
 * @unacked: packets sent since the last AckReq
 * @window: packets that may be in flight, SMW_WINDOW_MIN to SMW_WINDOW_MAX. A
 *          loss halves it, since all that is in flight is sent again; what is
 *          acknowledged opens it again
 * @rd_atomic: READs and atomics in flight
 * @retries: transport retries left
 * @rnr_retries: RNR retries left
 * @rnr_repeated: RNR NAKs since @una moved, where they are retried for ever
 * @progress: changes whenever @una moves; tells the retransmit timer
 * @armed_progress: @progress when the retransmit timer was last armed
 * @timer_armed: the retransmit timer runs
 * @rnr_wait: an RNR NAK's time has not passed
 * @retransmitting: taken back to @una, which has not moved since: further
 *                 signs of the same loss are ignored
 * @reading: the current READ is being copied on the direct path
 * @drained: nothing is left to finish in this stay in SQD
 * @notify_drained: IB_EVENT_SQ_DRAINED is wanted when that is so
 * @peer_generation: generation of the addresses when the direct path was last
 *                   looked at (carrier.h)
 */
struct smw_requester {
	spinlock_t lock;
	struct smw_ring ring;
	void *sends;
	u32 send_size;
	u32 fetched;
	u32 sending;
	u32 offset;
	u32 psn;
	u32 una;
	u32 highest;
	u32 unacked;
	u32 window;
	u32 rd_atomic;
	u8 retries;
	u8 rnr_retries;
	u32 rnr_repeated;
	u32 progress;
	u32 armed_progress;
	bool timer_armed;
	bool rnr_wait;
	bool retransmitting;
	bool reading;
	bool drained;
	bool notify_drained;
	u32 peer_generation;
};

/**
 * struct smw_receive - the receive work request in use, copied out of the ring
 * @wr_id: the application's
 * @length: bytes of the scatter list
 * @num_sge: elements in @sge
 * @sge: scatter list
 */
struct smw_receive {
	u64 wr_id;
	u32 length;
	u32 num_sge;
	struct smw_sge sge[];
};

/**
 * struct smw_rd_atomic - a READ or atomic that a duplicate may ask for again
 * @kind: SMW_KIND_READ, _ATOMIC, _ATOMIC_WRITE or _FLUSH; anything else: empty
 * @repeated: it is answered again, for a duplicate
 * @first_psn: PSN of the request and the first response
 * @last_psn: PSN of the last response
 * @va: first byte of the READ or atomic
 * @rkey: its key
 * @length: bytes of its RETH
 * @msn: MSN that its responses carry
 * @original: result of the atomic
 */
struct smw_rd_atomic {
	u8 kind;
	bool repeated;
	u32 first_psn;
	u32 last_psn;
	u64 va;
	u32 rkey;
	u32 length;
	u32 msn;
	u64 original;
};

/**
 * struct smw_responder - the receive side
 * @lock: protects everything below
 * @ring: the receive queue; @ring.index is the next receive to take
 * @srq: the shared receive queue instead of @ring, or NULL; constant
 * @receive: the receive being filled
 * @max_sge: elements that @receive has room for
 * @have_receive: @receive holds one
 * @last_raised: IB_EVENT_QP_LAST_WQE_REACHED was raised for this stay in ERR
 * @established: IB_EVENT_COMM_EST was raised
 * @message: enum smw_message in progress
 * @nak_sent: a sequence or RNR NAK is out and its PSN has not come again
 * @psn: expected PSN
 * @msn: messages completed
 * @offset: bytes of the message placed
 * @va: WRITE: its first byte
 * @rkey: WRITE: its key
 * @length: WRITE: its bytes, from RETH
 * @rd_atomics: ring of READs and atomics done, of @rd_atomic_count entries
 * @rd_atomic_count: max_dest_rd_atomic
 * @rd_atomic_next: where the next one goes
 * @stream: a READ whose responses are being sent, NULL for none
 * @stream_psn: PSN of its next response
 * @backlog: requests that wait for @stream to end
 */
struct smw_responder {
	spinlock_t lock;
	struct smw_ring ring;
	struct smw_srq *srq;
	struct smw_receive *receive;
	u32 max_sge;
	bool have_receive;
	bool last_raised;
	bool established;
	u8 message;
	bool nak_sent;
	u32 psn;
	u32 msn;
	u32 offset;
	u64 va;
	u32 rkey;
	u32 length;
	struct smw_rd_atomic *rd_atomics;
	u32 rd_atomic_count;
	u32 rd_atomic_next;
	struct smw_rd_atomic *stream;
	u32 stream_psn;
	struct sk_buff_head backlog;
};

/**
 * struct smw_qp - a queue pair
 * @ibqp: what the RDMA core knows of it; ibqp.qp_num is in every packet
 * @link: its link, constant
 * @transport: SMW_OPCODE_RC, _UC or _UD, the top bits of its opcodes; constant
 * @modify_lock: serialises modify, query and destroy
 * @state: enum ib_qp_state; see the head of this file
 * @mtu: path MTU, bytes; constant from RTR on. UD: the largest packet there is; what
 *       may be sent the link says
 * @qkey: UD: Q_Key that datagrams must have
 * @rights: SMW_REMOTE_* and SMW_FLUSH_* access flags
 * @dest_qpn: the peer's QP number
 * @max_rd_atomic: READs and atomics the requester may have in flight
 * @min_rnr_timer: code that an RNR NAK carries
 * @timeout: local ack timeout code
 * @retry_cnt: transport retries
 * @rnr_retry: RNR retries; 7 is for ever
 * @sq_signal_all: every send request is signaled
 * @attr: what modify set, for query
 * @cap: sizes as created
 * @av: where packets go; read under either lock, or by smw_qp_av()
 * @av_valid: @av is there and does not change
 * @route: cached routes, by enum smw_route_user
 * @send_cq: completions of sends
 * @recv_cq: completions of receives
 * @requester: send side
 * @responder: receive side
 * @windows: type 2 windows bound through this queue pair
 * @notes: SMW_NOTE_* bits for @task
 * @task: does what the notes say
 * @retransmit_timer: see smw_work_arm_retransmit()
 * @rnr_timer: ends requester.rnr_wait
 * @flush_timer: looks for receives posted in ERR
 * @flush_delay: milliseconds that it was started for last; the tasklet's
 * @dying: no timer or task may be started any more
 * @is_kernel: a kernel consumer posts to it; constant
 * @post_lock: kernel consumers fill the rings under it, in any context; no other
 *             lock is taken inside
 */
struct smw_qp {
	struct ib_qp ibqp;
	struct smw_link *link;
	u8 transport;
	struct mutex modify_lock;
	enum ib_qp_state state;
	u32 mtu;
	u32 qkey;
	u32 rights;
	u32 dest_qpn;
	u8 max_rd_atomic;
	u8 min_rnr_timer;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	bool sq_signal_all;
	bool dying;
	bool is_kernel;
	spinlock_t post_lock;
	struct ib_qp_attr attr;
	struct ib_qp_cap cap;
	struct smw_av av;
	bool av_valid;
	struct smw_route route[SMW_ROUTES];
	struct smw_cq *send_cq;
	struct smw_cq *recv_cq;
	struct smw_requester requester;
	struct smw_responder responder;
	struct smw_window_owner windows;
	unsigned long notes;
	struct tasklet_struct task;
	struct hrtimer retransmit_timer;
	struct hrtimer rnr_timer;
	struct hrtimer flush_timer;
	u32 flush_delay;
};

static inline struct smw_qp *smw_qp_of(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct smw_qp, ibqp);
}

/* UC and UD: nothing is acknowledged, sent again or refused aloud. */
static inline bool smw_qp_is_unreliable(const struct smw_qp *qp)
{
	return qp->transport != SMW_OPCODE_RC;
}

/* UD: every message is one packet, from and to anyone. */
static inline bool smw_qp_is_datagram(const struct smw_qp *qp)
{
	return qp->transport == SMW_OPCODE_UD;
}

/* The state now, for code that holds no lock. */
static inline enum ib_qp_state smw_qp_state(const struct smw_qp *qp)
{
	return READ_ONCE(qp->state);
}

/*
 * Where packets go, for code that holds the queue pair and none of its locks;
 * NULL where no path is set, or is being changed.
 */
static inline const struct smw_av *smw_qp_av(const struct smw_qp *qp)
{
	/* Pairs with the release of smw_carrier_connect(): the path is whole. */
	return smp_load_acquire(&qp->av_valid) ? &qp->av : NULL;
}

/**
 * smw_qp_hold() - find a queue pair by number and hold it
 * @net: namespace that the packet came in, or that the sender is in
 * @qpn: QP number
 * @slot: SMW_HOLD_QP or SMW_HOLD_PEER, free
 *
 * Context: bottom halves disabled.
 *
 * Return: the queue pair, held until smw_hold_drop(), or NULL.
 */
struct smw_qp *smw_qp_hold(const struct net *net, u32 qpn, enum smw_hold_slot slot);

/**
 * smw_qp_hold_gsi() - hold the queue pair for management datagrams
 * @link: a link that stays for the duration of the call
 * @slot: SMW_HOLD_QP, free
 *
 * Context: bottom halves disabled.
 *
 * Return: queue pair SMW_GSI_QPN of @link, held until smw_hold_drop(), or NULL.
 */
struct smw_qp *smw_qp_hold_gsi(struct smw_link *link, enum smw_hold_slot slot);

/**
 * smw_qp_fail() - move a queue pair to ERR because of what happened to it
 * @qp: a queue pair, in any state
 *
 * Both queues are flushed by its tasklet. Context: any, either lock held or not.
 *
 * Return: true where it was not in ERR (or RESET, which stays) before.
 */
bool smw_qp_fail(struct smw_qp *qp);

/**
 * smw_qp_fail_send() - the same for what happened to its send queue
 * @qp: a queue pair, in any state
 *
 * UD goes to SQE: the send queue is flushed, the receive queue goes on.
 */
void smw_qp_fail_send(struct smw_qp *qp);

/**
 * smw_qp_lost_completion() - a completion found its queue full
 * @qp: the queue pair; goes to ERR
 * @status: status of the completion
 *
 * IB_EVENT_QP_FATAL says so, unless it was there already and another completion told why.
 */
void smw_qp_lost_completion(struct smw_qp *qp, enum ib_wc_status status);

/**
 * smw_qp_event() - raise an affiliated asynchronous event
 * @qp: a queue pair
 * @event: enum ib_event_type
 */
void smw_qp_event(struct smw_qp *qp, enum ib_event_type event);

/* The RDMA core's operations on queue pairs. */
int smw_qp_create(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int smw_qp_modify(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int smw_qp_query(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int smw_qp_destroy(struct ib_qp *ibqp, struct ib_udata *udata);
int smw_qp_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad);

/* Reset: forget the connection; modify_lock held. For qp.c and qp_state.c. */
void smw_qp_reset(struct smw_qp *qp);

/* Module start and end. */
void smw_qp_init(void);
void smw_qp_exit(void);

#endif /* SMW_QP_H */
