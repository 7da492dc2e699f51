// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rules of memory windows once more, from the verbs and not from the
 * driver: slow, plain, and with sums in 128 bits instead of care.
 */
#include "model.h"

#include <errno.h>
#include <string.h>

#define ALL_REMOTE	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_ATOMIC)
#define ALL		(ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | \
			 IBV_ACCESS_MW_BIND)
#define WRITING		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

const int model_qp_pd[MODEL_QPS] = { 0, 1, 0, 0, 1, 0 };

/*
 * They overlap, so that a byte has many ways to it. An address that the user
 * chooses must have the memory's offset in its page.
 */
const struct model_shape model_shapes[MODEL_SHAPES] = {
	{ 0, 512, false, 0, ALL },
	{ 256, 512, true, 0x1d00, ALL },
	{ 768, 256, true, -256ULL, ALL },	/* ends with the last byte */
	{ 767, 256, true, -257ULL, ALL },	/* and one before it */
	{ 1024, 256, true, 0, ALL },
	{ 128, 256, false, 0, ALL | IBV_ACCESS_ZERO_BASED },
	{ 1300, 256, false, 0, ALL | IBV_ACCESS_ZERO_BASED }, /* odd memory */
	{ 0, 512, false, 0, ALL & ~IBV_ACCESS_MW_BIND },
	{ 64, 256, false, 0, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND },
	{ 0, 2048, false, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND },
	{ 1021, 9, true, 0x20ffd, ALL },	/* on two pages */
	/* ibv_reg_mr(3): remote write needs local write */
	{ 0, 256, false, 0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND },
};

const char *const model_rule_name[MODEL_RULES] = {
	[MODEL_SKIPPED] = "skipped",
	[MODEL_FINE] = "fine",
	[MODEL_BAD_SHAPE] = "remote write needs local write",
	[MODEL_BUSY] = "busy",
	[MODEL_NOT_TYPE1] = "ibv_bind_mw is for type 1",
	[MODEL_FLUSHED] = "the queue pair is in ERR",
	[MODEL_NO_PEER] = "the peer is not there",
	[MODEL_ZERO_LENGTH] = "no bytes, no key",
	[MODEL_NO_KEY] = "nothing has this key",
	[MODEL_UNBOUND] = "the window is not bound",
	[MODEL_ACCESS_PD] = "the key is of another PD",
	[MODEL_ACCESS_QP] = "the window is bound to another queue pair",
	[MODEL_RIGHT] = "window or region lacks the right",
	[MODEL_QP_RIGHT] = "the queue pair lacks the right",
	[MODEL_RANGE] = "a byte is outside",
	[MODEL_MISALIGNED] = "the address of an atomic is misaligned",
	[MODEL_MISALIGNED_MEMORY] = "the memory of an atomic is misaligned",
	[MODEL_NO_WINDOW] = "no window has this index",
	[MODEL_BIND_KEY] = "bind: not the window's key",
	[MODEL_NOT_FREE] = "bind: the window is not Free",
	[MODEL_BIND_PD] = "bind: more than one PD",
	[MODEL_NO_REGION] = "bind: no region has this lkey",
	[MODEL_ZERO_BASED_REGION] = "bind: the region is zero based",
	[MODEL_NO_MW_BIND] = "bind: the region lacks MW_BIND",
	[MODEL_NO_LOCAL_WRITE] = "bind: the region lacks LOCAL_WRITE",
	[MODEL_BIND_FLAGS] = "bind: flags",
	[MODEL_BIND_LENGTH] = "bind: type 2 of no bytes",
	[MODEL_BIND_RANGE] = "bind: a byte is outside the region",
	[MODEL_UNBIND] = "bind of no bytes unbinds",
	[MODEL_INV_KEY] = "invalidate: no window has this key",
	[MODEL_INV_TYPE1] = "invalidate: type 1",
	[MODEL_INV_FREE] = "invalidate: the window is Free",
	[MODEL_INV_QP] = "invalidate: bound to another queue pair",
};

