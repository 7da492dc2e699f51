/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Times and counts of retransmission, and the AETH syndrome that carries them.
 */
#ifndef SMW_RETRY_H
#define SMW_RETRY_H

#include <linux/types.h>

/* AETH syndrome (IBTA 9.7.5.2.1): bits 6:5 the kind, 4:0 its value. */
#define SMW_AETH_KIND_MASK	0x60
#define SMW_AETH_VALUE_MASK	0x1f
#define SMW_AETH_ACK		0x00
#define SMW_AETH_RNR		0x20
#define SMW_AETH_NAK		0x60
/* An ACK without end-to-end credits. */
#define SMW_AETH_ACK_NO_CREDIT	0x1f

/* NAK codes (IBTA table 46). */
#define SMW_NAK_PSN_SEQUENCE	0
#define SMW_NAK_INVALID_REQUEST	1
#define SMW_NAK_REMOTE_ACCESS	2
#define SMW_NAK_REMOTE_OPERATIONAL 3

/* rnr_retry of 7 retries for ever (IBTA 9.7.5.2.8). */
#define SMW_RNR_RETRY_FOREVER	7

/**
 * smw_rnr_timer_ns() - time that an RNR NAK asks the requester to wait
 * @code: 5-bit RNR timer code; higher bits are ignored
 *
 * Return: nanoseconds, by IBTA table 45: 0 is 655.36 ms, 1 is 10 us, 31 is 491.52 ms.
 */
u64 smw_rnr_timer_ns(u8 code);

/**
 * smw_rnr_wait_ns() - time to wait where RNR NAKs are retried for ever
 * @code: RNR timer code of the NAK
 * @repeated: RNR NAKs for the same request before this one
 *
 * Twice as long each time, so that who is never let in does not keep a CPU
 * busy: a wait that lasts is prolonged by its own length at most, and by no
 * more than 8 ms. IBTA 9.7.5.2.8 asks for no less than the timer.
 *
 * Return: nanoseconds.
 */
u64 smw_rnr_wait_ns(u8 code, u32 repeated);

/**
 * smw_ack_timeout_ns() - transport timer of a local ack timeout
 * @timeout: 5-bit local ack timeout; 0 means that the timer is off
 *
 * Return: 4.096 us * 2^@timeout in nanoseconds, or 0.
 */
u64 smw_ack_timeout_ns(u8 timeout);

#endif /* SMW_RETRY_H */
