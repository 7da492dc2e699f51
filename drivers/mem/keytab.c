// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/keytab.h>

#include <linux/random.h>
#include <linux/rhashtable.h>

#include <smw/key.h>
#include <smw/kunit.h>

/* Rounds of the permutation; four make a Feistel network a strong one. */
#define PERMUTE_ROUNDS 6

static const struct rhashtable_params keytab_params = {
	.key_len = sizeof_field(struct smw_key_entry, index),
	.key_offset = offsetof(struct smw_key_entry, index),
	.head_offset = offsetof(struct smw_key_entry, node),
	.automatic_shrinking = true,
};

/*
 * A Feistel network over two halves of bits / 2: a bijection whatever the
 * round function is, and unpredictable since that is a keyed hash.
 */
static u32 permute(const struct smw_keytab *tab, u32 n)
{
	u32 half = tab->bits / 2;
	u32 mask = BIT(half) - 1;
	u32 left = (n >> half) & mask;
	u32 right = n & mask;
	u32 round;

	for (round = 0; round < PERMUTE_ROUNDS; round++) {
		u32 mixed = siphash_2u32(round, right, &tab->secret);
		u32 next = left ^ (mixed & mask);

		left = right;
		right = next;
	}
	return (left << half) | right;
}

int smw_keytab_init(struct smw_keytab *tab, u8 bits)
{
	mutex_init(&tab->lock);
	get_random_bytes(&tab->secret, sizeof(tab->secret));
	tab->next = 0;
	tab->bits = bits;
	return rhashtable_init(&tab->table, &keytab_params);
}
EXPORT_SYMBOL_IF_KUNIT(smw_keytab_init);

void smw_keytab_destroy(struct smw_keytab *tab)
{
	rhashtable_destroy(&tab->table);
	mutex_destroy(&tab->lock);
}
EXPORT_SYMBOL_IF_KUNIT(smw_keytab_destroy);

int smw_keytab_insert(struct smw_keytab *tab, struct smw_key_entry *entry,
		      enum smw_key_kind kind)
{
	u32 tries = BIT(tab->bits);
	int err = -ENOSPC;

	entry->kind = kind;
	mutex_lock(&tab->lock);
	while (tries--) {
		entry->index = permute(tab, tab->next++);
		if (!entry->index)
			continue;
		err = rhashtable_lookup_insert_fast(&tab->table, &entry->node,
						    keytab_params);
		if (err != -EEXIST)
			break;
		err = -ENOSPC;
	}
	mutex_unlock(&tab->lock);
	/* It has to grow while it grows, and cannot: that is for want of memory too. */
	return err == -EBUSY ? -ENOMEM : err;
}
EXPORT_SYMBOL_IF_KUNIT(smw_keytab_insert);

void smw_keytab_remove(struct smw_keytab *tab, struct smw_key_entry *entry)
{
	rhashtable_remove_fast(&tab->table, &entry->node, keytab_params);
}
EXPORT_SYMBOL_IF_KUNIT(smw_keytab_remove);

struct smw_key_entry *smw_keytab_find(struct smw_keytab *tab, u32 index)
{
	return rhashtable_lookup(&tab->table, &index, keytab_params);
}
EXPORT_SYMBOL_IF_KUNIT(smw_keytab_find);