void model_init(struct model *m, uint64_t memory_at)
{
	memset(m, 0, sizeof(*m));
	m->memory_at = memory_at;
	for (int i = 0; i < MODEL_PDS; i++)
		m->pd_live[i] = true;
	for (int i = 0; i < MODEL_QPS; i++) {
		m->qps[i].pd = model_qp_pd[i];
		m->qps[i].rights = ALL_REMOTE;
	}
	for (size_t i = 0; i < MODEL_MEMORY; i++)
		m->memory[i] = (uint8_t)(i * 37 + (i >> 8));
}

/* --- numbers --- */

static uint32_t key_of(const struct model *m, const struct model_ref *ref)
{
	const struct model_window *w = &m->windows[ref->slot];
	const struct model_region *r = &m->regions[ref->slot];
	uint32_t key = 0;

	if (ref->what == 'w')
		key = ref->which == 'b' ? w->old_key :
		      ref->which == 'f' ? w->first_key : w->key;
	else if (ref->what == 'r')
		key = ref->which == 'b' ? r->old_key : r->key;
	return (key & ~0xffU) | ((key + (uint32_t)ref->delta) & 0xff);
}

static uint64_t address_of(const struct model *m, const struct model_ref *ref)
{
	const struct model_window *w = &m->windows[ref->slot];
	const struct model_region *r = &m->regions[ref->slot];
	uint64_t at = 0;

	if (ref->what == 'w')
		at = w->start + (ref->which == 'e' ? w->len : 0);
	else if (ref->what == 'r')
		at = r->iova + (ref->which == 'e' ? r->len : 0);
	return at + (uint64_t)(int64_t)ref->delta;
}

uint8_t model_byte(const struct model_step *s, size_t i)
{
	return (uint8_t)(s->value + i * 29 + (i >> 8));
}

void model_resolve(const struct model *m, const struct model_step *s,
		   struct model_request *r)
{
	r->step = s;
	r->key = key_of(m, &s->key);
	/* ibv_bind_mw(3) chooses by itself */
	r->new_key = s->op == MODEL_BIND_CALL ? ibv_inc_rkey(r->key) :
						key_of(m, &s->new_key);
	r->lkey = key_of(m, &s->lkey);
	r->at = address_of(m, &s->at);
	r->compare = 0;
	r->operand = s->value * 0x0123456789abcdefULL;
}

/* --- what the tables say --- */

static struct model_window *find_window(struct model *m, uint32_t key)
{
	for (int i = 0; i < MODEL_WINDOWS; i++)
		if (m->windows[i].live && m->windows[i].key >> 8 == key >> 8)
			return &m->windows[i];
	return NULL;
}

static struct model_region *find_region(struct model *m, uint32_t key)
{
	for (int i = 0; i < MODEL_REGIONS; i++)
		if (m->regions[i].live && m->regions[i].key == key)
			return &m->regions[i];
	return NULL;
}

static bool region_is_bound(const struct model *m, int region)
{
	for (int i = 0; i < MODEL_WINDOWS; i++) {
		const struct model_window *w = &m->windows[i];

		if (w->live && w->bound && w->region == region)
			return true;
	}
	return false;
}

/* In so many bits that no sum wraps. */
static bool within(uint64_t start, uint64_t size, uint64_t at, uint64_t len)
{
	unsigned __int128 outer_end = start;
	unsigned __int128 end = at;

	outer_end += size;
	end += len;
	return at >= start && end <= outer_end;
}

/* A queue pair that ends takes the binds of type 2 with it (o10-2.2.5). */
static void free_windows_of(struct model *m, int qp)
{
	for (int i = 0; i < MODEL_WINDOWS; i++)
		if (m->windows[i].type == IBV_MW_TYPE_2 &&
		    m->windows[i].owner == qp)
			m->windows[i].bound = false;
}

/* --- objects --- */

static enum model_rule alloc(struct model *m, const struct model_step *s)
{
	struct model_window *w = &m->windows[s->slot];
	uint32_t last = w->key;

