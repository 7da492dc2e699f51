/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Keys: a 24-bit index that never changes and an 8-bit key that does.
 */
#ifndef SMW_KEY_H
#define SMW_KEY_H

#include <linux/types.h>

#define SMW_KEY_INDEX_BITS 24
#define SMW_KEY_INDEX_MAX 0xffffffu

static inline u32 smw_key_index(u32 key)
{
	return key >> 8;
}

/**
 * smw_key_compose() - put index and key byte together
 * @index: 24-bit index
 * @key: its low 8 bits are used, the rest ignored: users bind with a bare number
 *
 * Return: the 32-bit lkey or rkey.
 */
static inline u32 smw_key_compose(u32 index, u32 key)
{
	return (index << 8) | (key & 0xff);
}

#endif /* SMW_KEY_H */
