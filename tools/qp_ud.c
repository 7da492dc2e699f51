// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UD queue pairs: each message is a packet for whoever has the number and the
 * Q_Key, and begins with the network header that it came with. What does not fit
 * is dropped in silence.
 */
#include "meanwhile.h"
#include "ud_env.h"

#include <poll.h>
#include <unistd.h>

#define RECV_ID		0x7ec0
#define IMM		0xa1b2c3d4
#define WR_API		1
#define INLINE		2
#define WITH_IMM	4

static void one_length(struct ud_env *u, long how, uint32_t len)
{
	size_t off = len % 7;
	struct rdma_wr w;
	struct ibv_wc wc;

	qp_fill(&u->e);
	ud_recv(u, RECV_ID, off, len);
	ud_build(u, &w, off, len, u->e.b.qp->qp_num, UD_QKEY);
	if (how & INLINE)
		w.wr.send_flags |= IBV_SEND_INLINE;
	if (how & WITH_IMM) {
		w.wr.opcode = IBV_WR_SEND_WITH_IMM;
		w.wr.imm_data = IMM;
	}
	check_eq(rdma_do(&u->e.a, &w, &wc), IBV_WC_SUCCESS, "the send");
	check_eq(wc.opcode, IBV_WC_SEND, "its opcode");
	ud_expect(u, RECV_ID, off, off, len, &wc);
	check_eq(wc.wc_flags, how & WITH_IMM ? IBV_WC_GRH | IBV_WC_WITH_IMM : IBV_WC_GRH,
		 "wc_flags");
	if (how & WITH_IMM)
		check_eq(wc.imm_data, IMM, "imm_data");
	check(rdma_buf_touched(&u->e.bbuf, QP_TAG_B, off, UD_GRH + len) < 0,
	      "nothing else changes at the receiver");
	check(rdma_buf_touched(&u->e.abuf, QP_TAG_A, 0, 0) < 0,
	      "nothing changes at the sender");
}

static void lengths(long how)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ud_env u;

	conf.wr_api = how & WR_API;
	ud_open(&u, &conf);
	if (how & INLINE) {
		for (uint32_t len = 1; len <= conf.cap.max_inline_data; len += 9)
			one_length(&u, how, len);
	} else {
		const uint32_t lens[] = { 0, 1, 2, 3, 4, 5, 255, 256, u.mtu - 4,
					  u.mtu - 1, u.mtu };

		for (size_t i = 0; i < ARRAY_SIZE(lens); i++)
			one_length(&u, how, lens[i]);
	}
	ud_close(&u);
}

/* The header is scattered like the data behind it. */
static void scattered(long arg)
{
	static const uint32_t pieces[] = { 13, 1, 50, 100 };
	struct ibv_sge from[3], to[ARRAY_SIZE(pieces)];
	struct ibv_recv_wr recv = {
		.wr_id = RECV_ID, .sg_list = to, .num_sge = ARRAY_SIZE(pieces),
	}, *bad;
	uint8_t got[164];
	struct rdma_wr w;
	struct ud_env u;
	size_t n = 0;

	(void)arg;
	ud_open(&u, NULL);
	qp_fill(&u.e);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		to[i] = (struct ibv_sge){ (uintptr_t)u.e.bbuf.addr + 1024 * i, pieces[i],
					  u.e.bbuf.mr->lkey };
	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		from[i] = (struct ibv_sge){ (uintptr_t)u.e.abuf.addr + 1000 * i,
					    i == 1 ? 60 : 31, u.e.abuf.mr->lkey };
	check_errno(ibv_post_recv(u.e.b.qp, &recv, &bad), 0, "ibv_post_recv");
	ud_build(&u, &w, 0, 1, u.e.b.qp->qp_num, UD_QKEY);
	w.wr.sg_list = from;
	w.wr.num_sge = ARRAY_SIZE(from);
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "the send");
	qp_expect(u.e.b.rcq, RECV_ID, IBV_WC_SUCCESS, "the receive");
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		memcpy(got + n, u.e.bbuf.addr + 1024 * i, pieces[i]);
		n += pieces[i];
	}
	check(!memcmp(got + UD_GRH, u.e.abuf.addr, 31) &&
	      !memcmp(got + UD_GRH + 31, u.e.abuf.addr + 1000, 60) &&
	      !memcmp(got + UD_GRH + 91, u.e.abuf.addr + 2000, 31),
	      "the pieces arrive in order");
	ud_close(&u);
}

