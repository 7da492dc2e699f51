// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/verbs.h>

#include <linux/module.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include <smw/ah.h>
#include <smw/cq.h>
#include <smw/gid.h>
#include <smw/link.h>
#include <smw/links.h>
#include <smw/mcast.h>
#include <smw/mr.h>
#include <smw/mw.h>
#include <smw/netdev.h>
#include <smw/pd.h>
#include <smw/post.h>
#include <smw/qp.h>
#include <smw/ring.h>
#include <smw/stats.h>

/* The version of <rdma/rdma_user_rxe.h> that stock librxe speaks. */
#define SMW_PROVIDER_ABI	2
/* Each entry costs three files in sysfs for each namespace. */
#define SMW_GID_TABLE_LEN	256
/* No IEEE OUI: the value for software. */
#define SMW_VENDOR_ID		0xffffff
/* 4.096 us * 2^15: how long an answer of this device may take. */
#define SMW_ACK_DELAY		15

/**
 * struct smw_ucontext - what a process that opened the device has
 * @ibuc: what the RDMA core knows of it, which is all
 */
struct smw_ucontext {
	struct ib_ucontext ibuc;
};

/* The provider sends nothing of its own here; what is not zero is a mistake. */
static int check_no_input(struct ib_udata *udata)
{
	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	return 0;
}

static void fill_identity(struct ib_device *ibdev, struct ib_device_attr *attr)
{
	attr->fw_ver = ((u64)SMW_VERSION_MAJOR << 32) | (SMW_VERSION_MINOR << 16) |
		SMW_VERSION_PATCH;
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = SMW_VENDOR_ID;
	attr->local_ca_ack_delay = SMW_ACK_DELAY;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD |
		IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
		IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
		IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE | IB_DEVICE_MEM_WINDOW |
		IB_DEVICE_MEM_WINDOW_TYPE_2B | IB_DEVICE_ATOMIC_WRITE |
		IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_MEM_MGT_EXTENSIONS;
}

static void fill_limits(struct ib_device_attr *attr)
{
	attr->max_mr_size = SMW_MAX_MR_SIZE;
	attr->page_size_cap = PAGE_MASK;
	attr->max_qp = SMW_MAX_QP;
	attr->max_qp_wr = SMW_MAX_QP_WR;
	attr->max_send_sge = SMW_MAX_SGE;
	attr->max_recv_sge = SMW_MAX_SGE;
	attr->max_sge_rd = SMW_MAX_SGE;
	attr->max_cq = SMW_MAX_CQ;
	attr->max_cqe = SMW_MAX_CQE;
	attr->max_mr = SMW_MAX_MR;
	attr->max_mw = SMW_MAX_MW;
	attr->max_pd = SMW_MAX_PD;
	attr->max_ah = SMW_MAX_AH;
	attr->max_mcast_grp = SMW_MAX_MCAST;
	attr->max_mcast_qp_attach = SMW_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = SMW_MAX_MCAST;
	attr->max_srq = SMW_MAX_SRQ;
	attr->max_srq_wr = SMW_MAX_SRQ_WR;
	attr->max_srq_sge = SMW_MAX_SGE;
	attr->max_qp_rd_atom = SMW_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = SMW_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = SMW_MAX_RD_ATOMIC * SMW_MAX_QP;
	attr->max_fast_reg_page_list_len = SMW_MAX_FAST_PAGES;
	attr->max_pkeys = 1;
	/* A cmpxchg on the memory: atomic against every CPU and device. */
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
}

/* What is not set is zero: the device has none of it. */
static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	int err = check_no_input(udata);

	if (err)
		return err;
	fill_identity(ibdev, attr);
	fill_limits(attr);
	return 0;
}

static u8 physical_state(const struct smw_link *link, const struct net_device *netdev)
{
	if (READ_ONCE(link->up))
		return IB_PORT_PHYS_STATE_LINK_UP;
	if (netdev && netif_running(netdev))
		return IB_PORT_PHYS_STATE_POLLING;
	return IB_PORT_PHYS_STATE_DISABLED;
}

