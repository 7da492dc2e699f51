// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdma_post.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void init(struct rdma_wr *w, enum ibv_wr_opcode opcode)
{
	static uint64_t next_id = 0x5a00000000000000;

	memset(w, 0, sizeof(*w));
	w->wr.opcode = opcode;
	w->wr.wr_id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
	w->wr.send_flags = IBV_SEND_SIGNALED;
}

static void set_sge(struct rdma_wr *w, const void *addr, uint32_t len,
		    uint32_t lkey)
{
	w->sge.addr = (uintptr_t)addr;
	w->sge.length = len;
	w->sge.lkey = lkey;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = len ? 1 : 0;
}

void rdma_wr_send(struct rdma_wr *w, const void *addr, uint32_t len,
		  uint32_t lkey)
{
	init(w, IBV_WR_SEND);
	set_sge(w, addr, len, lkey);
}

void rdma_wr_write(struct rdma_wr *w, const void *addr, uint32_t len,
		   uint32_t lkey, uint64_t raddr, uint32_t rkey)
{
	init(w, IBV_WR_RDMA_WRITE);
	set_sge(w, addr, len, lkey);
	w->wr.wr.rdma.remote_addr = raddr;
	w->wr.wr.rdma.rkey = rkey;
}

void rdma_wr_read(struct rdma_wr *w, void *addr, uint32_t len, uint32_t lkey,
		  uint64_t raddr, uint32_t rkey)
{
	init(w, IBV_WR_RDMA_READ);
	set_sge(w, addr, len, lkey);
	w->wr.wr.rdma.remote_addr = raddr;
	w->wr.wr.rdma.rkey = rkey;
}

static void set_atomic(struct rdma_wr *w, void *addr, uint32_t lkey,
		       uint64_t raddr, uint32_t rkey)
{
	set_sge(w, addr, sizeof(uint64_t), lkey);
	w->wr.wr.atomic.remote_addr = raddr;
	w->wr.wr.atomic.rkey = rkey;
}

void rdma_wr_cas(struct rdma_wr *w, void *addr, uint32_t lkey, uint64_t raddr,
		 uint32_t rkey, uint64_t compare, uint64_t swap)
{
	init(w, IBV_WR_ATOMIC_CMP_AND_SWP);
	set_atomic(w, addr, lkey, raddr, rkey);
	w->wr.wr.atomic.compare_add = compare;
	w->wr.wr.atomic.swap = swap;
}

void rdma_wr_fadd(struct rdma_wr *w, void *addr, uint32_t lkey, uint64_t raddr,
		  uint32_t rkey, uint64_t add)
{
	init(w, IBV_WR_ATOMIC_FETCH_AND_ADD);
	set_atomic(w, addr, lkey, raddr, rkey);
	w->wr.wr.atomic.compare_add = add;
}

void rdma_wr_bind(struct rdma_wr *w, const struct rdma_bind *bind)
{
	init(w, IBV_WR_BIND_MW);
	w->mw = *bind->mw;
	w->mw.rkey = bind->current_rkey;
	w->mr.lkey = bind->mr_lkey;
	w->wr.bind_mw.mw = &w->mw;
	w->wr.bind_mw.rkey = bind->new_rkey;
	w->wr.bind_mw.bind_info.mr = &w->mr;
	w->wr.bind_mw.bind_info.addr = bind->addr;
	w->wr.bind_mw.bind_info.length = bind->length;
	w->wr.bind_mw.bind_info.mw_access_flags = bind->access;
}

void rdma_wr_local_inv(struct rdma_wr *w, uint32_t rkey)
{
	init(w, IBV_WR_LOCAL_INV);
	w->wr.invalidate_rkey = rkey;
}

void rdma_wr_send_inv(struct rdma_wr *w, const void *addr, uint32_t len,
		      uint32_t lkey, uint32_t rkey)
{
	init(w, IBV_WR_SEND_WITH_INV);
	set_sge(w, addr, len, lkey);
	w->wr.invalidate_rkey = rkey;
}