/* --- the network header --- */

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void expect_ipv4(const uint8_t *ip, const union ibv_gid *gid, uint32_t payload)
{
	for (int i = 0; i < 20; i++)
		check_eq(ip[i], 0, "a byte in front of the IPv4 header");
	ip += 20;
	check_eq(ip[0], 0x45, "version and header length");
	check_eq(ip[1], 0x28, "TOS");
	check_eq(be16(ip + 2), 20 + payload, "total length");
	check(ip[8], "TTL");
	check_eq(ip[9], 17, "protocol");
	check(!memcmp(ip + 12, gid->raw + 12, 4), "the source");
	check(!memcmp(ip + 16, gid->raw + 12, 4), "the destination");
}

static void expect_ipv6(const uint8_t *ip, const union ibv_gid *gid, uint32_t payload)
{
	static const uint8_t begin[4] = { 0x62, 0x8a, 0xbc, 0xde };

	check(!memcmp(ip, begin, 4), "version, traffic class and flow label");
	check_eq(be16(ip + 4), payload, "payload length");
	check_eq(ip[6], 17, "next header");
	check(ip[7], "hop limit");
	check(!memcmp(ip + 8, gid, 16), "the source");
	check(!memcmp(ip + 24, gid, 16), "the destination");
}

/* b answers to where the header says that the datagram came from. */
static void answer(struct ud_env *u, struct ibv_wc *wc)
{
	struct ibv_ah *ah = ibv_create_ah_from_wc(u->e.b.pd, wc,
						  (struct ibv_grh *)u->e.bbuf.addr,
						  u->e.dev.port);
	struct rdma_wr w;

	check(ah, "ibv_create_ah_from_wc: %s", strerror(errno));
	rdma_recv(&u->e.a, RECV_ID, u->e.abuf.addr, 100, u->e.abuf.mr->lkey);
	rdma_wr_send(&w, u->e.bbuf.addr + 2000, 60, u->e.bbuf.mr->lkey);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = wc->src_qp;
	w.wr.wr.ud.remote_qkey = UD_QKEY;
	check_eq(rdma_do(&u->e.b, &w, NULL), IBV_WC_SUCCESS, "the answer");
	qp_expect(u->e.a.rcq, RECV_ID, IBV_WC_SUCCESS, "the answer's receive");
	check(!memcmp(u->e.abuf.addr + UD_GRH, u->e.bbuf.addr + 2000, 60),
	      "the answer arrives");
	check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
}

static void network_header(long ipv4)
{
	const uint32_t len = 61;
	/* UDP, BTH, DETH, the data with its padding, ICRC */
	const uint32_t payload = 8 + 12 + 8 + 64 + 4;
	struct ibv_ah_attr path;
	struct ud_env u;
	struct ibv_wc wc;

	ud_open(&u, NULL);
	ud_use_gid(&u.e.dev, ipv4);
	check_errno(ibv_destroy_ah(u.ah), 0, "ibv_destroy_ah");
	path = ud_path(&u.e.dev, &u.e.dev.gid);
	path.grh.traffic_class = 0x28;
	path.grh.flow_label = 0xabcde;
	u.ah = ibv_create_ah(u.e.a.pd, &path);
	check(u.ah, "ibv_create_ah: %s", strerror(errno));
	qp_fill(&u.e);
	ud_recv(&u, RECV_ID, 0, len);
	ud_send(&u, 0, len, UD_QKEY);
	ud_expect(&u, RECV_ID, 0, 0, len, &wc);
	if (ipv4)
		expect_ipv4(u.e.bbuf.addr, &u.e.dev.gid, payload);
	else
		expect_ipv6(u.e.bbuf.addr, &u.e.dev.gid, payload);
	check_eq(wc.sl, ipv4 ? 10 : 9, "sl, the kind of header as UCX reads it");
	answer(&u, &wc);
	ud_close(&u);
}

/* --- Q_Keys --- */

static uint32_t violations(struct ud_env *u)
{
	struct ibv_port_attr attr;

	check_errno(ibv_query_port(u->e.dev.ctx, u->e.dev.port, &attr), 0,
		    "ibv_query_port");
	return attr.qkey_viol_cntr;
}

