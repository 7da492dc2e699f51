// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the responder answers, as packets: acknowledgements, and READ responses
 * turn by turn.
 */
#include <smw/wire.h>

#include <smw/carrier.h>
#include <smw/psn.h>
#include <smw/rd_atomic.h>
#include <smw/responder.h>
#include <smw/retry.h>

/* Opcode of a READ response by its place: in the middle, first, last, only. */
static const u8 read_response_opcodes[] = {
	SMW_RC_READ_RESPONSE_MIDDLE,
	SMW_RC_READ_RESPONSE_FIRST,
	SMW_RC_READ_RESPONSE_LAST,
	SMW_RC_READ_RESPONSE_ONLY,
};

static void send_answer(struct smw_qp *qp, u8 opcode, const struct smw_response *response)
{
	struct smw_packet packet = {
		.opcode = opcode,
		.pkey = SMW_PKEY,
		.qpn = qp->dest_qpn,
		.psn = response->psn,
		.syndrome = response->syndrome,
		.msn = response->msn,
		.original = response->original,
	};

	packet.op = smw_opcode_lookup(opcode);
	smw_carrier_send(qp, SMW_ROUTE_RESPONDER, &packet, NULL);
}

/* Send one READ response, or the NAK that takes its place. */
static void send_read_response(struct smw_qp *qp, bool first)
{
	struct smw_responder *rsp = &qp->responder;
	const struct smw_rd_atomic *read = rsp->stream;
	u32 done = ((rsp->stream_psn - read->first_psn) & SMW_PSN_MASK) * qp->mtu;
	u32 length = smw_rd_atomic_response_length(read);
	u32 bytes = min(length - done, qp->mtu);
	bool last = done + bytes == length;
	struct smw_response refusal = {};
	struct smw_cursor source;
	struct smw_packet packet = {
		.opcode = read_response_opcodes[first | last << 1],
		.pkey = SMW_PKEY,
		.qpn = qp->dest_qpn,
		.psn = rsp->stream_psn,
		.syndrome = SMW_AETH_ACK_NO_CREDIT,
		.msn = read->msn,
		.payload_len = bytes,
	};

	if (bytes && !smw_responder_read(qp, read, rsp->stream_psn, bytes, &source,
					 &refusal)) {
		rsp->stream = NULL;
		smw_wire_answer(qp, &refusal);
		return;
	}
	packet.op = smw_opcode_lookup(packet.opcode);
	smw_carrier_send(qp, SMW_ROUTE_RESPONDER, &packet, bytes ? &source : NULL);
	rsp->stream_psn = smw_psn_add(rsp->stream_psn, 1);
	if (last)
		rsp->stream = NULL;
}

static void stream_turn(struct smw_qp *qp, bool first)
{
	struct smw_responder *rsp = &qp->responder;
	u32 budget = SMW_TURN_BYTES / qp->mtu;

	for (; rsp->stream && budget; budget--, first = false)
		send_read_response(qp, first);
}

void smw_wire_stream(struct smw_qp *qp)
{
	stream_turn(qp, false);
}

void smw_wire_answer(struct smw_qp *qp, const struct smw_response *response)
{
	struct smw_responder *rsp = &qp->responder;

	switch (response->kind) {
	case SMW_RESPONSE_ACK:
		send_answer(qp, SMW_RC_ACKNOWLEDGE, response);
		break;
	case SMW_RESPONSE_ATOMIC:
		send_answer(qp, SMW_RC_ATOMIC_ACKNOWLEDGE, response);
		break;
	case SMW_RESPONSE_READ:
		rsp->stream = response->rd_atomic;
		rsp->stream_psn = response->psn;
		stream_turn(qp, true);
		break;
	default:
		break;
	}
}
