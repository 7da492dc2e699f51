// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Steps done by a device through libibverbs, and compared with the model. */
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma_pair.h"
#include "rdma_post.h"

#define PAGE		4096
#define MAP_LEN		(3 * PAGE)
#define WAIT_MS		2000
#define OUTSIDE		0x5c	/* bytes around the memory */
#define UNTOUCHED	0xa5	/* bytes that nothing was fetched into */
#define RECV_ID		0x7ec0

struct model_device {
	struct rdma_dev dev;
	struct ibv_pd *pds[MODEL_PDS];
	struct rdma_end ends[MODEL_QPS];
	struct ibv_mr *regions[MODEL_REGIONS];
	struct ibv_mw *windows[MODEL_WINDOWS];
	uint8_t *map;		/* the memory is in the middle */
	uint8_t *memory;
	uint8_t *local;		/* pages to send from, fetch and receive into */
	struct ibv_mr *local_mrs[MODEL_PDS];
};

/* The difference found by a step. */
struct report {
	char *why;
	size_t len;
};

static bool __attribute__((format(printf, 2, 3)))
differ(const struct report *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to->why, to->len, fmt, ap);
	va_end(ap);
	return false;
}

static uint8_t *source(const struct model_device *d)
{
	return d->local;
}

static uint8_t *fetched(const struct model_device *d)
{
	return d->local + PAGE;
}

static uint8_t *received(const struct model_device *d)
{
	return d->local + 2 * PAGE;
}

/* --- opening and closing --- */

static void *pages(void)
{
	void *map = mmap(NULL, MAP_LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		rdma_die("mmap: %s", strerror(errno));
	return map;
}

static struct rdma_conf conf_of(const struct model_options *opt)
{
	struct rdma_conf conf = rdma_conf_default();

	conf.wr_api = true;
	conf.mtu = IBV_MTU_256;		/* small messages of many packets */
	conf.timeout = opt->scale > 1 ? 13 : 10;	/* 34 ms, 4 ms */
	conf.retry_cnt = 3;
	conf.cap.max_send_wr = 8;
	conf.cap.max_recv_wr = 8;
	conf.cqe = 16;
	return conf;
}

struct model_device *model_device_open(const struct model_options *opt,
				       struct model *m)
{
	struct model_device *d = calloc(1, sizeof(*d));
	struct rdma_conf conf = conf_of(opt);

	if (!d)
		rdma_die("no memory");
	rdma_scale = opt->scale;
	rdma_dev_open(&d->dev, opt->device, opt->gid_index);
	d->map = pages();
	d->memory = d->map + PAGE - MODEL_PAGE_AT;
	d->local = pages();
	memset(d->map, OUTSIDE, MAP_LEN);
	model_init(m, (uintptr_t)d->memory);
	memcpy(d->memory, m->memory, MODEL_MEMORY);
	for (int i = 0; i < MODEL_PDS; i++) {
		d->pds[i] = ibv_alloc_pd(d->dev.ctx);
		if (!d->pds[i])
			rdma_die("ibv_alloc_pd: %s", strerror(errno));
		if (i == MODEL_SPARE_PD)
			break;
		d->local_mrs[i] = ibv_reg_mr(d->pds[i], d->local, MAP_LEN,
					     IBV_ACCESS_LOCAL_WRITE);
		if (!d->local_mrs[i])
			rdma_die("ibv_reg_mr: %s", strerror(errno));
	}
	for (int i = 0; i < MODEL_QPS; i++)
		rdma_end_create(&d->ends[i], &d->dev, d->pds[model_qp_pd[i]],
				&conf);
	for (int i = 0; i < MODEL_QPS; i += 2)
		rdma_connect(&d->ends[i], &d->ends[i + 1]);
	return d;
}

static bool outside_is_untouched(const struct model_device *d)
{
	for (uint8_t *at = d->map; at < d->map + MAP_LEN; at++)
		if ((at < d->memory || at >= d->memory + MODEL_MEMORY) &&
		    *at != OUTSIDE)
			return false;
	return true;
}

bool model_device_close(struct model_device *d, const struct model *m,
			char *why, size_t len)
{
	const struct report to = { why, len };
	int err;

	if (!outside_is_untouched(d))
		return differ(&to, "bytes outside the memory changed");
	for (int i = 0; i < MODEL_QPS; i++)
		rdma_end_destroy(&d->ends[i]);
	for (int i = 0; i < MODEL_WINDOWS; i++) {
		err = m->windows[i].live ? ibv_dealloc_mw(d->windows[i]) : 0;
		if (err)
			return differ(&to, "window %d is not deallocated: %s",
				      i, strerror(err));
	}
	for (int i = 0; i < MODEL_REGIONS; i++) {
		err = m->regions[i].live ? ibv_dereg_mr(d->regions[i]) : 0;
		if (err)
			return differ(&to, "region %d is not deregistered: %s",
				      i, strerror(err));
	}
	for (int i = 0; i < MODEL_PDS; i++) {
		err = d->local_mrs[i] ? ibv_dereg_mr(d->local_mrs[i]) : 0;
		if (!err && m->pd_live[i])
			err = ibv_dealloc_pd(d->pds[i]);
		if (err)
			return differ(&to, "PD %d is not freed: %s", i,
				      strerror(err));
	}
	rdma_dev_close(&d->dev);
	munmap(d->map, MAP_LEN);
	munmap(d->local, MAP_LEN);
	free(d);
	return true;
}

/* --- calls --- */

static int null_errno(const void *object)
{
	return object ? 0 : errno;
}

static int do_reg(struct model_device *d, const struct model_step *s)
{
	const struct model_shape *shape = &model_shapes[s->kind];
	uint8_t *addr = d->memory + shape->off;
	uint64_t iova = shape->fixed ? shape->iova : (uintptr_t)addr;
	struct ibv_mr *mr;

	mr = ibv_reg_mr_iova(d->pds[s->pd], addr, shape->len, iova,
			     shape->access);
	if (mr)
		d->regions[s->slot] = mr;
	return null_errno(mr);
}

static int do_alloc(struct model_device *d, const struct model_step *s)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pds[s->pd],
					 (enum ibv_mw_type)s->kind);

	if (mw)
		d->windows[s->slot] = mw;
	return null_errno(mw);
}

