// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD multicast: a datagram for a group arrives, once, at every queue pair that is
 * attached to it, the sender's own among them, and at no other.
 */
#include "ud_env.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define QPN_MULTICAST	0xffffff

struct group_env {
	struct ud_env u;
	struct rdma_end c;	/* a third one, of b's domain */
	union ibv_gid mgid;
	struct ibv_ah *to;	/* a's, to the group */
};

static union ibv_gid group(bool ipv4, const char *name)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	inet_pton(ipv4 ? AF_INET : AF_INET6, name, gid.raw + (ipv4 ? 12 : 0));
	return gid;
}

static struct ibv_ah *ah_to(struct group_env *g, const union ibv_gid *mgid)
{
	struct ibv_ah_attr path = ud_path(&g->u.e.dev, mgid);
	struct ibv_ah *ah = ibv_create_ah(g->u.e.a.pd, &path);

	check(ah, "an address handle of a group: %s", strerror(errno));
	return ah;
}

static void open_group(struct group_env *g, bool ipv4)
{
	struct rdma_conf conf = rdma_conf_default();

	ud_open(&g->u, NULL);
	if (!g->u.e.dev.attr.max_mcast_grp)
		ktap_skip("the device has no multicast");
	ud_use_gid(&g->u.e.dev, ipv4);
	conf.type = IBV_QPT_UD;
	rdma_end_create(&g->c, &g->u.e.dev, g->u.e.b.pd, &conf);
	ud_ready(&g->c);
	g->mgid = group(ipv4, ipv4 ? "239.77.1.2" : "ff15::77:1:2");
	g->to = ah_to(g, &g->mgid);
}

static void close_group(struct group_env *g)
{
	check_errno(ibv_destroy_ah(g->to), 0, "ibv_destroy_ah");
	rdma_end_destroy(&g->c);
	ud_close(&g->u);
}

static void attach(struct rdma_end *end, const union ibv_gid *mgid)
{
	check_errno(ibv_attach_mcast(end->qp, mgid, 0), 0, "ibv_attach_mcast");
}

static void detach(struct rdma_end *end, const union ibv_gid *mgid)
{
	check_errno(ibv_detach_mcast(end->qp, mgid, 0), 0, "ibv_detach_mcast");
}

/* Every end has one receive more than it is to fill. */
static void post_receives(struct group_env *g)
{
	rdma_recv(&g->u.e.a, 1, g->u.e.abuf.addr + 4096, 200, g->u.e.abuf.mr->lkey);
	rdma_recv(&g->u.e.b, 1, g->u.e.bbuf.addr, 200, g->u.e.bbuf.mr->lkey);
	rdma_recv(&g->c, 1, g->u.e.bbuf.addr + 1024, 200, g->u.e.bbuf.mr->lkey);
}

static void send_by(struct group_env *g, struct ibv_ah *ah, uint32_t qkey)
{
	struct rdma_wr w;

	ud_build(&g->u, &w, 0, 77, QPN_MULTICAST, qkey);
	w.wr.wr.ud.ah = ah;
	check_eq(rdma_do(&g->u.e.a, &w, NULL), IBV_WC_SUCCESS, "a send to the group");
}

static void expect_one(struct group_env *g, struct rdma_end *end, const uint8_t *at,
		       const char *who)
{
	struct ibv_wc wc;

	qp_expect_wc(end->rcq, &wc, 1, IBV_WC_SUCCESS, who);
	check_eq(wc.byte_len, UD_GRH + 77, "byte_len");
	check_eq(wc.src_qp, g->u.e.a.qp->qp_num, "src_qp");
	check(wc.wc_flags & IBV_WC_GRH, "the completion says that there is a header");
	check(!memcmp(at + UD_GRH, g->u.e.abuf.addr, 77), "the data arrives at %s", who);
	check(!memcmp(at + UD_GRH - (ud_is_ipv4(&g->mgid) ? 4 : 16),
		      g->mgid.raw + (ud_is_ipv4(&g->mgid) ? 12 : 0),
		      ud_is_ipv4(&g->mgid) ? 4 : 16), "the header names the group");
	qp_expect_none(end->rcq, "one copy");
	rdma_recv(end, 1, (void *)at, 200,
		  end == &g->u.e.a ? g->u.e.abuf.mr->lkey : g->u.e.bbuf.mr->lkey);
}

/* Who is in @who, one letter for each end, gets one copy, and nobody else. */
static void round_of(struct group_env *g, const char *who)
{
	send_by(g, g->to, UD_QKEY);
	if (strchr(who, 'a'))
		expect_one(g, &g->u.e.a, g->u.e.abuf.addr + 4096, "the sender");
	if (strchr(who, 'b'))
		expect_one(g, &g->u.e.b, g->u.e.bbuf.addr, "b");
	if (strchr(who, 'c'))
		expect_one(g, &g->c, g->u.e.bbuf.addr + 1024, "c");
	/* Behind it comes what only b gets. */
	if (!*who) {
		ud_send(&g->u, 0, 77, UD_QKEY);
		qp_expect(g->u.e.b.rcq, 1, IBV_WC_SUCCESS, "a datagram to b alone");
		rdma_recv(&g->u.e.b, 1, g->u.e.bbuf.addr, 200, g->u.e.bbuf.mr->lkey);
	}
	qp_expect_none(g->u.e.a.rcq, "a");
	qp_expect_none(g->u.e.b.rcq, "b");
	qp_expect_none(g->c.rcq, "c");
}

