// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An application that holds one of everything that a device has and goes on using it
 * until the device goes. It waits in every way there is: for a completion event, for an
 * asynchronous event, and by polling. What it sees it says, a line each:
 *
 *	ready		everything is held, and traffic flows
 *	event NAME	an asynchronous event
 *	error TEXT	a request failed, or posting one
 *	woken		who waited for a completion event was told
 *	done		everything was given back
 *
 * It ends with status 0 once the device's end was told by IBV_EVENT_DEVICE_FATAL, on
 * each device, and everything is given back; with 1 where that took --limit seconds.
 */
#include "number.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REGION		65536
#define DEPTH		8
#define LENGTH		8000
#define RECEIVE_LEN	8192
#define QKEY		0x11111111
#define UD_LENGTH	1000
#define IDLE_NS		200000
#define TIMEOUT		19	/* 2 s: packets may sit in a queue */

/* What it does with the queue pairs. */
enum use { USE_RC, USE_UD, USE_NOTHING };

struct holder {
	struct rdma_dev dev;
	struct rdma_dev peer_dev;
	bool two_devices;
	enum use use;
	struct rdma_end a;		/* requester */
	struct rdma_end b;		/* responder, receives from @srq */
	struct rdma_end datagrams;
	struct rdma_end receiver;	/* of datagrams */
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw[2];
	struct rdma_buf abuf;
	struct rdma_buf bbuf;
	struct rdma_buf dbuf;
	uint32_t window_rkey;
	unsigned int turn;
	unsigned int pending;
	unsigned long done;
	bool failed;
	unsigned int left;	/* devices whose end was not told */
	pthread_t waiter;
};

static void say(const char *what, const char *detail)
{
	printf("%s%s%s\n", what, detail ? " " : "", detail ? detail : "");
	fflush(stdout);
}

/* --- everything --- */

static void need(const void *object, const char *what)
{
	if (!object)
		rdma_die("%s: %s", what, strerror(errno));
}

static struct rdma_dev *peer_of(struct holder *h)
{
	return h->two_devices ? &h->peer_dev : &h->dev;
}

static void open_connection(struct holder *h)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 64, .max_sge = 1 } };
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_pd *pd = ibv_alloc_pd(peer_of(h)->ctx);

	need(pd, "ibv_alloc_pd");
	conf.timeout = TIMEOUT;
	h->srq = ibv_create_srq(pd, &shared);
	need(h->srq, "ibv_create_srq");
	rdma_end_create(&h->a, &h->dev, NULL, &conf);
	conf.srq = h->srq;
	rdma_end_create(&h->b, peer_of(h), pd, &conf);
	h->b.own_pd = true;
	rdma_connect(&h->a, &h->b);
	rdma_buf_create(&h->abuf, h->a.pd, REGION, 0, IBV_ACCESS_LOCAL_WRITE);
	rdma_buf_create(&h->bbuf, pd, REGION, 0, RDMA_ALL_REMOTE |
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

static void open_datagrams(struct holder *h)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = h->dev.port,
		.grh = {
			.dgid = peer_of(h)->gid,
			.sgid_index = (uint8_t)h->dev.gid_index,
			.hop_limit = 64,
		},
	};

	conf.type = IBV_QPT_UD;
	conf.qkey = QKEY;
	rdma_end_create(&h->datagrams, &h->dev, h->a.pd, &conf);
	rdma_end_create(&h->receiver, peer_of(h), h->b.pd, &conf);
	if (rdma_to_init(&h->datagrams) || rdma_to_rtr(&h->datagrams, 0, 0) ||
	    rdma_to_rts(&h->datagrams) || rdma_to_init(&h->receiver) ||
	    rdma_to_rtr(&h->receiver, 0, 0) || rdma_to_rts(&h->receiver))
		rdma_die("cannot bring up the UD queue pairs");
	h->ah = ibv_create_ah(h->a.pd, &path);
	need(h->ah, "ibv_create_ah");
	rdma_buf_create(&h->dbuf, h->b.pd, RECEIVE_LEN, 0, IBV_ACCESS_LOCAL_WRITE);
}