static int do_alloc_pd(struct model_device *d)
{
	d->pds[MODEL_SPARE_PD] = ibv_alloc_pd(d->dev.ctx);
	return null_errno(d->pds[MODEL_SPARE_PD]);
}

static int do_destroy(struct rdma_end *end)
{
	int err = ibv_destroy_qp(end->qp);

	if (err)
		return err;
	end->qp = NULL;
	end->qpx = NULL;
	return 0;
}

static void need_qp(struct rdma_end *end)
{
	if (end->qp)
		return;
	end->qp = rdma_qp_create(end);
	if (!end->qp)
		rdma_die("cannot create a queue pair: %s", strerror(errno));
	end->qpx = ibv_qp_to_qp_ex(end->qp);
}

static int do_connect(struct model_device *d, const struct model_step *s)
{
	struct rdma_end *a = &d->ends[s->qp];
	struct rdma_end *b = &d->ends[s->qp ^ 1];

	need_qp(a);
	need_qp(b);
	a->conf.access = s->rights | IBV_ACCESS_LOCAL_WRITE;
	rdma_reconnect(a, b);
	return 0;
}

static int do_call(struct model_device *d, const struct model_step *s)
{
	switch (s->op) {
	case MODEL_ALLOC:
		return do_alloc(d, s);
	case MODEL_DEALLOC:
		return ibv_dealloc_mw(d->windows[s->slot]);
	case MODEL_REG:
		return do_reg(d, s);
	case MODEL_DEREG:
		return ibv_dereg_mr(d->regions[s->slot]);
	case MODEL_ALLOC_PD:
		return do_alloc_pd(d);
	case MODEL_DEALLOC_PD:
		return ibv_dealloc_pd(d->pds[MODEL_SPARE_PD]);
	case MODEL_TO_ERR:
		return rdma_to_state(&d->ends[s->qp], IBV_QPS_ERR);
	case MODEL_DESTROY:
		return do_destroy(&d->ends[s->qp]);
	default:
		return do_connect(d, s);
	}
}

