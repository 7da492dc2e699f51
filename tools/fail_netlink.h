/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RDMA core's netlink: what `rdma link` and `rdma resource` say, from a
 * thread whose allocations can be failed.
 */
#ifndef SMW_TOOLS_FAIL_NETLINK_H
#define SMW_TOOLS_FAIL_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names and numbers of a device's resources, a line each; false if not there. */
bool netlink_resources(const char *dev, char *text, size_t len);
/* The core's index of a device; false if there is none of that name. */
bool netlink_index(const char *dev, uint32_t *index);

/* Add or delete a link; 0 or an errno. */
int netlink_add_link(const char *dev, const char *type, const char *netdev);
int netlink_delete_link(uint32_t index);

#endif
