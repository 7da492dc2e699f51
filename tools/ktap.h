/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * KTAP for user-space programs: every case runs in a process of its own, with
 * a deadline, and ends as passed, failed or skipped.
 */
#ifndef SMW_TOOLS_KTAP_H
#define SMW_TOOLS_KTAP_H

#include <stdbool.h>
#include <stddef.h>

/* What the command line asked for; cases only read it. */
struct ktap_options {
	const char *device;	/* NULL: the first device named smw* */
	int gid_index;		/* -1: the first IPv4 RoCE v2 GID */
	const char *peer_device; /* NULL: the same, for cases with two */
	unsigned long seed;	/* for cases that draw numbers */
	unsigned int rounds;	/* 0: each case's own number */
	unsigned int seconds;	/* 0: as many rounds; else as long as that */
	unsigned int scale;	/* multiplies every deadline */
	unsigned int jobs;	/* how many cases run at once */
};

extern struct ktap_options ktap_opt;

/* --peer-device, --rounds, --seed, --seconds */
#define KTAP_OWN_OPTIONS "prst"

typedef void (*ktap_fn)(long arg);

/*
 * Add a case. @clause names the rule it proves, @seconds is its deadline
 * (0: the default). The name is made from @fmt.
 */
void ktap_add(const char *clause, ktap_fn run, long arg, unsigned int seconds,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * Cases whose name matches run while no other one does: they measure time, use
 * the device up, or count what it has. For ktap_main(); one call.
 */
void ktap_alone(const char *expression);

/*
 * Parse the command line, run what was asked for, return the exit status.
 * @own has the letters of KTAP_OWN_OPTIONS that mean something to the cases of
 * this program; it has no others of them.
 * @probe runs before the cases, and after one that failed, in a process of its
 * own: where no case could run, it ends that process with a line that says why.
 */
int ktap_main(int argc, char **argv, const char *own, void (*probe)(void));

enum ktap_exit {
	KTAP_PASS = 0,
	KTAP_FAIL = 1,	/* of a case, or of one of the cases */
	KTAP_USAGE = 2,	/* nothing could be run */
	KTAP_SKIP = 4,	/* of a case, or of all of them */
};

/* End the running case. */
_Noreturn void ktap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void ktap_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void ktap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Each takes a message saying what a correct device does. */
#define check(cond, ...)						\
	do {								\
		if (!(cond))						\
			ktap_fail(__FILE__, __LINE__, __VA_ARGS__);	\
	} while (0)

#define check_eq(got, want, what)					\
	do {								\
		long long got_ = (long long)(got);			\
		long long want_ = (long long)(want);			\
									\
		if (got_ != want_)					\
			ktap_fail(__FILE__, __LINE__,			\
				  "%s: got %lld, want %lld", what,	\
				  got_, want_);				\
	} while (0)

#define check_errno(got, want, what)					\
	do {								\
		int got_ = (got);					\
		int want_ = (want);					\
									\
		if (got_ != want_)					\
			ktap_fail(__FILE__, __LINE__,			\
				  "%s: got %d (%s), want %d (%s)", what,\
				  got_, strerror(got_), want_,		\
				  strerror(want_));			\
	} while (0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
