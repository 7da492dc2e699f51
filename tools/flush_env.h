/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RDMA FLUSH (IBTA A19.4.1) and ATOMIC WRITE, which Debian 12's libibverbs has no calls
 * for: their requests are written into the ring, as newer providers do.
 */
#ifndef SMW_TOOLS_FLUSH_ENV_H
#define SMW_TOOLS_FLUSH_ENV_H

#include "ring.h"

#define WC_FLUSH		8
#define WC_ATOMIC_WRITE		9
#define FLUSH_GLOBAL		1U	/* placement types */
#define FLUSH_PERSISTENT	2U
#define FLUSH_RANGE		0U	/* selectivity levels */
#define FLUSH_REGION		1U
#define ACCESS_GLOBAL		(1U << 8)
#define ACCESS_PERSISTENT	(1U << 9)

#define FLUSH_LEN		16384	/* bytes of the region */
#define FLUSH_AT		1000	/* a part of it, which windows are bound to: ... */
#define FLUSH_SIZE		9007	/* ... so many bytes from there on, 7 beyond a word */

/* a flushes the memory of b. */
struct flush_env {
	struct ring_env r;
	struct rdma_buf memory;
};

/* What a FLUSH says. */
struct flush {
	uint64_t va;
	uint32_t len;
	uint32_t rkey;
	uint8_t type;
	uint8_t level;
};

/* What a key can name. */
enum flush_kind {
	FLUSH_OF_REGION,
	FLUSH_OF_TYPE_1,
	FLUSH_OF_TYPE_2,
	FLUSH_OF_ZERO_BASED,
	FLUSH_KINDS,
};

extern const char *const flush_kind_name[FLUSH_KINDS];

/* FLUSH_SIZE bytes of the memory, by a key of their own. */
struct flush_target {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey;
	uint64_t start;
};

/* The device's capabilities, those of ibv_query_device_ex(3) too. */
uint64_t flush_device_flags(void);

/* b's queue pair and its region grant FLUSH to global visibility; or what is said. */
void flush_open(struct flush_env *e);
void flush_open_with(struct flush_env *e, unsigned int qp_access, unsigned int access);
/* Requests are sent again as often as may be, for a wire that loses some. */
void flush_insist(struct flush_env *e);
/* The bystanders are unharmed. */
void flush_close(struct flush_env *e);

/* All of the memory; or all of what a key names, with a range that is none. */
struct flush flush_good(const struct flush_env *e);
struct flush flush_whole(uint32_t rkey);

/* As librxe builds it: without elements, its length where a message's would be. */
void flush_build(const struct flush_env *e, union ring_slot *s, const struct flush *f);
/* Post it, alone or behind what is in the ring already; the status. */
enum ibv_wc_status flush_post(struct flush_env *e, const union ring_slot *s);
/* It ends like that; an error ends the connection, which is made anew. */
void flush_expect_slot(struct flush_env *e, const union ring_slot *s,
		       enum ibv_wc_status want, const char *what);
void flush_expect(struct flush_env *e, const struct flush *f, enum ibv_wc_status want,
		  const char *what);

/* Bind a new window as b's own; the status of the bind. */
enum ibv_wc_status flush_bind(struct flush_env *e, enum flush_kind kind,
			      unsigned int access, struct flush_target *t);
/* Something that grants @access, which works. */
struct flush_target flush_target_open(struct flush_env *e, enum flush_kind kind,
				      unsigned int access);
void flush_target_close(const struct flush_target *t);

#endif
