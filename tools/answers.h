/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Questions to a device that it has one answer to, at once: an errno, or 0. Whatever
 * the answer, there are as many objects afterwards as before.
 */
#ifndef SMW_TOOLS_ANSWERS_H
#define SMW_TOOLS_ANSWERS_H

#include "qp_env.h"

/* What questions are asked about. */
struct answers_env {
	struct rdma_dev dev;
	struct rdma_end end;	/* an RC queue pair in RTS, its own peer */
	struct rdma_buf buf;
};

struct answers_row {
	const char *name;
	int want;
	/* one of the two; what is asked of may be a type, a flag, a number */
	int (*ask)(struct answers_env *e);
	int (*ask_of)(struct answers_env *e, uint32_t of);
	uint32_t of;
};

/* The errno of a call that returns a pointer. */
static inline int answers_made(const void *made)
{
	return made ? 0 : errno;
}

#define UNSUPPORTED(name, ask)	{ name, EOPNOTSUPP, ask, NULL, 0 }
#define NONSENSE(name, ask)	{ name, EINVAL, ask, NULL, 0 }
#define FINE(name, ask)		{ name, 0, ask, NULL, 0 }
#define UNSUPPORTED_OF(name, ask, of)	{ name, EOPNOTSUPP, NULL, ask, of }
#define NONSENSE_OF(name, ask, of)	{ name, EINVAL, NULL, ask, of }
#define FINE_OF(name, ask, of)		{ name, 0, NULL, ask, of }

/* By libibverbs, and by the kernel's own interface. */
extern const struct answers_row answers_verbs[];
extern const struct answers_row answers_queries[];
extern const struct answers_row answers_commands[];
extern const size_t answers_verbs_count;
extern const size_t answers_queries_count;
extern const size_t answers_commands_count;

#endif