static void members(long ipv4)
{
	struct group_env g;

	open_group(&g, ipv4);
	qp_fill(&g.u.e);
	post_receives(&g);
	round_of(&g, "");
	attach(&g.u.e.b, &g.mgid);
	round_of(&g, "b");
	attach(&g.c, &g.mgid);
	round_of(&g, "bc");
	attach(&g.u.e.a, &g.mgid);
	round_of(&g, "abc");
	detach(&g.u.e.b, &g.mgid);
	round_of(&g, "ac");
	detach(&g.c, &g.mgid);
	round_of(&g, "a");
	detach(&g.u.e.a, &g.mgid);
	round_of(&g, "");
	close_group(&g);
}

/* A queue pair in two groups, and a group of the same last bytes. */
static void groups(long ipv4)
{
	struct group_env g;
	union ibv_gid other, unlike;
	struct ibv_ah *ah;

	open_group(&g, ipv4);
	qp_fill(&g.u.e);
	other = group(ipv4, ipv4 ? "239.77.1.3" : "ff15::77:1:3");
	unlike = group(ipv4, ipv4 ? "238.77.1.2" : "ff15::78:1:2");
	post_receives(&g);
	attach(&g.u.e.b, &g.mgid);
	attach(&g.u.e.b, &other);
	attach(&g.c, &unlike);
	round_of(&g, "b");
	detach(&g.u.e.b, &other);
	round_of(&g, "b");
	ah = ah_to(&g, &other);
	send_by(&g, ah, UD_QKEY);
	round_of(&g, "b");
	check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
	detach(&g.u.e.b, &g.mgid);
	detach(&g.c, &unlike);
	close_group(&g);
}

static void wrong_qkey(long ipv4)
{
	struct group_env g;

	open_group(&g, ipv4);
	qp_fill(&g.u.e);
	post_receives(&g);
	attach(&g.u.e.b, &g.mgid);
	send_by(&g, g.to, UD_QKEY ^ 1);
	round_of(&g, "b");
	detach(&g.u.e.b, &g.mgid);
	close_group(&g);
}

static void refused(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end rc;
	struct group_env g;

	(void)arg;
	open_group(&g, true);
	check_errno(abs(ibv_detach_mcast(g.c.qp, &g.mgid, 0)), EINVAL,
		    "detach of one that is not attached");
	check_errno(abs(ibv_attach_mcast(g.c.qp, &g.u.e.dev.gid, 0)), EINVAL,
		    "attach to an address that is no group");
	rdma_end_create(&rc, &g.u.e.dev, NULL, &conf);
	check_errno(abs(ibv_attach_mcast(rc.qp, &g.mgid, 0)), EINVAL,
		    "attach of an RC queue pair");
	rdma_end_destroy(&rc);
	attach(&g.c, &g.mgid);
	check_errno(abs(ibv_destroy_qp(g.c.qp)), EBUSY, "destroying a member");
	detach(&g.c, &g.mgid);
	close_group(&g);
}

/*
 * A member twice, the second time by another LID, which means nothing here; and in
 * groups that this host is a member of by itself, and stays.
 */
static void odd(long ipv4)
{
	static const char *const names[2][4] = {
		{ "ff02::1", "ff01::1", "ff0e::1", "ffff:ffff::ffff" },
		{ "224.0.0.1", "224.0.0.22", "239.255.255.255", "232.0.0.0" },
	};
	struct group_env g;

	open_group(&g, ipv4);
	qp_fill(&g.u.e);
	post_receives(&g);
	attach(&g.u.e.b, &g.mgid);
	check(ibv_attach_mcast(g.u.e.b.qp, &g.mgid, 7), "of another LID");
	attach(&g.u.e.b, &g.mgid);
	round_of(&g, "b");
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(names[0]); i++) {
			union ibv_gid mgid = group(ipv4, names[ipv4][i]);

			attach(&g.c, &mgid);
			check(ibv_detach_mcast(g.u.e.b.qp, &mgid, 0), "a stranger's");
			detach(&g.c, &mgid);
		}
	}
	round_of(&g, "b");
	detach(&g.u.e.b, &g.mgid);
	check(ibv_detach_mcast(g.u.e.b.qp, &g.mgid, 0), "a second time");
	round_of(&g, "");
	close_group(&g);
}

