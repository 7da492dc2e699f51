// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

unsigned long number_of(const char *text, unsigned long limit)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 0);
	if (!isdigit((unsigned char)*text) || *end) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	if (errno || number > limit) {
		fprintf(stderr, "too large: %s (at most %lu)\n", text, limit);
		exit(2);
	}
	return number;
}
