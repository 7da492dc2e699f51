/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device that the command line of a test program names. */
#ifndef SMW_TOOLS_KTAP_DEV_H
#define SMW_TOOLS_KTAP_DEV_H

#include "rdma_pair.h"

void ktap_dev_open(struct rdma_dev *dev);

/* For ktap_main(): the device is there, and queue pairs on it can be connected. */
void ktap_dev_probe(void);

#endif
