/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What every window case begins with: an owner with a region and a window, a
 * peer that uses the window's key, and accesses that must work or be refused.
 */
#ifndef SMW_TOOLS_MW_ENV_H
#define SMW_TOOLS_MW_ENV_H

#include "ktap.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <errno.h>
#include <string.h>

#define MW_REGION_LEN	65536
#define MW_REGION_OFF	72	/* from a page boundary: 8-byte aligned only */
#define MW_LOCAL_LEN	MW_REGION_LEN
#define MW_MTU		1024
#define MW_BIND_RIGHTS	(RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE | \
			 IBV_ACCESS_MW_BIND)

/* An argument of a case: a window type and, in another bit, the interface. */
#define MW_TYPE(arg)	((arg) & 3)
#define MW_WR_API	4
#define MW_ARG(arg)	((arg) >> 4)	/* what else the case needs */
#define MW_ARG_SHIFT	4

enum mw_op { MW_READ, MW_WRITE, MW_WRITE_IMM, MW_CAS, MW_FADD, MW_OPS };

extern const char *const mw_op_name[MW_OPS];
/* The right of a window or queue pair that an operation needs. */
extern const unsigned int mw_op_right[MW_OPS];

struct mw_pair {
	struct rdma_end owner;
	struct rdma_end peer;
	struct rdma_buf local;	/* the peer's memory */
};

struct mw_env {
	struct rdma_dev dev;
	struct mw_pair a;
	struct rdma_buf region;	/* the owner's memory */
	struct ibv_mw *mw;
	uint32_t rkey;		/* the window's key as of now */
};

/* Where an access goes, and which bytes of the region that means. */
struct mw_target {
	uint32_t rkey;
	uint64_t va;
	size_t off;
	uint32_t len;
};

/* How a window may be revoked. */
enum mw_how {
	MW_BY_LOCAL_INV,
	MW_BY_SEND_INV,
	MW_BY_ZERO_BIND,
	MW_BY_REBIND,
	MW_BY_DEALLOC,
	MW_BY_QP_DESTROY,
	MW_BY_QP_RESET,
	MW_WAYS,
};

extern const char *const mw_how_name[MW_WAYS];
bool mw_how_fits(enum mw_how how, int type);

/*
 * Open what a case needs. A device without windows of the type skips the case;
 * of type 0, any windows will do.
 */
void mw_open_dev(struct rdma_dev *dev, int type);
struct ibv_pd *mw_open_pd(struct rdma_dev *dev, int type);
void mw_open(struct mw_env *e, long arg);
void mw_open_conf(struct mw_env *e, long arg, const struct rdma_conf *conf,
		  unsigned int region_access);
/* No case needs more than small devices offer. */
struct rdma_conf mw_fit(struct rdma_conf conf, const struct rdma_dev *dev);
void mw_pair_open(struct mw_pair *p, struct rdma_dev *dev, struct ibv_pd *pd,
		  const struct rdma_conf *conf);
/* A second pair beside @e's; its owner is of the same PD or of its own. */
void mw_second_pair(struct mw_env *e, struct mw_pair *b, bool same_pd);
/* Give everything back; each step must be allowed. */
void mw_close(struct mw_env *e);
void mw_close_pd(struct rdma_dev *dev, struct ibv_pd *pd);
void mw_close_two(struct mw_env *e, struct mw_pair *b);
void mw_pair_close(struct mw_pair *p);

/* The types that the device has, in turns. */
int mw_type_nr(const struct rdma_dev *dev, size_t i);
struct ibv_mw *mw_alloc(struct ibv_pd *pd, int type);
/* Another window takes the place of @e->mw, which is the caller's from then on. */
struct ibv_mw *mw_next(struct mw_env *e);
/* How many of enum mw_op the device can do: all, or those before the atomics. */
int mw_ops(const struct mw_env *e);

/* A bind of the window to part of the region, as it should be. */
struct rdma_bind mw_good_bind(const struct mw_env *e, size_t off, size_t len,
			      unsigned int access);
/* Bind by what the window's type is bound by; the window has a new key. */
void mw_bind(struct mw_env *e, size_t off, size_t len, unsigned int access);
enum ibv_wc_status mw_try_bind(struct rdma_end *owner,
			       const struct rdma_bind *bind);
/* Revoke the bound window; for MW_BY_DEALLOC e->mw is gone then. */
void mw_revoke(struct mw_env *e, enum mw_how how);
void mw_local_inv(struct rdma_end *end, uint32_t rkey);

/* What began then was not long. */
void mw_at_once(uint64_t since, const char *what);

struct mw_target mw_at(const struct mw_env *e, size_t off, uint32_t len);

/*
 * The access must work, and change or fetch exactly the bytes it names; or it
 * must be refused, and then it has moved no byte: owner and peer end in ERR
 * and are connected again.
 */
void mw_allowed(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		struct mw_target t);
void mw_refused(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		struct mw_target t);
/* Refused with one of the statuses whose bit is set. */
void mw_refused_as(struct mw_env *e, struct mw_pair *p, enum mw_op op,
		   struct mw_target t, unsigned long statuses);

/* Of the region and the peer's memory: only that write was placed; or nothing. */
void mw_expect_write(struct mw_env *e, struct mw_pair *p,
		     const struct mw_target *t);
void mw_expect_untouched(struct mw_env *e, struct mw_pair *p);
/* Fill both with what those two compare with. */
void mw_fill(struct mw_env *e, struct mw_pair *p);

#define MW_STATUS(status) (1UL << (status))

/* The region cannot be deregistered now. */
void mw_expect_busy(struct mw_env *e);
/* It can; it is gone then. */
void mw_expect_dereg(struct mw_env *e);

/* The topics. */
void mw_alloc_cases(void);
void mw_bind_cases(void);
void mw_bind_error_cases(void);
void mw_access_cases(void);
void mw_rights_cases(void);
void mw_share_cases(void);
void mw_key_cases(void);
void mw_invalidate_cases(void);
void mw_order_cases(void);
void mw_destroy_cases(void);
void mw_process_cases(void);
void mw_fence_cases(void);
void mw_uc_cases(void);

#endif
