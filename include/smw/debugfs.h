/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * /sys/kernel/debug/smw/<device>: windows, objects, same_host.
 */
#ifndef SMW_DEBUGFS_H
#define SMW_DEBUGFS_H

/* Module start and end. A link has its folder while it is registered. */
int smw_debugfs_init(void);
void smw_debugfs_exit(void);

#endif /* SMW_DEBUGFS_H */
