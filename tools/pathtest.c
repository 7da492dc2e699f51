// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One path between two addresses of this host's devices, whatever network lies
 * between them: is it there, does every operation move its bytes over it, and does
 * it go on while the network below changes?
 *
 * Both ends are this process's: in the shared mode of `rdma system` a process sees
 * the devices of every network namespace. Prints one line; exit status 0: as asked.
 */
#include "ktap.h"
#include "number.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRH		40
#define LOST_MS		100	/* a message that may be lost has arrived by then */
#define HANG_MS		20000	/* any completion, error or not, has come by then */
#define INDEXES		256	/* what struct ibv_global_route can name */
#define QPN_MULTICAST	0xffffff

struct path {
	struct rdma_conf conf;
	const char *target;	/* an address instead of the peer's */
	const char *group;	/* datagrams go to this group, and the peer is in it */
	bool only_type;		/* conf.type; else every one */
	bool both_ways;
	struct rdma_dev dev, peer_dev;
	struct rdma_end a, b;
	struct rdma_buf abuf, bbuf;
	struct ibv_ah *ah;
	unsigned long rounds;
};

/* SIGTERM is blocked while the test runs, and looked for between two messages. */
static bool is_ended(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

static void block_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool is_datagram(const struct path *p)
{
	return p->conf.type == IBV_QPT_UD;
}

static bool is_reliable(const struct path *p)
{
	return p->conf.type == IBV_QPT_RC;
}

/* A datagram fills the path MTU; another message is a first packet, a middle and a last. */
static uint32_t length_of(const struct path *p)
{
	uint32_t mtu = 128U << p->conf.mtu;

	return is_datagram(p) ? mtu : 2 * mtu + mtu / 2 + 1;
}

static void say(const char *what, int err, uint64_t start)
{
	printf("%s: %s after %llu ms\n", what, err ? strerrorname_np(err) : "ok",
	       (unsigned long long)(rdma_now_us() - start) / 1000);
}

/* --- is there a path --- */

static int make_ah(struct path *p, const union ibv_gid *target)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = p->dev.port,
		.grh = {
			.dgid = *target,
			.sgid_index = (uint8_t)p->dev.gid_index,
			.hop_limit = 64,
		},
	};

	p->ah = ibv_create_ah(p->a.pd, &attr);
	return p->ah ? 0 : errno;
}

/* What decides about a path: RTR, or the address handle. */
static int to_path(struct path *p, const union ibv_gid *target)
{
	int err = rdma_to_init(&p->a);

	if (err)
		rdma_die("to INIT: %s", strerror(err));
	if (is_datagram(p))
		return make_ah(p, target);
	p->a.dgid = *target;
	return rdma_to_rtr(&p->a, 0x123456, 0);
}

static union ibv_gid parse_address(const char *text)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1 &&
	    inet_pton(AF_INET6, text, gid.raw) != 1)
		rdma_die("not an address: %s", text);
	return gid;
}

static int reach(struct path *p)
{
	union ibv_gid target = p->target ? parse_address(p->target) : p->peer_dev.gid;
	uint64_t start = rdma_now_us();
	int err = to_path(p, &target);

	say("path", err, start);
	return err ? 3 : 0;
}

/* --- moving bytes --- */

/* What datagrams are addressed to. */
static union ibv_gid datagram_target(const struct path *p)
{
	return p->group ? parse_address(p->group) : p->peer_dev.gid;
}

static void connect_ends(struct path *p)
{
	union ibv_gid target = datagram_target(p);
	int err;

	if (!is_datagram(p)) {
		rdma_connect(&p->a, &p->b);
		return;
	}
	err = rdma_to_init(&p->a) ?: rdma_to_init(&p->b) ?:
	      rdma_to_rtr(&p->a, 0, 0) ?: rdma_to_rtr(&p->b, 0, 0) ?:
	      rdma_to_rts(&p->a) ?: rdma_to_rts(&p->b);
	if (err)
		rdma_die("UD to RTS: %s", strerror(err));
	err = make_ah(p, &target);
	if (err)
		rdma_die("ibv_create_ah: %s", strerror(err));
	err = p->group ? ibv_attach_mcast(p->b.qp, &target, 0) : 0;
	if (err)
		rdma_die("ibv_attach_mcast: %s", strerror(err));
}

