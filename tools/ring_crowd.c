// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams while everything they go by is destroyed by its handle, behind the
 * library's back: address handles, members of groups, queue pairs, receive queues.
 * The process is killed in the middle, and nothing of it may be left.
 */
#include "ring_killed.h"

#include <stdlib.h>

#define QPS		6
#define AHS		12
#define GROUPS		5
#define SRQS		4
#define MEMORY		65536
#define QPN_MULTICAST	0xffffff
#define QKEYS		3	/* so that most datagrams have the right one */

/* What the threads share. Entries are replaced, never freed: they are the library's. */
struct crowd {
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_srq *srqs[SRQS];	/* every other queue pair has one of them */
	struct ibv_cq *unpolled;	/* resized; nobody looks at it */
	struct rdma_end ends[QPS];
	struct ibv_ah *ahs[AHS];
	struct ibv_mr *mr;
	uint8_t *memory;
	unsigned long *done;		/* datagrams that arrived; the parent's too */
};

static struct rdma_end *draw_end(struct actor *a)
{
	struct crowd *c = a->shared;

	return &c->ends[draw(a, QPS)];
}

static union ibv_gid group(uint32_t number)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 78 } };

	gid.raw[15] = (uint8_t)number;
	return gid;
}

/* --- what the threads do --- */

static struct ibv_ah *make_ah(struct crowd *c, const union ibv_gid *dgid, uint32_t odd)
{
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = c->dev.port,
		.sl = (uint8_t)odd,
		.static_rate = (uint8_t)odd,
		.grh = {
			.dgid = *dgid,
			.sgid_index = (uint8_t)c->dev.gid_index,
			.hop_limit = (uint8_t)odd,
			.traffic_class = (uint8_t)odd,
			.flow_label = odd,
		},
	};

	return ibv_create_ah(c->pd, &path);
}

static void replace_ah(struct actor *a)
{
	struct crowd *c = a->shared;
	uint32_t i = draw(a, AHS);
	union ibv_gid mgid = group(draw(a, GROUPS));
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_ah core;
	} cmd = { .core.ah_handle = c->ahs[i]->handle };
	struct ibv_ah *fresh;

	fresh = make_ah(c, draw(a, 2) ? &c->dev.gid : &mgid, draw(a, UINT32_MAX));
	if (!fresh)
		return;
	ring_command(c->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_DESTROY_AH, &cmd, sizeof(cmd),
		     NULL, 0);
	c->ahs[i] = fresh;
}

/* Most of it fails: the same again, or what is not there. */
static void change_groups(struct actor *a)
{
	union ibv_gid mgid = group(draw(a, GROUPS));
	struct ibv_qp *qp = draw_end(a)->qp;

	if (draw(a, 2))
		ibv_attach_mcast(qp, &mgid, (uint16_t)draw(a, 2));
	else
		ibv_detach_mcast(qp, &mgid, (uint16_t)draw(a, 2));
}

static uint32_t some_qkey(struct actor *a)
{
	return 1 + (draw(a, 8) ? 0 : draw(a, QKEYS));
}

static void ready(struct actor *a, struct rdma_end *end)
{
	end->conf.qkey = some_qkey(a);
	if (!rdma_to_init(end) && !rdma_to_rtr(end, 0, 0))
		rdma_to_rts(end);
}

static void replace_qp(struct actor *a)
{
	struct crowd *c = a->shared;
	struct rdma_end *end = draw_end(a);
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_qp core;
	} cmd = { .core.qp_handle = end->qp->handle };
	struct ib_uverbs_destroy_qp_resp resp;
	struct ibv_qp *fresh;

	if (end->conf.srq)
		end->conf.srq = c->srqs[draw(a, SRQS)];
	for (uint32_t i = 0; i < GROUPS * 2; i++) {
		union ibv_gid mgid = group(i / 2);

		ibv_detach_mcast(end->qp, &mgid, (uint16_t)(i % 2));
	}
	/* EBUSY where it has become a member again: it is kept, for nobody */
	ring_command(c->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd),
		     &resp, sizeof(resp));
	fresh = rdma_qp_create(end);
	if (!fresh)
		return;
	end->qp = fresh;
	ready(a, end);
}

static struct ibv_srq *make_srq(struct crowd *c)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 256, .max_sge = 1 } };

	return ibv_create_srq(c->pd, &init);
}

/* EBUSY where a queue pair has it. Others go on posting to a ring that nobody reads. */
static void replace_srq(struct actor *a)
{
	struct crowd *c = a->shared;
	uint32_t i = draw(a, SRQS);
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_srq core;
	} cmd = { .core.srq_handle = c->srqs[i]->handle };
	struct ib_uverbs_destroy_srq_resp resp;
	struct ibv_srq *fresh;

	if (ring_command(c->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd),
			 &resp, sizeof(resp)))
		return;
	fresh = make_srq(c);
	if (fresh)
		c->srqs[i] = fresh;
}

static bool is_in_rts(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state == IBV_QPS_RTS;
}