	if (w->live || !m->pd_live[s->pd])
		return MODEL_SKIPPED;
	*w = (struct model_window){
		.live = true,
		.pd = s->pd,
		.type = s->kind,
		.old_key = last,
		.start = w->start,
		.len = w->len,
	};
	return MODEL_FINE;
}

static enum model_rule dealloc(struct model *m, const struct model_step *s)
{
	struct model_window *w = &m->windows[s->slot];

	if (!w->live)
		return MODEL_SKIPPED;
	w->live = false;
	w->bound = false;
	return MODEL_FINE;
}

static uint64_t iova_of(const struct model *m, const struct model_shape *shape)
{
	if (shape->access & IBV_ACCESS_ZERO_BASED)
		return 0;
	return shape->fixed ? shape->iova : m->memory_at + shape->off;
}

static enum model_rule reg(struct model *m, const struct model_step *s)
{
	const struct model_shape *shape = &model_shapes[s->kind];
	struct model_region *r = &m->regions[s->slot];

	if (r->live || !m->pd_live[s->pd])
		return MODEL_SKIPPED;
	if (shape->access & WRITING && !(shape->access & IBV_ACCESS_LOCAL_WRITE))
		return MODEL_BAD_SHAPE;
	*r = (struct model_region){
		.live = true,
		.pd = s->pd,
		.old_key = r->key,
		.access = shape->access,
		.iova = iova_of(m, shape),
		.len = shape->len,
		.off = shape->off,
	};
	return MODEL_FINE;
}

static enum model_rule dereg(struct model *m, const struct model_step *s)
{
	struct model_region *r = &m->regions[s->slot];

	if (!r->live)
		return MODEL_SKIPPED;
	if (region_is_bound(m, s->slot))
		return MODEL_BUSY;
	r->live = false;
	return MODEL_FINE;
}

static enum model_rule alloc_pd(struct model *m)
{
	if (m->pd_live[MODEL_SPARE_PD])
		return MODEL_SKIPPED;
	m->pd_live[MODEL_SPARE_PD] = true;
	return MODEL_FINE;
}

static enum model_rule dealloc_pd(struct model *m)
{
	if (!m->pd_live[MODEL_SPARE_PD])
		return MODEL_SKIPPED;
	for (int i = 0; i < MODEL_WINDOWS; i++)
		if (m->windows[i].live && m->windows[i].pd == MODEL_SPARE_PD)
			return MODEL_BUSY;
	for (int i = 0; i < MODEL_REGIONS; i++)
		if (m->regions[i].live && m->regions[i].pd == MODEL_SPARE_PD)
			return MODEL_BUSY;
	m->pd_live[MODEL_SPARE_PD] = false;
	return MODEL_FINE;
}

static bool index_is_taken(const struct model *m, uint32_t index)
{
	for (int i = 0; i < MODEL_WINDOWS; i++)
		if (m->windows[i].live && m->windows[i].key >> 8 == index)
			return true;
	for (int i = 0; i < MODEL_REGIONS; i++)
		if (m->regions[i].live && m->regions[i].key >> 8 == index)
			return true;
	return false;
}

bool model_learn_key(struct model *m, const struct model_step *s, uint32_t key)
{
	if (index_is_taken(m, key >> 8))
		return false;
	if (s->op == MODEL_ALLOC) {
		m->windows[s->slot].key = key;
		m->windows[s->slot].first_key = key;
	} else {
		m->regions[s->slot].key = key;
	}
	return true;
}

static enum model_rule end_qp(struct model *m, int qp, enum model_qp_state state)
{
	if (m->qps[qp].state == MODEL_GONE)
		return MODEL_SKIPPED;
	m->qps[qp].state = state;
	if (state == MODEL_GONE)
		free_windows_of(m, qp);
	return MODEL_FINE;
}

/* Both ends are reset, or made anew, and connected. */
static enum model_rule connect(struct model *m, const struct model_step *s)
{
	free_windows_of(m, s->qp);
	free_windows_of(m, s->qp ^ 1);
	m->qps[s->qp].state = MODEL_RTS;
	m->qps[s->qp ^ 1].state = MODEL_RTS;
	m->qps[s->qp].rights = s->rights;
	return MODEL_FINE;
}