static void qkey_mismatch(long arg)
{
	static const uint32_t wrong[] = { 0, 1, UD_QKEY ^ 1, UD_QKEY ^ 0x40000000 };
	uint32_t before;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	before = violations(&u);
	ud_recv(&u, 1, 0, 64);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		ud_send(&u, 0, 64, wrong[i]);
	ud_send(&u, 128, 64, UD_QKEY);
	ud_expect(&u, 1, 0, 128, 64, NULL);
	ud_expect_lost(&u);
	check_eq(violations(&u) - before, ARRAY_SIZE(wrong), "qkey_viol_cntr");
	ud_close(&u);
}

/* A request's Q_Key with the top bit set stands for the queue pair's own. */
static void qkey_high_bit(long arg)
{
	struct ibv_qp_attr attr = { .qkey = 0x2222, .qp_state = IBV_QPS_RTS };
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	ud_recv(&u, 1, 0, 64);
	ud_send(&u, 0, 64, UD_OWN_QKEY);
	ud_expect(&u, 1, 0, 0, 64, NULL);
	ud_recv(&u, 2, 0, 64);
	ud_send(&u, 64, 64, UD_OWN_QKEY | 0x123);
	ud_expect(&u, 2, 0, 64, 64, NULL);
	/* a's own is another one from now on; b's is not. */
	check_errno(ibv_modify_qp(u.e.a.qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0,
		    "another Q_Key");
	ud_recv(&u, 3, 0, 64);
	ud_send(&u, 0, 64, UD_OWN_QKEY | UD_QKEY);
	ud_send(&u, 192, 64, UD_QKEY);
	ud_expect(&u, 3, 0, 192, 64, NULL);
	qp_expect_none(u.e.b.rcq, "a's new Q_Key at b");
	ud_close(&u);
}

/* --- what is lost --- */

static void too_small_receive(long arg)
{
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	ud_recv(&u, 1, 0, 9);
	ud_send(&u, 0, 10, UD_QKEY);
	ud_send(&u, 0, u.mtu, UD_QKEY);
	ud_send(&u, 50, 9, UD_QKEY);
	ud_expect(&u, 1, 0, 50, 9, NULL);
	qp_expect_none(u.e.b.rcq, "the others");
	/* Not even the header has room. */
	rdma_recv(&u.e.b, 2, u.e.bbuf.addr, UD_GRH - 1, u.e.bbuf.mr->lkey);
	ud_send(&u, 0, 0, UD_QKEY);
	usleep(20000 * rdma_scale);
	qp_expect_none(u.e.b.rcq, "a receive without room for the header");
	check_eq(rdma_state(u.e.b.qp), IBV_QPS_RTS, "the receiver's state");
	ud_close(&u);
}

static void no_receive(long arg)
{
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	for (int i = 0; i < 3; i++)
		ud_send(&u, 0, 64, UD_QKEY);
	ud_expect_lost(&u);
	check_eq(rdma_state(u.e.b.qp), IBV_QPS_RTS, "the receiver's state");
	ud_close(&u);
}

static void no_such_qp(long arg)
{
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	for (uint32_t qpn = 0; qpn < 3; qpn++) {
		ud_build(&u, &w, 0, 8, qpn, UD_QKEY);
		check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "a send");
	}
	ud_expect_lost(&u);
	ud_close(&u);
}

/* A datagram that comes in RTR arrives, and establishes nothing (IBTA 11.6.3.2). */
static void not_established(long arg)
{
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	check_errno(rdma_to_state(&u.e.b, IBV_QPS_RESET), 0, "to RESET");
	check_errno(rdma_to_init(&u.e.b), 0, "to INIT");
	check_errno(rdma_to_rtr(&u.e.b, 0, 0), 0, "to RTR");
	qp_fill(&u.e);
	ud_recv(&u, RECV_ID, 0, 64);
	ud_send(&u, 0, 64, UD_QKEY);
	ud_expect(&u, RECV_ID, 0, 0, 64, NULL);
	check(!rdma_wait_event(&u.e.dev, IBV_EVENT_COMM_EST, u.e.b.qp, QP_QUIET_MS),
	      "IBV_EVENT_COMM_EST does not come");
	check_errno(rdma_to_rts(&u.e.b), 0, "to RTS");
	ud_close(&u);
}

