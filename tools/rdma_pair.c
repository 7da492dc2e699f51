// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdma_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

unsigned int rdma_scale = 1;
unsigned int rdma_all_remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_ATOMIC;

void rdma_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(1);
}

uint64_t rdma_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- device --- */

static struct ibv_device *find_device(struct ibv_device **list, const char *name)
{
	for (; *list; list++) {
		const char *found = ibv_get_device_name(*list);

		if (name ? !strcmp(found, name) : !strncmp(found, "smw", 3))
			return *list;
	}
	return NULL;
}

static bool is_ipv4_gid(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

static bool is_roce(const struct rdma_dev *dev)
{
	return dev->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* The index of the first RoCE v2 GID, an IPv4 one if there is any. */
static int find_gid(struct rdma_dev *dev)
{
	int any = -1;

	if (!is_roce(dev))
		return 0;
	for (int i = 0; i < dev->port_attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(dev->ctx, dev->port, (uint32_t)i, &entry,
				     0))
			continue;
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (is_ipv4_gid(&entry.gid))
			return i;
		if (any < 0)
			any = i;
	}
	return any;
}

static void choose_gid(struct rdma_dev *dev, int gid_index)
{
	static const union ibv_gid none;

	dev->gid_index = gid_index < 0 ? find_gid(dev) : gid_index;
	if (dev->gid_index < 0)
		rdma_die("the device has no RoCE v2 GID");
	if (dev->gid_index >= dev->port_attr.gid_tbl_len ||
	    ibv_query_gid(dev->ctx, dev->port, dev->gid_index, &dev->gid) ||
	    !memcmp(&dev->gid, &none, sizeof(none)))
		rdma_die("the device has no GID %d", dev->gid_index);
}

void rdma_dev_open(struct rdma_dev *dev, const char *name, int gid_index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device = list ? find_device(list, name) : NULL;

	memset(dev, 0, sizeof(*dev));
	if (!device)
		rdma_die("no RDMA device %s%s", name ? "named " : "",
			 name ? name : "whose name begins with smw (choose one with -d)");
	dev->ctx = ibv_open_device(device);
	if (!dev->ctx)
		rdma_die("cannot open %s: %s", ibv_get_device_name(device),
			 strerror(errno));
	ibv_free_device_list(list);
	dev->port = 1;
	if (ibv_query_device(dev->ctx, &dev->attr) ||
	    ibv_query_port(dev->ctx, dev->port, &dev->port_attr))
		rdma_die("cannot query the device: %s", strerror(errno));
	if (dev->attr.atomic_cap == IBV_ATOMIC_NONE)
		rdma_all_remote &= ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC;
	choose_gid(dev, gid_index);
	fcntl(dev->ctx->async_fd, F_SETFL,
	      fcntl(dev->ctx->async_fd, F_GETFL) | O_NONBLOCK);
}

void rdma_dev_close(struct rdma_dev *dev)
{
	if (ibv_close_device(dev->ctx))
		rdma_die("cannot close the device: %s", strerror(errno));
	dev->ctx = NULL;
}

/* --- one end --- */

struct rdma_conf rdma_conf_default(void)
{
	return (struct rdma_conf){
		.type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64,
		},
		.access = RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE,
		.mtu = IBV_MTU_1024,
		.psn = 0x1000,
		.qkey = 0x11111111,
		.timeout = 14,		/* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,	/* 0.64 ms */
		.rd_atomic = 4,
		.cqe = 256,
	};
}

static uint64_t send_ops(enum ibv_qp_type type)
{
	uint64_t ops;

	if (type == IBV_QPT_UD)
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	      IBV_QP_EX_WITH_BIND_MW;
	if (type == IBV_QPT_RC)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV |
		       IBV_QP_EX_WITH_SEND_WITH_INV |
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

/* Make a queue pair as the end is configured; NULL and errno if refused. */
struct ibv_qp *rdma_qp_create(struct rdma_end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.cap = end->conf.cap,
		.qp_type = end->conf.type,
		.sq_sig_all = end->conf.sq_sig_all,
		.srq = end->conf.srq,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
	};

	if (!end->conf.wr_api)
		return ibv_create_qp(end->pd,
				     (struct ibv_qp_init_attr *)&attr);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = send_ops(end->conf.type);
	return ibv_create_qp_ex(end->dev->ctx, &attr);
}

