/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packet sequence numbers: 24 bits, compared modulo 2^24.
 */
#ifndef SMW_PSN_H
#define SMW_PSN_H

#include <linux/types.h>

#define SMW_PSN_MASK 0xffffffu

/**
 * smw_psn_add() - advance a PSN
 * @psn: a PSN; bits above 23 are ignored
 * @n: packets to advance by
 *
 * Return: (@psn + @n) modulo 2^24.
 */
static inline u32 smw_psn_add(u32 psn, u32 n)
{
	return (psn + n) & SMW_PSN_MASK;
}

/**
 * smw_psn_diff() - signed distance between two PSNs
 * @a: a PSN
 * @b: another
 *
 * Return: @a - @b in [-2^23, 2^23): negative where @a is older (C9-110's
 * duplicate region), 0 where equal, positive where newer.
 */
static inline s32 smw_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

#endif /* SMW_PSN_H */
