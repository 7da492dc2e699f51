/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trace events: why an access, a bind or an invalidate was refused, with the
 * numbers that were compared.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smw

#if !defined(SMW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SMW_TRACE_H

#include <linux/tracepoint.h>
#include <linux/trace_events.h>
#include <rdma/ib_verbs.h>
#include <smw/link.h>
#include <smw/mw.h>
#include <smw/reason.h>

#define smw_show_rights(rights)						\
	__print_flags(rights, "|",					\
		      { SMW_LOCAL_WRITE, "LOCAL_WRITE" },		\
		      { SMW_REMOTE_WRITE, "REMOTE_WRITE" },		\
		      { SMW_REMOTE_READ, "REMOTE_READ" },		\
		      { SMW_REMOTE_ATOMIC, "REMOTE_ATOMIC" },		\
		      { SMW_MW_BIND, "MW_BIND" },			\
		      { SMW_ZERO_BASED, "ZERO_BASED" },			\
		      { SMW_FLUSH_GLOBAL, "FLUSH_GLOBAL" },		\
		      { SMW_FLUSH_PERSISTENT, "FLUSH_PERSISTENT" })

#define smw_show_state(state)						\
	__print_symbolic(state,						\
			 { SMW_WINDOW_FREE, "free" },			\
			 { SMW_WINDOW_VALID, "valid" })

/*
 * The device's name is the RDMA core's copy: dev_name() is freed by who renames the
 * device, and no event is waited for.
 */

/*
 * A peer asked for [va, va + bytes) with a key and did not get it. What is said
 * of the window or region that the key's index names is 0 where it names none.
 * Where it names none that is bound, its PD is -1 and its queue pair 0. PDs are
 * numbered as in `rdma resource show pd`.
 */
TRACE_EVENT(smw_access_refused,
	    TP_PROTO(const struct ib_device *ibdev, const struct smw_access *access,
		     const struct smw_access_facts *facts, const struct ib_pd *pd,
		     u32 bound_qpn, enum smw_reason reason),
	    TP_ARGS(ibdev, access, facts, pd, bound_qpn, reason),
	    TP_STRUCT__entry(__string(device, ibdev->name)
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u64, va)
			     __field(u64, bytes)
			     __field(u64, start)
			     __field(u64, length)
			     __field(u32, rkey)
			     __field(u32, needed)
			     __field(u32, rights)
			     __field(u32, qpn)
			     __field(u32, qp_pdn)
			     __field(u32, qp_rights)
			     __field(u32, key)
			     __field(s32, pdn)
			     __field(u32, bound_qpn)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->va = facts->va;
			   __entry->bytes = facts->bytes;
			   __entry->start = facts->start;
			   __entry->length = facts->length;
			   __entry->rkey = access->rkey;
			   __entry->needed = access->needed;
			   __entry->rights = facts->rights;
			   __entry->qpn = access->owner->qpn;
			   __entry->qp_pdn = access->pd->res.id;
			   __entry->qp_rights = access->qp_rights;
			   __entry->key = facts->key;
			   __entry->pdn = pd ? pd->res.id : -1;
			   __entry->bound_qpn = bound_qpn;),
	    TP_printk("%s: rkey 0x%08x: %s: needed %s on 0x%llx+0x%llx, granted %s on 0x%llx+0x%llx; qp %u of pd %u grants %s; key 0x%08x of pd %d, qp %u",
		      __get_str(device), __entry->rkey, __get_str(reason),
		      smw_show_rights(__entry->needed), __entry->va, __entry->bytes,
		      smw_show_rights(__entry->rights), __entry->start,
		      __entry->length, __entry->qpn, __entry->qp_pdn,
		      smw_show_rights(__entry->qp_rights), __entry->key,
		      __entry->pdn, __entry->bound_qpn)
);

/*
 * A bind was carried out (ok) or refused. Behind the semicolon is what the
 * request was compared with: the window before it, and the region, 0 where the
 * lkey names none.
 */
TRACE_EVENT(smw_mw_bind,
	    TP_PROTO(const struct ib_device *ibdev, const struct smw_window_owner *owner,
		     const struct smw_bind *bind, const struct smw_bind_facts *facts,
		     enum smw_reason reason),
	    TP_ARGS(ibdev, owner, bind, facts, reason),
	    TP_STRUCT__entry(__string(device, ibdev->name)
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u64, addr)
			     __field(u64, length)
			     __field(u64, start)
			     __field(u64, region_length)
			     __field(u32, lkey)
			     __field(u32, window_key)
			     __field(u32, new_key)
			     __field(u32, rights)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u32, region_rights)
			     __field(u8, type)
			     __field(u8, state)
			     __field(bool, same_pd)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->addr = bind->addr;
			   __entry->length = bind->length;
			   __entry->start = facts->region_start;
			   __entry->region_length = facts->region_length;
			   __entry->lkey = bind->lkey;
			   __entry->window_key = bind->window_key;
			   __entry->new_key = bind->new_key;
			   __entry->rights = bind->rights;
			   __entry->qpn = owner->qpn;
			   __entry->key = facts->window_key;
			   __entry->region_rights = facts->region_rights;
			   __entry->type = facts->type;
			   __entry->state = facts->state;
			   __entry->same_pd = facts->same_pd;),
	    TP_printk("%s: window 0x%08x: %s: new key byte 0x%02x, lkey 0x%08x, 0x%llx+0x%llx, %s; qp %u, key 0x%08x type %u %s, region %s on 0x%llx+0x%llx, %s",
		      __get_str(device), __entry->window_key, __get_str(reason),
		      __entry->new_key & 0xff, __entry->lkey, __entry->addr,
		      __entry->length, smw_show_rights(__entry->rights),
		      __entry->qpn, __entry->key, __entry->type,
		      smw_show_state(__entry->state),
		      smw_show_rights(__entry->region_rights), __entry->start,
		      __entry->region_length,
		      __entry->same_pd ? "one pd" : "other pd")
);

/* A LOCAL_INV or the invalidate of a SEND was carried out (ok) or refused. */
TRACE_EVENT(smw_mw_invalidate,
	    TP_PROTO(const struct ib_device *ibdev, const struct smw_window_owner *owner,
		     const struct smw_invalidate_facts *facts, u32 bound_qpn,
		     enum smw_reason reason),
	    TP_ARGS(ibdev, owner, facts, bound_qpn, reason),
	    TP_STRUCT__entry(__string(device, ibdev->name)
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u32, used_key)
			     __field(u32, qpn)
			     __field(u32, key)
			     __field(u32, bound_qpn)
			     __field(u8, type)
			     __field(u8, state)
			     __field(bool, same_pd)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->used_key = facts->used_key;
			   __entry->qpn = owner->qpn;
			   __entry->key = facts->key;
			   __entry->bound_qpn = bound_qpn;
			   __entry->type = facts->type;
			   __entry->state = facts->state;
			   __entry->same_pd = facts->same_pd;),
	    TP_printk("%s: key 0x%08x: %s; qp %u, key 0x%08x type %u %s, bound to qp %u, %s",
		      __get_str(device), __entry->used_key, __get_str(reason),
		      __entry->qpn, __entry->key, __entry->type,
		      smw_show_state(__entry->state), __entry->bound_qpn,
		      __entry->same_pd ? "one pd" : "other pd")
);

#endif /* SMW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH smw
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