/* --- binding and invalidating --- */

/* Stock user space posts any of three keys for a type 2 window. */
static bool bind_key_is_good(const struct model_window *w,
			     const struct model_request *r)
{
	if (r->key == w->key)
		return true;
	if (w->type == IBV_MW_TYPE_1)
		return false;
	return r->key == w->first_key || (r->key & 0xff) == (r->new_key & 0xff);
}

static enum model_rule judge_bind(const struct model *m,
				  const struct model_request *r,
				  const struct model_window *w,
				  const struct model_region *region)
{
	unsigned int flags = ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE;
	const struct model_step *s = r->step;
	int pd = m->qps[s->qp].pd;

	if (!w)
		return MODEL_NO_WINDOW;
	if (!bind_key_is_good(w, r))
		return MODEL_BIND_KEY;
	if (w->pd != pd)
		return MODEL_BIND_PD;
	if (w->type == IBV_MW_TYPE_1 && !s->len)
		return MODEL_UNBIND;
	if (w->type == IBV_MW_TYPE_2 && w->bound)
		return MODEL_NOT_FREE;
	if (!region)
		return MODEL_NO_REGION;
	if (region->pd != pd)
		return MODEL_BIND_PD;
	if (region->access & IBV_ACCESS_ZERO_BASED)
		return MODEL_ZERO_BASED_REGION;
	if (!(region->access & IBV_ACCESS_MW_BIND))
		return MODEL_NO_MW_BIND;
	if (s->rights & WRITING && !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return MODEL_NO_LOCAL_WRITE;
	if (w->type == IBV_MW_TYPE_2)
		flags |= IBV_ACCESS_ZERO_BASED;
	if (s->rights & ~flags)
		return MODEL_BIND_FLAGS;
	if (!s->len)
		return MODEL_BIND_LENGTH;
	if (!within(region->iova, region->len, r->at, s->len))
		return MODEL_BIND_RANGE;
	return MODEL_FINE;
}

static enum model_rule bind(struct model *m, const struct model_request *r)
{
	struct model_region *region = find_region(m, r->lkey);
	struct model_window *w = find_window(m, r->key);
	enum model_rule rule = judge_bind(m, r, w, region);
	const struct model_step *s = r->step;

	if (rule != MODEL_FINE && rule != MODEL_UNBIND)
		return rule;
	w->old_key = w->key;
	w->key = (w->key & ~0xffU) | (r->new_key & 0xff);
	w->bound = rule == MODEL_FINE;
	if (!w->bound)
		return rule;
	w->region = (int)(region - m->regions);
	w->owner = s->qp;
	w->rights = s->rights;
	w->start = s->rights & IBV_ACCESS_ZERO_BASED ? 0 : r->at;
	w->len = s->len;
	w->off = region->off + (size_t)(r->at - region->iova);
	return rule;
}

/* @qp: the one that invalidates, or that is sent the SEND_WITH_INV. */
static enum model_rule invalidate(struct model *m, int qp, uint32_t key)
{
	struct model_window *w = find_window(m, key);

	if (!w || w->key != key)
		return MODEL_INV_KEY;
	if (w->type == IBV_MW_TYPE_1)
		return MODEL_INV_TYPE1;
	if (!w->bound)
		return MODEL_INV_FREE;
	if (w->owner != qp)
		return MODEL_INV_QP;
	w->bound = false;
	return MODEL_FINE;
}

/* --- access --- */

static unsigned int right_for(enum model_op op)
{
	switch (op) {
	case MODEL_READ:
		return IBV_ACCESS_REMOTE_READ;
	case MODEL_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	default:
		return IBV_ACCESS_REMOTE_ATOMIC;
	}
}

/* What a key lets its user reach. */
struct reach {
	int pd;
	int owner;		/* MODEL_NONE: any queue pair */
	unsigned int rights;
	uint64_t start;
	uint64_t len;
	size_t off;
};

static enum model_rule find_reach(struct model *m, uint32_t key,
				  struct reach *reach)
{
	const struct model_region *r = find_region(m, key);
	const struct model_window *w = find_window(m, key);

	if (r) {
		*reach = (struct reach){ r->pd, MODEL_NONE, r->access, r->iova,
					 r->len, r->off };
		return MODEL_FINE;
	}
	if (!w || w->key != key)
		return MODEL_NO_KEY;
	if (!w->bound)
		return MODEL_UNBOUND;
	*reach = (struct reach){
		w->pd, w->type == IBV_MW_TYPE_2 ? w->owner : MODEL_NONE,
		w->rights, w->start, w->len, w->off,
	};
	return MODEL_FINE;
}

static enum model_rule judge_access(struct model *m,
				    const struct model_request *r, size_t *off)
{
	const struct model_step *s = r->step;
	unsigned int right = right_for(s->op);
	enum model_rule rule;
	struct reach reach;
	int qp = s->qp ^ 1;

	if (right == IBV_ACCESS_REMOTE_ATOMIC && r->at % 8)
		return MODEL_MISALIGNED;
	if (!s->len) /* C9-88 */
		return MODEL_ZERO_LENGTH;
	rule = find_reach(m, r->key, &reach);
	if (rule != MODEL_FINE)
		return rule;
	if (reach.pd != m->qps[qp].pd)
		return MODEL_ACCESS_PD;
	if (reach.owner != MODEL_NONE && reach.owner != qp)
		return MODEL_ACCESS_QP;
	if (!(reach.rights & right))
		return MODEL_RIGHT;
	if (!(m->qps[qp].rights & right))
		return MODEL_QP_RIGHT;
	if (!within(reach.start, reach.len, r->at, s->len))
		return MODEL_RANGE;
	*off = reach.off + (size_t)(r->at - reach.start);
	if (right == IBV_ACCESS_REMOTE_ATOMIC && *off % 8)
		return MODEL_MISALIGNED_MEMORY;
	return MODEL_FINE;
}

static void store(uint8_t *to, uint64_t value)
{
	memcpy(to, &value, sizeof(value));
}

static void change(uint8_t *at, struct model_request *r)
{
	uint64_t old;

	memcpy(&old, at, sizeof(old));
	if (r->step->op == MODEL_FADD) {
		store(at, old + r->operand);
		return;
	}
	/* half of the comparisons hold */
	r->compare = r->step->value & 1 ? old : ~old;
	if (r->compare == old)
		store(at, r->operand);
}

static void move(struct model *m, struct model_request *r, size_t off,
		 struct model_result *want)
{
	const struct model_step *s = r->step;
	uint8_t *at = m->memory + off;

	if (s->op == MODEL_WRITE) {
		for (size_t i = 0; i < s->len; i++)
			at[i] = model_byte(s, i);
		return;
	}
	memcpy(want->fetched, at, s->len);
	want->fetched_len = (uint32_t)s->len;
	if (s->op != MODEL_READ)
		change(at, r);
}

static enum model_rule access_memory(struct model *m, struct model_request *r,
				     struct model_result *want)
{
	enum model_rule rule;
	size_t off;

	rule = judge_access(m, r, &off);
	if (rule == MODEL_FINE)
		move(m, r, off, want);
	return rule;
}

/* --- requests and what comes back --- */

static bool is_success(enum model_rule rule)
{
	return rule == MODEL_FINE || rule == MODEL_ZERO_LENGTH ||
	       rule == MODEL_UNBIND;
}

/* A request that ends at this queue pair. */
static enum model_rule local_request(struct model *m,
				     const struct model_request *r,
				     struct model_result *want)
{
	const struct model_step *s = r->step;
	enum model_rule rule;

	rule = s->op == MODEL_LOCAL_INV ? invalidate(m, s->qp, r->key) :
					  bind(m, r);
	if (!is_success(rule)) {
		want->status = IBV_WC_MW_BIND_ERR;
		m->qps[s->qp].state = MODEL_ERR;
	}
	return rule;
}

/* Class J: the receive tells the responder, and nobody the requester. */
static enum model_rule send_inv(struct model *m, const struct model_request *r,
				struct model_result *want)
{
	enum model_rule rule = invalidate(m, r->step->qp ^ 1, r->key);

	want->recv = IBV_WC_SUCCESS;
	if (!is_success(rule)) {
		want->recv = IBV_WC_REM_INV_REQ_ERR;
		want->status = IBV_WC_RETRY_EXC_ERR;
	}
	return rule;
}

static enum model_rule remote_request(struct model *m, struct model_request *r,
				      struct model_result *want)
{
	const struct model_step *s = r->step;
	enum model_rule rule;

	if (m->qps[s->qp ^ 1].state != MODEL_RTS) {
		want->status = IBV_WC_RETRY_EXC_ERR;
		m->qps[s->qp].state = MODEL_ERR;
		return MODEL_NO_PEER;
	}
	if (s->op == MODEL_SEND_INV) {
		rule = send_inv(m, r, want);
	} else {
		rule = access_memory(m, r, want);
		if (rule == MODEL_MISALIGNED || rule == MODEL_MISALIGNED_MEMORY) {
			want->status = IBV_WC_REM_INV_REQ_ERR;
			want->event = IBV_EVENT_QP_REQ_ERR;
		} else if (!is_success(rule)) {
			want->status = IBV_WC_REM_ACCESS_ERR;
			want->event = IBV_EVENT_QP_ACCESS_ERR;
		}
	}
	if (!is_success(rule)) {
		m->qps[s->qp].state = MODEL_ERR;
		m->qps[s->qp ^ 1].state = MODEL_ERR;
	}
	return rule;
}

static enum model_rule request(struct model *m, struct model_request *r,
			       struct model_result *want)
{
	const struct model_step *s = r->step;

	if (m->qps[s->qp].state == MODEL_GONE)
		return MODEL_SKIPPED;
	if (s->op == MODEL_BIND_CALL) {
		/* the library has a mind of its own about zero based ones */
		if (s->key.what != 'w' || !m->windows[s->key.slot].live ||
		    s->rights & IBV_ACCESS_ZERO_BASED)
			return MODEL_SKIPPED;
		if (m->windows[s->key.slot].type != IBV_MW_TYPE_1)
			return MODEL_NOT_TYPE1;
	}
	want->status = IBV_WC_SUCCESS;
	if (m->qps[s->qp].state == MODEL_ERR) {
		want->status = IBV_WC_WR_FLUSH_ERR;
		return MODEL_FLUSHED;
	}
	if (s->op == MODEL_BIND || s->op == MODEL_BIND_CALL ||
	    s->op == MODEL_LOCAL_INV)
		return local_request(m, r, want);
	return remote_request(m, r, want);
}

static enum model_rule apply(struct model *m, struct model_request *r,
			     struct model_result *want)
{
	const struct model_step *s = r->step;

	switch (s->op) {
	case MODEL_ALLOC:
		return alloc(m, s);
	case MODEL_DEALLOC:
		return dealloc(m, s);
	case MODEL_REG:
		return reg(m, s);
	case MODEL_DEREG:
		return dereg(m, s);
	case MODEL_ALLOC_PD:
		return alloc_pd(m);
	case MODEL_DEALLOC_PD:
		return dealloc_pd(m);
	case MODEL_TO_ERR:
		return end_qp(m, s->qp, MODEL_ERR);
	case MODEL_DESTROY:
		return end_qp(m, s->qp, MODEL_GONE);
	case MODEL_CONNECT:
		return connect(m, s);
	default:
		return request(m, r, want);
	}
}

void model_apply(struct model *m, struct model_request *r,
		 struct model_result *want)
{
	want->err = 0;
	want->status = MODEL_NONE;
	want->recv = MODEL_NONE;
	want->event = MODEL_NONE;
	want->fetched_len = 0;
	want->rule = apply(m, r, want);
	if (want->rule == MODEL_BUSY)
		want->err = EBUSY;
	else if (want->rule == MODEL_BAD_SHAPE || want->rule == MODEL_NOT_TYPE1)
		want->err = EINVAL;
}
