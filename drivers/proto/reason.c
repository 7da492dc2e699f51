// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The one table that says what a reason means to the peer, to the
 * application and to the operator.
 */
#include <smw/reason.h>

#include <linux/array_size.h>
#include <linux/build_bug.h>

#include <smw/kunit.h>
#include <smw/retry.h>

/* Work completion statuses; the values are those of enum ibv_wc_status. */
enum {
	WC_NONE = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	/*
	 * "Memory management operation error" in the verbs' words: a bind, a local
	 * invalidate or a fast registration that fails.
	 */
	WC_MW_BIND_ERR = 6,
	WC_REM_INV_REQ_ERR = 9,
};

/* What the rows of a family have in common. */
#define UNCOUNTED \
	.counter = SMW_COUNTERS
#define MALFORMED \
	.counter = SMW_COUNT_MALFORMED
#define DROPPED \
	.counter = SMW_COUNT_DROPPED
#define INVALID_REQUEST \
	.answer = SMW_ANSWER_NAK, \
	.nak = SMW_NAK_INVALID_REQUEST, \
	.event = SMW_EVENT_QP_REQUEST, \
	.counter = SMW_COUNT_INVALID_REQUEST
#define ACCESS_REFUSED \
	.answer = SMW_ANSWER_NAK, \
	.nak = SMW_NAK_REMOTE_ACCESS, \
	.event = SMW_EVENT_QP_ACCESS, \
	.counter = SMW_COUNT_ACCESS_REFUSED
#define LOCAL_PROTECTION \
	.send_status = WC_LOC_PROT_ERR, \
	.counter = SMW_COUNTERS
/* Binds and invalidates are counted where they are done, with those that succeed. */
#define BIND_ERROR \
	.send_status = WC_MW_BIND_ERR, \
	.counter = SMW_COUNTERS
/* At the responder a failed SEND_WITH_INV is class J: neither ACK nor NAK. */
#define INVALIDATE_ERROR \
	.answer = SMW_ANSWER_SILENT_ERROR, \
	.recv_status = WC_REM_INV_REQ_ERR, \
	.send_status = WC_MW_BIND_ERR, \
	.counter = SMW_COUNTERS
#define REGISTRATION_ERROR \
	.send_status = WC_MW_BIND_ERR, \
	.counter = SMW_COUNTERS
#define BAD_WORK_REQUEST \
	.send_status = WC_LOC_QP_OP_ERR, \
	.counter = SMW_COUNTERS

