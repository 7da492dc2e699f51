/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The key table of a link: one space of indices for windows and regions.
 */
#ifndef SMW_KEYTAB_H
#define SMW_KEYTAB_H

#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/siphash.h>

enum smw_key_kind {
	SMW_KEY_REGION,
	SMW_KEY_WINDOW,
};

/**
 * struct smw_key_entry - the part of a window or region that the table knows
 * @node: link in the hash table; owner: the table
 * @index: 24-bit index, constant while the entry is in the table
 * @kind: enum smw_key_kind, constant
 */
struct smw_key_entry {
	struct rhash_head node;
	u32 index;
	u8 kind;
};

/**
 * struct smw_keytab - index allocation and look-up
 * @table: entries by index; readers under RCU
 * @lock: protects @next and makes choosing and inserting an index one step
 * @secret: keys the permutation that makes indices unpredictable
 * @next: counter whose permuted value is the next index
 * @bits: width of an index, even, SMW_KEY_INDEX_BITS but in tests
 */
struct smw_keytab {
	struct rhashtable table;
	struct mutex lock;
	siphash_key_t secret;
	u32 next;
	u8 bits;
};

/**
 * smw_keytab_init() - make an empty table
 * @tab: the table
 * @bits: width of an index, even, 2 to SMW_KEY_INDEX_BITS
 *
 * Return: 0 or a negative errno.
 */
int smw_keytab_init(struct smw_keytab *tab, u8 bits);

/**
 * smw_keytab_destroy() - free an empty table
 * @tab: the table
 */
void smw_keytab_destroy(struct smw_keytab *tab);

/**
 * smw_keytab_insert() - give an entry an index
 * @tab: the table
 * @entry: set ->index and ->kind; visible to look-ups on return
 * @kind: window or region
 *
 * Indices come from a keyed permutation of a counter: unpredictable, spread
 * over the whole space, and reused only after the whole space went by.
 * Index 0 is never given: key 0 stays invalid.
 * Context: may sleep.
 *
 * Return: 0, -ENOSPC where every index is taken, or -ENOMEM.
 */
int smw_keytab_insert(struct smw_keytab *tab, struct smw_key_entry *entry,
		      enum smw_key_kind kind);

/**
 * smw_keytab_remove() - take an entry out
 * @tab: the table
 * @entry: an entry in it; freed after an RCU grace period only
 */
void smw_keytab_remove(struct smw_keytab *tab, struct smw_key_entry *entry);

/**
 * smw_keytab_find() - look an index up
 * @tab: the table
 * @index: 24-bit index
 *
 * Context: under rcu_read_lock().
 *
 * Return: the entry, or NULL.
 */
struct smw_key_entry *smw_keytab_find(struct smw_keytab *tab, u32 index);

/* How many keys there are, of windows and regions. */
static inline int smw_keytab_count(const struct smw_keytab *tab)
{
	return atomic_read(&tab->table.nelems);
}

#endif /* SMW_KEYTAB_H */
