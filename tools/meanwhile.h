/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A thread that does one thing again and again, while its case does others. */
#ifndef SMW_TOOLS_MEANWHILE_H
#define SMW_TOOLS_MEANWHILE_H

#include <pthread.h>
#include <stdbool.h>

struct meanwhile {
	bool (*act)(struct meanwhile *m);
	void *object;		/* what it is done to */
	unsigned int seed;	/* for rand_r() */
	unsigned long done;	/* how often @act said true */
	bool stop;
	pthread_t thread;
};

void meanwhile_start(struct meanwhile *m, bool (*act)(struct meanwhile *m), void *object);
/* How often it was done. */
unsigned long meanwhile_stop(struct meanwhile *m);

#endif