/* Both memories anew, and other bytes each round. */
static void fill(struct path *p)
{
	p->rounds++;
	rdma_buf_fill(&p->abuf, (uint8_t)p->rounds);
	rdma_buf_fill(&p->bbuf, (uint8_t)~p->rounds);
}

static bool same(struct path *p, size_t skip)
{
	return !memcmp(p->bbuf.addr + skip, p->abuf.addr, length_of(p));
}

/* The header in front of a datagram names both ends as the sender knows them. */
static bool header_right(struct path *p)
{
	const uint8_t *ip6 = p->bbuf.addr, *ip4 = ip6 + GRH - 20;
	const union ibv_gid target = datagram_target(p);
	const uint8_t *from = p->dev.gid.raw, *to = target.raw;

	if (*ip4 >> 4 == 4 && !*ip6)
		return !memcmp(ip4 + 12, from + 12, 4) && !memcmp(ip4 + 16, to + 12, 4);
	return *ip6 >> 4 == 6 && !memcmp(ip6 + 8, from, 16) && !memcmp(ip6 + 24, to, 16);
}

static void post_recv(struct path *p)
{
	rdma_recv(&p->b, p->rounds, p->bbuf.addr, length_of(p) + GRH, p->bbuf.mr->lkey);
}

/* Post a request, and end with its status unless it succeeds. */
static void do_request(struct path *p, struct rdma_wr *w, const char *what)
{
	uint64_t start = rdma_now_us();
	struct ibv_wc wc;

	rdma_post(&p->a, &w->wr);
	if (!rdma_wait_wc(p->a.scq, &wc, HANG_MS)) {
		printf("hang: no completion of a %s within %u ms\n", what, HANG_MS);
		exit(2);
	}
	if (wc.status != IBV_WC_SUCCESS) {
		printf("%s: %s after %llu ms, round %lu\n", what, ibv_wc_status_str(wc.status),
		       (unsigned long long)(rdma_now_us() - start) / 1000, p->rounds);
		exit(1);
	}
}

static void build_send(struct path *p, struct rdma_wr *w)
{
	rdma_wr_send(w, p->abuf.addr, length_of(p), p->abuf.mr->lkey);
	if (!is_datagram(p))
		return;
	w->wr.wr.ud.ah = p->ah;
	w->wr.wr.ud.remote_qpn = p->group ? QPN_MULTICAST : p->b.qp->qp_num;
	w->wr.wr.ud.remote_qkey = p->conf.qkey;
}

/*
 * A message from a to b, whole. One that may be lost says by its receive whether it
 * was; that receive waits for the next one.
 */
static bool message(struct path *p)
{
	static bool receive_waits;
	struct rdma_wr w;
	struct ibv_wc wc;

	fill(p);
	if (!receive_waits)
		post_recv(p);
	build_send(p, &w);
	do_request(p, &w, "SEND");
	receive_waits = !rdma_wait_wc(p->b.rcq, &wc, is_reliable(p) ? HANG_MS : LOST_MS);
	if (receive_waits) {
		if (is_reliable(p))
			rdma_die("a SEND is complete, its receive is not");
		return false;
	}
	if (wc.status != IBV_WC_SUCCESS)
		rdma_die("receive: %s", ibv_wc_status_str(wc.status));
	if (!same(p, is_datagram(p) ? GRH : 0))
		rdma_die("a message has other bytes than were sent");
	if (is_datagram(p) && !header_right(p))
		rdma_die("a datagram's header names other addresses");
	return true;
}

static void lost(const char *what)
{
	printf("lost: %s did not arrive\n", what);
	exit(1);
}

static void write_bytes(struct path *p)
{
	struct rdma_wr w;
	uint64_t until = rdma_now_us() + 1000ULL * LOST_MS * rdma_scale;

	fill(p);
	rdma_wr_write(&w, p->abuf.addr, length_of(p), p->abuf.mr->lkey, p->bbuf.iova,
		      p->bbuf.mr->rkey);
	do_request(p, &w, "WRITE");
	while (!same(p, 0)) {
		if (is_reliable(p))
			rdma_die("a WRITE has other bytes than were written");
		if (rdma_now_us() > until)
			lost("a WRITE");
	}
}

