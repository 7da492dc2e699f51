// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: which there are, who may send by one, and many of them. */
#include "meanwhile.h"
#include "ud_env.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#define RECV_ID	0x7ec1
#define MANY	2000

static struct ibv_ah *create(struct ud_env *u, struct ibv_ah_attr *path)
{
	return ibv_create_ah(u->e.a.pd, path);
}

/* Whatever the fields say that RoCE has no use for, or only the network. */
static void odd_fields(long ipv4)
{
	static const uint32_t odd[] = { 0, 1, 0x7f, 0x80, 0xfffff, UINT32_MAX };
	struct ud_env u;

	ud_open(&u, NULL);
	ud_use_gid(&u.e.dev, ipv4);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct ibv_ah_attr path = ud_path(&u.e.dev, &u.e.dev.gid);

		path.dlid = (uint16_t)odd[i];
		path.sl = (uint8_t)odd[i];
		path.src_path_bits = (uint8_t)odd[i];
		path.static_rate = (uint8_t)odd[i];
		path.grh.hop_limit = (uint8_t)odd[i];
		path.grh.traffic_class = (uint8_t)odd[i];
		path.grh.flow_label = odd[i];
		check_errno(ibv_destroy_ah(u.ah), 0, "ibv_destroy_ah");
		u.ah = create(&u, &path);
		check(u.ah, "fields of %#x: %s", odd[i], strerror(errno));
		qp_fill(&u.e);
		ud_recv(&u, RECV_ID, 0, 100);
		ud_send(&u, 0, 100, UD_QKEY);
		ud_expect(&u, RECV_ID, 0, 0, 100, NULL);
	}
	ud_close(&u);
}

static bool has_gid(const struct rdma_dev *dev, int index, bool ipv4)
{
	static const union ibv_gid none;
	union ibv_gid gid;

	return !ibv_query_gid(dev->ctx, dev->port, index, &gid) &&
	       memcmp(&gid, &none, sizeof(gid)) && ud_is_ipv4(&gid) == ipv4;
}

/* There is a handle for an index in use, of the target's kind of address, and no other. */
static void every_index(long ipv4)
{
	struct ibv_ah_attr path;
	int handles = 0;
	struct ud_env u;

	ud_open(&u, NULL);
	ud_use_gid(&u.e.dev, ipv4);
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	for (int i = 0; i < 256; i++) {
		bool has = has_gid(&u.e.dev, i, ipv4);
		int err;

		path.grh.sgid_index = (uint8_t)i;
		err = ud_try_ah(&u.e.a, &path);
		check(has ? !err : err == EINVAL || err == ENODATA, "index %d, %s: %s", i,
		      has ? "in use" : "of no such address", strerror(err));
		handles += has;
	}
	check(handles, "some index is in use");
	ud_close(&u);
}

static union ibv_gid address(bool ipv4, const char *name)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	inet_pton(ipv4 ? AF_INET : AF_INET6, name, gid.raw + (ipv4 ? 12 : 0));
	return gid;
}

/* No datagram goes to everybody, and none to nobody. */
static void not_a_peer(long ipv4)
{
	static const char *const names[2][3] = {
		{ "::", "::ffff:0.0.0.0", "::ffff:255.255.255.255" },
		{ "0.0.0.0", "255.255.255.255", "0.1.2.3" },
	};
	struct ud_env u;

	ud_open(&u, NULL);
	ud_use_gid(&u.e.dev, ipv4);
	for (size_t i = 0; i < ARRAY_SIZE(names[0]); i++) {
		union ibv_gid dgid = address(ipv4, names[ipv4][i]);
		struct ibv_ah_attr path = ud_path(&u.e.dev, &dgid);

		qp_expect_no_peer(ud_try_ah(&u.e.a, &path), names[ipv4][i]);
	}
	ud_close(&u);
}

/* In another order than they were made in; the device has as many as before. */
static void many(long arg)
{
	struct ibv_ah **ahs = calloc(MANY, sizeof(*ahs));
	struct ud_env u;

	(void)arg;
	check(ahs, "memory");
	ud_open(&u, NULL);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < MANY; i++)
			ahs[i] = ud_ah(&u.e.a);
		for (size_t i = 0; i < MANY; i++) {
			size_t at = (i * 7 + (size_t)round) % MANY;

			check_errno(ibv_destroy_ah(ahs[at]), 0, "ibv_destroy_ah");
		}
	}
	ud_expect_lost(&u);
	ud_close(&u);
	free(ahs);
}

static void other_pd(long arg)
{
	struct ibv_ah *own, *other;
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	own = u.ah;
	other = ud_ah(&u.e.b);
	u.ah = other;
	ud_build(&u, &w, 0, 8, u.e.b.qp->qp_num, UD_QKEY);
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_LOC_QP_OP_ERR, "status");
	u.ah = own;
	ud_expect_send_error(&u);
	check_errno(ibv_destroy_ah(other), 0, "ibv_destroy_ah");
	ud_close(&u);
}

