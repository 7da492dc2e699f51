// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * fuzz_replay FILE...: the inputs that fuzzing found worth keeping, each as it
 * is, cut at every length, and with every bit flipped. Prints KTAP, a case a
 * file. What is wrong ends the program, and the plan comes last.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static size_t read_input(const char *path, u8 *bytes)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		printf("Bail out! %s cannot be read\n", path);
		exit(EXIT_FAILURE);
	}
	len = fread(bytes, 1, FUZZ_MAX_LEN, file);
	fclose(file);
	return len;
}

static void replay(u8 *bytes, size_t len)
{
	size_t i;

	for (i = 0; i <= len; i++)
		fuzz_one(bytes, i);
	for (i = 0; i < 8 * len; i++) {
		bytes[i / 8] ^= 1 << i % 8;
		fuzz_one(bytes, len);
		bytes[i / 8] ^= 1 << i % 8;
	}
}

int main(int argc, char **argv)
{
	u8 bytes[FUZZ_MAX_LEN];
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n");
	for (i = 1; i < argc; i++) {
		printf("# %s\n", argv[i]);
		replay(bytes, read_input(argv[i], bytes));
		printf("ok %d %s\n", i, argv[i]);
	}
	printf("1..%d\n", argc - 1);
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