static const struct smw_reason_info smw_reasons[] = {
	[SMW_OK] = {
		"ok", "nothing is wrong", UNCOUNTED,
	},

	[SMW_DROP_TRUNCATED] = {
		"truncated", "packet is shorter than its headers and ICRC",
		MALFORMED,
	},
	[SMW_DROP_VERSION] = {
		"version", "transport header version is not 0", MALFORMED,
	},
	[SMW_DROP_OPCODE] = {
		"opcode", "opcode is unknown or of another transport service",
		MALFORMED,
	},
	[SMW_DROP_PAD] = {
		"pad", "payload and padding do not fit together", MALFORMED,
	},
	[SMW_DROP_ICRC] = {
		"icrc", "invariant CRC is wrong",
		.counter = SMW_COUNT_ICRC_ERROR,
	},
	[SMW_DROP_QKEY] = {
		"qkey", "queue key is not the datagram queue pair's",
		.counter = SMW_COUNT_QKEY_VIOLATION,
	},
	[SMW_DROP_ADDRESS] = {
		"address", "packet is not between the queue pair's addresses",
		DROPPED,
	},
	[SMW_DROP_PKEY] = {
		"pkey", "partition key does not match",
		.counter = SMW_COUNT_PKEY_VIOLATION,
	},
	[SMW_DROP_STATE] = {
		"state", "queue pair takes no such packet in its state",
		DROPPED,
	},
	[SMW_DROP_NO_RESOURCE] = {
		"no-resource", "duplicate READ or atomic is no longer remembered",
		DROPPED,
	},
	/* It is the sender's fault, and completes its request. */
	[SMW_DROP_UNSENT] = {
		"unsent", "sender on this host could not read its own payload",
		UNCOUNTED,
	},

	[SMW_DUPLICATE] = {
		/* The answer is that of the request. */
		"duplicate", "request was seen before",
		.counter = SMW_COUNT_DUPLICATE_REQUEST,
	},
	[SMW_OUT_OF_SEQUENCE] = {
		"out-of-sequence", "a request before this one is missing",
		.answer = SMW_ANSWER_NAK,
		.nak = SMW_NAK_PSN_SEQUENCE,
		.counter = SMW_COUNT_OUT_OF_SEQUENCE,
	},
	[SMW_BAD_ORDER] = {
		"bad-order", "opcode cannot follow the one before",
		INVALID_REQUEST,
	},
	[SMW_BAD_LENGTH] = {
		"bad-length", "payload is not as long as opcode or RETH demand",
		INVALID_REQUEST,
	},
	[SMW_BAD_RD_ATOMIC] = {
		"bad-rd-atomic", "more READs and atomics than the responder's depth",
		INVALID_REQUEST,
	},
	[SMW_BAD_ALIGNMENT] = {
		"bad-alignment", "atomic target is not 8-byte aligned",
		INVALID_REQUEST,
	},
	[SMW_BAD_FLUSH] = {
		"bad-flush", "FLUSH of a placement, selectivity or length there is not",
		INVALID_REQUEST,
	},
	[SMW_BAD_MESSAGE] = {
		"bad-message", "message is longer than 2^31 bytes",
		INVALID_REQUEST,
	},

	[SMW_RNR] = {
		"rnr", "no receive is posted",
		.answer = SMW_ANSWER_RNR,
		.counter = SMW_COUNT_RNR_NAK_SENT,
	},
	/* An error in a receive is told by its completion, not by an event. */
	[SMW_RECV_TOO_SHORT] = {
		"recv-too-short", "message is longer than the posted receive",
		.answer = SMW_ANSWER_NAK,
		.nak = SMW_NAK_INVALID_REQUEST,
		.recv_status = WC_LOC_LEN_ERR,
		.counter = SMW_COUNT_INVALID_REQUEST,
	},
	[SMW_RECV_PROTECTION] = {
		"recv-protection", "memory of the posted receive is not usable",
		.answer = SMW_ANSWER_NAK,
		.nak = SMW_NAK_REMOTE_OPERATIONAL,
		.recv_status = WC_LOC_PROT_ERR,
		UNCOUNTED,
	},

	[SMW_ACCESS_NO_KEY] = {
		"access-no-key", "no window or region has this key's index",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_OLD_KEY] = {
		"access-old-key", "key is not the current one of its index",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_UNBOUND] = {
		"access-unbound", "window is not bound or region is going away",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_PD] = {
		"access-pd", "window or region is of another protection domain",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_QP] = {
		"access-qp", "type 2 window is bound to another queue pair",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_RIGHT] = {
		"access-right", "window or region does not grant the operation",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_QP_RIGHT] = {
		"access-qp-right", "queue pair does not grant the operation",
		ACCESS_REFUSED,
	},
	[SMW_ACCESS_RANGE] = {
		"access-range", "a byte lies outside the window or region",
		ACCESS_REFUSED,
	},

	[SMW_LOCAL_NO_KEY] = {
		"local-no-key", "lkey names no live region", LOCAL_PROTECTION,
	},
	[SMW_LOCAL_PD] = {
		"local-pd", "lkey is of another protection domain",
		LOCAL_PROTECTION,
	},
	[SMW_LOCAL_RIGHT] = {
		"local-right", "region does not grant local write",
		LOCAL_PROTECTION,
	},
	[SMW_LOCAL_RANGE] = {
		"local-range", "a byte lies outside the region",
		LOCAL_PROTECTION,
	},

	[SMW_BIND_NO_WINDOW] = {
		"bind-no-window", "no window has this key's index", BIND_ERROR,
	},
	[SMW_BIND_KEY] = {
		"bind-key", "key is not the window's current one", BIND_ERROR,
	},
	[SMW_BIND_NOT_FREE] = {
		"bind-not-free", "type 2 window is bound already", BIND_ERROR,
	},
	[SMW_BIND_PD] = {
		"bind-pd",
		"window, region and queue pair are not of one protection domain",
		BIND_ERROR,
	},
	[SMW_BIND_REGION] = {
		"bind-region", "lkey names no live region", BIND_ERROR,
	},
	[SMW_BIND_ZERO_BASED_REGION] = {
		"bind-zero-based-region", "region is zero based", BIND_ERROR,
	},
	[SMW_BIND_REGION_RIGHT] = {
		"bind-region-right", "region does not allow windows", BIND_ERROR,
	},
	[SMW_BIND_LOCAL_WRITE] = {
		"bind-local-write",
		"remote write and atomic need local write in the region",
		BIND_ERROR,
	},
	[SMW_BIND_FLUSH] = {
		"bind-flush", "region does not have the FLUSH rights", BIND_ERROR,
	},
	[SMW_BIND_FLAGS] = {
		"bind-flags", "access flags are not allowed for the window type",
		BIND_ERROR,
	},
	[SMW_BIND_RANGE] = {
		"bind-range", "range is not inside the region", BIND_ERROR,
	},
	[SMW_BIND_LENGTH] = {
		"bind-length", "type 2 window of length 0", BIND_ERROR,
	},

	[SMW_INV_NO_KEY] = {
		"inv-no-key", "no window or region has this key's index",
		INVALIDATE_ERROR,
	},
	[SMW_INV_KEY] = {
		"inv-key", "key is not the current one of its index",
		INVALIDATE_ERROR,
	},
	[SMW_INV_TYPE_1] = {
		"inv-type-1", "type 1 window is unbound by a bind only",
		INVALIDATE_ERROR,
	},
	[SMW_INV_REGION] = {
		"inv-region", "a user's region is not invalidated by key",
		INVALIDATE_ERROR,
	},
	[SMW_INV_FREE] = {
		"inv-free", "window is Free already", INVALIDATE_ERROR,
	},
	[SMW_INV_PD] = {
		"inv-pd", "window or region is of another protection domain",
		INVALIDATE_ERROR,
	},
	[SMW_INV_QP] = {
		"inv-qp", "window is bound to another queue pair",
		INVALIDATE_ERROR,
	},

	[SMW_REG_REGION] = {
		"reg-region", "key names no region for fast registration",
		REGISTRATION_ERROR,
	},
	[SMW_REG_PD] = {
		"reg-pd", "region is of another protection domain", REGISTRATION_ERROR,
	},
	[SMW_REG_IN_USE] = {
		"reg-in-use", "region is registered already", REGISTRATION_ERROR,
	},
	[SMW_REG_RIGHT] = {
		"reg-right", "access flags are not those of fast registration",
		REGISTRATION_ERROR,
	},
	[SMW_REG_RANGE] = {
		"reg-range", "a byte of the range has no mapped page",
		REGISTRATION_ERROR,
	},

	[SMW_WQE_OPCODE] = {
		"wqe-opcode", "work request opcode is not one a user may post",
		BAD_WORK_REQUEST,
	},
	[SMW_WQE_SGES] = {
		"wqe-sges", "more sges than the queue was made for",
		BAD_WORK_REQUEST,
	},
	[SMW_WQE_FLUSH] = {
		"wqe-flush", "FLUSH of a placement, selectivity or length there is not",
		BAD_WORK_REQUEST,
	},
	[SMW_WQE_RD_ATOMIC] = {
		"wqe-rd-atomic", "READ or atomic on a queue pair that may have none",
		BAD_WORK_REQUEST,
	},
	[SMW_WQE_AH] = {
		"wqe-ah", "no address handle of the queue pair's domain has this number",
		BAD_WORK_REQUEST,
	},
	[SMW_WQE_LENGTH] = {
		"wqe-length", "inline, atomic or message length is out of range",
		.send_status = WC_LOC_LEN_ERR,
		UNCOUNTED,
	},
};

/* A reason added at the end needs its row; kunit/ looks for holes. */
static_assert(ARRAY_SIZE(smw_reasons) == SMW_REASON_COUNT);

const struct smw_reason_info *smw_reason_info(enum smw_reason reason)
{
	u32 row = reason;

	return &smw_reasons[row < ARRAY_SIZE(smw_reasons) ? row : SMW_OK];
}
EXPORT_SYMBOL_IF_KUNIT(smw_reason_info);
