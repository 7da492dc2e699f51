/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The table of operations that the RDMA core calls.
 */
#ifndef SMW_VERBS_H
#define SMW_VERBS_H

#include <linux/stringify.h>
#include <rdma/ib_verbs.h>

/* The version, shown as the device's firmware too. */
#define SMW_VERSION_MAJOR 0
#define SMW_VERSION_MINOR 1
#define SMW_VERSION_PATCH 0
#define SMW_VERSION __stringify(SMW_VERSION_MAJOR) "." \
		    __stringify(SMW_VERSION_MINOR) "." \
		    __stringify(SMW_VERSION_PATCH)

extern const struct ib_device_ops smw_verbs_ops;

#endif /* SMW_VERBS_H */
