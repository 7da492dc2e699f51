// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * smw: a software RoCE v2 device whose memory windows hold.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <rdma/rdma_netlink.h>

#include <smw/ah.h>
#include <smw/debugfs.h>
#include <smw/links.h>
#include <smw/loopback.h>
#include <smw/mcast.h>
#include <smw/netdev.h>
#include <smw/qp.h>
#include <smw/verbs.h>
#include <smw/wire.h>

static int __init smw_init(void)
{
	int err;

	smw_qp_init();
	err = smw_mcast_init();
	if (err)
		goto exit_qp;
	err = smw_sock_init();
	if (err)
		goto exit_mcast;
	err = smw_links_init();
	if (err)
		goto exit_sock;
	err = smw_debugfs_init();
	if (err)
		goto exit_links;
	err = smw_netdev_init();
	if (err)
		goto exit_debugfs;
	err = smw_loopback_init();
	if (err)
		goto exit_netdev;
	smw_links_open();
	pr_info("software RoCE v2 with memory windows, version " SMW_VERSION "\n");
	return 0;

exit_netdev:
	smw_netdev_exit();
exit_debugfs:
	smw_debugfs_exit();
exit_links:
	smw_links_exit();
exit_sock:
	smw_sock_exit();
exit_mcast:
	smw_mcast_exit();
exit_qp:
	smw_qp_exit();
	return err;
}

/*
 * Only our links go: others of rdma_rxe's driver id are not ours to touch.
 * Memory freed by RCU is freed by code of this module.
 */
static void __exit smw_exit(void)
{
	smw_links_close();
	smw_loopback_exit();
	smw_netdev_exit();
	smw_debugfs_exit();
	smw_links_exit();
	smw_sock_exit();
	smw_mcast_exit();
	smw_ah_exit();
	smw_qp_exit();
	rcu_barrier();
}

module_init(smw_init);
module_exit(smw_exit);

MODULE_DESCRIPTION("Software RoCE v2 device with memory windows");
MODULE_VERSION(SMW_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("smw");
