// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ud_env.h"

#define RECV_ID		0x7ec0
#define LATER_ID	0x1a7e
#define LATER_OFF	4096
#define LATER_LEN	33

void ud_ready(struct rdma_end *end)
{
	check_errno(rdma_to_init(end), 0, "to INIT");
	check_errno(rdma_to_rtr(end, 0, 0), 0, "to RTR");
	check_errno(rdma_to_rts(end), 0, "to RTS");
}

bool ud_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

void ud_use_gid(struct rdma_dev *dev, bool ipv4)
{
	static const union ibv_gid none;

	for (int i = 0; i < dev->port_attr.gid_tbl_len; i++) {
		union ibv_gid gid;

		if (ibv_query_gid(dev->ctx, dev->port, i, &gid) ||
		    !memcmp(&gid, &none, sizeof(gid)) || ud_is_ipv4(&gid) != ipv4)
			continue;
		dev->gid = gid;
		dev->gid_index = i;
		return;
	}
	ktap_skip("the device has no IPv%d address", ipv4 ? 4 : 6);
}

struct ibv_ah_attr ud_path(const struct rdma_dev *dev, const union ibv_gid *dgid)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = dev->port,
		.grh = {
			.dgid = *dgid,
			.sgid_index = (uint8_t)dev->gid_index,
			.hop_limit = 64,
		},
	};
}

struct ibv_ah *ud_ah(struct rdma_end *end)
{
	struct ibv_ah_attr path = ud_path(end->dev, &end->dev->gid);
	struct ibv_ah *ah = ibv_create_ah(end->pd, &path);

	check(ah, "ibv_create_ah: %s", strerror(errno));
	return ah;
}

int ud_try_ah(struct rdma_end *end, struct ibv_ah_attr *path)
{
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(end->pd, path);
	if (!ah) {
		check(errno, "ibv_create_ah says why");
		return errno;
	}
	check_errno(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
	return 0;
}

void ud_open(struct ud_env *u, const struct rdma_conf *conf)
{
	struct rdma_conf plain = rdma_conf_default();

	if (conf)
		plain = *conf;
	plain.type = IBV_QPT_UD;
	qp_open_unconnected(&u->e, &plain, UD_LEN);
	ud_ready(&u->e.a);
	ud_ready(&u->e.b);
	u->ah = ud_ah(&u->e.a);
	u->mtu = 128U << u->e.dev.port_attr.active_mtu;
}

void ud_close(struct ud_env *u)
{
	check_errno(ibv_destroy_ah(u->ah), 0, "ibv_destroy_ah");
	qp_close(&u->e);
}

void ud_build(struct ud_env *u, struct rdma_wr *w, size_t off, uint32_t len,
	      uint32_t qpn, uint32_t qkey)
{
	rdma_wr_send(w, u->e.abuf.addr + off, len, u->e.abuf.mr->lkey);
	w->wr.wr.ud.ah = u->ah;
	w->wr.wr.ud.remote_qpn = qpn;
	w->wr.wr.ud.remote_qkey = qkey;
}

void ud_send(struct ud_env *u, size_t off, uint32_t len, uint32_t qkey)
{
	struct rdma_wr w;

	ud_build(u, &w, off, len, u->e.b.qp->qp_num, qkey);
	check_eq(rdma_do(&u->e.a, &w, NULL), IBV_WC_SUCCESS, "a send");
}

void ud_recv(struct ud_env *u, uint64_t wr_id, size_t off, uint32_t len)
{
	rdma_recv(&u->e.b, wr_id, u->e.bbuf.addr + off, UD_GRH + len, u->e.bbuf.mr->lkey);
}

void ud_expect(struct ud_env *u, uint64_t wr_id, size_t off, size_t from, uint32_t len,
	       struct ibv_wc *wc)
{
	struct ibv_wc local;

	if (!wc)
		wc = &local;
	qp_expect_wc(u->e.b.rcq, wc, wr_id, IBV_WC_SUCCESS, "the receive");
	check_eq(wc->opcode, IBV_WC_RECV, "opcode");
	check_eq(wc->byte_len, UD_GRH + len, "byte_len: with the header");
	check(wc->wc_flags & IBV_WC_GRH, "the completion says that there is a header");
	check_eq(wc->qp_num, u->e.b.qp->qp_num, "qp_num");
	check_eq(wc->src_qp, u->e.a.qp->qp_num, "src_qp");
	check_eq(wc->pkey_index, 0, "pkey_index");
	check(!memcmp(u->e.bbuf.addr + off + UD_GRH, u->e.abuf.addr + from, len),
	      "%u bytes arrive behind the header", len);
}

void ud_expect_lost(struct ud_env *u)
{
	ud_recv(u, LATER_ID, LATER_OFF, LATER_LEN);
	ud_send(u, LATER_OFF, LATER_LEN, UD_OWN_QKEY);
	ud_expect(u, LATER_ID, LATER_OFF, LATER_OFF, LATER_LEN, NULL);
	qp_expect_none(u->e.b.rcq, "what was sent before");
}

void ud_expect_send_error(struct ud_env *u)
{
	struct ibv_ah *back = ud_ah(&u->e.b);
	struct rdma_wr w;

	check(rdma_wait_state(u->e.a.qp, IBV_QPS_SQE), "the queue pair is in SQE");
	ud_build(u, &w, 0, 8, u->e.b.qp->qp_num, UD_QKEY);
	check_eq(rdma_do(&u->e.a, &w, NULL), IBV_WC_WR_FLUSH_ERR, "a send in SQE");
	rdma_recv(&u->e.a, RECV_ID, u->e.abuf.addr, 100, u->e.abuf.mr->lkey);
	rdma_wr_send(&w, u->e.bbuf.addr, 60, u->e.bbuf.mr->lkey);
	w.wr.wr.ud.ah = back;
	w.wr.wr.ud.remote_qpn = u->e.a.qp->qp_num;
	w.wr.wr.ud.remote_qkey = UD_QKEY;
	check_eq(rdma_do(&u->e.b, &w, NULL), IBV_WC_SUCCESS, "a send to it");
	qp_expect(u->e.a.rcq, RECV_ID, IBV_WC_SUCCESS, "a receive in SQE");
	check_errno(ibv_destroy_ah(back), 0, "ibv_destroy_ah");
	check_errno(rdma_to_state(&u->e.a, IBV_QPS_RTS), 0, "from SQE to RTS");
	ud_expect_lost(u);
	check_eq(rdma_state(u->e.a.qp), IBV_QPS_RTS, "the state");
}
