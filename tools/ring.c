// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_MAPS	64
#define MARKER_ID	0x3a4b5c6d
#define TAG_SECRET	0x40
#define AT_ONCE_US	2000000

struct map {
	uintptr_t start;
	size_t len;
};

/* The shared mappings of the verbs device in this process. */
static size_t device_maps(struct map *maps)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	size_t n = 0;

	check(f, "/proc/self/maps can be read");
	while (n < MAX_MAPS && fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (!strstr(line, "uverbs") || !strstr(line, " rw-s "))
			continue;
		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		maps[n++] = (struct map){ start, end - start };
	}
	fclose(f);
	return n;
}

static bool is_known(const struct map *maps, size_t n, uintptr_t start)
{
	for (size_t i = 0; i < n; i++)
		if (maps[i].start == start)
			return true;
	return false;
}

/* Read the header; false if this is no queue of the kind we know. */
static bool read_header(struct ring *r, const struct map *map)
{
	r->q = (struct rxe_queue_buf *)map->start;
	r->map_len = map->len;
	if (r->q->log2_elem_size < 4 || r->q->log2_elem_size > 12)
		return false;
	r->slot_len = (size_t)1 << r->q->log2_elem_size;
	r->mask = r->q->index_mask;
	return !(r->mask & (r->mask + 1)) &&
	       sizeof(*r->q) + r->slot_len * (r->mask + 1UL) <= map->len;
}

/* The rings that appeared since @before was taken. */
static size_t new_rings(struct ring *rings, size_t max,
			const struct map *before, size_t num_before)
{
	struct map now[MAX_MAPS];
	size_t num_now = device_maps(now);
	size_t n = 0;

	for (size_t i = 0; i < num_now && n < max; i++) {
		if (is_known(before, num_before, now[i].start))
			continue;
		if (!read_header(&rings[n++], &now[i]))
			ktap_skip("the provider's queues are of another kind");
	}
	return n;
}

/* Of a queue pair's two rings, the one with the longer slots is for sends. */
static void find_qp_rings(struct ring_env *e, const struct map *before,
			  size_t num_before)
{
	size_t want = e->srq ? 1 : 2;
	struct ring found[2];

	if (new_rings(found, want, before, num_before) != want)
		ktap_skip("the provider maps no queues");
	if (e->srq) {
		e->sq = found[0];
	} else if (found[0].slot_len > found[1].slot_len) {
		e->sq = found[0];
		e->rq = found[1];
	} else {
		e->sq = found[1];
		e->rq = found[0];
	}
	check(e->sq.slot_len >= sizeof(struct rxe_send_wqe),
	      "a slot holds a request");
}

static struct ring find_cq_ring(struct rdma_dev *dev, struct ibv_cq **cq,
				struct ibv_comp_channel *channel)
{
	struct map before[MAX_MAPS];
	size_t n = device_maps(before);
	struct ring r;

	*cq = ibv_create_cq(dev->ctx, 512, NULL, channel, 0);
	check(*cq, "ibv_create_cq");
	if (new_rings(&r, 1, before, n) != 1)
		ktap_skip("the provider maps no queues");
	return r;
}

static void create_shared_queue(struct ring_env *e)
{
	struct ibv_srq_init_attr init = {
		.attr = {
			.max_wr = e->a.conf.cap.max_recv_wr,
			.max_sge = e->a.conf.cap.max_recv_sge,
		},
	};
	struct map before[MAX_MAPS];
	size_t n = device_maps(before);

	e->srq = ibv_create_srq(e->a.pd, &init);
	if (!e->srq)
		ktap_skip("no shared receive queue: %s", strerror(errno));
	if (new_rings(&e->rq, 1, before, n) != 1)
		ktap_skip("the provider maps no queues");
	e->a.conf.srq = e->srq;
}

static void create_abused_qp(struct ring_env *e)
{
	struct map before[MAX_MAPS];
	size_t n = device_maps(before);

	e->a.qp = rdma_qp_create(&e->a);
	check(e->a.qp, "a queue pair: %s", strerror(errno));
	find_qp_rings(e, before, n);
}

/* a is made step by step, so that each ring is known. */
static void create_abused(struct ring_env *e, const struct rdma_conf *conf, bool shared)
{
	memset(&e->a, 0, sizeof(e->a));
	e->a.dev = &e->dev;
	e->a.conf = *conf;
	e->a.own_pd = !shared;	/* the shared queue is to go before it */
	e->a.pd = ibv_alloc_pd(e->dev.ctx);
	e->a.channel = ibv_create_comp_channel(e->dev.ctx);
	check(e->a.pd && e->a.channel, "a PD and a channel");
	e->scq = find_cq_ring(&e->dev, &e->a.scq, NULL);
	e->rcq = find_cq_ring(&e->dev, &e->a.rcq, e->a.channel);
	if (shared)
		create_shared_queue(e);
	create_abused_qp(e);
}