/* A connected queue pair takes no datagram, and does not notice. */
static void to_connected(long type)
{
	struct rdma_conf conf = rdma_conf_default();
	struct rdma_end c, d;
	struct rdma_wr w;
	struct ud_env u;
	struct ibv_wc wc;

	ud_open(&u, NULL);
	conf.type = (enum ibv_qp_type)type;
	rdma_end_create(&c, &u.e.dev, u.e.a.pd, &conf);
	rdma_end_create(&d, &u.e.dev, u.e.b.pd, &conf);
	rdma_connect(&c, &d);
	rdma_recv(&d, 1, u.e.bbuf.addr, 100, u.e.bbuf.mr->lkey);
	ud_build(&u, &w, 0, 8, d.qp->qp_num, UD_QKEY);
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "a datagram");
	rdma_wr_send(&w, u.e.abuf.addr, 77, u.e.abuf.mr->lkey);
	check_eq(rdma_do(&c, &w, NULL), IBV_WC_SUCCESS, "a send");
	qp_expect_wc(d.rcq, &wc, 1, IBV_WC_SUCCESS, "its receive");
	check_eq(wc.byte_len, 77, "byte_len");
	rdma_end_destroy(&c);
	rdma_end_destroy(&d);
	ud_close(&u);
}

/* A receive whose memory is not there is the receiver's own fault. */
static void bad_receive(long arg)
{
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	rdma_recv(&u.e.b, 3, u.e.bbuf.addr, 200, u.e.bbuf.mr->lkey ^ 0x100);
	ud_send(&u, 0, 64, UD_QKEY);
	qp_expect(u.e.b.rcq, 3, IBV_WC_LOC_PROT_ERR, "the receive");
	check(rdma_wait_state(u.e.b.qp, IBV_QPS_ERR), "the queue pair is in ERR");
	ud_close(&u);
}

/* --- errors of the send queue --- */

static void too_long(long arg)
{
	struct rdma_wr w[3];
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	for (int i = 0; i < 3; i++)
		ud_build(&u, &w[i], 0, i == 1 ? u.mtu + 1 : 8, u.e.b.qp->qp_num,
			 UD_QKEY);
	rdma_post(&u.e.a, rdma_wr_chain(w, 3));
	qp_expect(u.e.a.scq, w[0].wr.wr_id, IBV_WC_SUCCESS, "the one before");
	qp_expect(u.e.a.scq, w[1].wr.wr_id, IBV_WC_LOC_LEN_ERR, "one byte too many");
	qp_expect(u.e.a.scq, w[2].wr.wr_id, IBV_WC_WR_FLUSH_ERR, "the one behind");
	ud_expect_send_error(&u);
	ud_close(&u);
}

static void bad_lkey(long arg)
{
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	ud_build(&u, &w, 0, 8, u.e.b.qp->qp_num, UD_QKEY);
	w.sge.lkey ^= 0x100;
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_LOC_PROT_ERR, "status");
	ud_expect_send_error(&u);
	ud_close(&u);
}

/* Of UD, table 38 has only SEND. */
static void wrong_operation(long opcode)
{
	struct rdma_wr w;
	struct ud_env u;

	ud_open(&u, NULL);
	ud_build(&u, &w, 0, 8, u.e.b.qp->qp_num, UD_QKEY);
	w.wr.opcode = (enum ibv_wr_opcode)opcode;
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_LOC_QP_OP_ERR, "status");
	ud_expect_send_error(&u);
	ud_close(&u);
}

/* --- others --- */

static void itself(long arg)
{
	struct rdma_wr w;
	struct ud_env u;
	struct ibv_wc wc;

	(void)arg;
	ud_open(&u, NULL);
	qp_fill(&u.e);
	rdma_recv(&u.e.a, RECV_ID, u.e.abuf.addr + 1024, 200, u.e.abuf.mr->lkey);
	ud_build(&u, &w, 0, 100, u.e.a.qp->qp_num, UD_QKEY);
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "the send");
	qp_expect_wc(u.e.a.rcq, &wc, RECV_ID, IBV_WC_SUCCESS, "the receive");
	check_eq(wc.src_qp, u.e.a.qp->qp_num, "src_qp");
	check(!memcmp(u.e.abuf.addr, u.e.abuf.addr + 1024 + UD_GRH, 100), "the data");
	ud_close(&u);
}

