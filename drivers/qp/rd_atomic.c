// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/rd_atomic.h>

#include <linux/atomic.h>

#include <smw/psn.h>
#include <smw/respond.h>
#include <smw/retry.h>

/* Judge a range without touching it; a READ is judged again part by part. */
static enum smw_reason check_read(struct smw_qp *qp, u32 rkey, u64 va, u32 length)
{
	enum smw_reason reason = SMW_OK;
	u64 offset;

	if (length && smw_responder_access(qp, SMW_REMOTE_READ, rkey, va, length, &offset, &reason))
		smw_access_end();
	return reason;
}

static struct smw_rd_atomic *remember(struct smw_qp *qp,
				      const struct smw_packet *packet, u32 packets)
{
	struct smw_responder *rsp = &qp->responder;
	struct smw_rd_atomic *entry = &rsp->rd_atomics[rsp->rd_atomic_next];

	smw_responder_accepted(qp);
	rsp->rd_atomic_next = (rsp->rd_atomic_next + 1) % rsp->rd_atomic_count;
	entry->kind = packet->op->kind;
	entry->repeated = false;
	entry->first_psn = packet->psn;
	entry->last_psn = smw_psn_add(packet->psn, packets - 1);
	entry->va = packet->va;
	entry->rkey = packet->rkey;
	entry->length = packet->length;
	rsp->psn = smw_psn_add(entry->last_psn, 1);
	rsp->msn = (rsp->msn + 1) & SMW_PSN_MASK;
	entry->msn = rsp->msn;
	return entry;
}

static enum smw_reason receive_read(struct smw_qp *qp, const struct smw_packet *packet,
				    struct smw_response *response)
{
	struct smw_rd_atomic *read;
	enum smw_reason reason;

	if (packet->length > SMW_MAX_MESSAGE)
		return SMW_BAD_MESSAGE;
	reason = check_read(qp, packet->rkey, packet->va, packet->length);
	if (reason)
		return reason;
	read = remember(qp, packet, smw_packet_count(packet->length, qp->mtu));
	smw_response_set(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, packet->psn,
			 read->msn);
	response->rd_atomic = read;
	return SMW_OK;
}

static u64 execute_atomic(u64 *target, const struct smw_packet *packet)
{
	if (packet->opcode == SMW_RC_COMPARE_SWAP)
		return cmpxchg64(target, packet->compare, packet->swap_add);
	return atomic64_fetch_add(packet->swap_add, (atomic64_t *)target);
}

/*
 * The device promises IB_ATOMIC_GLOB: the operation is one instruction on the
 * memory itself, so it is atomic against the CPU and every other QP. That asks
 * for alignment of the address in memory too, which an iova of other low bits
 * can take away.
 */
static enum smw_reason access_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				     u64 *original, bool replay)
{
	enum smw_reason reason;
	u32 run = sizeof(u64);
	struct smw_mr *mr;
	u64 offset;
	u64 *target;

	if (packet->va & (sizeof(u64) - 1))
		return SMW_BAD_ALIGNMENT;
	mr = smw_responder_access(qp, SMW_REMOTE_ATOMIC, packet->rkey, packet->va, sizeof(u64),
				  &offset, &reason);
	if (!mr)
		return reason;
	target = smw_mr_run(mr, offset, &run);
	if (!IS_ALIGNED((uintptr_t)target, sizeof(u64)))
		reason = SMW_BAD_ALIGNMENT;
	else if (!replay)
		*original = execute_atomic(target, packet);
	smw_access_end();
	return reason;
}

static void answer_atomic(const struct smw_rd_atomic *entry, struct smw_response *response)
{
	smw_response_set(response, SMW_RESPONSE_ATOMIC, SMW_AETH_ACK_NO_CREDIT, entry->first_psn,
			 entry->msn);
	response->original = entry->original;
}

static enum smw_reason receive_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				      struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	enum smw_reason reason;
	u64 original;

	reason = access_atomic(qp, packet, &original, false);
	if (reason)
		return reason;
	entry = remember(qp, packet, 1);
	entry->original = original;
	answer_atomic(entry, response);
	return SMW_OK;
}