static bool learn(const struct model_device *d, struct model *m,
		  const struct model_step *s, const struct report *to)
{
	uint32_t key;

	if (s->op == MODEL_ALLOC)
		key = d->windows[s->slot]->rkey;
	else if (s->op == MODEL_REG)
		key = d->regions[s->slot]->rkey;
	else
		return true;
	if (s->op == MODEL_REG && d->regions[s->slot]->lkey != key)
		return differ(to, "lkey and rkey differ");
	if (!model_learn_key(m, s, key))
		return differ(to, "key %#x has the index of another", key);
	return true;
}

static bool is_call(enum model_op op)
{
	switch (op) {
	case MODEL_BIND_CALL:
	case MODEL_BIND:
	case MODEL_LOCAL_INV:
	case MODEL_SEND_INV:
	case MODEL_READ:
	case MODEL_WRITE:
	case MODEL_CAS:
	case MODEL_FADD:
		return false;
	default:
		return true;
	}
}

static bool check_call(struct model_device *d, struct model *m,
		       const struct model_step *s,
		       const struct model_result *want, const struct report *to)
{
	int err = do_call(d, s);

	if (err != want->err)
		return differ(to, "the call returns %d (%s), should %d (%s)",
			      err, strerror(err), want->err,
			      strerror(want->err));
	return err || learn(d, m, s, to);
}

/* --- requests --- */

static void build(struct model_device *d, const struct model_request *r,
		  struct rdma_wr *w)
{
	const struct model_step *s = r->step;
	uint32_t lkey = d->local_mrs[model_qp_pd[s->qp]]->lkey;
	struct ibv_mw mw = { .rkey = r->key };
	const struct rdma_bind bind_to = {
		.mw = &mw,
		.current_rkey = r->key,
		.new_rkey = r->new_key,
		.mr_lkey = r->lkey,
		.addr = r->at,
		.length = s->len,
		.access = s->rights,
	};

	switch (s->op) {
	case MODEL_BIND:
		rdma_wr_bind(w, &bind_to);
		break;
	case MODEL_LOCAL_INV:
		rdma_wr_local_inv(w, r->key);
		break;
	case MODEL_SEND_INV:
		rdma_wr_send_inv(w, source(d), (uint32_t)s->len, lkey, r->key);
		break;
	case MODEL_READ:
		rdma_wr_read(w, fetched(d), (uint32_t)s->len, lkey, r->at,
			     r->key);
		break;
	case MODEL_WRITE:
		rdma_wr_write(w, source(d), (uint32_t)s->len, lkey, r->at,
			      r->key);
		break;
	case MODEL_CAS:
		rdma_wr_cas(w, fetched(d), lkey, r->at, r->key, r->compare,
			    r->operand);
		break;
	default:
		rdma_wr_fadd(w, fetched(d), lkey, r->at, r->key, r->operand);
		break;
	}
}

/*
 * ibv_bind_mw(3) with a window and a region as the step names them: the library
 * is kept from judging by what it knows of the real ones.
 */
static int post_bind_call(struct model_device *d, const struct model_request *r,
			  uint64_t *wr_id)
{
	static uint64_t next_id = 0x1b00;
	const struct model_step *s = r->step;
	struct ibv_mw mw = *d->windows[s->key.slot];
	struct ibv_mr mr = { .lkey = r->lkey, .pd = mw.pd, .length = SIZE_MAX };
	struct ibv_mw_bind bind_to = {
		.wr_id = ++next_id,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = &mr,
			.addr = r->at,
			.length = s->len,
			.mw_access_flags = s->rights,
		},
	};

	*wr_id = bind_to.wr_id;
	mw.rkey = r->key;
	return ibv_bind_mw(d->ends[s->qp].qp, &mw, &bind_to);
}