void rdma_end_create(struct rdma_end *end, struct rdma_dev *dev,
		     struct ibv_pd *pd, const struct rdma_conf *conf)
{
	memset(end, 0, sizeof(*end));
	end->dev = dev;
	end->conf = *conf;
	end->dgid = dev->gid;
	end->own_pd = !pd;
	end->pd = pd ? pd : ibv_alloc_pd(dev->ctx);
	if (!end->pd)
		rdma_die("ibv_alloc_pd: %s", strerror(errno));
	end->channel = ibv_create_comp_channel(dev->ctx);
	if (!end->channel)
		rdma_die("ibv_create_comp_channel: %s", strerror(errno));
	end->scq = ibv_create_cq(dev->ctx, conf->cqe, NULL, NULL, 0);
	end->rcq = ibv_create_cq(dev->ctx, conf->cqe, NULL, end->channel, 0);
	if (!end->scq || !end->rcq)
		rdma_die("ibv_create_cq: %s", strerror(errno));
	end->qp = rdma_qp_create(end);
	if (!end->qp)
		rdma_die("cannot create a queue pair: %s", strerror(errno));
	if (conf->wr_api)
		end->qpx = ibv_qp_to_qp_ex(end->qp);
}

void rdma_end_destroy(struct rdma_end *end)
{
	int err = 0;

	if (end->qp)
		err = ibv_destroy_qp(end->qp);
	if (err)
		rdma_die("ibv_destroy_qp: %s", strerror(err));
	err = ibv_destroy_cq(end->scq);
	if (!err)
		err = ibv_destroy_cq(end->rcq);
	if (err)
		rdma_die("ibv_destroy_cq: %s", strerror(err));
	err = ibv_destroy_comp_channel(end->channel);
	if (err)
		rdma_die("ibv_destroy_comp_channel: %s", strerror(err));
	if (end->own_pd)
		err = ibv_dealloc_pd(end->pd);
	if (err)
		rdma_die("ibv_dealloc_pd: %s", strerror(err));
	memset(end, 0, sizeof(*end));
}

/* --- states --- */

int rdma_to_init(struct rdma_end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = end->dev->port,
		.qp_access_flags = end->conf.access,
		.qkey = end->conf.qkey,
	};

	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (end->conf.type == IBV_QPT_UD ? IBV_QP_QKEY :
							     IBV_QP_ACCESS_FLAGS));
}

int rdma_to_rtr(struct rdma_end *end, uint32_t remote_qpn, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->conf.mtu,
		.dest_qp_num = remote_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = end->conf.rd_atomic,
		.min_rnr_timer = end->conf.min_rnr_timer,
		.ah_attr = {
			.is_global = is_roce(end->dev),
			.dlid = end->dev->port_attr.lid,
			.port_num = end->dev->port,
			.grh = {
				.dgid = end->dgid,
				.sgid_index = (uint8_t)end->dev->gid_index,
				.hop_limit = 64,
			},
		},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (end->conf.type == IBV_QPT_UD)
		mask = IBV_QP_STATE;
	if (end->conf.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(end->qp, &attr, mask);
}

int rdma_to_rts(struct rdma_end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = end->conf.psn,
		.timeout = end->conf.timeout,
		.retry_cnt = end->conf.retry_cnt,
		.rnr_retry = end->conf.rnr_retry,
		.max_rd_atomic = end->conf.rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (end->conf.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(end->qp, &attr, mask);
}

int rdma_to_state(struct rdma_end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
}

static void must(int err, const char *what)
{
	if (err)
		rdma_die("%s: %s", what, strerror(err));
}

void rdma_connect(struct rdma_end *a, struct rdma_end *b)
{
	a->dgid = b->dev->gid;
	b->dgid = a->dev->gid;
	must(rdma_to_init(a), "to INIT");
	if (b != a)
		must(rdma_to_init(b), "to INIT");
	must(rdma_to_rtr(a, b->qp->qp_num, b->conf.psn), "to RTR");
	if (b != a)
		must(rdma_to_rtr(b, a->qp->qp_num, a->conf.psn), "to RTR");
	must(rdma_to_rts(a), "to RTS");
	if (b != a)
		must(rdma_to_rts(b), "to RTS");
}

void rdma_reconnect(struct rdma_end *a, struct rdma_end *b)
{
	must(rdma_to_state(a, IBV_QPS_RESET), "to RESET");
	must(rdma_to_state(b, IBV_QPS_RESET), "to RESET");
	rdma_drain(a->scq);
	rdma_drain(a->rcq);
	rdma_drain(b->scq);
	rdma_drain(b->rcq);
	rdma_connect(a, b);
}

enum ibv_qp_state rdma_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state;
}

bool rdma_wait_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	uint64_t until = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;

	while (rdma_state(qp) != state) {
		if (rdma_now_us() > until)
			return false;
		sched_yield();
	}
	return true;
}

