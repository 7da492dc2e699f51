/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_ASM_BYTEORDER_H
#define SHIM_ASM_BYTEORDER_H

#include_next <asm/byteorder.h>
#include <linux/types.h>

#define cpu_to_le32	__cpu_to_le32
#define le32_to_cpu	__le32_to_cpu
#define cpu_to_be32	__cpu_to_be32
#define be32_to_cpu	__be32_to_cpu
#define cpu_to_be16	__cpu_to_be16

#endif /* SHIM_ASM_BYTEORDER_H */
