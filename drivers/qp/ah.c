// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/ah.h>

#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/rdma_user_rxe.h>

#include <smw/carrier.h>

#define AH_NUMBERS XA_LIMIT(1, INT_MAX)

/*
 * Address handles of all links by number. User space may write any number into its
 * ring: the protection domain decides whether it may have the handle.
 */
static DEFINE_XARRAY_FLAGS(ah_table, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
static u32 ah_table_next;

void smw_ah_exit(void)
{
	WARN_ON(!xa_empty(&ah_table));
	xa_destroy(&ah_table);
}

struct smw_ah_path *smw_ah_find(u32 number, const struct ib_pd *pd)
{
	struct smw_ah_path *path = xa_load(&ah_table, number);

	return path && path->pd == pd ? path : NULL;
}

static int ah_insert(struct smw_ah *ah, bool may_sleep)
{
	unsigned long flags;
	int err;

	if (may_sleep)
		return xa_alloc_cyclic_irq(&ah_table, &ah->number, ah->path, AH_NUMBERS,
					   &ah_table_next, GFP_KERNEL_ACCOUNT);
	xa_lock_irqsave(&ah_table, flags);
	err = __xa_alloc_cyclic(&ah_table, &ah->number, ah->path, AH_NUMBERS,
				&ah_table_next, GFP_ATOMIC);
	xa_unlock_irqrestore(&ah_table, flags);
	return err;
}

static void path_free(struct smw_ah_path *path)
{
	smw_carrier_close(path);
	kfree(path);
}

static void path_free_rcu(struct rcu_head *rcu)
{
	path_free(container_of(rcu, struct smw_ah_path, rcu));
}

static void ah_close(struct smw_ah *ah)
{
	unsigned long flags;

	xa_lock_irqsave(&ah_table, flags);
	__xa_erase(&ah_table, ah->number);
	xa_unlock_irqrestore(&ah_table, flags);
	call_rcu(&ah->path->rcu, path_free_rcu);
}

static int ah_open(struct smw_ah *ah, struct rdma_ah_init_attr *init)
{
	bool may_sleep = init->flags & RDMA_CREATE_AH_SLEEPABLE;
	int err;

	ah->path = kzalloc(sizeof(*ah->path), may_sleep ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC);
	if (!ah->path)
		return -ENOMEM;
	ah->path->pd = ah->ibah.pd;
	err = smw_carrier_open(smw_link_of(ah->ibah.device), ah->path, init->ah_attr,
			       may_sleep);
	if (err)
		goto err_free;
	ah->attr = *init->ah_attr;
	ah->attr.grh.sgid_attr = NULL;
	err = ah_insert(ah, may_sleep);
	if (err < 0)
		goto err_free;
	return 0;

err_free:
	path_free(ah->path);
	return err;
}

int smw_ah_create(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata)
{
	struct smw_link *link = smw_link_of(ibah->device);
	struct rxe_create_ah_resp resp = {};
	struct smw_ah *ah = smw_ah_of(ibah);
	int err;

	/* A provider that does not ask for the number would not name the handle by it. */
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	ah->is_kernel = !udata;
	/* The kernel makes one for each message of the connection manager's. */
	err = smw_link_claim(link, SMW_OBJECT_AH, ah->is_kernel,
			     ah->is_kernel ? INT_MAX : SMW_MAX_AH);
	if (err)
		return err;
	err = ah_open(ah, init);
	if (err)
		goto err_release;
	resp.ah_num = ah->number;
	err = udata ? ib_copy_to_udata(udata, &resp, sizeof(resp)) : 0;
	if (err)
		goto err_close;
	return 0;

err_close:
	ah_close(ah);
err_release:
	smw_link_release(link, SMW_OBJECT_AH, ah->is_kernel);
	return err;
}

int smw_ah_query(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = smw_ah_of(ibah)->attr;
	return 0;
}

int smw_ah_destroy(struct ib_ah *ibah, u32 flags)
{
	struct smw_ah *ah = smw_ah_of(ibah);

	ah_close(ah);
	smw_link_release(smw_link_of(ibah->device), SMW_OBJECT_AH, ah->is_kernel);
	return 0;
}