/* Find the eight aligned bytes of an ATOMIC WRITE; the access is held. */
static enum smw_reason begin_atomic_write(struct smw_qp *qp,
					  const struct smw_packet *packet, u64 **target)
{
	enum smw_reason reason;
	u32 run = sizeof(u64);
	struct smw_mr *mr;
	u64 offset;

	if (packet->va & (sizeof(u64) - 1))
		return SMW_BAD_ALIGNMENT;
	if (packet->length != sizeof(u64) || packet->payload_len != sizeof(u64))
		return SMW_BAD_LENGTH;
	mr = smw_responder_access(qp, SMW_REMOTE_WRITE, packet->rkey, packet->va, sizeof(u64),
				  &offset, &reason);
	if (!mr)
		return reason;
	*target = smw_mr_run(mr, offset, &run);
	if (IS_ALIGNED((uintptr_t)*target, sizeof(u64)))
		return SMW_OK;
	smw_access_end();
	return SMW_BAD_ALIGNMENT;
}

/* Of an ATOMIC WRITE or a FLUSH: the answer is a READ response without data. */
static void answer_empty(struct smw_rd_atomic *entry, struct smw_response *response)
{
	smw_response_set(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, entry->first_psn,
			 entry->msn);
	response->rd_atomic = entry;
}

static enum smw_reason receive_atomic_write(struct smw_qp *qp,
					    const struct smw_packet *packet,
					    struct smw_cursor *payload,
					    struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	struct smw_cursor value_cursor;
	enum smw_reason reason;
	u64 *target;
	u64 value;

	reason = begin_atomic_write(qp, packet, &target);
	if (reason)
		return reason;
	smw_cursor_flat(&value_cursor, &value);
	if (smw_copy(&value_cursor, payload, sizeof(value)))
		/* All eight bytes at once, after what was written before (IBTA 9.4.7). */
		smp_store_release(target, value);
	smw_access_end();
	if (payload->fault)
		return SMW_DROP_UNSENT;
	entry = remember(qp, packet, 1);
	answer_empty(entry, response);
	return SMW_OK;
}

static u32 flush_rights(u8 placement)
{
	u32 rights = 0;

	if (placement & SMW_PLACE_GLOBAL)
		rights |= SMW_FLUSH_GLOBAL;
	if (placement & SMW_PLACE_PERSISTENT)
		rights |= SMW_FLUSH_PERSISTENT;
	return rights;
}

/* The key is checked even of a range of no bytes (oA19-13). */
static enum smw_reason check_flush(struct smw_qp *qp, const struct smw_packet *packet)
{
	u32 needed = flush_rights(packet->placement);
	enum smw_reason reason;
	struct smw_mr *mr;
	u64 offset;

	if (!smw_flush_exists(packet->placement, packet->selectivity, packet->length))
		return SMW_BAD_FLUSH;
	if (packet->selectivity == SMW_SELECT_REGION)
		mr = smw_responder_access_whole(qp, needed, packet->rkey, &reason);
	else
		mr = smw_responder_access(qp, needed, packet->rkey, packet->va, packet->length,
					  &offset, &reason);
	if (mr)
		smw_access_end();
	return reason;
}

static enum smw_reason receive_flush(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	enum smw_reason reason;

	reason = check_flush(qp, packet);
	if (reason)
		return reason;
	/*
	 * Global visibility (oA19-1): what came before on this queue pair was stored by
	 * CPUs, under responder.lock, in memory that is coherent. So it is enough that
	 * the stores are done before the response can be seen, by whatever device.
	 */
	wmb();
	entry = remember(qp, packet, 1);
	answer_empty(entry, response);
	return SMW_OK;
}

/* Newest first: PSNs come round again, and an old entry may hold the same. */
static struct smw_rd_atomic *find_rd_atomic(struct smw_responder *rsp, u32 kinds, u32 psn)
{
	u32 count = rsp->rd_atomic_count;
	u32 i;

	for (i = 1; i <= count; i++) {
		struct smw_rd_atomic *entry =
			&rsp->rd_atomics[(rsp->rd_atomic_next + count - i) % count];

		if (kinds & BIT(entry->kind) && smw_psn_diff(psn, entry->first_psn) >= 0 &&
		    smw_psn_diff(psn, entry->last_psn) <= 0)
			return entry;
	}
	return NULL;
}

struct smw_rd_atomic *smw_rd_atomic_find_read(struct smw_qp *qp, u32 psn)
{
	const u32 kinds = BIT(SMW_KIND_READ) | BIT(SMW_KIND_ATOMIC_WRITE) | BIT(SMW_KIND_FLUSH);

	return find_rd_atomic(&qp->responder, kinds, psn);
}