static void read_bytes(struct path *p)
{
	struct rdma_wr w;

	fill(p);
	rdma_wr_read(&w, p->abuf.addr, length_of(p), p->abuf.mr->lkey, p->bbuf.iova,
		     p->bbuf.mr->rkey);
	do_request(p, &w, "READ");
	if (!same(p, 0))
		rdma_die("a READ has other bytes than were there");
}

static void add_number(struct path *p)
{
	uint64_t before, after, found;
	struct rdma_wr w;

	fill(p);
	memcpy(&before, p->bbuf.addr, sizeof(before));
	rdma_wr_fadd(&w, p->abuf.addr, p->abuf.mr->lkey, p->bbuf.iova, p->bbuf.mr->rkey, 7);
	do_request(p, &w, "FETCH_ADD");
	memcpy(&found, p->abuf.addr, sizeof(found));
	memcpy(&after, p->bbuf.addr, sizeof(after));
	if (found != before || after != before + 7)
		rdma_die("a FETCH_ADD is wrong");
}

/* Every operation of the service once; nothing is lost on a path that is at rest. */
static void move_once(struct path *p)
{
	if (!message(p))
		lost("a message");
	if (is_datagram(p))
		return;
	write_bytes(p);
	if (!is_reliable(p))
		return;
	read_bytes(p);
	add_number(p);
}

/* Messages until a signal, and then some more that have to arrive. */
static int run(struct path *p)
{
	unsigned int arrived = 0;
	uint64_t until;

	block_end();
	connect_ends(p);
	while (!is_ended()) {
		if (message(p) && !arrived++)
			printf("running\n");
	}
	until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;
	for (unsigned int left = 20; left; left -= message(p)) {
		if (rdma_now_us() > until) {
			printf("lost: nothing arrives any more\n");
			return 1;
		}
	}
	printf("arrived to the end: %lu messages sent\n", p->rounds);
	return 0;
}

static void open_ends(struct path *p)
{
	rdma_end_create(&p->a, &p->dev, NULL, &p->conf);
	rdma_end_create(&p->b, &p->peer_dev, NULL, &p->conf);
	rdma_buf_create(&p->abuf, p->a.pd, length_of(p) + GRH, 0, p->conf.access);
	rdma_buf_create(&p->bbuf, p->b.pd, length_of(p) + GRH, 0, p->conf.access);
}

static void close_ends(struct path *p)
{
	if (p->ah)
		ibv_destroy_ah(p->ah);
	p->ah = NULL;
	rdma_buf_destroy(&p->abuf);
	rdma_buf_destroy(&p->bbuf);
	rdma_end_destroy(&p->a);
	rdma_end_destroy(&p->b);
}

/* --- every service, and every index of the GID table --- */

static void move_service(struct path *p, enum ibv_qp_type type)
{
	p->conf.type = type;
	open_ends(p);
	connect_ends(p);
	for (int i = 0; i < 3; i++)
		move_once(p);
	close_ends(p);
}

static void move_services(struct path *p)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	if (p->only_type) {
		move_service(p, p->conf.type);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		move_service(p, types[i]);
}

static int move(struct path *p)
{
	struct rdma_dev swapped;

	move_services(p);
	if (p->both_ways) {
		swapped = p->dev;
		p->dev = p->peer_dev;
		p->peer_dev = swapped;
		move_services(p);
	}
	printf("moved\n");
	return 0;
}

/* What an index without an address says, of whatever peer. */
static int empty_index(struct path *p)
{
	union ibv_gid target = p->peer_dev.gid;
	int err;

	open_ends(p);
	err = to_path(p, &target);
	close_ends(p);
	if (!err)
		printf("index %d is empty, and there is a path\n", p->dev.gid_index);
	return err;
}