static void open_windows(struct holder *h)
{
	struct ibv_mw_bind type1 = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = h->bbuf.mr,
			.addr = h->bbuf.iova,
			.length = REGION,
			.mw_access_flags = RDMA_ALL_REMOTE,
		},
	};
	struct rdma_bind type2 = {
		.mr_lkey = h->bbuf.mr->lkey,
		.addr = h->bbuf.iova,
		.length = REGION,
		.access = RDMA_ALL_REMOTE,
	};
	struct rdma_wr w;
	struct ibv_wc wc;

	h->mw[0] = ibv_alloc_mw(h->b.pd, IBV_MW_TYPE_1);
	h->mw[1] = ibv_alloc_mw(h->b.pd, IBV_MW_TYPE_2);
	need(h->mw[0], "ibv_alloc_mw");
	need(h->mw[1], "ibv_alloc_mw");
	if (ibv_bind_mw(h->b.qp, h->mw[0], &type1) ||
	    !rdma_wait_wc(h->b.scq, &wc, RDMA_WAIT_MS) || wc.status)
		rdma_die("cannot bind a window of type 1");
	type2.mw = h->mw[1];
	type2.current_rkey = h->mw[1]->rkey;
	type2.new_rkey = ibv_inc_rkey(h->mw[1]->rkey);
	rdma_wr_bind(&w, &type2);
	if (rdma_do(&h->b, &w, NULL))
		rdma_die("cannot bind a window of type 2");
	h->window_rkey = type2.new_rkey;
}

/* --- using it --- */

/* The first that fails is told; after it nothing is asked for. */
static void failed(struct holder *h, const char *what, const char *why)
{
	char text[128];

	if (h->failed)
		return;
	snprintf(text, sizeof(text), "%s: %s", what, why);
	say("error", text);
	h->failed = true;
}

static void build(struct holder *h, struct rdma_wr *w)
{
	uint8_t *at = h->abuf.addr + h->turn % DEPTH * RECEIVE_LEN;
	uint32_t lkey = h->abuf.mr->lkey;

	if (h->use == USE_UD) {
		rdma_wr_send(w, at, UD_LENGTH, lkey);
		w->wr.wr.ud.ah = h->ah;
		w->wr.wr.ud.remote_qpn = h->receiver.qp->qp_num;
		w->wr.wr.ud.remote_qkey = QKEY;
		return;
	}
	switch (h->turn % 4) {
	case 0:
		rdma_wr_send(w, at, LENGTH, lkey);
		break;
	case 1:
		rdma_wr_read(w, at, LENGTH, lkey, h->bbuf.iova, h->window_rkey);
		break;
	case 2:
		rdma_wr_write(w, at, LENGTH, lkey, h->bbuf.iova, h->mw[0]->rkey);
		break;
	default:
		rdma_wr_fadd(w, at, lkey, h->bbuf.iova, h->window_rkey, 1);
		break;
	}
}

static struct rdma_end *sender(struct holder *h)
{
	return h->use == USE_UD ? &h->datagrams : &h->a;
}

static void post_one(struct holder *h)
{
	struct rdma_wr w;
	int err;

	build(h, &w);
	err = rdma_try_post(sender(h), rdma_wr_chain(&w, 1));
	h->turn++;
	if (err)
		failed(h, "posting", strerror(err));
	else
		h->pending++;
}

/* Not every failure of this one is told: receives run out without harm. */
static void post_receives(struct holder *h, unsigned int n)
{
	struct ibv_sge sge = { h->bbuf.iova, RECEIVE_LEN, h->bbuf.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--) {
		if (h->use == USE_UD)
			rdma_try_recv(&h->receiver, 0, h->dbuf.addr, RECEIVE_LEN,
				      h->dbuf.mr->lkey);
		else
			ibv_post_srq_recv(h->srq, &wr, &bad);
	}
}

static void take_completions(struct holder *h)
{
	struct ibv_cq *rcq = h->use == USE_UD ? h->receiver.rcq : h->b.rcq;
	struct ibv_wc wc;

	while (ibv_poll_cq(rcq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS)
			post_receives(h, 1);
	while (ibv_poll_cq(sender(h)->scq, 1, &wc) > 0) {
		h->pending--;
		if (!wc.status)
			h->done++;
		else
			failed(h, "a request", ibv_wc_status_str(wc.status));
	}
}

static void take_events(struct holder *h, struct rdma_dev *dev)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(dev->ctx, &event)) {
		say("event", ibv_event_type_str(event.event_type));
		h->left -= event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
}