/*
 * A READ may be asked again from its beginning or from any of its packets, and
 * for nothing else: neither another key nor another range.
 */
static enum smw_reason repeat_read(struct smw_qp *qp, const struct smw_packet *packet,
				   struct smw_response *response)
{
	struct smw_rd_atomic *read;
	enum smw_reason reason;
	u32 done;

	read = find_rd_atomic(&qp->responder, BIT(SMW_KIND_READ), packet->psn);
	if (!read)
		return SMW_DROP_NO_RESOURCE;
	done = ((packet->psn - read->first_psn) & SMW_PSN_MASK) * qp->mtu;
	if (packet->rkey != read->rkey || packet->va != read->va + done ||
	    packet->length != read->length - done)
		return SMW_DROP_NO_RESOURCE;
	reason = check_read(qp, packet->rkey, packet->va, packet->length);
	if (reason)
		return reason;
	read->repeated = true;
	smw_response_set(response, SMW_RESPONSE_READ, SMW_AETH_ACK_NO_CREDIT, packet->psn,
			 read->msn);
	response->rd_atomic = read;
	return SMW_OK;
}

/* An atomic is never executed twice; its result is sent again. */
static enum smw_reason repeat_atomic(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_response *response)
{
	const struct smw_rd_atomic *entry;
	enum smw_reason reason;

	entry = find_rd_atomic(&qp->responder, BIT(SMW_KIND_ATOMIC), packet->psn);
	if (!entry || entry->va != packet->va || entry->rkey != packet->rkey)
		return SMW_DROP_NO_RESOURCE;
	reason = access_atomic(qp, packet, NULL, true);
	if (!reason)
		answer_atomic(entry, response);
	return reason;
}

static enum smw_reason repeat_atomic_write(struct smw_qp *qp,
					   const struct smw_packet *packet,
					   struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	enum smw_reason reason;
	u64 *target;

	entry = find_rd_atomic(&qp->responder, BIT(SMW_KIND_ATOMIC_WRITE), packet->psn);
	if (!entry || entry->va != packet->va || entry->rkey != packet->rkey)
		return SMW_DROP_NO_RESOURCE;
	reason = begin_atomic_write(qp, packet, &target);
	if (reason)
		return reason;
	smw_access_end();
	answer_empty(entry, response);
	return SMW_OK;
}

/* The guarantee was given the first time, and cannot be taken back (oA19-14, oA19-15). */
static enum smw_reason repeat_flush(struct smw_qp *qp, const struct smw_packet *packet,
				    struct smw_response *response)
{
	struct smw_rd_atomic *entry;
	enum smw_reason reason;

	entry = find_rd_atomic(&qp->responder, BIT(SMW_KIND_FLUSH), packet->psn);
	if (!entry || entry->va != packet->va || entry->rkey != packet->rkey ||
	    entry->length != packet->length)
		return SMW_DROP_NO_RESOURCE;
	reason = check_flush(qp, packet);
	if (!reason)
		answer_empty(entry, response);
	return reason;
}

enum smw_reason smw_rd_atomic_receive(struct smw_qp *qp, const struct smw_packet *packet,
				      struct smw_cursor *payload,
				      struct smw_response *response)
{
	if (!qp->responder.rd_atomic_count)
		return SMW_BAD_RD_ATOMIC;
	switch (packet->op->kind) {
	case SMW_KIND_READ:
		return receive_read(qp, packet, response);
	case SMW_KIND_ATOMIC:
		return receive_atomic(qp, packet, response);
	case SMW_KIND_ATOMIC_WRITE:
		return receive_atomic_write(qp, packet, payload, response);
	case SMW_KIND_FLUSH:
		return receive_flush(qp, packet, response);
	default:
		return SMW_DROP_OPCODE;
	}
}

enum smw_reason smw_rd_atomic_repeat(struct smw_qp *qp, const struct smw_packet *packet,
				     struct smw_response *response)
{
	switch (packet->op->kind) {
	case SMW_KIND_READ:
		return repeat_read(qp, packet, response);
	case SMW_KIND_ATOMIC:
		return repeat_atomic(qp, packet, response);
	case SMW_KIND_ATOMIC_WRITE:
		return repeat_atomic_write(qp, packet, response);
	case SMW_KIND_FLUSH:
		return repeat_flush(qp, packet, response);
	default:
		return SMW_DROP_OPCODE;
	}
}
