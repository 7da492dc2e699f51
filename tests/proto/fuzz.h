/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef FUZZ_H
#define FUZZ_H

#include <linux/types.h>

/* Longer input says nothing new. */
#define FUZZ_MAX_LEN 192

/**
 * fuzz_one() - one input, under the name by which libFuzzer calls it
 * @bytes: any bytes
 * @len: how many
 *
 * Does not return where something is wrong.
 *
 * Return: 0.
 */
int fuzz_one(const u8 *bytes, size_t len) __asm__("LLVMFuzzerTestOneInput");

#endif /* FUZZ_H */
