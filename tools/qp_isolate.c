// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a process may do with its own queue pairs costs nobody else. */
#include "qp_env.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER_TAG	0x33
#define IDLE_PAIRS	32
#define IDLE_MS		1000
#define GROUP_PARENT	"/tmp/smw-cgroup"
#define GROUP		GROUP_PARENT "/qptest"

/*
 * A third queue pair that claims to be a's: it names b as its peer, which knows
 * nothing of it, and asks for what is next in b's sequence with b's key.
 */
static void stranger(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	enum qp_op op = (enum qp_op)arg;
	struct rdma_end c;
	struct rdma_buf cbuf;
	struct rdma_wr w;
	struct qp_env e;

	conf.timeout = 8;
	conf.retry_cnt = 1;
	qp_open(&e, &conf, 4096);
	qp_fill(&e);
	rdma_end_create(&c, &e.dev, NULL, &conf);
	rdma_buf_create(&cbuf, c.pd, 4096, 0, QP_REGION_RIGHTS);
	rdma_buf_fill(&cbuf, STRANGER_TAG);
	check_errno(rdma_to_init(&c), 0, "to INIT");
	check_errno(rdma_to_rtr(&c, e.b.qp->qp_num, conf.psn), 0, "to RTR");
	check_errno(rdma_to_rts(&c), 0, "to RTS");
	if (op == QP_READ)
		rdma_wr_read(&w, cbuf.addr, 4096, cbuf.mr->lkey, e.bbuf.iova,
			     e.bbuf.mr->rkey);
	else
		rdma_wr_fadd(&w, cbuf.addr, cbuf.mr->lkey,
			     (e.bbuf.iova + 7) & ~7ULL, e.bbuf.mr->rkey, 0);
	check_eq(rdma_do(&c, &w, NULL), IBV_WC_RETRY_EXC_ERR,
		 "b answers its own peer alone");
	check(rdma_buf_touched(&cbuf, STRANGER_TAG, 0, 0) < 0,
	      "nothing of b's comes to a stranger");
	rdma_buf_destroy(&cbuf);
	rdma_end_destroy(&c);
	qp_close(&e);
}

/* The broadcast address of the subnet that an IPv4 GID is in; false if none. */
static bool subnet_broadcast(const union ibv_gid *gid, union ibv_gid *target)
{
	struct ifaddrs *all, *i;
	bool found = false;

	*target = *gid;
	check(!getifaddrs(&all), "getifaddrs");
	for (i = all; i && !found; i = i->ifa_next) {
		const struct sockaddr_in *own = (const void *)i->ifa_addr;
		const struct sockaddr_in *mask = (const void *)i->ifa_netmask;
		in_addr_t to;

		if (!own || own->sin_family != AF_INET || !mask ||
		    !(i->ifa_flags & IFF_BROADCAST) ||
		    memcmp(&own->sin_addr, gid->raw + 12, 4))
			continue;
		to = own->sin_addr.s_addr | ~mask->sin_addr.s_addr;
		memcpy(target->raw + 12, &to, sizeof(to));
		found = to != own->sin_addr.s_addr;
	}
	freeifaddrs(all);
	return found;
}

/* An RC queue pair has one peer: neither a group nor everybody. */
static void not_unicast(long arg)
{
	static const char *const targets[] = {
		"::ffff:224.0.0.1", "::ffff:255.255.255.255", "::ffff:0.0.0.0",
		"::", "ff02::1",
	};
	union ibv_gid own, broadcast;
	struct qp_env e;

	(void)arg;
	qp_open_unconnected(&e, NULL, 4096);
	own = e.dev.gid;
	check_errno(rdma_to_init(&e.a), 0, "to INIT");
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		check(inet_pton(AF_INET6, targets[i], &e.a.dgid) == 1, "a GID");
		qp_expect_no_peer(rdma_to_rtr(&e.a, 99, 0), targets[i]);
	}
	if (!subnet_broadcast(&own, &broadcast))
		ktap_skip("the GID's subnet has no broadcast address");
	e.a.dgid = broadcast;
	check_errno(rdma_to_rtr(&e.a, 99, 0), EINVAL, "the subnet's broadcast");
	e.a.dgid = own;
	check_errno(rdma_to_rtr(&e.a, 99, 0), 0, "its own address is one");
	qp_close(&e);
}

/* Ticks that all CPUs spent working since boot. */
static unsigned long long busy_ticks(void)
{
	unsigned long long user, nice, system, idle, wait, irq, soft;
	FILE *f = fopen("/proc/stat", "r");

	check(f, "/proc/stat can be read");
	check(fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
		     &system, &idle, &wait, &irq, &soft) == 7, "/proc/stat");
	fclose(f);
	return user + nice + system + irq + soft;
}