static int query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *netdev = smw_netdev_get(ibdev, port);
	struct smw_link *link = smw_link_of(ibdev);

	attr->state = READ_ONCE(link->up) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = physical_state(link, netdev);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = netdev ? smw_netdev_mtu(netdev) : 0;
	if (!attr->active_mtu)
		attr->active_mtu = IB_MTU_256;
	attr->phys_mtu = netdev ? READ_ONCE(netdev->mtu) : 0;
	attr->gid_tbl_len = SMW_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = SMW_MAX_MESSAGE;
	attr->bad_pkey_cntr = smw_stats_sum(link, SMW_COUNT_PKEY_VIOLATION);
	attr->qkey_viol_cntr = smw_stats_sum(link, SMW_COUNT_QKEY_VIOLATION);
	attr->max_vl_num = 1;
	smw_netdev_speed(netdev, &attr->active_speed, &attr->active_width);
	dev_put(netdev);
	return 0;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = SMW_PKEY;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/* RoCE v2 with Ethernet addresses, management datagrams and the connection manager. */
static int get_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = SMW_GID_TABLE_LEN;
	return 0;
}

static void get_dev_fw_str(struct ib_device *ibdev, char *text)
{
	strscpy(text, SMW_VERSION, IB_FW_VERSION_NAME_MAX);
}

static int alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	return check_no_input(udata);
}

static void dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * That this is here says: a link can go while applications have it open. The
 * pages of a ring that is mapped live on until the mapping is closed.
 */
static void disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static ssize_t parent_show(struct device *device, struct device_attribute *attr,
			   char *buf)
{
	struct smw_link *link = rdma_device_to_drv_device(device, struct smw_link, ibdev);
	struct net_device *netdev = smw_netdev_get(&link->ibdev, SMW_PORT);
	ssize_t len;

	if (!netdev)
		return -ENODEV;
	len = sysfs_emit(buf, "%s\n", netdev->name);
	dev_put(netdev);
	return len;
}

static DEVICE_ATTR_RO(parent);

/* By this the udev rule knows a link, which has any name that its maker likes. */
static ssize_t hca_type_show(struct device *device, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "smw\n");
}

static DEVICE_ATTR_RO(hca_type);

static struct attribute *device_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_parent.attr,
	NULL
};

static const struct attribute_group device_group = {
	.attrs = device_attrs,
};

/* What is not here, the core refuses with EOPNOTSUPP. */
const struct ib_device_ops smw_verbs_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = SMW_PROVIDER_ABI,

	.add_gid = smw_gid_add,
	.alloc_hw_port_stats = smw_stats_alloc,
	.alloc_mr = smw_mr_alloc_fast,
	.alloc_mw = smw_mw_alloc,
	.alloc_pd = smw_pd_alloc,
	.alloc_ucontext = alloc_ucontext,
	.attach_mcast = smw_mcast_attach,
	.create_ah = smw_ah_create,
	.create_cq = smw_cq_create,
	.create_qp = smw_qp_create,
	.create_srq = smw_srq_create,
	.create_user_ah = smw_ah_create,
	.dealloc_driver = smw_link_dealloc,
	.dealloc_mw = smw_mw_dealloc,
	.dealloc_pd = smw_pd_dealloc,
	.dealloc_ucontext = dealloc_ucontext,
	.del_gid = smw_gid_del,
	.dereg_mr = smw_mr_dereg,
	.destroy_ah = smw_ah_destroy,
	.destroy_cq = smw_cq_destroy,
	.destroy_qp = smw_qp_destroy,
	.destroy_srq = smw_srq_destroy,
	.detach_mcast = smw_mcast_detach,
	.device_group = &device_group,
	.disassociate_ucontext = disassociate_ucontext,
	.fill_res_mr_entry = smw_stats_fill_mr,
	.get_dev_fw_str = get_dev_fw_str,
	.get_dma_mr = smw_mr_get_dma,
	.get_hw_stats = smw_stats_get,
	.get_link_layer = get_link_layer,
	.get_netdev = smw_netdev_get,
	.get_port_immutable = get_port_immutable,
	.map_mr_sg = smw_mr_map_sg,
	.mmap = smw_ring_mmap,
	.mmap_free = smw_ring_mmap_free,
	.modify_qp = smw_qp_modify,
	.modify_srq = smw_srq_modify,
	.poll_cq = smw_cq_poll,
	.post_recv = smw_post_recvs,
	.post_send = smw_qp_post_send,
	.post_srq_recv = smw_post_srq_recvs,
	.query_ah = smw_ah_query,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = smw_qp_query,
	.query_srq = smw_srq_query,
	.reg_user_mr = smw_mr_reg_user,
	.req_notify_cq = smw_cq_req_notify,
	.rereg_user_mr = smw_mr_rereg_user,
	.resize_cq = smw_cq_resize,

	INIT_RDMA_OBJ_SIZE(ib_ah, smw_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, smw_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, smw_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, smw_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, smw_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, smw_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, smw_ucontext, ibuc),
};