/* In SQD a request waits; its address handle does not. */
static void destroyed(long arg)
{
	struct ibv_ah *own;
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	own = u.ah;
	u.ah = ud_ah(&u.e.a);
	check_errno(rdma_to_state(&u.e.a, IBV_QPS_SQD), 0, "to SQD");
	ud_build(&u, &w, 0, 8, u.e.b.qp->qp_num, UD_QKEY);
	rdma_post(&u.e.a, rdma_wr_chain(&w, 1));
	check_errno(ibv_destroy_ah(u.ah), 0, "ibv_destroy_ah");
	u.ah = own;
	qp_expect_none(u.e.a.scq, "in SQD");
	check_errno(rdma_to_state(&u.e.a, IBV_QPS_RTS), 0, "to RTS");
	qp_expect(u.e.a.scq, w.wr.wr_id, IBV_WC_LOC_QP_OP_ERR,
		  "a send by a handle that is gone");
	ud_expect_send_error(&u);
	ud_close(&u);
}

/* A path that leads nowhere is an error of ibv_create_ah(3). */
static void bad_path(long arg)
{
	struct ibv_ah_attr path;
	struct ud_env u;
	int err;

	(void)arg;
	ud_open(&u, NULL);
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	path.is_global = 0;
	check_errno(ud_try_ah(&u.e.a, &path), EINVAL, "no GRH");
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	path.port_num = 7;
	check_errno(ud_try_ah(&u.e.a, &path), EINVAL, "no such port");
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	path.grh.sgid_index = 255;
	err = ud_try_ah(&u.e.a, &path);
	check(err == EINVAL || err == ENODATA, "no such GID: %s", strerror(err));
	/* From one kind of address to the other. */
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	memset(path.grh.dgid.raw, 0, 12);
	if (ud_is_ipv4(&u.e.dev.gid))
		path.grh.dgid.raw[0] = 0xfd;
	else
		memset(path.grh.dgid.raw + 10, 0xff, 2);
	check_errno(ud_try_ah(&u.e.a, &path), EINVAL, "the other IP version");
	ud_close(&u);
}

/* Two queue pairs send by one handle while others come and go. */
#define RACE_MS 300

struct race {
	struct ud_env *u;
	struct rdma_end *end;
};

static bool race_send(struct meanwhile *m)
{
	struct race *r = m->object;
	struct rdma_wr w;

	ud_build(r->u, &w, 0, 64, r->u->e.b.qp->qp_num, UD_QKEY);
	check_eq(rdma_do(r->end, &w, NULL), IBV_WC_SUCCESS, "a send");
	return true;
}

static void shared(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct meanwhile sender[2];
	struct race race[2];
	struct rdma_end c;
	struct ud_env u;
	uint64_t until;

	(void)arg;
	ud_open(&u, NULL);
	conf.type = IBV_QPT_UD;
	rdma_end_create(&c, &u.e.dev, u.e.a.pd, &conf);
	ud_ready(&c);
	race[0] = (struct race){ .u = &u, .end = &u.e.a };
	race[1] = (struct race){ .u = &u, .end = &c };
	for (int i = 0; i < 2; i++)
		meanwhile_start(&sender[i], race_send, &race[i]);
	until = rdma_now_us() + 1000ULL * RACE_MS * rdma_scale;
	while (rdma_now_us() < until) {
		struct ibv_ah *ah = ud_ah(&u.e.a);

		check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
	}
	for (int i = 0; i < 2; i++)
		check(meanwhile_stop(&sender[i]), "something was sent meanwhile");
	ud_expect_lost(&u);
	rdma_end_destroy(&c);
	ud_close(&u);
}

void qp_ah_cases(void)
{
	static const char *const name[] = { "ipv6", "ipv4" };

	for (long ipv4 = 1; ipv4 >= 0; ipv4--) {
		ktap_add("ibv_create_ah(3)", odd_fields, ipv4, 0, "ud.ah-odd-fields.%s",
			 name[ipv4]);
		ktap_add("ibv_create_ah(3)", not_a_peer, ipv4, 0, "ud.ah-not-a-peer.%s",
			 name[ipv4]);
		ktap_add("ibv_create_ah(3)", every_index, ipv4, 60, "ud.ah-every-index.%s",
			 name[ipv4]);
	}
	ktap_add("ibv_create_ah(3)", many, 0, 60, "ud.ah-many");
	ktap_add("ibv_create_ah(3)", bad_path, 0, 0, "ud.ah-bad-path");
	ktap_add("local QP operation error", other_pd, 0, 0, "ud.ah-other-pd");
	ktap_add("local QP operation error", destroyed, 0, 0, "ud.ah-destroyed");
	ktap_add("one handle, two queue pairs", shared, 0, 0, "ud.ah-shared");
}
