/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A small reference model of memory windows, and random steps to compare a
 * device with it.
 *
 *	model_gen	draws a step
 *	model_step	its text: the language of lists and replays
 *	model_rules	what a correct device does with it
 *	model_device	does it, and compares
 *	model_run	runs many, and shrinks what failed
 *
 * A step names windows, regions and queue pairs by slot, and keys and addresses
 * by what they are near to ("the key that window 2 had before", "a byte before
 * the end of region 1"). So it keeps its meaning when steps before it are
 * dropped, and one seed gives the same steps although the device's keys differ
 * from run to run.
 */
#ifndef SMW_TOOLS_MODEL_H
#define SMW_TOOLS_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_PDS	3	/* the last has no queue pair: it can be freed */
#define MODEL_SPARE_PD	2
#define MODEL_QPS	6	/* n is connected to n ^ 1 */
#define MODEL_REGIONS	6
#define MODEL_WINDOWS	6
#define MODEL_SHAPES	12
#define MODEL_MEMORY	2048	/* bytes that all regions are made of */
#define MODEL_PAGE_AT	1024	/* where a page begins in them */
#define MODEL_MSG_MAX	1024
#define MODEL_NONE	(-1)

enum model_op {
	MODEL_ALLOC, MODEL_DEALLOC, MODEL_REG, MODEL_DEREG,
	MODEL_ALLOC_PD, MODEL_DEALLOC_PD,
	MODEL_BIND_CALL, MODEL_BIND, MODEL_LOCAL_INV, MODEL_SEND_INV,
	MODEL_READ, MODEL_WRITE, MODEL_CAS, MODEL_FADD,
	MODEL_TO_ERR, MODEL_DESTROY, MODEL_CONNECT,
	MODEL_OPS,
};

/* A key or an address by what it is near to. */
struct model_ref {
	char what;	/* w: a window, r: a region, z: zero */
	uint8_t slot;
	char which;	/* keys: now, before, first; addresses: start, end */
	int delta;	/* of a key: in its low byte */
};

struct model_step {
	enum model_op op;
	uint8_t qp;
	uint8_t slot;
	uint8_t pd;
	uint8_t kind;			/* type of a window, shape of a region */
	uint8_t value;			/* what the bytes are made from */
	unsigned int rights;
	uint64_t len;
	struct model_ref key;
	struct model_ref new_key;
	struct model_ref lkey;
	struct model_ref at;
};

/* A step with its numbers. */
struct model_request {
	const struct model_step *step;
	uint32_t key;
	uint32_t new_key;
	uint32_t lkey;
	uint64_t at;
	uint64_t compare;
	uint64_t operand;	/* to swap in, or to add */
};

/* The rule that decides a step. */
enum model_rule {
	MODEL_SKIPPED,		/* there is nothing to do it with */
	MODEL_FINE,
	MODEL_BAD_SHAPE, MODEL_BUSY, MODEL_NOT_TYPE1,
	MODEL_FLUSHED, MODEL_NO_PEER, MODEL_ZERO_LENGTH,
	MODEL_NO_KEY, MODEL_UNBOUND, MODEL_ACCESS_PD, MODEL_ACCESS_QP,
	MODEL_RIGHT, MODEL_QP_RIGHT, MODEL_RANGE, MODEL_MISALIGNED,
	MODEL_MISALIGNED_MEMORY,
	MODEL_NO_WINDOW, MODEL_BIND_KEY, MODEL_NOT_FREE, MODEL_BIND_PD,
	MODEL_NO_REGION, MODEL_ZERO_BASED_REGION, MODEL_NO_MW_BIND,
	MODEL_NO_LOCAL_WRITE, MODEL_BIND_FLAGS, MODEL_BIND_LENGTH,
	MODEL_BIND_RANGE, MODEL_UNBIND,
	MODEL_INV_KEY, MODEL_INV_TYPE1, MODEL_INV_FREE, MODEL_INV_QP,
	MODEL_RULES,
};

extern const char *const model_rule_name[MODEL_RULES];

/* What comes of a step. */
struct model_result {
	enum model_rule rule;
	int err;		/* errno of the call */
	int status;		/* of the send completion; MODEL_NONE: none */
	int recv;		/* of the peer's receive; MODEL_NONE: none */
	int event;		/* at the peer; MODEL_NONE: none */
	uint32_t fetched_len;	/* what a READ or an atomic brings */
	uint8_t fetched[MODEL_MSG_MAX];
};

enum model_qp_state { MODEL_RTS, MODEL_ERR, MODEL_GONE };

struct model_qp {
	enum model_qp_state state;
	int pd;
	unsigned int rights;
};

struct model_region {
	bool live;
	int pd;
	uint32_t key;		/* also after its end */
	uint32_t old_key;	/* of the one before it in this slot */
	unsigned int access;
	uint64_t iova;
	uint64_t len;
	size_t off;		/* in the memory */
};

struct model_window {
	bool live;
	int pd;
	int type;
	uint32_t key;		/* also after its end */
	uint32_t old_key;
	uint32_t first_key;
	bool bound;
	int region;		/* slot; these hold after an unbind too */
	int owner;		/* queue pair of a bound window of type 2 */
	unsigned int rights;
	uint64_t start;
	uint64_t len;
	size_t off;
};

struct model {
	bool pd_live[MODEL_PDS];
	struct model_qp qps[MODEL_QPS];
	struct model_region regions[MODEL_REGIONS];
	struct model_window windows[MODEL_WINDOWS];
	uint64_t memory_at;	/* the address of the device's copy */
	uint8_t memory[MODEL_MEMORY];
};

/* How a region is made. */
struct model_shape {
	size_t off;
	uint64_t len;
	bool fixed;		/* @iova counts, not the memory's address */
	uint64_t iova;
	unsigned int access;
};

extern const struct model_shape model_shapes[MODEL_SHAPES];
extern const int model_qp_pd[MODEL_QPS];

/* --- model_rules --- */

void model_init(struct model *m, uint64_t memory_at);
/* Give a step the numbers that it stands for now. */
void model_resolve(const struct model *m, const struct model_step *s,
		   struct model_request *r);
/* Do it in the model; the result is what a correct device does. */
void model_apply(struct model *m, struct model_request *r,
		 struct model_result *want);
/* The device gave a new window or region its key. False: another has its index. */
bool model_learn_key(struct model *m, const struct model_step *s, uint32_t key);
/* Byte @i of what a step writes or sends. */
uint8_t model_byte(const struct model_step *s, size_t i);

/* --- model_step --- */

#define MODEL_TEXT_LEN	200

extern const char *const model_op_name[MODEL_OPS];
void model_print(char text[MODEL_TEXT_LEN], const struct model_step *s);
/* The reason why @text is no step; NULL if it is one. */
const char *model_parse(struct model_step *s, const char *text);
void model_help(void);

/* --- model_gen --- */

struct model_random {
	uint64_t state;
};

void model_draw(struct model_random *rnd, const struct model *m,
		struct model_step *s);

/* --- model_device --- */

struct model_options {
	const char *device;
	int gid_index;
	unsigned int scale;	/* multiplies every deadline */
	bool verbose;		/* tell every step */
};

struct model_device;

/* Open the device, and begin the model of it. */
struct model_device *model_device_open(const struct model_options *opt,
				       struct model *m);
/*
 * Do a step and compare with what the model wants, @m being the model after it.
 * False, and the difference in @why, where they do not agree.
 */
bool model_device_do(struct model_device *d, struct model *m,
		     const struct model_request *r,
		     const struct model_result *want, char *why, size_t len);
/* Give everything back; each call must succeed. */
bool model_device_close(struct model_device *d, const struct model *m,
			char *why, size_t len);

/* --- model_run: steps in a process of their own --- */

#define MODEL_ROUND	500	/* steps from one opening of the device to the next */
#define MODEL_WHY_LEN	200

struct model_counts {
	unsigned long long steps;
	unsigned long long rules[MODEL_RULES];
	unsigned long long fine[MODEL_OPS];
	unsigned long long refused[MODEL_OPS];
};

/* What the process and its parent share. */
struct model_round {
	struct model_counts counts;
	size_t done;		/* steps that were begun */
	char why[MODEL_WHY_LEN];
	struct model_step steps[MODEL_ROUND];
};

struct model_round *model_round_new(void);
/* Draw @n steps from @seed and do them; false if device and model differ. */
bool model_round_draw(struct model_round *round,
		      const struct model_options *opt, uint64_t seed, size_t n);
/* Do the first @n steps that are there. */
bool model_round_replay(struct model_round *round,
			const struct model_options *opt, size_t n);
/*
 * The first @n steps fail: drop what can be dropped without that they stop to
 * fail. Returns how many are left.
 */
size_t model_round_shrink(struct model_round *round,
			  const struct model_options *opt, size_t n);

#endif
