/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Range checks that cannot wrap.
 */
#ifndef SMW_RANGE_H
#define SMW_RANGE_H

#include <linux/types.h>

/**
 * smw_range_within() - is one range inside another?
 * @start: first byte of the outer range
 * @size: bytes of the outer range; @start + @size may reach 2^64 exactly
 * @addr: first byte of the inner range
 * @len: bytes of the inner range, 0 allowed
 *
 * Never computes @addr + @len or @start + @size (C10-75).
 *
 * Return: true where every byte of [@addr, @addr + @len) lies in the outer
 * range, and for @len 0 where @addr lies in it or at its end.
 */
static inline bool smw_range_within(u64 start, u64 size, u64 addr, u64 len)
{
	u64 offset = addr - start;

	return addr >= start && offset <= size && len <= size - offset;
}

#endif /* SMW_RANGE_H */
