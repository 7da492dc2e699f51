// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows and a peer on another machine, whose device may be any: the peer's
 * requests go through keys while they are good and are refused when they are not.
 *
 *	mwremote -p PORT		the owner of the windows, which waits for a peer
 *	mwremote -p PORT OWNER		the peer, which does what it is told to
 *
 * The two talk over TCP; both have the same byte order. Each refusal ends the RC
 * connection, so both ends make it anew.
 */
#include "number.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REGION_LEN	16384
#define WINDOW_OFF	5000
#define WINDOW_LEN	3000	/* three packets */
#define TAG_OWNER	0x00
#define TAG_PEER	0x80
#define RECV_ID		0x7ec0

enum deed { CONNECT, WRITE, READ, FETCH_ADD, SEND_INV, END };

static const char *const act_name[] = { "connect", "write", "read", "fetch and add",
					"send with invalidate", "end" };

/* What the owner tells the peer to do, and how that ended. */
struct task {
	uint32_t act;
	uint32_t qpn;		/* CONNECT: whom to */
	uint32_t rkey;
	uint32_t len;
	uint64_t va;
	union ibv_gid gid;	/* CONNECT */
};

struct answer {
	uint32_t status;	/* an ibv_wc_status */
	uint32_t qpn;		/* CONNECT: who answers */
	uint32_t sum;		/* READ: of the bytes read */
	union ibv_gid gid;
};

struct side {
	struct rdma_dev dev;
	struct rdma_end end;
	struct rdma_buf buf;
	int sock;
};

/* --- both sides --- */

static void must(int err, const char *what)
{
	if (err)
		rdma_die("%s: %s", what, strerror(err));
}

