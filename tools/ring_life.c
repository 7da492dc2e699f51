// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads use objects while others destroy them by their handles, behind the
 * library's back, and the process is killed in the middle: the driver must
 * neither touch what is gone nor keep what nobody has.
 */
#include "ring_killed.h"

#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QPS		6	/* connected as 0 with 1, 2 with 3 ... */
#define KEYS		6	/* regions and windows */
#define MEMORY		262144
#define SAME_HOST	"/sys/kernel/debug/smw/%s/same_host"

/* What the threads share. Entries are replaced, never freed: they are the library's. */
struct life {
	struct rdma_dev dev;
	struct ibv_pd *pd;
	struct ibv_pd *other_pd;	/* where a region goes now and then */
	struct rdma_end ends[QPS];
	pthread_mutex_t path_lock;
	struct ibv_mr *mrs[KEYS];
	struct ibv_mw *mws[KEYS];
	uint32_t keys[KEYS];	/* of the windows, as they were bound last */
	uint8_t *memory;
	unsigned long *done;	/* requests that were carried out; the parent's too */
};

/* --- commands by handle --- */

static int raw_destroy_qp(int fd, uint32_t handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_qp core;
	} cmd = { .core.qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return ring_command(fd, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), &resp,
			    sizeof(resp));
}

static int raw_dereg_mr(int fd, uint32_t handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dereg_mr core;
	} cmd = { .core.mr_handle = handle };

	return ring_command(fd, IB_USER_VERBS_CMD_DEREG_MR, &cmd, sizeof(cmd), NULL, 0);
}

static int raw_dealloc_mw(int fd, uint32_t handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dealloc_mw core;
	} cmd = { .core.mw_handle = handle };

	return ring_command(fd, IB_USER_VERBS_CMD_DEALLOC_MW, &cmd, sizeof(cmd), NULL, 0);
}

/* --- what the threads do --- */

static void connect_again(struct life *l, uint32_t i)
{
	struct rdma_end *end = &l->ends[i];

	/*
	 * One at a time: the RDMA core keeps a queue pair's GID without a lock, and
	 * loses a reference where two threads set its path at once.
	 */
	pthread_mutex_lock(&l->path_lock);
	if (!rdma_to_init(end) &&
	    !rdma_to_rtr(end, l->ends[i ^ 1].qp->qp_num, end->conf.psn))
		rdma_to_rts(end);
	pthread_mutex_unlock(&l->path_lock);
}

static void replace_qp(struct actor *a)
{
	struct life *l = a->shared;
	uint32_t i = draw(a, QPS);
	struct ibv_qp *fresh;

	raw_destroy_qp(l->dev.ctx->cmd_fd, l->ends[i].qp->handle);
	fresh = rdma_qp_create(&l->ends[i]);
	if (!fresh)
		return;
	l->ends[i].qp = fresh;
	connect_again(l, i);
	connect_again(l, i ^ 1);
}

static void change_state(struct actor *a)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_ERR,
						    IBV_QPS_SQD, IBV_QPS_RTS };
	struct life *l = a->shared;
	uint32_t i = draw(a, QPS);

	rdma_to_state(&l->ends[i], states[draw(a, ARRAY_SIZE(states))]);
	if (draw(a, 2))
		rdma_to_state(&l->ends[i], IBV_QPS_RESET);
	connect_again(l, i);
}

