/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Links on loopback netdevs follow addresses by themselves: the RDMA core gives
 * them GIDs when they come, but listens to events of Ethernet netdevs alone.
 */
#ifndef SMW_LOOPBACK_H
#define SMW_LOOPBACK_H

#include <linux/workqueue.h>

/* Module start and end. */
int smw_loopback_init(void);
void smw_loopback_exit(void);

/* The work of link->rescan, which has a reference on the device. */
void smw_loopback_rescan(struct work_struct *work);

#endif /* SMW_LOOPBACK_H */