static void send_all(int sock, const void *data, size_t len)
{
	if (send(sock, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		rdma_die("the other side is gone");
}

static void receive_all(int sock, void *data, size_t len)
{
	if (recv(sock, data, len, MSG_WAITALL) != (ssize_t)len)
		rdma_die("the other side is gone");
}

static void open_side(struct side *s, const char *device, int gid_index)
{
	struct rdma_conf conf = rdma_conf_default();

	rdma_dev_open(&s->dev, device, gid_index);
	rdma_end_create(&s->end, &s->dev, NULL, &conf);
	rdma_buf_create(&s->buf, s->end.pd, REGION_LEN, 0,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

static void close_side(struct side *s)
{
	rdma_buf_destroy(&s->buf);
	rdma_end_destroy(&s->end);
	rdma_dev_close(&s->dev);
	close(s->sock);
}

/* Make the connection, or make it again. */
static void connect_to(struct side *s, uint32_t qpn, const union ibv_gid *gid)
{
	s->end.dgid = *gid;
	must(rdma_to_state(&s->end, IBV_QPS_RESET), "to RESET");
	rdma_drain(s->end.scq);
	rdma_drain(s->end.rcq);
	must(rdma_to_init(&s->end), "to INIT");
	must(rdma_to_rtr(&s->end, qpn, s->end.conf.psn), "to RTR");
	must(rdma_to_rts(&s->end), "to RTS");
}

static enum ibv_wc_status wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, const char *what)
{
	if (!rdma_wait_wc(cq, wc, RDMA_WAIT_MS))
		rdma_die("%s: no completion", what);
	return wc->status;
}

static uint32_t sum(const uint8_t *bytes, size_t len)
{
	uint32_t total = 0;

	for (size_t i = 0; i < len; i++)
		total = total * 31 + bytes[i];
	return total;
}

/* --- the peer --- */

static void build(struct side *s, struct rdma_wr *w, const struct task *order)
{
	uint32_t lkey = s->buf.mr->lkey;
	void *addr = s->buf.addr;

	switch (order->act) {
	case WRITE:
		rdma_wr_write(w, addr, order->len, lkey, order->va, order->rkey);
		break;
	case READ:
		rdma_wr_read(w, addr, order->len, lkey, order->va, order->rkey);
		break;
	case FETCH_ADD:
		rdma_wr_fadd(w, addr, lkey, order->va, order->rkey, 1);
		break;
	case SEND_INV:
		rdma_wr_send_inv(w, addr, order->len, lkey, order->rkey);
		break;
	default:
		rdma_die("an order that is none: %u", order->act);
	}
}

static void obey(struct side *s, const struct task *order, struct answer *answer)
{
	struct rdma_wr w;

	if (order->act == CONNECT) {
		connect_to(s, order->qpn, &order->gid);
		answer->qpn = s->end.qp->qp_num;
		answer->gid = s->dev.gid;
		return;
	}
	rdma_buf_fill(&s->buf, TAG_PEER);
	build(s, &w, order);
	answer->status = rdma_do(&s->end, &w, NULL);
	if (order->act == READ)
		answer->sum = sum(s->buf.addr, order->len);
}

static void be_peer(struct side *s)
{
	struct task order;

	for (receive_all(s->sock, &order, sizeof(order)); order.act != END;
	     receive_all(s->sock, &order, sizeof(order))) {
		struct answer answer = { 0 };

		obey(s, &order, &answer);
		send_all(s->sock, &answer, sizeof(answer));
	}
}

/* --- the owner --- */

static enum ibv_wc_status tell(struct side *s, struct task order, struct answer *answer)
{
	send_all(s->sock, &order, sizeof(order));
	receive_all(s->sock, answer, sizeof(*answer));
	return answer->status;
}

/* The owner's end first, so that nothing comes before it is ready. */
static void reconnect(struct side *s)
{
	static struct answer peer;
	struct task order = {
		.act = CONNECT,
		.qpn = s->end.qp->qp_num,
		.gid = s->dev.gid,
	};

	if (!peer.qpn)
		tell(s, order, &peer);
	connect_to(s, peer.qpn, &peer.gid);
	tell(s, order, &peer);
}

/* What the peer has written of its memory's begin is at @off of the owner's. */
static bool has_arrived(const struct side *s, uint32_t off, uint32_t len)
{
	size_t begin = (size_t)(s->buf.addr - s->buf.map);
	uint32_t i = 0;

	while (i < len && s->buf.addr[off + i] == rdma_buf_byte(TAG_PEER, begin + i))
		i++;
	return i == len;
}

static void expect_bytes(const struct side *s, const struct task *order, uint32_t off,
			 const struct answer *answer, const char *what)
{
	bool done = answer->status == IBV_WC_SUCCESS;
	bool changes = done && order->act != READ;
	long at = rdma_buf_touched(&s->buf, TAG_OWNER, off, changes ? order->len : 0);

	if (at >= 0)
		rdma_die("%s: byte %ld has changed", what, at);
	if (done && order->act == WRITE && !has_arrived(s, off, order->len))
		rdma_die("%s: not all bytes arrive", what);
	if (done && order->act == READ && answer->sum != sum(s->buf.addr + off, order->len))
		rdma_die("%s: what is read is something else", what);
}

/* The peer does @act at @off through @rkey, and that ends so. */
static void expect(struct side *s, enum deed act, uint32_t off, uint32_t len,
		   uint32_t rkey, enum ibv_wc_status want, const char *what)
{
	struct task order = {
		.act = act,
		.rkey = rkey,
		.len = len,
		.va = s->buf.iova + off,
	};
	enum ibv_wc_status status;
	struct answer answer;

	rdma_buf_fill(&s->buf, TAG_OWNER);
	status = tell(s, order, &answer);
	if (status != want)
		rdma_die("%s, %s of %u bytes: '%s', not '%s'", what, act_name[act], len,
			 ibv_wc_status_str(status), ibv_wc_status_str(want));
	expect_bytes(s, &order, off, &answer, what);
	printf("# %s: %s of %u bytes %s\n", what, act_name[act], len,
	       status == IBV_WC_SUCCESS ? "done" : "refused");
	if (status != IBV_WC_SUCCESS)
		reconnect(s);
}

static void good(struct side *s, enum deed act, uint32_t off, uint32_t len, uint32_t rkey,
		 const char *what)
{
	expect(s, act, off, len, rkey, IBV_WC_SUCCESS, what);
}

static void refused(struct side *s, enum deed act, uint32_t off, uint32_t len, uint32_t rkey,
		    const char *what)
{
	expect(s, act, off, len, rkey, IBV_WC_REM_ACCESS_ERR, what);
}

static uint32_t bind_type2(struct side *s, struct ibv_mw *mw, unsigned int rights)
{
	static uint32_t key;
	struct rdma_bind bind = {
		.mw = mw,
		.current_rkey = mw->rkey,
		.new_rkey = (mw->rkey & ~0xffU) | (++key & 0xff),
		.mr_lkey = s->buf.mr->lkey,
		.addr = (uintptr_t)s->buf.addr + WINDOW_OFF,
		.length = WINDOW_LEN,
		.access = rights,
	};
	struct rdma_wr w;

	rdma_wr_bind(&w, &bind);
	if (rdma_do(&s->end, &w, NULL) != IBV_WC_SUCCESS)
		rdma_die("a bind fails");
	mw->rkey = bind.new_rkey;
	return bind.new_rkey;
}

static uint32_t bind_type1(struct side *s, struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = s->buf.mr,
			.addr = (uintptr_t)s->buf.addr + WINDOW_OFF,
			.length = WINDOW_LEN,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};
	struct ibv_wc wc;

	must(ibv_bind_mw(s->end.qp, mw, &bind), "ibv_bind_mw");
	if (wait_wc(s->end.scq, &wc, "ibv_bind_mw") != IBV_WC_SUCCESS)
		rdma_die("ibv_bind_mw: %s", ibv_wc_status_str(wc.status));
	return mw->rkey;
}

static void bounds(struct side *s, struct ibv_mw *mw)
{
	const uint32_t begin = WINDOW_OFF, len = WINDOW_LEN, end = begin + len;
	unsigned int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	uint32_t rkey = bind_type2(s, mw, rights);

	good(s, WRITE, begin, len, rkey, "the whole window");
	good(s, READ, begin, len, rkey, "the whole window");
	good(s, WRITE, begin, 1, rkey, "its first byte");
	good(s, WRITE, end - 1, 1, rkey, "its last byte");
	refused(s, WRITE, begin - 1, 2, rkey, "a byte before it");
	rkey = bind_type2(s, mw, rights);
	refused(s, WRITE, begin, len + 1, rkey, "a byte behind it");
	rkey = bind_type2(s, mw, rights);
	refused(s, READ, end, 1, rkey, "behind it");
	rkey = bind_type2(s, mw, rights);
	refused(s, FETCH_ADD, begin, 8, rkey, "atomics not allowed");
	rkey = bind_type2(s, mw, IBV_ACCESS_REMOTE_READ);
	good(s, READ, begin, len, rkey, "only reads allowed");
	refused(s, WRITE, begin, len, rkey, "only reads allowed");
	rkey = bind_type2(s, mw, IBV_ACCESS_REMOTE_ATOMIC);
	good(s, FETCH_ADD, begin, 8, rkey, "only atomics allowed");
	refused(s, READ, begin, 8, rkey, "only atomics allowed");
}

static void invalidated_by_peer(struct side *s, struct ibv_mw *mw)
{
	uint32_t rkey = bind_type2(s, mw, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_wc wc;

	rdma_recv(&s->end, RECV_ID, s->buf.addr, 64, s->buf.mr->lkey);
	rdma_buf_fill(&s->buf, TAG_OWNER);
	tell(s, (struct task){ .act = SEND_INV, .rkey = rkey, .len = 64 },
	     &(struct answer){ 0 });
	if (wait_wc(s->end.rcq, &wc, "the receive") != IBV_WC_SUCCESS ||
	    !(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != rkey)
		rdma_die("the receive tells no invalidated key: %s, flags %#x, key %#x",
			 ibv_wc_status_str(wc.status), wc.wc_flags, wc.invalidated_rkey);
	refused(s, WRITE, WINDOW_OFF, 8, rkey, "invalidated by the peer");
}

static void invalidated_by_owner(struct side *s, struct ibv_mw *mw)
{
	uint32_t rkey = bind_type2(s, mw, IBV_ACCESS_REMOTE_WRITE);
	struct rdma_wr w;

	good(s, WRITE, WINDOW_OFF, 8, rkey, "bound");
	rdma_wr_local_inv(&w, rkey);
	if (rdma_do(&s->end, &w, NULL) != IBV_WC_SUCCESS)
		rdma_die("LOCAL_INV fails");
	refused(s, WRITE, WINDOW_OFF, 8, rkey, "invalidated by the owner");
}

static void type1(struct side *s)
{
	struct ibv_mw *mw = ibv_alloc_mw(s->end.pd, IBV_MW_TYPE_1);
	uint32_t first, second;

	if (!mw)
		rdma_die("ibv_alloc_mw: %s", strerror(errno));
	first = bind_type1(s, mw);
	good(s, WRITE, WINDOW_OFF, WINDOW_LEN, first, "type 1");
	second = bind_type1(s, mw);
	good(s, READ, WINDOW_OFF, WINDOW_LEN, second, "type 1, bound again");
	refused(s, READ, WINDOW_OFF, WINDOW_LEN, first, "type 1, its old key");
	good(s, WRITE, WINDOW_OFF, 1, second, "type 1, after a reset of the queue pair");
	must(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	refused(s, WRITE, WINDOW_OFF, 1, second, "type 1, deallocated");
}

static void be_owner(struct side *s)
{
	struct ibv_mw *mw = ibv_alloc_mw(s->end.pd, IBV_MW_TYPE_2);

	if (!mw)
		rdma_die("ibv_alloc_mw: %s", strerror(errno));
	reconnect(s);
	bounds(s, mw);
	invalidated_by_peer(s, mw);
	invalidated_by_owner(s, mw);
	type1(s);
	must(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	send_all(s->sock, &(struct task){ .act = END }, sizeof(struct task));
}

/* --- how they meet --- */

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {
		.ai_family = host ? AF_UNSPEC : AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *list;
	int err = getaddrinfo(host, port, &hints, &list);

	if (err)
		rdma_die("%s: %s", host ? host : port, gai_strerror(err));
	return list;
}

static int meet(const char *host, const char *port)
{
	struct addrinfo *at = resolve(host, port);
	int sock = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
	int listener = sock, one = 1;

	if (sock < 0)
		rdma_die("socket: %s", strerror(errno));
	if (host) {
		if (connect(sock, at->ai_addr, at->ai_addrlen))
			rdma_die("%s: %s", host, strerror(errno));
	} else {
		/* not kept away by what is left of the connection before */
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1))
			rdma_die("port %s: %s", port, strerror(errno));
		sock = accept(listener, NULL, NULL);
		if (sock < 0)
			rdma_die("accept: %s", strerror(errno));
		close(listener);
	}
	freeaddrinfo(at);
	return sock;
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18516";
	int option, gid_index = -1;
	struct side s = { 0 };

	while ((option = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = (int)number_of(optarg, INT_MAX);
			break;
		case 'p':
			port = optarg;
			break;
		default:
			rdma_die("usage: mwremote [-d DEVICE] [-g GID-INDEX] [-p PORT] [OWNER]");
		}
	}
	open_side(&s, device, gid_index);
	s.sock = meet(argv[optind], port);
	if (argv[optind])
		be_peer(&s);
	else
		be_owner(&s);
	close_side(&s);
	return 0;
}
