// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The life of a window's key: 24 bits that stay, 8 bits that change. */
#include "mw_env.h"

#define WRAPS	600	/* binds: the key byte comes round twice */

/* Bind with a key of our choice. */
static void bind_key(struct mw_env *e, uint32_t current, uint32_t key)
{
	struct rdma_bind bind = mw_good_bind(e, 64, 256, RDMA_ALL_REMOTE);
	enum ibv_wc_status status;

	bind.current_rkey = current;
	bind.new_rkey = key;
	status = mw_try_bind(&e->a.owner, &bind);
	check(status == IBV_WC_SUCCESS,
	      "window %#010x can be bound with key %#x (%s)", current, key,
	      ibv_wc_status_str(status));
	e->rkey = (e->mw->rkey & ~0xffU) | (key & 0xff);
}

static void use(struct mw_env *e)
{
	mw_allowed(e, &e->a, MW_WRITE, mw_at(e, 64, 256));
}

/* ibv_bind_mw() steps the key byte; the index stays, round and round. */
static void type1_wraps(long arg)
{
	uint32_t index, before;
	struct mw_target old;
	struct mw_env e;

	mw_open(&e, arg);
	index = e.rkey >> 8;
	for (int i = 0; i < WRAPS; i++) {
		before = e.rkey;
		mw_bind(&e, 64, 256, RDMA_ALL_REMOTE);
		check_eq(e.rkey >> 8, index, "the index");
		check_eq(e.rkey & 0xff, (before + 1) & 0xff, "the key byte");
		if (i % 50)
			continue;
		use(&e);
		old = mw_at(&e, 64, 8);
		old.rkey = before;
		mw_refused(&e, &e.a, MW_WRITE, old);
	}
	use(&e);
	mw_close(&e);
}

