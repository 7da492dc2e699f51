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
		      { SMW_ZERO_BASED, "ZERO_BASED" })

/*
 * A peer asked for [va, va + bytes) with a key and did not get it. Start,
 * length and rights are those of the window or region that the key's index
 * names, and 0 where it names none.
 */
TRACE_EVENT(smw_access_refused,
	    TP_PROTO(const struct ib_device *ibdev, u32 rkey, u64 va, u64 bytes,
		     u32 needed, u64 start, u64 length, u32 rights,
		     enum smw_reason reason),
	    TP_ARGS(ibdev, rkey, va, bytes, needed, start, length, rights, reason),
	    TP_STRUCT__entry(__string(device, dev_name(&ibdev->dev))
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u64, va)
			     __field(u64, bytes)
			     __field(u64, start)
			     __field(u64, length)
			     __field(u32, rkey)
			     __field(u32, needed)
			     __field(u32, rights)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->va = va;
			   __entry->bytes = bytes;
			   __entry->start = start;
			   __entry->length = length;
			   __entry->rkey = rkey;
			   __entry->needed = needed;
			   __entry->rights = rights;),
	    TP_printk("%s: rkey 0x%08x: %s: needed %s on 0x%llx+0x%llx, granted %s on 0x%llx+0x%llx",
		      __get_str(device), __entry->rkey, __get_str(reason),
		      smw_show_rights(__entry->needed), __entry->va, __entry->bytes,
		      smw_show_rights(__entry->rights), __entry->start,
		      __entry->length)
);

/* A bind was carried out (ok) or refused. */
TRACE_EVENT(smw_mw_bind,
	    TP_PROTO(const struct ib_device *ibdev, const struct smw_bind *bind,
		     enum smw_reason reason),
	    TP_ARGS(ibdev, bind, reason),
	    TP_STRUCT__entry(__string(device, dev_name(&ibdev->dev))
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u64, addr)
			     __field(u64, length)
			     __field(u32, lkey)
			     __field(u32, window_key)
			     __field(u32, new_key)
			     __field(u32, rights)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->addr = bind->addr;
			   __entry->length = bind->length;
			   __entry->lkey = bind->lkey;
			   __entry->window_key = bind->window_key;
			   __entry->new_key = bind->new_key;
			   __entry->rights = bind->rights;),
	    TP_printk("%s: window 0x%08x: %s: new key byte 0x%02x, lkey 0x%08x, 0x%llx+0x%llx, %s",
		      __get_str(device), __entry->window_key, __get_str(reason),
		      __entry->new_key & 0xff, __entry->lkey, __entry->addr,
		      __entry->length, smw_show_rights(__entry->rights))
);

/* A LOCAL_INV or the invalidate of a SEND was carried out (ok) or refused. */
TRACE_EVENT(smw_mw_invalidate,
	    TP_PROTO(const struct ib_device *ibdev, u32 key, enum smw_reason reason),
	    TP_ARGS(ibdev, key, reason),
	    TP_STRUCT__entry(__string(device, dev_name(&ibdev->dev))
			     __string(reason, smw_reason_info(reason)->name)
			     __field(u32, key)),
	    TP_fast_assign(__assign_str(device);
			   __assign_str(reason);
			   __entry->key = key;),
	    TP_printk("%s: key 0x%08x: %s",
		      __get_str(device), __entry->key, __get_str(reason))
);

#endif /* SMW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH smw
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
