// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Random steps. Most of them aim at what the model says will work, at the
 * edges of it; some of those are spoiled in one place, since what differs in
 * one thing from what is allowed shows most. Where there is nothing to aim at,
 * it is made.
 */
#include "model.h"

#include <string.h>

#include "ktap.h"

#define ALL_REMOTE	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_ATOMIC)
#define WRITING		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define SPOILED		5	/* one in so many is made wrong */
#define ASTRAY		12	/* one in so many may aim at nothing */
#define TRIES		2	/* to draw another, before something is made */

/* How often, compared with each other. */
static const uint8_t op_weight[MODEL_OPS] = {
	[MODEL_ALLOC] = 8, [MODEL_DEALLOC] = 3,
	[MODEL_REG] = 8, [MODEL_DEREG] = 5,
	[MODEL_ALLOC_PD] = 1, [MODEL_DEALLOC_PD] = 1,
	[MODEL_BIND_CALL] = 9, [MODEL_BIND] = 14,
	[MODEL_LOCAL_INV] = 5, [MODEL_SEND_INV] = 5,
	[MODEL_READ] = 14, [MODEL_WRITE] = 16, [MODEL_CAS] = 5,
	[MODEL_FADD] = 5,
	[MODEL_TO_ERR] = 1, [MODEL_DESTROY] = 1, [MODEL_CONNECT] = 1,
};

static const uint16_t lengths[] = {
	1, 1, 2, 3, 7, 8, 8, 9, 16, 24, 63, 64, 128, 255, 256, 257, 511, 512,
	1023,
};

/* --- dice --- */