/* EBUSY where a window is bound. The key changes with the memory. */
static void change_region(struct actor *a, struct ibv_mr *mr)
{
	struct life *l = a->shared;
	int usual = RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	int flags = (int)draw(a, 8);
	uint8_t *addr = l->memory + draw(a, MEMORY / 2);
	size_t length = 1 + draw(a, MEMORY / 2);

	if (rdma_rereg_mr(mr, flags, draw(a, 4) ? l->pd : l->other_pd, addr, length,
			  draw(a, 4) ? usual : (int)draw(a, 32)) ||
	    !(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		return;
	mr->addr = addr;
	mr->length = length;
}

static void replace_region(struct actor *a)
{
	struct life *l = a->shared;
	uint32_t i = draw(a, KEYS);
	size_t off = draw(a, MEMORY / 2);
	struct ibv_mr *fresh;

	if (draw(a, 2) == 0) {
		change_region(a, l->mrs[i]);
		return;
	}
	/* EBUSY where a window is bound: it is kept, under a key of no one */
	raw_dereg_mr(l->dev.ctx->cmd_fd, l->mrs[i]->handle);
	fresh = ibv_reg_mr(l->pd, l->memory + off, 1 + draw(a, MEMORY / 2),
			   RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_MW_BIND);
	if (fresh)
		l->mrs[i] = fresh;
}

static void replace_window(struct actor *a)
{
	struct life *l = a->shared;
	uint32_t i = draw(a, KEYS);
	struct ibv_mw *fresh;

	raw_dealloc_mw(l->dev.ctx->cmd_fd, l->mws[i]->handle);
	fresh = ibv_alloc_mw(l->pd, draw(a, 2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (!fresh)
		return;
	l->mws[i] = fresh;
	l->keys[i] = fresh->rkey;
}

static void build_bind(struct actor *a, struct rdma_wr *w)
{
	struct life *l = a->shared;
	uint32_t i = draw(a, KEYS);
	const struct ibv_mr *mr = l->mrs[draw(a, KEYS)];
	struct rdma_bind bind = {
		.mw = l->mws[i],
		.current_rkey = l->mws[i]->rkey,
		.new_rkey = ibv_inc_rkey(l->keys[i]),
		.mr_lkey = mr->lkey,
		.addr = (uintptr_t)mr->addr,
		.length = draw(a, (uint32_t)mr->length + 1),
		.access = RDMA_ALL_REMOTE,
	};

	l->keys[i] = bind.new_rkey;
	rdma_wr_bind(w, &bind);
}

static void build(struct actor *a, struct rdma_wr *w)
{
	struct life *l = a->shared;
	const struct ibv_mr *from = l->mrs[draw(a, KEYS)];
	const struct ibv_mr *to = l->mrs[draw(a, KEYS)];
	uint32_t window = l->keys[draw(a, KEYS)];
	uint32_t rkey = draw(a, 4) ? to->rkey : window;
	size_t most = from->length < to->length ? from->length : to->length;
	uint32_t len = draw(a, (uint32_t)most + 1);

	/* Most of it is right, or all would soon be in ERR. */
	switch (draw(a, 24)) {
	case 0:
		build_bind(a, w);
		break;
	case 1:
		rdma_wr_local_inv(w, window);
		break;
	case 2:
		rdma_wr_send_inv(w, from->addr, len % 5000, from->lkey, window);
		break;
	case 3 ... 6:
		rdma_wr_send(w, from->addr, len % 5000, from->lkey);
		break;
	case 7 ... 9:
		rdma_wr_fadd(w, from->addr, from->lkey,
			     ((uintptr_t)to->addr + 7) & ~7UL, rkey, 1);
		break;
	case 10 ... 16:
		rdma_wr_write(w, from->addr, len, from->lkey, (uintptr_t)to->addr,
			      rkey);
		break;
	default:
		rdma_wr_read(w, from->addr, len, from->lkey, (uintptr_t)to->addr,
			     rkey);
		break;
	}
}

static void count_done(struct life *l, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS)
			__atomic_add_fetch(l->done, 1, __ATOMIC_RELAXED);
}

static void post(struct actor *a)
{
	struct life *l = a->shared;
	struct rdma_end *end = &l->ends[draw(a, QPS)];
	struct rdma_wr w[3];

	for (size_t i = 0; i < ARRAY_SIZE(w); i++) {
		const struct ibv_mr *mr = l->mrs[draw(a, KEYS)];

		build(a, &w[i]);
		rdma_try_recv(end, i, mr->addr, (uint32_t)mr->length, mr->lkey);
	}
	rdma_try_post(end, rdma_wr_chain(w, draw(a, ARRAY_SIZE(w)) + 1));
	count_done(l, end->scq);
	rdma_drain(end->rcq);
}

/* From packets to the direct path and back, where this process may. */
static void change_path(struct actor *a)
{
	const struct life *l = a->shared;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), SAME_HOST, ibv_get_device_name(l->dev.ctx->device));
	f = fopen(path, "w");
	if (f) {
		fputs(draw(a, 2) ? "1" : "0", f);
		fclose(f);
	}
	usleep(5000);
}

/* --- the process that is killed --- */

static void life_open(struct life *l)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.timeout = 6;
	conf.retry_cnt = 2;
	conf.rnr_retry = 1;
	conf.min_rnr_timer = 1;
	conf.cqe = 4096;
	rdma_dev_open(&l->dev, ktap_opt.device, ktap_opt.gid_index);
	l->pd = ibv_alloc_pd(l->dev.ctx);
	l->other_pd = ibv_alloc_pd(l->dev.ctx);
	l->memory = calloc(1, MEMORY);
	check(l->pd && l->other_pd && l->memory, "PDs and memory");
	for (size_t i = 0; i < QPS; i++)
		rdma_end_create(&l->ends[i], &l->dev, l->pd, &conf);
	for (size_t i = 0; i < QPS; i += 2)
		rdma_connect(&l->ends[i], &l->ends[i + 1]);
	for (size_t i = 0; i < KEYS; i++) {
		l->mrs[i] = ibv_reg_mr(l->pd, l->memory, MEMORY,
				       RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_MW_BIND);
		l->mws[i] = ibv_alloc_mw(l->pd, IBV_MW_TYPE_2);
		check(l->mrs[i] && l->mws[i], "a region and a window");
		l->keys[i] = l->mws[i]->rkey;
	}
}

/* Does not return: the parent kills it. */
static void live(unsigned int seed, unsigned long *done)
{
	static const actor_fn acts[] = {
		post, post, replace_qp, change_state, replace_region,
		replace_window, change_path,
	};
	static struct life life;

	life.done = done;
	pthread_mutex_init(&life.path_lock, NULL);
	life_open(&life);
	actors_run(&life, acts, ARRAY_SIZE(acts), seed);
}

static void lives(long rounds)
{
	ring_lives(live, (unsigned int)rounds);
}

void ring_life_cases(void)
{
	ktap_add("nobody uses what is gone", lives, 8, 120, "life.killed");
}
