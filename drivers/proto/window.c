// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rules of memory windows. Each check lists what is allowed, in the order
 * of Documentation/memory-windows.rst, and names the first rule that fails.
 */
#include <smw/window.h>

#include <smw/kunit.h>
#include <smw/range.h>

/*
 * The current key binds. Stock user space does not always know it for a type 2
 * window: a provider that never updates ibv_mw.rkey goes on posting the one
 * from the allocation, and a caller that stores the key it is about to bind
 * before it posts (pyverbs) makes the provider post that. Both name the same
 * window and grant nothing by themselves, so both bind too.
 */
static bool smw_bind_key_matches(const struct smw_bind_facts *facts)
{
	if (facts->posted_key == facts->window_key)
		return true;
	if (facts->type != SMW_WINDOW_TYPE_2)
		return false;
	return facts->posted_key == facts->alloc_key ||
	       (facts->posted_key & 0xff) == (facts->new_key & 0xff);
}

static u32 smw_bind_flags_allowed(u8 type)
{
	u32 allowed = SMW_WINDOW_RIGHTS | SMW_FLUSH_RIGHTS | SMW_WINDOW_NO_RIGHTS;

	if (type == SMW_WINDOW_TYPE_2)
		return allowed | SMW_ZERO_BASED;
	/* o10-36.2.2: type 1 is never zero based */
	return allowed;
}

static enum smw_reason smw_bind_check_region(const struct smw_bind_facts *facts)
{
	const u32 writing = SMW_REMOTE_WRITE | SMW_REMOTE_ATOMIC;

	if (!facts->region_live)
		return SMW_BIND_REGION;
	if (!facts->same_pd) /* C10-72 */
		return SMW_BIND_PD;
	if (facts->region_zero_based)
		return SMW_BIND_ZERO_BASED_REGION;
	if (!(facts->region_rights & SMW_MW_BIND)) /* C10-73 */
		return SMW_BIND_REGION_RIGHT;
	if ((facts->rights & writing) && /* C10-74 */
	    !(facts->region_rights & SMW_LOCAL_WRITE))
		return SMW_BIND_LOCAL_WRITE;
	if (facts->rights & SMW_FLUSH_RIGHTS & ~facts->region_rights)
		return SMW_BIND_FLUSH;
	if (facts->rights & ~smw_bind_flags_allowed(facts->type))
		return SMW_BIND_FLAGS;
	if (!facts->length) /* o10-37.2.40; for type 1 it unbinds */
		return SMW_BIND_LENGTH;
	if (!smw_range_within(facts->region_start, facts->region_length,
			      facts->addr, facts->length)) /* C10-75 */
		return SMW_BIND_RANGE;
	return SMW_OK;
}

enum smw_reason smw_bind_check(const struct smw_bind_facts *facts)
{
	if (!smw_bind_key_matches(facts))
		return SMW_BIND_KEY;
	if (facts->type == SMW_WINDOW_TYPE_2 && facts->state != SMW_WINDOW_FREE)
		return SMW_BIND_NOT_FREE; /* o10-37.2.30 */
	if (facts->type == SMW_WINDOW_TYPE_1 && !facts->length)
		return facts->same_pd ? SMW_OK : SMW_BIND_PD;
	return smw_bind_check_region(facts);
}
EXPORT_SYMBOL_IF_KUNIT(smw_bind_check);

/* All that is needed; an operation that needs nothing is none. */
static bool smw_grants(u32 rights, u32 needed)
{
	return needed && !(needed & ~rights);
}

enum smw_reason smw_access_check(const struct smw_access_facts *facts)
{
	if (facts->used_key != facts->key)
		return SMW_ACCESS_OLD_KEY;
	if (!facts->live)
		return SMW_ACCESS_UNBOUND;
	if (!facts->same_pd)
		return SMW_ACCESS_PD;
	if (facts->is_window && facts->type != SMW_WINDOW_TYPE_1 &&
	    !facts->same_qp)
		return SMW_ACCESS_QP;
	if (!smw_grants(facts->rights, facts->needed))
		return SMW_ACCESS_RIGHT;
	if (!smw_grants(facts->qp_rights, facts->needed))
		return SMW_ACCESS_QP_RIGHT;
	if (!smw_range_within(facts->start, facts->length, facts->va,
			      facts->bytes))
		return SMW_ACCESS_RANGE;
	return SMW_OK;
}
EXPORT_SYMBOL_IF_KUNIT(smw_access_check);

/* The second of two who invalidate it, owner and peer, finds it invalid already. */
static enum smw_reason check_region(const struct smw_invalidate_facts *facts)
{
	if (!facts->is_fast)
		return SMW_INV_REGION;
	return facts->same_pd ? SMW_OK : SMW_INV_PD;
}

enum smw_reason smw_invalidate_check(const struct smw_invalidate_facts *facts)
{
	if (facts->used_key != facts->key)
		return SMW_INV_KEY;
	if (!facts->is_window)
		return check_region(facts);
	if (facts->type != SMW_WINDOW_TYPE_2) /* o10-37.2.26 */
		return SMW_INV_TYPE_1;
	if (facts->state != SMW_WINDOW_VALID)
		return SMW_INV_FREE;
	if (!facts->same_pd)
		return SMW_INV_PD;
	if (!facts->same_qp)
		return SMW_INV_QP;
	return SMW_OK;
}
EXPORT_SYMBOL_IF_KUNIT(smw_invalidate_check);