static uint64_t next(struct model_random *rnd)
{
	uint64_t z = rnd->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static unsigned int below(struct model_random *rnd, unsigned int n)
{
	return (unsigned int)((next(rnd) >> 32) % n);
}

static bool one_in(struct model_random *rnd, unsigned int n)
{
	return !below(rnd, n);
}

/* Any of the set bits, each by the toss of a coin. */
static unsigned int some_of(struct model_random *rnd, unsigned int bits)
{
	return bits & (unsigned int)next(rnd);
}

static enum model_op draw_op(struct model_random *rnd)
{
	unsigned int sum = 0;
	unsigned int at;
	int op = 0;

	for (int i = 0; i < MODEL_OPS; i++)
		sum += op_weight[i];
	at = below(rnd, sum);
	while (at >= op_weight[op])
		at -= op_weight[op++];
	return (enum model_op)op;
}

/* --- choosing among what there is --- */

static uint8_t draw_pd(struct model_random *rnd)
{
	static const uint8_t pds[] = { 0, 0, 0, 0, 0, 0, 1, 1, 1, 2 };

	return pds[below(rnd, ARRAY_SIZE(pds))];
}

/* A queue pair of the PD that works, if there is one. */
static uint8_t draw_qp(struct model_random *rnd, const struct model *m, int pd)
{
	unsigned int first = below(rnd, MODEL_QPS);

	for (unsigned int i = 0; i < MODEL_QPS; i++) {
		unsigned int qp = (first + i) % MODEL_QPS;

		if (m->qps[qp].pd == pd && m->qps[qp].state == MODEL_RTS)
			return (uint8_t)qp;
	}
	return (uint8_t)first;
}

/* A region of the PD with that access, if there is one. */
static int draw_region(struct model_random *rnd, const struct model *m, int pd,
		       unsigned int access)
{
	unsigned int first = below(rnd, MODEL_REGIONS);

	for (unsigned int i = 0; i < MODEL_REGIONS; i++) {
		unsigned int slot = (first + i) % MODEL_REGIONS;
		const struct model_region *r = &m->regions[slot];

		if (r->live && r->pd == pd && (r->access & access) == access)
			return (int)slot;
	}
	return MODEL_NONE;
}

/* One that allows less of a bind than others, if there is one. */
static int draw_poor_region(struct model_random *rnd, const struct model *m,
			    int pd)
{
	const unsigned int all = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE;
	unsigned int first = below(rnd, MODEL_REGIONS);

	for (unsigned int i = 0; i < MODEL_REGIONS; i++) {
		unsigned int slot = (first + i) % MODEL_REGIONS;
		const struct model_region *r = &m->regions[slot];

		if (r->live && r->pd == pd && (r->access & all) != all)
			return (int)slot;
	}
	return MODEL_NONE;
}

static bool can_be_bound(const struct model_window *w)
{
	return w->live && w->pd != MODEL_SPARE_PD &&
	       (w->type == IBV_MW_TYPE_1 || !w->bound);
}

static bool can_be_called(const struct model_window *w)
{
	return can_be_bound(w) && w->type == IBV_MW_TYPE_1;
}

static bool is_bound(const struct model_window *w)
{
	return w->live && w->bound;
}

static bool can_be_invalidated(const struct model_window *w)
{
	return is_bound(w) && w->type == IBV_MW_TYPE_2;
}

static bool is_live(const struct model_window *w)
{
	return w->live;
}

static bool is_gone(const struct model_window *w)
{
	return !w->live;
}

/* A window that is @good, if there is one. */
static int draw_window(struct model_random *rnd, const struct model *m,
		       bool (*good)(const struct model_window *w))
{
	unsigned int first = below(rnd, MODEL_WINDOWS);

	for (unsigned int i = 0; i < MODEL_WINDOWS; i++) {
		unsigned int slot = (first + i) % MODEL_WINDOWS;

		if (good(&m->windows[slot]))
			return (int)slot;
	}
	return MODEL_NONE;
}

/* Where nothing was found, any will do: it makes a step that must fail. */
static uint8_t or_any(struct model_random *rnd, int slot, unsigned int n)
{
	return (uint8_t)(slot == MODEL_NONE ? below(rnd, n) : (unsigned int)slot);
}

static struct model_ref ref(char what, unsigned int slot, char which, int delta)
{
	return (struct model_ref){ what, (uint8_t)slot, which, delta };
}

/* A key that is wrong, or at least another. */
static struct model_ref other_key(struct model_random *rnd,
				  const struct model_ref *right)
{
	static const int deltas[] = { 1, -1, -128, 2 };
	struct model_ref key = *right;

	switch (below(rnd, 6)) {
	case 0:
	case 1:
		key.delta += deltas[below(rnd, ARRAY_SIZE(deltas))];
		break;
	case 2:
		key.which = 'b';
		break;
	case 3:
		return ref('w', below(rnd, MODEL_WINDOWS), 'n', 0);
	case 4:
		return ref('r', below(rnd, MODEL_REGIONS), 'n', 0);
	default:
		return ref('z', 0, 'n', 0);
	}
	return key;
}

/*
 * A range that ends inside @size bytes, often at an edge; @step: what its
 * beginning is a multiple of, from @skew on.
 */
static void draw_range(struct model_random *rnd, struct model_step *s, char what,
		       unsigned int slot, uint64_t size, unsigned int skew)
{
	unsigned int len = lengths[below(rnd, ARRAY_SIZE(lengths))];
	unsigned int most;

	if (s->len)
		len = (unsigned int)s->len;
	else if (len > size || one_in(rnd, 8))
		len = size > MODEL_MSG_MAX ? MODEL_MSG_MAX : (unsigned int)size;
	s->len = len;
	most = size > len ? (unsigned int)size - len : 0;
	if (skew || one_in(rnd, 2))
		s->at = ref(what, slot, 's',
			    (int)(skew % 8 + 8 * below(rnd, most / 8 + 1)));
	else if (one_in(rnd, 2))
		s->at = ref(what, slot, 'e', -(int)len);
	else
		s->at = ref(what, slot, 's', (int)below(rnd, most + 1));
}

static void spoil_range(struct model_random *rnd, struct model_step *s)
{
	switch (below(rnd, 5)) {
	case 0:
		s->at.which = 's';
		s->at.delta = -1;
		break;
	case 1:
		s->at.which = 'e';
		s->at.delta = 1 - (int)(s->len & (MODEL_MSG_MAX - 1));
		break;
	case 2:
		s->at.which = 'e';
		s->at.delta = 0;
		break;
	case 3:
		s->at = ref('z', 0, 's', -(int)below(rnd, 9));
		break;
	default:
		s->at = ref('r', below(rnd, MODEL_REGIONS), 's', 0);
		break;
	}
}

/* --- binds --- */

static void spoil_bind(struct model_random *rnd, const struct model *m,
		       struct model_step *s)
{
	static const uint64_t huge[] = {
		UINT64_MAX, UINT64_MAX - 255, 1ULL << 63, 1ULL << 32, 4096,
	};
	int slot;

	switch (below(rnd, 10)) {
	case 0:
		if (s->op == MODEL_BIND)
			s->key = other_key(rnd, &s->key);
		break;
	case 1:
	case 9:
		slot = draw_window(rnd, m, can_be_invalidated);
		s->key.slot = or_any(rnd, slot, MODEL_WINDOWS);
		s->qp = draw_qp(rnd, m, m->windows[s->key.slot].pd);
		break;
	case 2:
		s->lkey = other_key(rnd, &s->lkey);
		break;
	case 3:
		slot = draw_poor_region(rnd, m, m->qps[s->qp].pd);
		s->lkey = ref('r', or_any(rnd, slot, MODEL_REGIONS), 'n', 0);
		s->rights |= ALL_REMOTE;
		break;
	case 4:
		s->qp = (uint8_t)below(rnd, MODEL_QPS);
		break;
	case 5:
		s->rights ^= one_in(rnd, 2) ? IBV_ACCESS_MW_BIND : 1U << 20;
		break;
	case 6:
		s->rights |= ALL_REMOTE;
		if (s->op == MODEL_BIND)
			s->rights |= some_of(rnd, IBV_ACCESS_ZERO_BASED);
		break;
	case 7:
		s->len = one_in(rnd, 3) ? 0 : huge[below(rnd, ARRAY_SIZE(huge))];
		break;
	default:
		spoil_range(rnd, s);
		break;
	}
}

static unsigned int draw_rights(struct model_random *rnd,
				const struct model_window *w,
				const struct model_region *r)
{
	unsigned int rights = some_of(rnd, ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);

	if (one_in(rnd, 3))
		rights |= ALL_REMOTE;
	if (!(r->access & IBV_ACCESS_LOCAL_WRITE))
		rights &= ~(unsigned int)WRITING;
	if (w->type == IBV_MW_TYPE_2)
		rights |= some_of(rnd, IBV_ACCESS_ZERO_BASED);
	return rights;
}

/* The keys that a window of type 2 may be named by and be given. */
static void vary_keys(struct model_random *rnd, struct model_step *s)
{
	unsigned int slot = s->key.slot;

	if (one_in(rnd, 4))
		s->key.which = 'f';
	else if (one_in(rnd, 4))
		s->new_key = ref('w', slot, 'f', (int)below(rnd, 2));
	if (one_in(rnd, 8))
		s->key = s->new_key;
}

/* False where there is nothing to bind, or nothing to bind it to. */
static bool draw_bind(struct model_random *rnd, const struct model *m,
		      struct model_step *s)
{
	static const int deltas[] = { 1, 1, 1, 2, -1, 77 };
	int found = draw_window(rnd, m, s->op == MODEL_BIND_CALL ?
				can_be_called : can_be_bound);
	uint8_t slot = or_any(rnd, found, MODEL_WINDOWS);
	const struct model_window *w = &m->windows[slot];
	int on = draw_region(rnd, m, w->pd, IBV_ACCESS_MW_BIND);
	uint8_t region = or_any(rnd, on, MODEL_REGIONS);
	const struct model_region *r = &m->regions[region];

	s->qp = draw_qp(rnd, m, w->pd);
	s->key = ref('w', slot, 'n', 0);
	s->new_key = ref('w', slot, 'n', deltas[below(rnd, ARRAY_SIZE(deltas))]);
	s->lkey = ref('r', region, 'n', 0);
	s->rights = draw_rights(rnd, w, r);
	if (w->type == IBV_MW_TYPE_2)
		vary_keys(rnd, s);
	draw_range(rnd, s, 'r', region, r->len, 0);
	if (w->type == IBV_MW_TYPE_1 && one_in(rnd, 6))
		s->len = 0;
	if (one_in(rnd, SPOILED))
		spoil_bind(rnd, m, s);
	/* Low bytes that come from one window are the same in every run. */
	if (s->key.what == 'w')
		s->new_key.slot = s->key.slot;
	return found != MODEL_NONE && on != MODEL_NONE;
}

/* --- invalidates --- */

static bool draw_invalidate(struct model_random *rnd, const struct model *m,
			    struct model_step *s)
{
	int found = draw_window(rnd, m, can_be_invalidated);
	uint8_t slot = or_any(rnd, found, MODEL_WINDOWS);

	s->key = ref('w', slot, 'n', 0);
	s->qp = (uint8_t)m->windows[slot].owner;
	if (s->op == MODEL_SEND_INV) {
		s->qp ^= 1;
		s->len = one_in(rnd, 2) ? 0 : lengths[below(rnd, ARRAY_SIZE(lengths))];
	}
	if (!one_in(rnd, SPOILED))
		return found != MODEL_NONE;
	if (one_in(rnd, 3))
		s->qp = (uint8_t)below(rnd, MODEL_QPS);
	else
		s->key = other_key(rnd, &s->key);
	return found != MODEL_NONE;
}

/* --- accesses --- */

static unsigned int right_for(enum model_op op)
{
	return op == MODEL_READ ? IBV_ACCESS_REMOTE_READ :
	       op == MODEL_WRITE ? IBV_ACCESS_REMOTE_WRITE :
				   IBV_ACCESS_REMOTE_ATOMIC;
}

static bool is_atomic(enum model_op op)
{
	return op == MODEL_CAS || op == MODEL_FADD;
}

/* An operation that those rights allow, if the drawn one is not. */
static void fit_op(struct model_random *rnd, struct model_step *s,
		   unsigned int rights)
{
	static const enum model_op ops[] = {
		MODEL_READ, MODEL_WRITE, MODEL_CAS, MODEL_FADD,
	};
	unsigned int first = below(rnd, ARRAY_SIZE(ops));

	for (unsigned int i = 0; i < ARRAY_SIZE(ops); i++) {
		if (rights & right_for(s->op))
			return;
		s->op = ops[(first + i) % ARRAY_SIZE(ops)];
	}
}

static void spoil_access(struct model_random *rnd, struct model_step *s)
{
	switch (below(rnd, 6)) {
	case 0:
	case 1:
		s->key = other_key(rnd, &s->key);
		break;
	case 2:
		s->qp = (uint8_t)below(rnd, MODEL_QPS);
		break;
	case 3:
		s->op = s->op == MODEL_WRITE ? MODEL_READ : MODEL_WRITE;
		break;
	default:
		spoil_range(rnd, s);
		break;
	}
}

static void draw_target(struct model_random *rnd, struct model_step *s,
			uint64_t start, uint64_t size)
{
	unsigned int skew = 0;

	if (is_atomic(s->op)) {
		s->len = 8;
		skew = (unsigned int)(-start % 8) + 8;
	}
	draw_range(rnd, s, s->key.what, s->key.slot, size, skew);
	if (one_in(rnd, 16))
		s->len = 0;
	else if (!s->len)
		s->len = 1;
}

static void draw_window_access(struct model_random *rnd, const struct model *m,
			       struct model_step *s, uint8_t slot)
{
	const struct model_window *w = &m->windows[slot];

	s->key = ref('w', slot, 'n', 0);
	fit_op(rnd, s, w->rights);
	if (w->type == IBV_MW_TYPE_2)
		s->qp = (uint8_t)w->owner ^ 1;
	else
		s->qp = draw_qp(rnd, m, w->pd) ^ 1;
	draw_target(rnd, s, w->start, w->len);
}

static void draw_region_access(struct model_random *rnd, const struct model *m,
			       struct model_step *s, uint8_t slot)
{
	const struct model_region *r = &m->regions[slot];

	s->key = ref('r', slot, 'n', 0);
	s->qp = draw_qp(rnd, m, r->pd) ^ 1;
	draw_target(rnd, s, r->iova, r->len);
}

static bool draw_access(struct model_random *rnd, const struct model *m,
			struct model_step *s)
{
	bool by_region = one_in(rnd, 6);
	int found = by_region ?
		draw_region(rnd, m, draw_pd(rnd), right_for(s->op)) :
		draw_window(rnd, m, is_bound);

	if (by_region)
		draw_region_access(rnd, m, s, or_any(rnd, found, MODEL_REGIONS));
	else
		draw_window_access(rnd, m, s, or_any(rnd, found, MODEL_WINDOWS));
	if (one_in(rnd, SPOILED))
		spoil_access(rnd, s);
	if (is_atomic(s->op))
		s->len = 8;
	return found != MODEL_NONE;
}

/* --- all of them --- */

static void draw_connect(struct model_random *rnd, struct model_step *s, int qp)
{
	s->op = MODEL_CONNECT;
	s->qp = (uint8_t)qp;
	s->rights = one_in(rnd, 4) ? some_of(rnd, ALL_REMOTE) : ALL_REMOTE;
}

static int find_gone_region(const struct model *m)
{
	for (int i = 0; i < MODEL_REGIONS; i++)
		if (!m->regions[i].live)
			return i;
	return MODEL_NONE;
}

/* A window or a region, for there was none to aim at. */
static void draw_supply(struct model_random *rnd, const struct model *m,
			struct model_step *s)
{
	int window = draw_window(rnd, m, is_gone);
	int region = find_gone_region(m);

	memset(s, 0, sizeof(*s));
	s->pd = draw_pd(rnd);
	if (one_in(rnd, 2)) {
		s->op = window == MODEL_NONE ? MODEL_DEALLOC : MODEL_ALLOC;
		s->slot = or_any(rnd, window, MODEL_WINDOWS);
		s->kind = one_in(rnd, 3) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	} else {
		s->op = region == MODEL_NONE ? MODEL_DEREG : MODEL_REG;
		s->slot = or_any(rnd, region, MODEL_REGIONS);
		s->kind = (uint8_t)below(rnd, MODEL_SHAPES);
	}
}

static int find_broken(const struct model *m)
{
	for (int qp = 0; qp < MODEL_QPS; qp++)
		if (m->qps[qp].state != MODEL_RTS)
			return qp;
	return MODEL_NONE;
}

static bool draw(struct model_random *rnd, const struct model *m,
		 struct model_step *s)
{
	s->op = draw_op(rnd);
	s->value = (uint8_t)next(rnd);
	switch (s->op) {
	case MODEL_ALLOC:
	case MODEL_REG:
		draw_supply(rnd, m, s);
		return true;
	case MODEL_DEALLOC:
		s->slot = or_any(rnd, draw_window(rnd, m, is_live),
				 MODEL_WINDOWS);
		return true;
	case MODEL_DEREG:
		s->slot = (uint8_t)below(rnd, MODEL_REGIONS);
		return true;
	case MODEL_BIND_CALL:
	case MODEL_BIND:
		return draw_bind(rnd, m, s) || one_in(rnd, ASTRAY);
	case MODEL_LOCAL_INV:
	case MODEL_SEND_INV:
		return draw_invalidate(rnd, m, s) || one_in(rnd, ASTRAY);
	case MODEL_READ:
	case MODEL_WRITE:
	case MODEL_CAS:
	case MODEL_FADD:
		return draw_access(rnd, m, s) || one_in(rnd, ASTRAY);
	case MODEL_CONNECT:
		draw_connect(rnd, s, (int)below(rnd, MODEL_QPS));
		return true;
	default:
		s->qp = (uint8_t)below(rnd, MODEL_QPS);
		return true;
	}
}

void model_draw(struct model_random *rnd, const struct model *m,
		struct model_step *s)
{
	int broken = find_broken(m);

	memset(s, 0, sizeof(*s));
	if (broken != MODEL_NONE && !one_in(rnd, 4)) {
		draw_connect(rnd, s, broken);
		return;
	}
	for (int tries = 0; !draw(rnd, m, s); tries++) {
		memset(s, 0, sizeof(*s));
		if (tries < TRIES)
			continue;
		draw_supply(rnd, m, s);
		break;
	}
	/* Use what is broken, from either side. */
	if (broken != MODEL_NONE && one_in(rnd, 2))
		s->qp = (uint8_t)(broken ^ (int)below(rnd, 2));
}