static void shared_receives(long arg)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 2 } };
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct rdma_end c;
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	if (!u.e.dev.attr.max_srq)
		ktap_skip("the device has no shared receive queues");
	conf.type = IBV_QPT_UD;
	conf.srq = ibv_create_srq(u.e.b.pd, &init);
	check(conf.srq, "ibv_create_srq: %s", strerror(errno));
	rdma_end_create(&c, &u.e.dev, u.e.b.pd, &conf);
	ud_ready(&c);
	for (uint64_t id = 1; id <= 4; id++) {
		sge = (struct ibv_sge){ (uintptr_t)u.e.bbuf.addr + 256 * id, 256,
					u.e.bbuf.mr->lkey };
		recv.wr_id = id;
		recv.sg_list = &sge;
		check_errno(ibv_post_srq_recv(conf.srq, &recv, &bad), 0,
			    "ibv_post_srq_recv");
	}
	for (uint64_t id = 1; id <= 4; id++) {
		ud_build(&u, &w, 100 * id, 64, c.qp->qp_num, UD_QKEY);
		check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "a send");
		qp_expect(c.rcq, id, IBV_WC_SUCCESS, "its receive");
		check(!memcmp(u.e.bbuf.addr + 256 * id + UD_GRH, u.e.abuf.addr + 100 * id,
			      64), "the data");
	}
	rdma_end_destroy(&c);
	check_errno(ibv_destroy_srq(conf.srq), 0, "ibv_destroy_srq");
	ud_close(&u);
}