static int post(struct model_device *d, const struct model_request *r,
		uint64_t *wr_id)
{
	struct rdma_wr w;

	if (r->step->op == MODEL_BIND_CALL)
		return post_bind_call(d, r, wr_id);
	build(d, r, &w);
	*wr_id = w.wr.wr_id;
	return rdma_try_post(&d->ends[r->step->qp], rdma_wr_chain(&w, 1));
}

static enum ibv_wc_opcode completion_opcode(enum model_op op)
{
	switch (op) {
	case MODEL_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case MODEL_SEND_INV:
		return IBV_WC_SEND;
	case MODEL_READ:
		return IBV_WC_RDMA_READ;
	case MODEL_WRITE:
		return IBV_WC_RDMA_WRITE;
	case MODEL_CAS:
		return IBV_WC_COMP_SWAP;
	case MODEL_FADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_BIND_MW;
	}
}

static bool check_completion(struct model_device *d, const struct model_step *s,
			     const struct model_result *want, uint64_t wr_id,
			     const struct report *to)
{
	struct rdma_end *end = &d->ends[s->qp];
	struct ibv_wc wc;

	if (!rdma_wait_wc(end->scq, &wc, WAIT_MS))
		return differ(to, "no completion, should be %s",
			      ibv_wc_status_str((enum ibv_wc_status)want->status));
	if ((int)wc.status != want->status)
		return differ(to, "completes with %s, should with %s",
			      ibv_wc_status_str(wc.status),
			      ibv_wc_status_str((enum ibv_wc_status)want->status));
	if (wc.wr_id != wr_id || wc.qp_num != end->qp->qp_num)
		return differ(to, "the completion is of another request");
	if ((wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_MW_BIND_ERR) &&
	    wc.opcode != completion_opcode(s->op))
		return differ(to, "the completion has opcode %d", wc.opcode);
	return true;
}

static void post_receive(struct model_device *d, const struct model_step *s)
{
	struct rdma_end *peer = &d->ends[s->qp ^ 1];

	memset(received(d), UNTOUCHED, MODEL_MSG_MAX + 1);
	rdma_recv(peer, RECV_ID, received(d), MODEL_MSG_MAX,
		  d->local_mrs[model_qp_pd[s->qp ^ 1]]->lkey);
}

static bool check_receive(struct model_device *d, const struct model_request *r,
			  const struct model_result *want,
			  const struct report *to)
{
	const struct model_step *s = r->step;
	struct ibv_wc wc;

	if (!rdma_wait_wc(d->ends[s->qp ^ 1].rcq, &wc, WAIT_MS))
		return differ(to, "the receive does not complete");
	if ((int)wc.status != want->recv)
		return differ(to, "the receive completes with %s, should with %s",
			      ibv_wc_status_str(wc.status),
			      ibv_wc_status_str((enum ibv_wc_status)want->recv));
	if (wc.status != IBV_WC_SUCCESS)
		return true;
	if (wc.wr_id != RECV_ID || wc.opcode != IBV_WC_RECV ||
	    wc.byte_len != s->len || wc.wc_flags != IBV_WC_WITH_INV ||
	    wc.invalidated_rkey != r->key)
		return differ(to, "the receive has opcode %d, %u bytes, flags %#x, key %#x",
			      wc.opcode, wc.byte_len, wc.wc_flags,
			      wc.invalidated_rkey);
	if (memcmp(received(d), source(d), s->len) ||
	    received(d)[s->len] != UNTOUCHED)
		return differ(to, "the receive has other bytes than were sent");
	return true;
}

