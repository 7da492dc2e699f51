// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fire.h"

#include <stdlib.h>

#define REGION_OFF	72	/* from a page boundary: 8-byte aligned only */
#define SOURCE_LEN	(2 * FIRE_DATA)
#define LOCAL_LEN	(SOURCE_LEN + FIRE_DEPTH * FIRE_DATA + FIRE_DEPTH * 8)

unsigned int fire_draw(unsigned int *seed, unsigned int below)
{
	return (unsigned int)rand_r(seed) % below;
}

/* --- opening and closing --- */

static void open_devices(struct fire *f)
{
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&f->dev, ktap_opt.device, ktap_opt.gid_index);
	f->two_devices = ktap_opt.peer_device;
	if (f->two_devices)
		rdma_dev_open(&f->peer_dev, ktap_opt.peer_device, -1);
}

/* The lane's local memory: what it writes, then what each slot reads to. */
static void open_local(struct fire_lane *lane)
{
	uint8_t *at;

	rdma_buf_create(&lane->local, lane->peer.pd, LOCAL_LEN, 0,
			IBV_ACCESS_LOCAL_WRITE);
	at = lane->local.addr;
	for (size_t i = 0; i < SOURCE_LEN; i++)
		at[i] = rdma_buf_byte(0, i) | 0x80;
	memset(at + SOURCE_LEN, 0xff, LOCAL_LEN - SOURCE_LEN);
	at += SOURCE_LEN;
	for (size_t i = 0; i < FIRE_DEPTH; i++) {
		lane->slot[i].data = at + i * FIRE_DATA;
		lane->slot[i].word =
			(uint64_t *)(at + (size_t)FIRE_DEPTH * FIRE_DATA) + i;
	}
}

static void open_lane(struct fire *f, unsigned int i)
{
	struct rdma_dev *peer_dev = f->two_devices ? &f->peer_dev : &f->dev;
	struct rdma_conf conf = rdma_conf_default();
	struct fire_lane *lane = &f->lane[i];

	lane->fire = f;
	lane->seed = (unsigned int)ktap_opt.seed + i + 1;
	rdma_end_create(&lane->owner, &f->dev, i ? f->lane[0].owner.pd : NULL,
			&conf);
	rdma_end_create(&lane->peer, peer_dev, NULL, &conf);
	rdma_connect(&lane->owner, &lane->peer);
	open_local(lane);
}

static void open_targets(struct fire *f, const struct fire_way *way)
{
	f->num_targets = way->type == IBV_MW_TYPE_2 ? FIRE_LANES : 1;
	for (unsigned int i = 0; i < f->num_targets; i++) {
		struct fire_target *t = &f->target[i];

		t->end = &f->lane[i].owner;
		t->peer = &f->lane[i].peer;
		t->off = i * (size_t)FIRE_PART;
		t->len = f->num_targets == 1 ? FIRE_PARTS : FIRE_PART;
	}
}

void fire_open(struct fire *f, const struct fire_way *way)
{
	memset(f, 0, sizeof(*f));
	f->seed = (unsigned int)ktap_opt.seed;
	open_devices(f);
	for (unsigned int i = 0; i < FIRE_LANES; i++)
		open_lane(f, i);
	rdma_buf_create(&f->region, f->lane[0].owner.pd, FIRE_REGION,
			REGION_OFF, FIRE_RIGHTS);
	f->snapshot = malloc(FIRE_REGION);
	f->elsewhere = malloc(FIRE_REGION);
	check(f->snapshot && f->elsewhere, "malloc");
	f->other_pd = ibv_alloc_pd(f->dev.ctx);
	check(f->other_pd, "ibv_alloc_pd");
	open_targets(f, way);
}

void fire_close(struct fire *f)
{
	for (unsigned int i = 0; i < f->num_targets; i++)
		if (f->target[i].mw)
			check_errno(ibv_dealloc_mw(f->target[i].mw), 0,
				    "ibv_dealloc_mw");
	rdma_buf_destroy(&f->region);
	check_errno(ibv_dealloc_pd(f->other_pd), 0, "ibv_dealloc_pd");
	/* The first one's protection domain is everybody's. */
	for (unsigned int i = FIRE_LANES; i-- > 0;) {
		rdma_buf_destroy(&f->lane[i].local);
		rdma_end_destroy(&f->lane[i].peer);
		rdma_end_destroy(&f->lane[i].owner);
	}
	if (f->two_devices)
		rdma_dev_close(&f->peer_dev);
	rdma_dev_close(&f->dev);
	free(f->elsewhere);
	free(f->snapshot);
}

/* --- between rounds --- */

static void register_region(struct fire *f)
{
	struct rdma_buf *r = &f->region;

	if (r->mr)
		check_errno(ibv_dereg_mr(r->mr), 0, "ibv_dereg_mr");
	r->mr = ibv_reg_mr_iova(f->lane[0].owner.pd, r->addr, r->len, r->iova,
				FIRE_RIGHTS);
	check(r->mr, "ibv_reg_mr_iova: %s", strerror(errno));
}

static void fill_before(struct fire *f)
{
	memset(f->region.addr, FIRE_BEFORE, FIRE_REGION);
	for (size_t i = 0; i < FIRE_LANES; i++) {
		uint8_t *words = f->region.addr + i * FIRE_PART + FIRE_DATA;

		for (size_t j = 0; j < FIRE_WORDS; j++)
			memcpy(words + j * 8, &(uint64_t){ FIRE_WORD }, 8);
	}
}

static void arm_target(struct fire *f, const struct fire_way *way,
		       struct fire_target *t)
{
	if (!way->type) {
		register_region(f);
		t->rkey = f->region.mr->rkey;
		return;
	}
	if (way->type == IBV_MW_TYPE_1) {
		struct fire_lane *lane =
			&f->lane[fire_draw(&f->seed, FIRE_LANES)];

		/* Any queue pair of the protection domain will do. */
		t->end = &lane->owner;
		t->peer = &lane->peer;
	}
	if (!t->mw) {
		t->mw = ibv_alloc_mw(t->end->pd, (enum ibv_mw_type)way->type);
		check(t->mw, "ibv_alloc_mw: %s", strerror(errno));
		t->rkey = t->mw->rkey;
	}
	fire_bind(f, t, t->off, t->len);
}

void fire_arm(struct fire *f, const struct fire_way *way)
{
	fill_before(f);
	for (unsigned int i = 0; i < f->num_targets; i++)
		arm_target(f, way, &f->target[i]);
	for (unsigned int i = 0; i < FIRE_LANES; i++) {
		struct fire_lane *lane = &f->lane[i];

		lane->rkey = f->target[i % f->num_targets].rkey;
		lane->va = f->region.iova + i * (size_t)FIRE_PART;
	}
}

/* Refusals are events too; nobody else takes them away. */
static void drop_events(struct rdma_dev *dev)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(dev->ctx, &event))
		ibv_ack_async_event(&event);
}

void fire_drop_events(struct fire *f)
{
	drop_events(&f->dev);
	if (f->two_devices)
		drop_events(&f->peer_dev);
}

void fire_reconnect(struct fire_lane *lane)
{
	/* It may have been destroyed. */
	if (!lane->owner.qp)
		lane->owner.qp = rdma_qp_create(&lane->owner);
	check(lane->owner.qp, "another queue pair can be made");
	/* What is late is no packet of the next round. */
	lane->owner.conf.psn = fire_draw(&lane->seed, 1U << 24);
	lane->peer.conf.psn = fire_draw(&lane->seed, 1U << 24);
	rdma_reconnect(&lane->owner, &lane->peer);
}