static void change_state(struct actor *a)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_ERR,
						    IBV_QPS_SQD, IBV_QPS_RTS };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct rdma_end *end = draw_end(a);

	attr.qkey = some_qkey(a);
	ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY);
	rdma_to_state(end, states[draw(a, ARRAY_SIZE(states))]);
	if (!is_in_rts(end->qp)) {
		rdma_to_state(end, IBV_QPS_RESET);
		ready(a, end);
	}
}

/* The library would unmap the ring that others look at: it is not told. */
static void resize(struct actor *a)
{
	struct crowd *c = a->shared;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq core;
	} cmd = {
		.core.cq_handle = c->unpolled->handle,
		.core.cqe = 1 + draw(a, 3000),
	};
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct rxe_resize_cq_resp driver;
	} resp;

	ring_command(c->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd),
		     &resp, sizeof(resp));
}

static void receive(struct actor *a, struct rdma_end *end, uint32_t i)
{
	struct crowd *c = a->shared;
	struct ibv_sge sge = { (uintptr_t)c->memory + 1024 * i, 30 + draw(a, 1500),
			       c->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (end->conf.srq)
		ibv_post_srq_recv(end->conf.srq, &wr, &bad);
	else
		ibv_post_recv(end->qp, &wr, &bad);
}

static void count(struct crowd *c, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV)
			__atomic_add_fetch(c->done, 1, __ATOMIC_RELAXED);
}

static void post(struct actor *a)
{
	struct crowd *c = a->shared;
	struct rdma_end *end = draw_end(a);
	struct rdma_wr w[3];

	for (uint32_t i = 0; i < ARRAY_SIZE(w); i++) {
		rdma_wr_send(&w[i], c->memory, draw(a, 1025), c->mr->lkey);
		w[i].wr.wr.ud.ah = c->ahs[draw(a, AHS)];
		w[i].wr.wr.ud.remote_qpn = draw(a, 2) ? QPN_MULTICAST :
					   draw(a, 8) ? draw_end(a)->qp->qp_num : draw(a, 3);
		w[i].wr.wr.ud.remote_qkey = draw(a, 20) ? 1 : draw(a, UINT32_MAX);
		if (draw(a, 4) == 0)
			w[i].wr.opcode = IBV_WR_SEND_WITH_IMM;
		receive(a, draw_end(a), i);
	}
	rdma_try_post(end, rdma_wr_chain(w, draw(a, ARRAY_SIZE(w)) + 1));
	for (size_t i = 0; i < QPS; i++) {
		if (c->ends[i].rcq != c->unpolled)
			count(c, c->ends[i].rcq);
		rdma_drain(c->ends[i].scq);
	}
}

/* --- the process that is killed --- */

static void crowd_open(struct crowd *c)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = IBV_QPT_UD;
	conf.qkey = 1;
	conf.cqe = 4096;
	rdma_dev_open(&c->dev, ktap_opt.device, ktap_opt.gid_index);
	c->pd = ibv_alloc_pd(c->dev.ctx);
	c->memory = calloc(1, MEMORY);
	check(c->pd && c->memory, "a PD and memory");
	for (size_t i = 0; i < SRQS; i++) {
		c->srqs[i] = make_srq(c);
		check(c->srqs[i], "a shared receive queue: %s", strerror(errno));
	}
	c->unpolled = ibv_create_cq(c->dev.ctx, 1000, NULL, NULL, 0);
	c->mr = ibv_reg_mr(c->pd, c->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	check(c->unpolled && c->mr, "a queue and a region");
	for (size_t i = 0; i < QPS; i++) {
		struct rdma_end *end = &c->ends[i];

		conf.srq = i & 1 ? c->srqs[i % SRQS] : NULL;
		rdma_end_create(end, &c->dev, c->pd, &conf);
		if (i == 2) {
			check_errno(ibv_destroy_qp(end->qp), 0, "ibv_destroy_qp");
			end->rcq = c->unpolled;
			end->qp = rdma_qp_create(end);
			check(end->qp, "a queue pair: %s", strerror(errno));
		}
		check_errno(rdma_to_init(end), 0, "to INIT");
		check_errno(rdma_to_rtr(end, 0, 0), 0, "to RTR");
		check_errno(rdma_to_rts(end), 0, "to RTS");
	}
	for (size_t i = 0; i < AHS; i++) {
		c->ahs[i] = make_ah(c, &c->dev.gid, 0);
		check(c->ahs[i], "an address handle: %s", strerror(errno));
	}
}

/* Does not return: the parent kills it. */
static void join(unsigned int seed, unsigned long *done)
{
	static const actor_fn acts[] = {
		post, post, post, replace_ah, replace_ah, change_groups, replace_qp,
		replace_srq, change_state, resize,
	};
	static struct crowd crowd;

	crowd.done = done;
	crowd_open(&crowd);
	actors_run(&crowd, acts, ARRAY_SIZE(acts), seed);
}

static void crowds(long rounds)
{
	ring_lives(join, (unsigned int)rounds);
}

void ring_crowd_cases(void)
{
	ktap_add("nobody uses what is gone", crowds, 8, 120, "life.datagrams");
}
