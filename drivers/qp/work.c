// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * When things happen later. Nothing else in the module schedules anything.
 */
#include <smw/work.h>

#include <smw/carrier.h>
#include <smw/compat.h>
#include <smw/requester.h>
#include <smw/responder.h>
#include <smw/retry.h>

/* How long until a queue pair in ERR is looked at again, milliseconds. */
#define FLUSH_DELAY_MIN 1u
#define FLUSH_DELAY_MAX 8192u

void smw_work_note(struct smw_qp *qp, enum smw_note note)
{
	set_bit(note, &qp->notes);
	if (!READ_ONCE(qp->dying))
		tasklet_schedule(&qp->task);
}

void smw_work_posted(struct smw_qp *qp, enum smw_note note)
{
	if (irqs_disabled()) {
		smw_work_note(qp, note);
		return;
	}
	/* Or ksoftirqd would have to be woken for it. */
	local_bh_disable();
	smw_work_note(qp, note);
	local_bh_enable();
}

static void start_timer(struct smw_qp *qp, struct hrtimer *timer, u64 ns)
{
	if (!READ_ONCE(qp->dying))
		hrtimer_start(timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

static void work_send(struct smw_qp *qp)
{
	bool more;

	spin_lock(&qp->requester.lock);
	more = smw_requester_run(qp);
	spin_unlock(&qp->requester.lock);
	if (more)
		smw_work_note(qp, SMW_NOTE_SEND);
}

static void work_stream(struct smw_qp *qp)
{
	bool more;

	spin_lock(&qp->responder.lock);
	more = smw_carrier_stream(qp);
	spin_unlock(&qp->responder.lock);
	if (more)
		smw_work_note(qp, SMW_NOTE_STREAM);
}

void smw_work_flush(struct smw_qp *qp)
{
	bool more = smw_requester_flush(qp);

	more |= smw_responder_flush(qp);
	if (more)
		smw_work_note(qp, SMW_NOTE_FLUSH);
}

bool smw_work_flush_wait(struct smw_qp *qp)
{
	smw_work_note(qp, SMW_NOTE_FLUSH);
	/* Waits for the turn; what is noted meanwhile stays for the next one. */
	tasklet_kill(&qp->task);
	return test_bit(SMW_NOTE_FLUSH, &qp->notes);
}

/*
 * User space posts receives without a system call, and who posts one in ERR may wait for
 * it to be flushed. So look again, less and less often: a receive waits no longer than the
 * queue pair has been in ERR, and thousands of them keep no CPU busy.
 */
static void await_receives(struct smw_qp *qp)
{
	if (qp->is_kernel || qp->responder.srq || smw_qp_state(qp) != IB_QPS_ERR)
		return;
	/* Whoever else asks for a flush does not make the wait longer. */
	if (hrtimer_is_queued(&qp->flush_timer) || test_bit(SMW_NOTE_FLUSH, &qp->notes))
		return;
	qp->flush_delay = clamp(2 * qp->flush_delay, FLUSH_DELAY_MIN, FLUSH_DELAY_MAX);
	start_timer(qp, &qp->flush_timer, (u64)qp->flush_delay * NSEC_PER_MSEC);
}

static enum hrtimer_restart flush_fired(struct hrtimer *timer)
{
	struct smw_qp *qp = container_of(timer, struct smw_qp, flush_timer);

	smw_work_note(qp, SMW_NOTE_FLUSH);
	return HRTIMER_NORESTART;
}

static void work_run(struct tasklet_struct *task)
{
	struct smw_qp *qp = from_tasklet(qp, task, task);
	unsigned long notes = xchg(&qp->notes, 0);

	if (notes & BIT(SMW_NOTE_STREAM))
		work_stream(qp);
	if (notes & BIT(SMW_NOTE_SEND))
		work_send(qp);
	if (notes & BIT(SMW_NOTE_FLUSH)) {
		smw_work_flush(qp);
		await_receives(qp);
	}
}

void smw_work_arm_retransmit(struct smw_qp *qp)
{
	struct smw_requester *req = &qp->requester;
	u64 ns = smw_ack_timeout_ns(qp->timeout);

	if (req->timer_armed || !ns)
		return;
	req->timer_armed = true;
	req->armed_progress = req->progress;
	start_timer(qp, &qp->retransmit_timer, ns);
}

/* No answer for a whole timeout: IBTA 9.7.6.1.3. */
static void retransmit(struct smw_qp *qp)
{
	smw_count(qp->link, SMW_COUNT_ACK_TIMEOUT);
	smw_requester_retry(qp);
	smw_work_note(qp, SMW_NOTE_SEND);
}

/* Not while an RNR NAK's time runs: what is sent after it arms the timer again. */
static bool awaits_answer(const struct smw_qp *qp)
{
	enum ib_qp_state state = smw_qp_state(qp);

	return (state == IB_QPS_RTS || state == IB_QPS_SQD) && !qp->requester.rnr_wait &&
	       qp->requester.una != qp->requester.highest;
}

static enum hrtimer_restart retransmit_fired(struct hrtimer *timer)
{
	struct smw_qp *qp = container_of(timer, struct smw_qp, retransmit_timer);
	struct smw_requester *req = &qp->requester;

	spin_lock(&req->lock);
	req->timer_armed = false;
	if (awaits_answer(qp)) {
		if (req->progress == req->armed_progress)
			retransmit(qp);
		smw_work_arm_retransmit(qp);
	}
	spin_unlock(&req->lock);
	return HRTIMER_NORESTART;
}

void smw_work_start_rnr(struct smw_qp *qp, u64 ns)
{
	qp->requester.rnr_wait = true;
	start_timer(qp, &qp->rnr_timer, ns);
}

static enum hrtimer_restart rnr_fired(struct hrtimer *timer)
{
	struct smw_qp *qp = container_of(timer, struct smw_qp, rnr_timer);

	spin_lock(&qp->requester.lock);
	/* Started again meanwhile, it fires again. */
	if (!hrtimer_is_queued(timer))
		qp->requester.rnr_wait = false;
	spin_unlock(&qp->requester.lock);
	smw_work_note(qp, SMW_NOTE_SEND);
	return HRTIMER_NORESTART;
}

void smw_work_init(struct smw_qp *qp)
{
	tasklet_setup(&qp->task, work_run);
	smw_hrtimer_setup(&qp->retransmit_timer, retransmit_fired, CLOCK_MONOTONIC,
			  HRTIMER_MODE_REL_SOFT);
	smw_hrtimer_setup(&qp->rnr_timer, rnr_fired, CLOCK_MONOTONIC,
			  HRTIMER_MODE_REL_SOFT);
	smw_hrtimer_setup(&qp->flush_timer, flush_fired, CLOCK_MONOTONIC,
			  HRTIMER_MODE_REL_SOFT);
}

/*
 * The state is RESET, so whatever still runs starts nothing new: timers that
 * the tasklet or a packet armed meanwhile go in the second round.
 */
void smw_work_pause(struct smw_qp *qp)
{
	int round;

	for (round = 0; round < 2; round++) {
		hrtimer_cancel(&qp->retransmit_timer);
		hrtimer_cancel(&qp->rnr_timer);
		hrtimer_cancel(&qp->flush_timer);
		tasklet_kill(&qp->task);
	}
	WRITE_ONCE(qp->notes, 0);
	qp->flush_delay = 0;
}