/* Nothing ever arms this queue: only the device's end ends the wait. */
static void *wait_for_completion(void *arg)
{
	struct holder *h = arg;
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(h->a.channel, &cq, &context))
		say("error", "a completion event that nobody asked for");
	say("woken", NULL);
	return NULL;
}

static void use(struct holder *h, unsigned int limit)
{
	uint64_t until = rdma_now_us() + 1000000ULL * limit;
	bool ready = false;

	post_receives(h, 32);
	while (h->left) {
		while (h->use != USE_NOTHING && h->pending < DEPTH && !h->failed)
			post_one(h);
		take_completions(h);
		take_events(h, &h->dev);
		if (h->two_devices)
			take_events(h, &h->peer_dev);
		if (!ready && (h->done >= DEPTH || h->use == USE_NOTHING)) {
			say("ready", NULL);
			ready = true;
		}
		if (rdma_now_us() > until)
			rdma_die("nothing was said for %u s (%lu requests done)",
				 limit, h->done);
		nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS }, NULL);
	}
}

/* --- giving it back --- */

/* What the device took along with it is gone; the library says EIO then. */
static void gone(int err, const char *what)
{
	if (err && err != EIO && err != ENODEV)
		rdma_die("%s: %s", what, strerror(err));
}

static void close_end(struct rdma_end *end, bool own_pd)
{
	gone(ibv_destroy_cq(end->scq), "ibv_destroy_cq");
	gone(ibv_destroy_cq(end->rcq), "ibv_destroy_cq");
	gone(ibv_destroy_comp_channel(end->channel), "ibv_destroy_comp_channel");
	if (own_pd)
		gone(ibv_dealloc_pd(end->pd), "ibv_dealloc_pd");
}

static void close_all(struct holder *h)
{
	gone(ibv_destroy_ah(h->ah), "ibv_destroy_ah");
	gone(ibv_dealloc_mw(h->mw[0]), "ibv_dealloc_mw");
	gone(ibv_dealloc_mw(h->mw[1]), "ibv_dealloc_mw");
	gone(ibv_dereg_mr(h->abuf.mr), "ibv_dereg_mr");
	gone(ibv_dereg_mr(h->bbuf.mr), "ibv_dereg_mr");
	gone(ibv_dereg_mr(h->dbuf.mr), "ibv_dereg_mr");
	gone(ibv_destroy_qp(h->a.qp), "ibv_destroy_qp");
	gone(ibv_destroy_qp(h->b.qp), "ibv_destroy_qp");
	gone(ibv_destroy_qp(h->datagrams.qp), "ibv_destroy_qp");
	gone(ibv_destroy_qp(h->receiver.qp), "ibv_destroy_qp");
	gone(ibv_destroy_srq(h->srq), "ibv_destroy_srq");
	close_end(&h->datagrams, false);
	close_end(&h->receiver, false);
	close_end(&h->a, true);
	close_end(&h->b, true);
	gone(ibv_close_device(h->dev.ctx), "ibv_close_device");
	if (h->two_devices)
		gone(ibv_close_device(h->peer_dev.ctx), "ibv_close_device");
	say("done", NULL);
}

/* Whoever waits for a completion is woken; where not, the limit is. */
static void join(struct holder *h)
{
	if (pthread_join(h->waiter, NULL))
		rdma_die("pthread_join");
}

static enum use use_of(const char *word)
{
	if (!strcmp(word, "rc"))
		return USE_RC;
	return strcmp(word, "ud") ? USE_NOTHING : USE_UD;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "peer-device", required_argument, NULL, 'p' },
		{ "use", required_argument, NULL, 'u' },
		{ "limit", required_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	const char *device = NULL, *peer = NULL;
	static struct holder h;
	unsigned int limit = 30;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'p':
			peer = optarg;
			break;
		case 'u':
			h.use = use_of(optarg);
			break;
		case 'l':
			limit = (unsigned int)number_of(optarg, INT_MAX);
			break;
		default:
			return 2;
		}
	}
	rdma_dev_open(&h.dev, device, -1);
	h.two_devices = peer;
	h.left = peer ? 2 : 1;
	if (peer)
		rdma_dev_open(&h.peer_dev, peer, -1);
	open_connection(&h);
	open_datagrams(&h);
	open_windows(&h);
	if (pthread_create(&h.waiter, NULL, wait_for_completion, &h))
		rdma_die("pthread_create");
	alarm(2 * limit);
	use(&h, limit);
	join(&h);
	close_all(&h);
	return 0;
}