static bool event_comes(struct rdma_end *end, unsigned int ms)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, (int)(ms * rdma_scale)) != 1)
		return false;
	check(!ibv_get_cq_event(end->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void solicited(long arg)
{
	struct rdma_wr w;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	check_errno(ibv_req_notify_cq(u.e.b.rcq, 1), 0, "ibv_req_notify_cq");
	ud_recv(&u, 1, 0, 64);
	ud_recv(&u, 2, 512, 64);
	ud_send(&u, 0, 64, UD_QKEY);
	ud_expect(&u, 1, 0, 0, 64, NULL);
	check(!event_comes(&u.e.b, 20), "no event of a datagram that is not solicited");
	ud_build(&u, &w, 0, 64, u.e.b.qp->qp_num, UD_QKEY);
	w.wr.send_flags |= IBV_SEND_SOLICITED;
	check_eq(rdma_do(&u.e.a, &w, NULL), IBV_WC_SUCCESS, "a send");
	check(event_comes(&u.e.b, RDMA_WAIT_MS), "an event of one that is");
	ud_expect(&u, 2, 512, 0, 64, NULL);
	ud_close(&u);
}

static void attributes(long arg)
{
	struct rdma_conf conf = rdma_conf_default();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp_init_attr init;
	struct ud_env u;

	(void)arg;
	conf.qkey = 0x01234567;
	ud_open(&u, &conf);
	check_errno(ibv_query_qp(u.e.a.qp, &attr, IBV_QP_QKEY | IBV_QP_STATE, &init), 0,
		    "ibv_query_qp");
	check_eq(attr.qkey, conf.qkey, "qkey");
	check_eq(attr.qp_state, IBV_QPS_RTS, "the state");
	check_eq(init.qp_type, IBV_QPT_UD, "the type");
	check_errno(rdma_to_state(&u.e.a, IBV_QPS_RESET), 0, "to RESET");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT,
				     .port_num = u.e.dev.port };
	check_errno(ibv_modify_qp(u.e.a.qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
		    EINVAL, "to INIT without a Q_Key");
	check_errno(ibv_modify_qp(u.e.a.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				  IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS),
		    EINVAL, "to INIT with access flags");
	check_errno(rdma_to_init(&u.e.a), 0, "to INIT");
	u.e.a.conf.type = IBV_QPT_UC;
	check_errno(rdma_to_rtr(&u.e.a, 1, 0), EINVAL, "to RTR with a peer");
	u.e.a.conf.type = IBV_QPT_UD;
	check_errno(rdma_to_rtr(&u.e.a, 0, 0), 0, "to RTR");
	ud_close(&u);
}

static bool rereg(struct meanwhile *m)
{
	return !rdma_rereg_mr(m->object, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_LOCAL_WRITE);
}

/*
 * The receive's region is not there while it changes. A datagram that finds it so is an
 * error, and is not placed without its header once the region is there again. That takes
 * two CPUs.
 */
static void region_changes(long arg)
{
	unsigned long rounds = ktap_opt.rounds ? ktap_opt.rounds : 3000;
	struct meanwhile changer;
	struct ud_env u;

	(void)arg;
	ud_open(&u, NULL);
	qp_fill(&u.e);
	meanwhile_start(&changer, rereg, u.e.bbuf.mr);
	while (rounds--) {
		struct ibv_wc wc;

		memset(u.e.bbuf.addr, 0, UD_GRH + 64);
		ud_recv(&u, RECV_ID, 0, 64);
		ud_send(&u, 0, 64, UD_QKEY);
		check(rdma_wait_wc(u.e.b.rcq, &wc, RDMA_WAIT_MS), "the receive completes");
		if (wc.status == IBV_WC_SUCCESS) {
			check(!memcmp(u.e.bbuf.addr + UD_GRH, u.e.abuf.addr, 64),
			      "the data is behind the header");
			continue;
		}
		check_eq(wc.status, IBV_WC_LOC_PROT_ERR, "what a datagram finds otherwise");
		check_errno(rdma_to_state(&u.e.b, IBV_QPS_RESET), 0, "to RESET");
		ud_ready(&u.e.b);
	}
	check(meanwhile_stop(&changer), "the region changed meanwhile");
	ud_close(&u);
}

void qp_ud_cases(void)
{
	static const struct {
		const char *name;
		long how;
	} ways[] = {
		{ "send", 0 },
		{ "imm", WITH_IMM },
		{ "send.wr-api", WR_API },
		{ "imm.wr-api", WR_API | WITH_IMM },
		{ "inline", INLINE },
		{ "inline.wr-api", INLINE | WR_API },
	};
	static const struct {
		const char *name;
		long opcode;
	} not_for_ud[] = {
		{ "write", IBV_WR_RDMA_WRITE },
		{ "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM },
		{ "read", IBV_WR_RDMA_READ },
		{ "send-inv", IBV_WR_SEND_WITH_INV },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		ktap_add("every length", lengths, ways[i].how, 60, "ud.%s", ways[i].name);
	ktap_add("o9-14: in the receive's pieces", scattered, 0, 0, "ud.scattered");
	ktap_add("A17.4.5: the last 20 of 40 bytes", network_header, 1, 0, "ud.grh-ipv4");
	ktap_add("A17.4.5: all of them", network_header, 0, 0, "ud.grh-ipv6");
	ktap_add("10.2.5: dropped and counted", qkey_mismatch, 0, 0, "ud.qkey-mismatch");
	ktap_add("10.2.5: the queue pair's own", qkey_high_bit, 0, 0, "ud.qkey-high-bit");
	ktap_add("dropped", too_small_receive, 0, 0, "ud.too-small-receive");
	ktap_add("dropped", no_receive, 0, 0, "ud.no-receive");
	ktap_add("dropped", no_such_qp, 0, 0, "ud.no-such-qp");
	ktap_add("dropped", to_connected, IBV_QPT_RC, 0, "ud.to-rc");
	ktap_add("dropped", to_connected, IBV_QPT_UC, 0, "ud.to-uc");
	ktap_add("local protection error", bad_receive, 0, 0, "ud.bad-receive");
	ktap_add("local length error, SQE", too_long, 0, 0, "ud.too-long");
	ktap_add("local protection error, SQE", bad_lkey, 0, 0, "ud.bad-lkey");
	for (size_t i = 0; i < ARRAY_SIZE(not_for_ud); i++)
		ktap_add("table 38: no such opcode", wrong_operation,
			 not_for_ud[i].opcode, 0, "ud.no-%s", not_for_ud[i].name);
	ktap_add("own address", itself, 0, 0, "ud.itself");
	ktap_add("shared receive queue", shared_receives, 0, 0, "ud.srq");
	ktap_add("ibv_req_notify_cq(3)", solicited, 0, 0, "ud.solicited");
	ktap_add("ibv_modify_qp(3)", attributes, 0, 0, "ud.attributes");
	ktap_add("ibv_rereg_mr(3): whole or not at all", region_changes, 0, 0,
		 "ud.region-changes");
	ktap_add("ibv_get_async_event(3): no IBV_EVENT_COMM_EST", not_established, 0, 0,
		 "ud.not-established");
}