/* --- waiting --- */

bool rdma_wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t until = rdma_now_us() + 1000ULL * ms * rdma_scale;

	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0)
			rdma_die("ibv_poll_cq failed");
		if (n)
			return true;
		if (rdma_now_us() > until)
			return false;
		sched_yield();
	}
}

unsigned int rdma_drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	unsigned int n = 0;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		n++;
	return n;
}

bool rdma_wait_event(struct rdma_dev *dev, enum ibv_event_type type,
		     const void *element, unsigned int ms)
{
	uint64_t until = rdma_now_us() + 1000ULL * ms * rdma_scale;

	for (;;) {
		struct pollfd fd = { dev->ctx->async_fd, POLLIN, 0 };
		struct ibv_async_event event;
		uint64_t now = rdma_now_us();
		bool found;

		poll(&fd, 1, now < until ? (int)((until - now) / 1000 + 1) : 0);
		if (ibv_get_async_event(dev->ctx, &event)) {
			if (rdma_now_us() > until)
				return false;
			continue;
		}
		found = event.event_type == type &&
			(const void *)event.element.qp == element;
		ibv_ack_async_event(&event);
		if (found)
			return true;
	}
}

/* --- memory --- */

void rdma_buf_create_iova(struct rdma_buf *buf, struct ibv_pd *pd, size_t len,
			  size_t offset, uint64_t iova_page,
			  unsigned int access)
{
	memset(buf, 0, sizeof(*buf));
	buf->map_len = (len + offset + 2 * RDMA_BUF_MARGIN + 4095) & ~4095UL;
	buf->map = mmap(NULL, buf->map_len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->map == MAP_FAILED)
		rdma_die("mmap: %s", strerror(errno));
	buf->addr = buf->map + RDMA_BUF_MARGIN + offset;
	buf->len = len;
	buf->iova = iova_page ? iova_page + offset : (uintptr_t)buf->addr;
	buf->mr = ibv_reg_mr_iova(pd, buf->addr, len, buf->iova, access);
	if (!buf->mr)
		rdma_die("ibv_reg_mr_iova: %s", strerror(errno));
}

void rdma_buf_create(struct rdma_buf *buf, struct ibv_pd *pd, size_t len,
		     size_t offset, unsigned int access)
{
	rdma_buf_create_iova(buf, pd, len, offset, 0, access);
}

void rdma_buf_destroy(struct rdma_buf *buf)
{
	if (buf->mr)
		must(ibv_dereg_mr(buf->mr), "ibv_dereg_mr");
	munmap(buf->map, buf->map_len);
	memset(buf, 0, sizeof(*buf));
}

int rdma_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr core;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(struct ib_uverbs_rereg_mr_resp) / 4,
		},
	};
	struct ib_uverbs_rereg_mr_resp resp;

	cmd.core.response = (uintptr_t)&resp;
	cmd.core.mr_handle = mr->handle;
	cmd.core.flags = (uint32_t)flags;
	cmd.core.start = (uintptr_t)addr;
	cmd.core.length = length;
	cmd.core.hca_va = (uintptr_t)addr;
	cmd.core.pd_handle = pd ? pd->handle : 0;
	cmd.core.access_flags = (uint32_t)access;
	if (write(mr->context->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return errno;
	mr->lkey = resp.lkey;
	mr->rkey = resp.rkey;
	return 0;
}

/* Patterns of tags that differ in the top bit differ in every byte. */
uint8_t rdma_buf_byte(uint8_t tag, size_t map_index)
{
	return (uint8_t)(((map_index * 131 + (map_index >> 7)) & 0x7f) ^ tag);
}

void rdma_buf_fill(struct rdma_buf *buf, uint8_t tag)
{
	for (size_t i = 0; i < buf->map_len; i++)
		buf->map[i] = rdma_buf_byte(tag, i);
}

long rdma_buf_touched(const struct rdma_buf *buf, uint8_t tag, size_t skip,
		      size_t skip_len)
{
	size_t begin = (size_t)(buf->addr - buf->map) + skip;

	for (size_t i = 0; i < buf->map_len; i++) {
		if (i >= begin && i < begin + skip_len)
			continue;
		if (buf->map[i] != rdma_buf_byte(tag, i))
			return (long)i;
	}
	return -1;
}
