/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Failing the n-th allocation of a call, for every n, on a kernel with
 * CONFIG_FAULT_INJECTION. After each failure the errno is one that may be, the
 * device has as many objects as before, and a connection that was there all the
 * time still carries messages both ways.
 */
#ifndef SMW_TOOLS_FAIL_ENV_H
#define SMW_TOOLS_FAIL_ENV_H

#include "qp_env.h"

#define FAIL_BUF_LEN	16384

struct fail_env {
	struct qp_env q;	/* the connection that must survive */
	char *objects;		/* the device's objects before the path ran */

	/* What paths make and give back. */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct rdma_end end;	/* a queue pair of its own */
	struct rdma_wr wr;
	uint8_t *mem;
};

/*
 * One call to be failed. It is not a failure of the path that the call works
 * although an allocation failed: many have another way.
 */
struct fail_path {
	const char *name;
	/* make what the call needs; may be NULL */
	void (*prepare)(struct fail_env *e);
	/* the call: 0 or an errno */
	int (*run)(struct fail_env *e);
	/* give back everything, after success or failure; may be NULL */
	void (*undo)(struct fail_env *e, int err);
	/* errnos that may be, besides ENOMEM and EFAULT; ended by 0 */
	int errnos[4];
	/* allocations that are failed one by one, of more only some; 0: all */
	unsigned int dense;
	bool never_allocates;
};

void fail_open(struct fail_env *e);
void fail_close(struct fail_env *e);

/* Run a path with every allocation failed, one after the other. */
void fail_every(struct fail_env *e, const struct fail_path *path);

/* The connection works and the objects are as many as before. */
void fail_expect_sound(struct fail_env *e, const char *what);

/* The @n-th allocation, or copy from or to user space, of this thread fails. */
void fail_arm(unsigned int n);
/* No more; true if one was failed since. */
bool fail_disarm(void);

/* Write to a file of debugfs; @name as in "failslab/probability". */
void fail_debugfs(const char *name, const char *value);
/* Requests to this host: by packets or by the direct path. */
void fail_wire(struct fail_env *e, bool wire);

/*
 * The second try to give something back, after the first ended with @first. EFAULT
 * was perhaps the answer's way back: then the object is gone already.
 */
void fail_expect_gone(int err, int first, const char *what);

/* The errno of a call that returns a pointer. */
static inline int fail_errno(const void *made)
{
	return made ? 0 : errno;
}

void fail_object_cases(void);
void fail_qp_cases(void);
void fail_post_cases(void);
void fail_link_cases(void);
void fail_ud_cases(void);

#endif