/* An index with an address carries data to that address. */
static int indexes(struct path *p)
{
	int some = p->dev.gid_index, used = 0, last = 0;
	uint64_t start = rdma_now_us();

	for (int i = 0; i < INDEXES; i++) {
		struct ibv_gid_entry entry;

		p->dev.gid_index = i;
		p->peer_dev.gid_index = i;
		if (ibv_query_gid_ex(p->dev.ctx, p->dev.port, (uint32_t)i, &entry, 0)) {
			last = empty_index(p);
			if (!last)
				return 1;
			continue;
		}
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			rdma_die("index %d is not RoCE v2", i);
		p->dev.gid = entry.gid;
		p->peer_dev.gid = entry.gid;
		open_ends(p);
		connect_ends(p);
		move_once(p);
		close_ends(p);
		used++;
	}
	p->dev.gid_index = some;
	printf("%d indexes with an address work, an empty one says %s; %llu ms\n", used,
	       strerrorname_np(last), (unsigned long long)(rdma_now_us() - start) / 1000);
	return used ? 0 : 1;
}

/* --- command line --- */

struct command {
	const char *name;
	int (*run)(struct path *p);
	bool ends;	/* of both devices, to begin with */
};

static _Noreturn void usage(void)
{
	fprintf(stderr,
		"usage: pathtest [OPTION]... reach | move | run | indexes\n\n"
		"  reach      is there a path: RTR, or an address handle for UD\n"
		"  move       every operation of every service, checked\n"
		"  run        messages until SIGTERM; the last ones must arrive\n"
		"  indexes    every GID index: a path to the own address, or an errno\n\n"
		"  -d DEVICE -g INDEX    one end and its GID\n"
		"  -D DEVICE -G INDEX    the other end; the same unless given\n"
		"  -a ADDRESS            reach: this address instead of the other end's\n"
		"  -M ADDRESS            run, by UD: to this group, which the other end is in\n"
		"  -b                    move: both ways\n"
		"  -t rc|uc|ud           transport service (rc; move: all)\n"
		"  -m BYTES              path MTU (1024)\n"
		"  -o N                  timeout, 4.096 us * 2^N (14)\n"
		"  -x N                  multiplies every deadline\n");
	exit(2);
}

static const struct command *find_command(const char *name)
{
	static const struct command commands[] = {
		{ "reach", reach, true },
		{ "move", move, false },
		{ "run", run, true },
		{ "indexes", indexes, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	usage();
}

static enum ibv_qp_type parse_type(const char *text)
{
	if (!strcmp(text, "rc"))
		return IBV_QPT_RC;
	if (!strcmp(text, "uc"))
		return IBV_QPT_UC;
	if (!strcmp(text, "ud"))
		return IBV_QPT_UD;
	usage();
}

static enum ibv_mtu parse_mtu(const char *text)
{
	unsigned long bytes = number_of(text, 4096);
	enum ibv_mtu mtu;

	for (mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (128UL << mtu == bytes)
			return mtu;
	usage();
}

int main(int argc, char **argv)
{
	struct path p = { .conf = rdma_conf_default() };
	const char *device = NULL, *peer = NULL;
	int index = -1, peer_index = -1, option;
	const struct command *command;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "d:g:D:G:a:M:bt:m:o:x:")) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			index = (int)number_of(optarg, INT_MAX);
			break;
		case 'D':
			peer = optarg;
			break;
		case 'G':
			peer_index = (int)number_of(optarg, INT_MAX);
			break;
		case 'a':
			p.target = optarg;
			break;
		case 'M':
			p.group = optarg;
			p.conf.type = IBV_QPT_UD;
			break;
		case 'b':
			p.both_ways = true;
			break;
		case 't':
			p.conf.type = parse_type(optarg);
			p.only_type = true;
			break;
		case 'm':
			p.conf.mtu = parse_mtu(optarg);
			break;
		case 'o':
			p.conf.timeout = (uint8_t)number_of(optarg, 31);
			break;
		case 'x':
			rdma_scale = (unsigned int)number_of(optarg, INT_MAX);
			break;
		default:
			usage();
		}
	}
	if (optind != argc - 1)
		usage();
	command = find_command(argv[optind]);
	rdma_dev_open(&p.dev, device, index);
	rdma_dev_open(&p.peer_dev, peer ? peer : device, peer_index);
	if (command->ends)
		open_ends(&p);
	return command->run(&p);
}
