/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_CRC32_H
#define SHIM_LINUX_CRC32_H

#include <linux/types.h>

/* The kernel's convention: no inversion before or after. */
u32 crc32_le(u32 crc, const void *bytes, size_t len);

#endif /* SHIM_LINUX_CRC32_H */