static bool check_fetched(const struct model_device *d,
			  const struct model_result *want,
			  const struct report *to)
{
	const uint8_t *got = fetched(d);

	if (memcmp(got, want->fetched, want->fetched_len))
		return differ(to, "fetched other bytes than the memory has");
	for (size_t i = want->fetched_len; i <= MODEL_MSG_MAX; i++)
		if (got[i] != UNTOUCHED)
			return differ(to, "byte %zu was fetched, should %u bytes",
				      i, want->fetched_len);
	return true;
}

static bool fetches(enum model_op op)
{
	return op == MODEL_READ || op == MODEL_CAS || op == MODEL_FADD;
}

static bool check_request(struct model_device *d, const struct model_request *r,
			  const struct model_result *want,
			  const struct report *to)
{
	const struct model_step *s = r->step;
	uint64_t wr_id;
	int err;

	if (fetches(s->op))
		memset(fetched(d), UNTOUCHED, MODEL_MSG_MAX + 1);
	if (s->op == MODEL_WRITE || s->op == MODEL_SEND_INV)
		for (size_t i = 0; i < s->len; i++)
			source(d)[i] = model_byte(s, i);
	if (want->recv != MODEL_NONE)
		post_receive(d, s);
	err = post(d, r, &wr_id);
	if (err != want->err)
		return differ(to, "posting returns %d (%s), should %d", err,
			      strerror(err), want->err);
	if (want->status != MODEL_NONE &&
	    !check_completion(d, s, want, wr_id, to))
		return false;
	if (want->recv != MODEL_NONE && !check_receive(d, r, want, to))
		return false;
	return !fetches(s->op) || check_fetched(d, want, to);
}

/* --- what a step leaves --- */

static bool check_events(struct model_device *d, const struct model_step *s,
			 const struct model_result *want,
			 const struct report *to)
{
	struct ibv_async_event event;
	enum ibv_event_type type;

	if (want->event != MODEL_NONE &&
	    !rdma_wait_event(&d->dev, (enum ibv_event_type)want->event,
			     d->ends[s->qp ^ 1].qp, WAIT_MS))
		return differ(to, "no event \"%s\"",
			      ibv_event_type_str((enum ibv_event_type)want->event));
	if (ibv_get_async_event(d->dev.ctx, &event))
		return true;
	type = event.event_type;
	ibv_ack_async_event(&event);
	return differ(to, "event \"%s\" without a reason",
		      ibv_event_type_str(type));
}

static bool check_qp(struct model_device *d, const struct model *m, int qp,
		     const struct report *to)
{
	struct rdma_end *end = &d->ends[qp];
	enum ibv_qp_state state;

	if (rdma_drain(end->scq) || rdma_drain(end->rcq))
		return differ(to, "queue pair %d has more completions", qp);
	if (m->qps[qp].state == MODEL_GONE)
		return true;
	state = m->qps[qp].state == MODEL_RTS ? IBV_QPS_RTS : IBV_QPS_ERR;
	if (rdma_state(end->qp) != state && !rdma_wait_state(end->qp, state))
		return differ(to, "queue pair %d is in state %d, should be in %d",
			      qp, rdma_state(end->qp), state);
	return true;
}

static bool check_memory(const struct model_device *d, const struct model *m,
			 const struct report *to)
{
	size_t i = 0;

	if (!memcmp(d->memory, m->memory, MODEL_MEMORY))
		return true;
	while (d->memory[i] == m->memory[i])
		i++;
	return differ(to, "byte %zu of the memory is %#04x, should be %#04x", i,
		      d->memory[i], m->memory[i]);
}

bool model_device_do(struct model_device *d, struct model *m,
		     const struct model_request *r,
		     const struct model_result *want, char *why, size_t len)
{
	const struct report to = { why, len };
	const struct model_step *s = r->step;

	if (want->rule == MODEL_SKIPPED)
		return true;
	if (is_call(s->op) ? !check_call(d, m, s, want, &to) :
			     !check_request(d, r, want, &to))
		return false;
	return check_events(d, s, want, &to) && check_qp(d, m, s->qp, &to) &&
	       check_qp(d, m, s->qp ^ 1, &to) && check_memory(d, m, &to);
}
