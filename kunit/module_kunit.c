// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What makes the suites one module.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of the soft RoCE device with memory windows");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