struct ibv_send_wr *rdma_wr_chain(struct rdma_wr *w, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		w[i].wr.next = &w[i + 1].wr;
	w[n - 1].wr.next = NULL;
	return &w[0].wr;
}

/* --- ibv_wr_*() --- */

static void build_op(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey,
				  wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, wr->wr.rdma.rkey,
				      wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey,
				 wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qpx, wr->wr.atomic.rkey,
				      wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qpx, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qpx, wr->bind_mw.mw, wr->bind_mw.rkey,
			       &wr->bind_mw.bind_info);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qpx, wr->invalidate_rkey);
		break;
	default:
		rdma_die("opcode %d has no ibv_wr_ function here", wr->opcode);
	}
}

static void build_data(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (wr->num_sge != 1)
			rdma_die("inline data comes in one piece here");
		ibv_wr_set_inline_data(qpx, (void *)(uintptr_t)wr->sg_list->addr,
				       wr->sg_list->length);
	} else if (wr->num_sge == 1) {
		ibv_wr_set_sge(qpx, wr->sg_list->lkey, wr->sg_list->addr,
			       wr->sg_list->length);
	} else if (wr->num_sge > 1) {
		ibv_wr_set_sge_list(qpx, (size_t)wr->num_sge, wr->sg_list);
	}
}

static int post_wr_api(struct ibv_qp_ex *qpx, const struct ibv_send_wr *wr)
{
	bool datagram = qpx->qp_base.qp_type == IBV_QPT_UD;

	ibv_wr_start(qpx);
	for (; wr; wr = wr->next) {
		qpx->wr_id = wr->wr_id;
		qpx->wr_flags = wr->send_flags;
		build_op(qpx, wr);
		if (datagram)
			ibv_wr_set_ud_addr(qpx, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
					   wr->wr.ud.remote_qkey);
		build_data(qpx, wr);
	}
	return ibv_wr_complete(qpx);
}

int rdma_try_post(struct rdma_end *end, struct ibv_send_wr *list)
{
	struct ibv_send_wr *bad;

	if (end->qpx)
		return post_wr_api(end->qpx, list);
	/* the provider's error may have either sign */
	return abs(ibv_post_send(end->qp, list, &bad));
}

void rdma_post(struct rdma_end *end, struct ibv_send_wr *list)
{
	int err = rdma_try_post(end, list);

	if (err)
		rdma_die("cannot post: %s", strerror(err));
}

int rdma_try_recv(struct rdma_end *end, uint64_t wr_id, void *addr,
		  uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, lkey };
	struct ibv_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
	};
	struct ibv_recv_wr *bad;

	return abs(ibv_post_recv(end->qp, &wr, &bad));
}

void rdma_recv(struct rdma_end *end, uint64_t wr_id, void *addr, uint32_t len,
	       uint32_t lkey)
{
	int err = rdma_try_recv(end, wr_id, addr, len, lkey);

	if (err)
		rdma_die("cannot post a receive: %s", strerror(err));
}

enum ibv_wc_status rdma_do(struct rdma_end *end, struct rdma_wr *w,
			   struct ibv_wc *wc)
{
	struct ibv_wc local;

	if (!wc)
		wc = &local;
	rdma_post(end, rdma_wr_chain(w, 1));
	if (!rdma_wait_wc(end->scq, wc, RDMA_WAIT_MS))
		rdma_die("no completion of opcode %d after %u ms",
			 w->wr.opcode, RDMA_WAIT_MS * rdma_scale);
	if (wc->wr_id != w->wr.wr_id)
		rdma_die("completion of %#llx (%s) instead of %#llx",
			 (unsigned long long)wc->wr_id,
			 ibv_wc_status_str(wc->status),
			 (unsigned long long)w->wr.wr_id);
	return wc->status;
}
