/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_SLAB_H
#define SHIM_LINUX_SLAB_H

#define GFP_KERNEL 0

#endif /* SHIM_LINUX_SLAB_H */
