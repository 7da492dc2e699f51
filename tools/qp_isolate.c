// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a process may do with its own queue pairs costs nobody else. */
#include "qp_env.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#define STRANGER_TAG	0x33

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
		check(inet_pton(AF_INET6, targets[i], &e.dev.gid) == 1, "a GID");
		check(rdma_to_rtr(&e.a, 99, 0), "%s is no peer", targets[i]);
	}
	if (!subnet_broadcast(&own, &broadcast))
		ktap_skip("the GID's subnet has no broadcast address");
	e.dev.gid = broadcast;
	check(rdma_to_rtr(&e.a, 99, 0), "the subnet's broadcast is no peer");
	e.dev.gid = own;
	check_errno(rdma_to_rtr(&e.a, 99, 0), 0, "its own address is one");
	qp_close(&e);
}

void qp_isolate_cases(void)
{
	ktap_add("a queue pair has one peer", stranger, QP_READ, 0,
		 "isolate.stranger.read");
	ktap_add("a queue pair has one peer", stranger, QP_FADD, 0,
		 "isolate.stranger.atomic");
	ktap_add("a queue pair has one peer", not_unicast, 0, 0,
		 "isolate.not-unicast");
}