/* As many memberships as the device has; they go with the queue pair's process. */
static _Noreturn void join_all(int told)
{
	struct group_env g;
	char byte = 1;
	int made = 0;

	open_group(&g, true);
	for (int i = 0; i <= g.u.e.dev.attr.max_mcast_grp; i++) {
		union ibv_gid mgid = group(true, "239.80.0.0");
		int err;

		mgid.raw[14] = (uint8_t)(i >> 8);
		mgid.raw[15] = (uint8_t)i;
		err = abs(ibv_attach_mcast(g.c.qp, &mgid, 0));
		if (!err) {
			made++;
			continue;
		}
		check_errno(err, ENOMEM, "one group too many");
		break;
	}
	check(made > g.u.e.dev.attr.max_mcast_grp * 9 / 10 &&
	      made <= g.u.e.dev.attr.max_mcast_grp, "%d groups of %d", made,
	      g.u.e.dev.attr.max_mcast_grp);
	check(write(told, &byte, 1) == 1, "the parent is told");
	for (;;)
		pause();
}

static void most_groups(long arg)
{
	struct group_env g;
	int told[2];
	char byte;
	pid_t pid;

	(void)arg;
	open_group(&g, true);
	if (g.u.e.dev.attr.max_mcast_grp > 20000)
		ktap_skip("%d groups are too many", g.u.e.dev.attr.max_mcast_grp);
	check(!pipe(told), "a pipe");
	pid = fork();
	check(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		close(told[0]);
		join_all(told[1]);
	}
	close(told[1]);
	check(read(told[0], &byte, 1) == 1, "another process is in all groups");
	check_errno(abs(ibv_attach_mcast(g.c.qp, &g.mgid, 0)), ENOMEM,
		    "nobody can join any");
	check(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid, "it is killed");
	qp_fill(&g.u.e);
	post_receives(&g);
	attach(&g.c, &g.mgid);
	round_of(&g, "c");
	detach(&g.c, &g.mgid);
	close_group(&g);
}

/* max_mcast_qp_attach, and a member more. */
static void most_members(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end *end;
	struct group_env g;
	int most;

	(void)arg;
	open_group(&g, true);
	most = g.u.e.dev.attr.max_mcast_qp_attach;
	if (most > 1000)
		ktap_skip("%d queue pairs are too many", most);
	conf.type = IBV_QPT_UD;
	end = calloc((size_t)most + 1, sizeof(*end));
	check(end, "memory");
	for (int i = 0; i <= most; i++) {
		rdma_end_create(&end[i], &g.u.e.dev, g.u.e.b.pd, &conf);
		ud_ready(&end[i]);
		rdma_recv(&end[i], 1, g.u.e.bbuf.addr, 200, g.u.e.bbuf.mr->lkey);
		if (i < most)
			attach(&end[i], &g.mgid);
	}
	check_errno(abs(ibv_attach_mcast(end[most].qp, &g.mgid, 0)), ENOMEM,
		    "a member more");
	send_by(&g, g.to, UD_QKEY);
	for (int i = 0; i < most; i++)
		qp_expect(end[i].rcq, 1, IBV_WC_SUCCESS, "each member's receive");
	for (int i = 0; i <= most; i++) {
		if (i < most)
			detach(&end[i], &g.mgid);
		rdma_end_destroy(&end[i]);
	}
	free(end);
	close_group(&g);
}

/* Be a member, say so, and wait to be killed. */
static _Noreturn void be_killed(int told)
{
	struct group_env g;

	open_group(&g, true);
	attach(&g.u.e.b, &g.mgid);
	attach(&g.c, &g.mgid);
	check(write(told, "", 1) == 1, "the parent is told");
	for (;;)
		pause();
}

/* What a process was attached to goes with it. */
static void killed(long arg)
{
	struct group_env g;
	int told[2];
	char byte;
	pid_t pid;

	(void)arg;
	check(!pipe(told), "a pipe");
	pid = fork();
	check(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		close(told[0]);
		be_killed(told[1]);
	}
	close(told[1]);
	check(read(told[0], &byte, 1) == 1, "a member in another process");
	open_group(&g, true);
	qp_fill(&g.u.e);
	post_receives(&g);
	attach(&g.u.e.b, &g.mgid);
	round_of(&g, "b");
	check(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid, "it is killed");
	round_of(&g, "b");
	detach(&g.u.e.b, &g.mgid);
	round_of(&g, "");
	close_group(&g);
}

void qp_mcast_cases(void)
{
	static const char *const name[] = { "ipv6", "ipv4" };

	for (long ipv4 = 1; ipv4 >= 0; ipv4--) {
		ktap_add("10.5.2.1: every member", members, ipv4, 0,
			 "ud.multicast.members.%s", name[ipv4]);
		ktap_add("10.5.2.1: of that group", groups, ipv4, 0,
			 "ud.multicast.groups.%s", name[ipv4]);
		ktap_add("10.2.5: dropped", wrong_qkey, ipv4, 0,
			 "ud.multicast.qkey.%s", name[ipv4]);
		ktap_add("ibv_attach_mcast(3)", odd, ipv4, 0, "ud.multicast.odd.%s",
			 name[ipv4]);
	}
	ktap_add("ibv_attach_mcast(3)", refused, 0, 0, "ud.multicast.refused");
	ktap_add("members of a process that is killed", killed, 0, 0,
		 "ud.multicast.killed");
	ktap_add("max_mcast_grp", most_groups, 0, 120, "ud.most-groups");
	ktap_add("max_mcast_qp_attach", most_members, 0, 60, "ud.multicast.most");
}
