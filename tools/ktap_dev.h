/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device that the command line of a test program names. */
#ifndef SMW_TOOLS_KTAP_DEV_H
#define SMW_TOOLS_KTAP_DEV_H

#include "rdma_pair.h"

void ktap_dev_open(struct rdma_dev *dev);

/* ktap_main() for cases that need a device. */
int ktap_dev_main(int argc, char **argv, const char *own);

#endif