/*
 * Who waits for a receive for ever, by the shortest timer there is, must not
 * keep the machine busy: this process sleeps meanwhile.
 */
static void waits_cheaply(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	static struct rdma_end a[IDLE_PAIRS], b[IDLE_PAIRS];
	unsigned long long ticks;
	unsigned long hz = (unsigned long)sysconf(_SC_CLK_TCK);
	struct rdma_dev dev;
	struct rdma_wr w;

	(void)arg;
	rdma_scale = ktap_opt.scale;
	conf.min_rnr_timer = 1;		/* 10 us */
	conf.rnr_retry = 7;
	conf.cqe = 16;
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	for (size_t i = 0; i < IDLE_PAIRS; i++) {
		rdma_end_create(&a[i], &dev, NULL, &conf);
		rdma_end_create(&b[i], &dev, NULL, &conf);
		rdma_connect(&a[i], &b[i]);
		rdma_wr_send(&w, NULL, 0, 0);
		rdma_post(&a[i], rdma_wr_chain(&w, 1));
	}
	/* what was busy at first is over; nothing to wait for but time */
	usleep(200000);
	ticks = busy_ticks();
	usleep(IDLE_MS * 1000);
	ticks = busy_ticks() - ticks;
	ktap_note("%d waiting queue pairs keep the CPUs busy for %llu ms a second",
		  IDLE_PAIRS, ticks * 1000 / hz * 1000 / IDLE_MS);
	check(ticks * 1000 / hz < IDLE_MS / 2 * ktap_opt.scale,
	      "the CPUs are idle");
	for (size_t i = 0; i < IDLE_PAIRS; i++) {
		struct ibv_wc wc;

		rdma_recv(&b[i], i, NULL, 0, 0);
		check(rdma_wait_wc(a[i].scq, &wc, RDMA_WAIT_MS), "it still works");
		check_eq(wc.status, IBV_WC_SUCCESS, "status");
		rdma_end_destroy(&a[i]);
		rdma_end_destroy(&b[i]);
	}
	rdma_dev_close(&dev);
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool done = f && fputs(text, f) >= 0;

	return f && !fclose(f) && done;
}

static unsigned long long charged(void)
{
	unsigned long long bytes = 0;
	FILE *f = fopen(GROUP "/memory.current", "r");

	check(f && fscanf(f, "%llu", &bytes) == 1, "memory.current");
	fclose(f);
	return bytes;
}

/* This process and what is charged to it, in a control group of its own. */
static void enter_group(void)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "%d", getpid());
	mkdir(GROUP_PARENT, 0700);
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", GROUP_PARENT, "cgroup2", 0, NULL) ||
	    !write_file(GROUP_PARENT "/cgroup.subtree_control", "+memory") ||
	    (mkdir(GROUP, 0700) && errno != EEXIST) ||
	    !write_file(GROUP "/cgroup.procs", pid))
		ktap_skip("no memory control group: %s", strerror(errno));
}

/* Bytes of the device's mappings in this process. */
static unsigned long long mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long long bytes = 0;
	char line[512];

	check(f, "/proc/self/maps can be read");
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (strstr(line, "uverbs") &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			bytes += end - start;
	}
	fclose(f);
	return bytes;
}

/* The queues' memory is the process's: its control group pays and limits it. */
static void charged_to_owner(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	unsigned long long before, with, after, rings;
	struct rdma_dev dev;
	struct rdma_end a;

	(void)arg;
	enter_group();
	rdma_dev_open(&dev, ktap_opt.device, ktap_opt.gid_index);
	conf.cap.max_send_wr = (uint32_t)dev.attr.max_qp_wr;
	conf.cap.max_recv_wr = (uint32_t)dev.attr.max_qp_wr;
	conf.cqe = 65535;
	before = charged();
	rdma_end_create(&a, &dev, NULL, &conf);
	rings = mapped();
	with = charged();
	rdma_end_destroy(&a);
	after = charged();
	rdma_dev_close(&dev);
	ktap_note("%llu KiB of queues: %llu KiB charged before, %llu with, %llu after",
		  rings >> 10, before >> 10, with >> 10, after >> 10);
	check(with >= before + rings, "the queues are charged to their process");
	check(after < before + rings / 2, "and given back");
}

void qp_isolate_cases(void)
{
	ktap_add("a queue pair has one peer", stranger, QP_READ, 0,
		 "isolate.stranger.read");
	ktap_add("a queue pair has one peer", stranger, QP_FADD, 0,
		 "isolate.stranger.atomic");
	ktap_add("a queue pair has one peer", not_unicast, 0, 0,
		 "isolate.not-unicast");
	ktap_add("RNR NAK, retried for ever", waits_cheaply, 0, 0,
		 "isolate.rnr-wait");
	ktap_add("memory has an owner", charged_to_owner, 0, 0,
		 "isolate.charged");
}
