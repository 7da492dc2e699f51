// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/mw.h>

#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/slab.h>

#include <smw/key.h>
#include <smw/kunit.h>
#include <smw/link.h>
#include <smw/trace.h>

static struct smw_window *find_window(struct smw_link *link, u32 key)
{
	struct smw_key_entry *entry = smw_keytab_find(&link->keys, smw_key_index(key));

	if (!entry || entry->kind != SMW_KEY_WINDOW)
		return NULL;
	return container_of(entry, struct smw_window, entry);
}

/* The one place where a window lets go of its region. */
static void unbind_region(struct smw_window *window)
{
	spin_lock(&window->mr->lock);
	window->mr->bound--;
	spin_unlock(&window->mr->lock);
	window->mr = NULL;
}

static void leave_owner(struct smw_window *window)
{
	if (!window->owner)
		return;
	spin_lock(&window->owner->lock);
	list_del(&window->owner_node);
	spin_unlock(&window->owner->lock);
	window->owner = NULL;
}

static void join_owner(struct smw_window *window, struct smw_window_owner *owner)
{
	window->owner = owner;
	spin_lock(&owner->lock);
	list_add(&window->owner_node, &owner->windows);
	spin_unlock(&owner->lock);
}

/*
 * Revoke: after this not one more byte moves through the window. The region
 * is let go only then, so that a deregistration which sees no bound window
 * can rely on it. Called under window->lock.
 */
static void revoke(struct smw_window *window)
{
	if (!window->live)
		return;
	WRITE_ONCE(window->live, false);
	smw_hold_drain(window);
	unbind_region(window);
	leave_owner(window);
}

/*
 * Judge a bind, and on success count the window on its new region in the same
 * critical section, before dereg can look.
 */
static enum smw_reason claim_region(struct smw_window *window, struct smw_mr *mr,
				    const struct ib_pd *pd,
				    const struct smw_bind *bind,
				    struct smw_bind_facts *facts)
{
	enum smw_reason reason;

	*facts = (struct smw_bind_facts) {
		.type = window->type,
		.state = window->live ? SMW_WINDOW_VALID : SMW_WINDOW_FREE,
		.window_key = window->key,
		.alloc_key = window->type == SMW_WINDOW_TYPE_2 ?
			     window->alloc_key : window->key,
		.posted_key = bind->window_key,
		.new_key = bind->new_key,
		.same_pd = window->pd == pd,
		.addr = bind->addr,
		.length = bind->length,
		.rights = bind->rights,
	};
	if (!mr)
		return smw_bind_check(facts);
	spin_lock(&mr->lock);
	/* Pairs with the release in mr_open(), which is not under the lock. */
	facts->region_live = smp_load_acquire(&mr->live) && mr->key == bind->lkey;
	if (facts->region_live) {
		facts->same_pd = facts->same_pd && mr->ibmr.pd == pd;
		facts->region_zero_based = mr->rights & SMW_ZERO_BASED;
		facts->region_rights = mr->rights;
		facts->region_start = mr->iova;
		facts->region_length = mr->length;
	}
	reason = smw_bind_check(facts);
	if (!reason)
		mr->bound++;
	spin_unlock(&mr->lock);
	return reason;
}

/* Put a claimed bind into effect. Called under window->lock, window revoked. */
static void install(struct smw_window *window, struct smw_mr *mr,
		    struct smw_window_owner *owner, const struct smw_bind *bind)
{
	window->mr = mr;
	window->rights = bind->rights &
			 (SMW_WINDOW_RIGHTS | SMW_FLUSH_RIGHTS | SMW_ZERO_BASED);
	window->start = bind->rights & SMW_ZERO_BASED ? 0 : bind->addr;
	window->length = bind->length;
	window->offset = bind->addr - mr->iova;
	if (window->type == SMW_WINDOW_TYPE_2)
		join_owner(window, owner);
	/* Pairs with the acquire in judge_window(). */
	smp_store_release(&window->live, true);
}