static void type2_wraps(long arg)
{
	struct mw_target old;
	struct mw_env e;

	mw_open(&e, arg);
	for (uint32_t i = 0; i < WRAPS; i++) {
		uint32_t before = e.rkey;

		bind_key(&e, e.rkey, before + 1);
		if (i % 50 == 0) {
			use(&e);
			old = mw_at(&e, 64, 8);
			old.rkey = before;
			mw_refused(&e, &e.a, MW_WRITE, old);
			continue;	/* connecting again freed it */
		}
		mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* All 256 bare numbers are keys; the index comes from the window. */
static void bare_numbers(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (uint32_t key = 0; key < 256; key++) {
		/* type 1 has a key of its own until it is bound with one */
		if (MW_TYPE(arg) == IBV_MW_TYPE_1 && key == (e.rkey & 0xff))
			continue;
		bind_key(&e, e.rkey, key);
		if (key % 16 == 5)
			use(&e);
		if (MW_TYPE(arg) == IBV_MW_TYPE_2)
			mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* The upper 24 bits of the new key are not looked at. */
static void upper_bits(long arg)
{
	static const uint32_t keys[] = {
		0xffffff01, 0x00000002, 0xdeadbe03, 0x80000004, 0x00000105,
	};
	struct mw_env e;

	mw_open(&e, arg);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		uint32_t key = keys[i];

		if ((key & 0xff) == (e.rkey & 0xff))
			key += 0x40;
		bind_key(&e, e.rkey, key);
		use(&e);
		if (MW_TYPE(arg) == IBV_MW_TYPE_2)
			mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* A Free window may have the key again that it had before. */
static void same_key_again(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (int i = 0; i < 4; i++) {
		bind_key(&e, e.rkey, 0x42);
		use(&e);
		mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* The key that ibv_alloc_mw() gave names the window, and so does today's. */
static void names_by_alloc_key(long arg)
{
	struct mw_env e;
	uint32_t first;

	mw_open(&e, arg);
	first = e.rkey;
	bind_key(&e, first, first + 1);
	mw_local_inv(&e.a.owner, e.rkey);
	bind_key(&e, first, first + 2);
	use(&e);
	mw_local_inv(&e.a.owner, e.rkey);
	bind_key(&e, e.rkey, first + 3);
	use(&e);
	mw_local_inv(&e.a.owner, e.rkey);
	bind_key(&e, first, first + 4);
	use(&e);
	mw_close(&e);
}

/*
 * Some callers store the key to come in their struct ibv_mw before they post,
 * so the provider names the window by that. It names the same window.
 */
static void names_by_new_key(long arg)
{
	struct mw_env e;

	mw_open(&e, arg);
	for (uint32_t step = 1; step < 40; step += 5) {
		uint32_t key = (e.rkey & ~0xffU) | ((e.rkey + step) & 0xff);

		bind_key(&e, key, key);
		use(&e);
		mw_local_inv(&e.a.owner, e.rkey);
	}
	mw_close(&e);
}

/* Any other key of its index does not. */
static void names_by_other_key(long arg)
{
	struct rdma_bind bind;
	struct mw_env e;
	uint32_t first;

	mw_open(&e, arg);
	first = e.rkey;
	bind_key(&e, first, first + 1);
	mw_local_inv(&e.a.owner, e.rkey);
	bind_key(&e, e.rkey, first + 2);
	mw_local_inv(&e.a.owner, e.rkey);
	for (uint32_t step = 1; step < 256; step += 9) {
		bind = mw_good_bind(&e, 64, 256, RDMA_ALL_REMOTE);
		bind.current_rkey = (first & ~0xffU) | ((first + step) & 0xff);
		bind.new_rkey = first + 0x77;
		check_eq(mw_try_bind(&e.a.owner, &bind), IBV_WC_MW_BIND_ERR,
			 "status of a bind by a key the window once had, or never");
		rdma_reconnect(&e.a.owner, &e.a.peer);
	}
	bind_key(&e, e.rkey, first + 3);
	use(&e);
	mw_close(&e);
}

/* The old key is dead as soon as the new one lives. */
static void old_key_dead(long arg)
{
	struct mw_target old;
	struct mw_env e;

	mw_open(&e, arg);
	for (int op = 0; op < mw_ops(&e); op++) {
		mw_bind(&e, 64, 256, RDMA_ALL_REMOTE);
		mw_allowed(&e, &e.a, (enum mw_op)op, mw_at(&e, 64, 8));
		old = mw_at(&e, 64, 8);
		if (MW_TYPE(arg) == IBV_MW_TYPE_2)
			mw_local_inv(&e.a.owner, e.rkey);
		mw_bind(&e, 64, 256, RDMA_ALL_REMOTE);
		mw_allowed(&e, &e.a, (enum mw_op)op, mw_at(&e, 64, 8));
		mw_refused(&e, &e.a, (enum mw_op)op, old);
	}
	mw_close(&e);
}

/* A new range under a new key: the old range is not reached by either. */
static void rebind_moves(long arg)
{
	struct mw_target t;
	struct mw_env e;

	mw_open(&e, arg);
	mw_bind(&e, 64, 256, RDMA_ALL_REMOTE);
	use(&e);
	mw_bind(&e, 4096, 256, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 4096, 256));
	t = mw_at(&e, 64, 8);
	mw_refused(&e, &e.a, MW_WRITE, t);
	mw_allowed(&e, &e.a, MW_READ, mw_at(&e, 4096, 256));
	mw_close(&e);
}

void mw_key_cases(void)
{
	ktap_add("type 1: ibv_inc_rkey; index fixed", type1_wraps, 1, 60,
		 "key.type1.wraps");
	ktap_add("type 2: index fixed", type2_wraps, 2, 60, "key.type2.wraps");
	for (long type = 1; type <= 2; type++) {
		ktap_add("new key: low 8 bits used", bare_numbers, type, 60,
			 "key.type%ld.bare-numbers", type);
		ktap_add("new key: upper 24 ignored", upper_bits, type, 0,
			 "key.type%ld.upper-bits", type);
		ktap_add("the old key dies in the same instant", old_key_dead,
			 type, 0, "key.type%ld.old-key-dead", type);
	}
	ktap_add("type 2: user picks the low 8 bits", bare_numbers,
		 2 | MW_WR_API, 60, "key.type2.bare-numbers-wr-api");
	ktap_add("type 2: user picks the low 8 bits", same_key_again, 2, 0,
		 "key.type2.same-key-again");
	ktap_add("choice: named by its current key or alloc's", names_by_alloc_key,
		 2, 0, "key.type2.named-by-alloc-key");
	ktap_add("choice: or by the one that is being bound", names_by_new_key, 2, 0,
		 "key.type2.named-by-new-key");
	ktap_add("choice: named by its current key or alloc's", names_by_other_key,
		 2, 0, "key.type2.named-by-other-key");
	ktap_add("type 1: bind while bound", rebind_moves, 1, 0,
		 "key.type1.rebind-moves");
}