static struct rdma_conf abused_conf(enum ibv_qp_type type)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.type = type;
	/* every request ends by itself, soon */
	conf.rnr_retry = 1;
	conf.min_rnr_timer = 1;
	conf.timeout = 8;
	conf.retry_cnt = 1;
	return conf;
}

static void open_env(struct ring_env *e, enum ibv_qp_type type, bool shared)
{
	struct rdma_conf conf = abused_conf(type);
	struct rdma_conf plain = rdma_conf_default();

	memset(e, 0, sizeof(*e));
	e->seed = (unsigned int)ktap_opt.seed + 1;
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&e->dev, ktap_opt.device, ktap_opt.gid_index);
	create_abused(e, &conf, shared);
	rdma_end_create(&e->b, &e->dev, NULL, &conf);
	rdma_connect(&e->a, &e->b);
	rdma_end_create(&e->c, &e->dev, NULL, &plain);
	rdma_end_create(&e->d, &e->dev, NULL, &plain);
	rdma_connect(&e->c, &e->d);
	rdma_buf_create(&e->abuf, e->a.pd, RING_BUF_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_MW_BIND);
	rdma_buf_create(&e->bbuf, e->b.pd, RING_BUF_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&e->secret, e->c.pd, RING_BUF_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_MW_BIND);
	rdma_buf_fill(&e->secret, TAG_SECRET);
}

void ring_open(struct ring_env *e)
{
	open_env(e, IBV_QPT_RC, false);
}

void ring_open_shared(struct ring_env *e)
{
	open_env(e, IBV_QPT_RC, true);
}

void ring_open_unreliable(struct ring_env *e)
{
	open_env(e, IBV_QPT_UC, false);
}

/* librxe keeps the number to itself, so the kernel is asked for one. */
uint32_t ring_create_ah(struct ring_env *e, struct ibv_pd *pd)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_ah core;
	} cmd = {
		.core = {
			.pd_handle = pd->handle,
			.attr = {
				.is_global = 1,
				.port_num = e->dev.port,
				.grh.sgid_index = (uint8_t)e->dev.gid_index,
			},
		},
	};
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct rxe_create_ah_resp driver;
	} resp = {};

	memcpy(cmd.core.attr.grh.dgid, e->dev.gid.raw, sizeof(cmd.core.attr.grh.dgid));
	check_errno(ring_command(e->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_CREATE_AH, &cmd,
				 sizeof(cmd), &resp, sizeof(resp)), 0,
		    "an address handle");
	check(e->ah_count < RING_AHS, "room for address handles");
	e->ah_handles[e->ah_count++] = resp.core.ah_handle;
	return resp.driver.ah_num;
}

static void destroy_ahs(struct ring_env *e)
{
	while (e->ah_count) {
		struct {
			struct ib_uverbs_cmd_hdr hdr;
			struct ib_uverbs_destroy_ah core;
		} cmd = { .core.ah_handle = e->ah_handles[--e->ah_count] };

		check_errno(ring_command(e->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_DESTROY_AH,
					 &cmd, sizeof(cmd), NULL, 0), 0,
			    "destroying an address handle");
	}
}

void ring_open_datagrams(struct ring_env *e)
{
	open_env(e, IBV_QPT_UD, false);
	e->ah = ring_create_ah(e, e->a.pd);
}

void ring_close(struct ring_env *e)
{
	uint64_t start = rdma_now_us(), took;
	struct ibv_pd *pd = e->a.pd;

	destroy_ahs(e);
	rdma_buf_destroy(&e->secret);
	rdma_buf_destroy(&e->abuf);
	rdma_buf_destroy(&e->bbuf);
	rdma_end_destroy(&e->a);
	if (e->srq) {
		check_errno(ibv_destroy_srq(e->srq), 0, "ibv_destroy_srq");
		check_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	}
	rdma_end_destroy(&e->b);
	rdma_end_destroy(&e->c);
	rdma_end_destroy(&e->d);
	rdma_dev_close(&e->dev);
	took = rdma_now_us() - start;
	check(took < (uint64_t)AT_ONCE_US * ktap_opt.scale,
	      "all is destroyed at once (%llu ms)",
	      (unsigned long long)took / 1000);
}

void ring_recover(struct ring_env *e)
{
	rdma_reconnect(&e->a, &e->b);
}

void ring_mend(struct ring_env *e, enum ibv_wc_status status)
{
	if (status != IBV_WC_SUCCESS || rdma_state(e->a.qp) != IBV_QPS_RTS)
		ring_recover(e);
}

void ring_replace_qp(struct ring_env *e)
{
	check_errno(ibv_destroy_qp(e->a.qp), 0, "ibv_destroy_qp");
	rdma_drain(e->a.scq);
	rdma_drain(e->a.rcq);
	if (e->srq) {
		check_errno(ibv_destroy_srq(e->srq), 0, "ibv_destroy_srq");
		create_shared_queue(e);
	}
	create_abused_qp(e);
	ring_recover(e);
}

