// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 bit by bit: slow, and plain enough to be trusted.
 */
#include <linux/crc32.h>

#define POLYNOMIAL 0xedb88320u /* reflected */

u32 crc32_le(u32 crc, const void *bytes, size_t len)
{
	const u8 *byte = bytes;

	while (len--) {
		crc ^= *byte++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
	}
	return crc;
}
