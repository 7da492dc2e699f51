/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_UNALIGNED_H
#define SHIM_LINUX_UNALIGNED_H

#include <endian.h>
#include <string.h>
#include <linux/types.h>

#define SHIM_UNALIGNED_BE(bits) \
	static inline u##bits get_unaligned_be##bits(const void *from) \
	{ \
		u##bits value; \
		memcpy(&value, from, sizeof(value)); \
		return be##bits##toh(value); \
	} \
	static inline void put_unaligned_be##bits(u##bits value, void *to) \
	{ \
		value = htobe##bits(value); \
		memcpy(to, &value, sizeof(value)); \
	}

SHIM_UNALIGNED_BE(16)
SHIM_UNALIGNED_BE(32)
SHIM_UNALIGNED_BE(64)

#endif /* SHIM_LINUX_UNALIGNED_H */