uint32_t ring_random(struct ring_env *e)
{
	return (uint32_t)rand_r(&e->seed) << 16 ^ (uint32_t)rand_r(&e->seed);
}

uint32_t ring_pick(struct ring_env *e, const uint32_t *from, size_t n)
{
	return from[ring_random(e) % n];
}

void ring_good_wqe(const struct ring_env *e, struct rxe_send_wqe *wqe)
{
	memset(wqe, 0, RING_SLOT_MAX);
	wqe->wr.wr_id = 0x600d;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	if (e->a.conf.type == IBV_QPT_UD) {
		wqe->wr.opcode = IBV_WR_SEND;
		wqe->wr.wr.ud.ah_num = e->ah;
		wqe->wr.wr.ud.remote_qpn = e->b.qp->qp_num;
		wqe->wr.wr.ud.remote_qkey = e->b.conf.qkey;
	} else {
		wqe->wr.opcode = IBV_WR_RDMA_WRITE;
		wqe->wr.wr.rdma.remote_addr = e->bbuf.iova;
		wqe->wr.wr.rdma.rkey = e->bbuf.mr->rkey;
	}
	wqe->dma.length = 64;
	wqe->dma.resid = 64;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0].addr = (uintptr_t)e->abuf.addr;
	wqe->dma.sge[0].length = 64;
	wqe->dma.sge[0].lkey = e->abuf.mr->lkey;
}

void ring_put(struct ring_env *e, const void *wqe, size_t len)
{
	struct rxe_queue_buf *q = e->sq.q;
	uint32_t at = q->producer_index & e->sq.mask;

	if (len > e->sq.slot_len)
		len = e->sq.slot_len;
	memcpy(q->data + at * e->sq.slot_len, wqe, len);
	__atomic_store_n(&q->producer_index, (at + 1) & e->sq.mask,
			 __ATOMIC_RELEASE);
}

int ring_command(int fd, uint32_t number, void *cmd, size_t len, void *resp,
		 size_t resp_len)
{
	struct ib_uverbs_cmd_hdr *hdr = cmd;

	hdr->command = number;
	hdr->in_words = (uint16_t)(len / 4);
	hdr->out_words = (uint16_t)(resp_len / 4);
	if (resp_len) {
		uint64_t at = (uintptr_t)resp;

		memcpy(hdr + 1, &at, sizeof(at));
	}
	return write(fd, cmd, len) == (ssize_t)len ? 0 : errno;
}

int ring_doorbell(struct ring_env *e)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send core;
	} cmd = {
		.core = {
			.qp_handle = e->a.qp->handle,
			.wqe_size = sizeof(struct ib_uverbs_send_wr),
		},
	};
	struct ib_uverbs_post_send_resp resp;

	return ring_command(e->dev.ctx->cmd_fd, IB_USER_VERBS_CMD_POST_SEND, &cmd,
			    sizeof(cmd), &resp, sizeof(resp));
}

enum ibv_wc_status ring_settle(struct ring_env *e)
{
	static uint64_t marker = MARKER_ID;
	enum ibv_wc_status first = IBV_WC_SUCCESS;
	union ring_slot slot;
	uint64_t id = ++marker;

	ring_good_wqe(e, &slot.wqe);
	slot.wqe.wr.wr_id = id;
	slot.wqe.dma.length = 0;
	slot.wqe.dma.num_sge = 0;
	ring_put(e, &slot, e->sq.slot_len);
	ring_doorbell(e);
	for (unsigned int n = 0;; n++) {
		struct ibv_wc wc;

		check(n <= e->sq.mask, "there is at most one CQE for a slot");
		check(rdma_wait_wc(e->a.scq, &wc, RDMA_WAIT_MS),
		      "what was posted comes to an end");
		if (wc.wr_id == id && wc.qp_num == e->a.qp->qp_num)
			return first;
		if (wc.status != IBV_WC_SUCCESS && first == IBV_WC_SUCCESS)
			first = wc.status;
	}
}

enum ibv_wc_status ring_post(struct ring_env *e, const union ring_slot *s)
{
	ring_put(e, s, sizeof(*s));
	ring_doorbell(e);
	return ring_settle(e);
}

void ring_expect_no_harm(struct ring_env *e)
{
	struct rdma_wr w;
	struct ibv_wc wc;

	check(rdma_buf_touched(&e->secret, TAG_SECRET, 0, 0) < 0,
	      "memory of others is untouched");
	rdma_recv(&e->d, 7, NULL, 0, 0);
	rdma_wr_send(&w, e->secret.addr, 4000, e->secret.mr->lkey);
	w.wr.num_sge = 0;
	check_eq(rdma_do(&e->c, &w, NULL), IBV_WC_SUCCESS,
		 "a message between the bystanders");
	check(rdma_wait_wc(e->d.rcq, &wc, RDMA_WAIT_MS), "its receive");
	check_eq(wc.status, IBV_WC_SUCCESS, "its receive");
	check_eq(rdma_state(e->d.qp), IBV_QPS_RTS, "a bystander's state");
}