static enum smw_reason bind_locked(struct smw_link *link, struct smw_window *window,
				   const struct ib_pd *pd,
				   struct smw_window_owner *owner,
				   const struct smw_bind *bind,
				   struct smw_bind_facts *facts)
{
	bool unbind = window->type == SMW_WINDOW_TYPE_1 && !bind->length;
	struct smw_mr *mr = unbind ? NULL : smw_mr_find(link, bind->lkey);
	enum smw_reason reason;

	if (window->dead)
		return SMW_BIND_NO_WINDOW;
	reason = claim_region(window, mr, pd, bind, facts);
	if (reason)
		return reason;
	revoke(window);
	WRITE_ONCE(window->key, smw_key_compose(window->entry.index, bind->new_key));
	if (mr)
		install(window, mr, owner, bind);
	return SMW_OK;
}

enum smw_reason smw_window_bind(struct smw_link *link, const struct ib_pd *pd,
				struct smw_window_owner *owner,
				const struct smw_bind *bind)
{
	enum smw_reason reason = SMW_BIND_NO_WINDOW;
	struct smw_bind_facts facts = {};
	struct smw_window *window;

	rcu_read_lock();
	window = find_window(link, bind->window_key);
	if (window) {
		spin_lock(&window->lock);
		reason = bind_locked(link, window, pd, owner, bind, &facts);
		spin_unlock(&window->lock);
	}
	rcu_read_unlock();
	smw_count(link, reason ? SMW_COUNT_WINDOW_BIND_ERROR : SMW_COUNT_WINDOW_BIND);
	trace_smw_mw_bind(&link->ibdev, owner, bind, &facts, reason);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(smw_window_bind);

static enum smw_reason invalidate_window(struct smw_window *window,
					 const struct ib_pd *pd,
					 const struct smw_window_owner *owner,
					 struct smw_invalidate_facts *facts,
					 u32 *bound_qpn)
{
	enum smw_reason reason;

	spin_lock(&window->lock);
	facts->is_window = true;
	facts->type = window->type;
	facts->state = window->live ? SMW_WINDOW_VALID : SMW_WINDOW_FREE;
	facts->key = window->key;
	facts->same_pd = window->pd == pd;
	facts->same_qp = window->owner == owner;
	*bound_qpn = window->owner ? window->owner->qpn : 0;
	reason = window->dead ? SMW_INV_NO_KEY : smw_invalidate_check(facts);
	if (!reason)
		revoke(window);
	spin_unlock(&window->lock);
	return reason;
}

enum smw_reason smw_window_invalidate(struct smw_link *link, const struct ib_pd *pd,
				      struct smw_window_owner *owner, u32 key)
{
	struct smw_invalidate_facts facts = { .used_key = key };
	enum smw_reason reason = SMW_INV_NO_KEY;
	struct smw_key_entry *entry;
	u32 bound_qpn = 0;

	rcu_read_lock();
	entry = smw_keytab_find(&link->keys, smw_key_index(key));
	if (entry && entry->kind == SMW_KEY_WINDOW)
		reason = invalidate_window(container_of(entry, struct smw_window, entry),
					   pd, owner, &facts, &bound_qpn);
	else if (entry)
		reason = smw_mr_invalidate(container_of(entry, struct smw_mr, entry), pd,
					   &facts);
	rcu_read_unlock();
	/* A kernel consumer's region, once for each of its I/Os: no window's business. */
	if (!reason && !facts.is_window)
		return SMW_OK;
	smw_count(link, reason ? SMW_COUNT_WINDOW_INVALIDATE_ERROR :
				 SMW_COUNT_WINDOW_INVALIDATE);
	trace_smw_mw_invalidate(&link->ibdev, owner, &facts, bound_qpn, reason);
	return reason;
}
EXPORT_SYMBOL_IF_KUNIT(smw_window_invalidate);

/*
 * owner->lock is inside window->lock, so a window found on the list is looked
 * at again under its own lock; RCU keeps it in memory meanwhile.
 */
static bool release_one(struct smw_window_owner *owner)
{
	struct smw_window *window;

	rcu_read_lock();
	spin_lock_bh(&owner->lock);
	window = list_first_entry_or_null(&owner->windows, struct smw_window, owner_node);
	spin_unlock_bh(&owner->lock);
	if (window) {
		spin_lock_bh(&window->lock);
		if (window->owner == owner)
			revoke(window);
		spin_unlock_bh(&window->lock);
	}
	rcu_read_unlock();
	return window;
}

void smw_window_release_all(struct smw_window_owner *owner)
{
	while (release_one(owner))
		cond_resched();
}
EXPORT_SYMBOL_IF_KUNIT(smw_window_release_all);

static void facts_of_access(struct smw_access_facts *facts,
			    const struct smw_access *access)
{
	facts->used_key = access->rkey;
	facts->qp_rights = access->qp_rights;
	facts->needed = access->needed;
	facts->va = access->va;
	facts->bytes = access->bytes;
}

u64 smw_window_accesses(const struct smw_window *window)
{
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += READ_ONCE(*per_cpu_ptr(window->accesses, cpu));
	return total;
}
EXPORT_SYMBOL_IF_KUNIT(smw_window_accesses);

/* All that the key names is a range too, now that the bounds are known. */
static void widen(struct smw_access_facts *facts, const struct smw_access *access)
{
	if (!access->whole)
		return;
	facts->va = facts->start;
	facts->bytes = facts->length;
}

/*
 * Over RC each refusal ends a connection, and over UC a peer that goes on is not
 * served well: they are counted in the window itself, approximately. What people
 * are told was compared is safe to look at only while the window is live and held.
 */
static void note_window_refusal(struct smw_link *link, struct smw_window *window,
				const struct smw_access *access,
				const struct smw_access_facts *facts,
				enum smw_reason reason)
{
	const struct smw_window_owner *owner = facts->live ? window->owner : NULL;

	WRITE_ONCE(window->refusals, READ_ONCE(window->refusals) + 1);
	WRITE_ONCE(window->last_refusal, reason);
	smw_count(link, SMW_COUNT_WINDOW_REFUSED);
	trace_smw_access_refused(&link->ibdev, access, facts,
				 facts->live ? window->pd : NULL,
				 owner ? owner->qpn : 0, reason);
}

/* Called with the window held. */
static struct smw_mr *judge_window(struct smw_link *link, struct smw_window *window,
				   const struct smw_access *access,
				   struct smw_access_facts *facts, u64 *offset,
				   enum smw_reason *reason)
{
	facts->is_window = true;
	facts->type = window->type;
	/* Pairs with the release in install(). */
	facts->live = smp_load_acquire(&window->live);
	facts->key = READ_ONCE(window->key);
	facts->same_pd = window->pd == access->pd;
	/* The rest stands still in a window that is live, and nowhere else. */
	if (facts->live) {
		facts->same_qp = window->owner == access->owner;
		facts->rights = window->rights;
		facts->start = window->start;
		facts->length = window->length;
	}
	widen(facts, access);
	*reason = smw_access_check(facts);
	if (*reason) {
		note_window_refusal(link, window, access, facts, *reason);
		return NULL;
	}
	this_cpu_inc(*window->accesses);
	*offset = window->offset + (facts->va - window->start);
	return window->mr;
}

/* Called with the region held. */
static struct smw_mr *judge_region(struct smw_link *link, struct smw_mr *mr,
				   const struct smw_access *access,
				   struct smw_access_facts *facts, u64 *offset,
				   enum smw_reason *reason)
{
	/* Pairs with the release in mr.c. */
	facts->live = smp_load_acquire(&mr->live);
	facts->key = READ_ONCE(mr->key);
	/* All this changes while it is not. */
	if (facts->live) {
		facts->same_pd = mr->ibmr.pd == access->pd;
		facts->rights = mr->rights;
		facts->start = mr->iova;
		facts->length = mr->length;
	}
	widen(facts, access);
	*reason = smw_access_check(facts);
	if (*reason) {
		trace_smw_access_refused(&link->ibdev, access, facts,
					 facts->live ? mr->ibmr.pd : NULL, 0, *reason);
		return NULL;
	}
	*offset = facts->va - mr->iova;
	return mr;
}

struct smw_mr *smw_access_begin(struct smw_link *link, const struct smw_access *access,
				u64 *offset, enum smw_reason *reason)
{
	struct smw_access_facts facts = {};
	struct smw_key_entry *entry;
	struct smw_window *window;
	struct smw_mr *mr = NULL;

	*reason = SMW_ACCESS_NO_KEY;
	facts_of_access(&facts, access);
	rcu_read_lock();
	entry = smw_keytab_find(&link->keys, smw_key_index(access->rkey));
	if (entry && entry->kind == SMW_KEY_WINDOW) {
		window = container_of(entry, struct smw_window, entry);
		smw_hold_take(SMW_HOLD_REMOTE, window);
		mr = judge_window(link, window, access, &facts, offset, reason);
	} else if (entry) {
		mr = container_of(entry, struct smw_mr, entry);
		smw_hold_take(SMW_HOLD_REMOTE, mr);
		mr = judge_region(link, mr, access, &facts, offset, reason);
	} else {
		trace_smw_access_refused(&link->ibdev, access, &facts, NULL, 0, *reason);
	}
	if (!mr)
		smw_access_end();
	rcu_read_unlock();
	return mr;
}
EXPORT_SYMBOL_IF_KUNIT(smw_access_begin);

void smw_access_end(void)
{
	smw_hold_drop(SMW_HOLD_REMOTE);
}
EXPORT_SYMBOL_IF_KUNIT(smw_access_end);

/* The window has its index, and so can be found. Only with its key can it be bound. */
static void window_publish(struct smw_link *link, struct smw_window *window)
{
	spin_lock_bh(&window->lock);
	window->alloc_key = smw_key_compose(window->entry.index, get_random_u32());
	WRITE_ONCE(window->key, window->alloc_key);
	window->dead = false;
	spin_unlock_bh(&window->lock);
	spin_lock(&link->windows_lock);
	list_add_tail(&window->link_node, &link->windows);
	spin_unlock(&link->windows_lock);
}

int smw_mw_alloc(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct smw_mw *mw = container_of(ibmw, struct smw_mw, ibmw);
	struct smw_link *link = smw_link_of(ibmw->device);
	struct smw_window *window;
	int err;

	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	err = smw_link_claim(link, SMW_OBJECT_MW, false, SMW_MAX_MW);
	if (err)
		return err;
	window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);
	if (!window) {
		err = -ENOMEM;
		goto err_release;
	}
	window->accesses = alloc_percpu_gfp(u64, GFP_KERNEL_ACCOUNT);
	if (!window->accesses) {
		err = -ENOMEM;
		goto err_free;
	}
	spin_lock_init(&window->lock);
	window->dead = true;
	window->pd = ibmw->pd;
	window->type = ibmw->type == IB_MW_TYPE_1 ? SMW_WINDOW_TYPE_1 : SMW_WINDOW_TYPE_2;
	err = smw_keytab_insert(&link->keys, &window->entry, SMW_KEY_WINDOW);
	if (err)
		goto err_free_accesses;
	window_publish(link, window);
	mw->window = window;
	ibmw->rkey = window->alloc_key;
	return 0;

err_free_accesses:
	free_percpu(window->accesses);
err_free:
	kfree(window);
err_release:
	smw_link_release(link, SMW_OBJECT_MW, false);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(smw_mw_alloc);

int smw_mw_dealloc(struct ib_mw *ibmw)
{
	struct smw_window *window = container_of(ibmw, struct smw_mw, ibmw)->window;
	struct smw_link *link = smw_link_of(ibmw->device);

	static_assert(sizeof(*window) <= 256);

	spin_lock_bh(&window->lock);
	window->dead = true;
	revoke(window);
	spin_unlock_bh(&window->lock);
	smw_keytab_remove(&link->keys, &window->entry);
	spin_lock(&link->windows_lock);
	list_del(&window->link_node);
	spin_unlock(&link->windows_lock);
	/* Revoked and drained: nothing counts any more, and nobody reads it. */
	free_percpu(window->accesses);
	smw_link_release(link, SMW_OBJECT_MW, false);
	kfree_rcu(window, rcu);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(smw_mw_dealloc);
