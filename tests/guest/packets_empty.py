# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Answers to those who asked for a FLUSH or an ATOMIC WRITE: an empty READ response
is one, and nothing else is (IBTA A19.4)."""

import itertools
import socket

import pyverbs.enums as e

import wire as w
from packets_answer import (ADD, ATOMIC_WRITE, BAD, FLUSH, OK, READ, REQUESTS, WRITE, ack,
                            answered, ask, atomic_ack, outside_wrong, response)
from target import MTU, SENT_PSN

KINDS = (('a FLUSH', FLUSH), ('an ATOMIC WRITE', ATOMIC_WRITE))


def cases(s):
    for what, opcode in KINDS:
        for name, answers, want in (
                ('answered well', [(w.READ_ONLY, 0)], OK),
                ('an answer that only ends', [(w.READ_LAST, 0)], OK),
                ('one byte of data', [(w.READ_ONLY, 1)], BAD),
                ('one word of data', [(w.READ_ONLY, 4)], BAD),
                ('data in the answer', [(w.READ_ONLY, 8)], BAD),
                ('a packet of data', [(w.READ_ONLY, MTU)], BAD),
                ('more than a packet of data', [(w.READ_ONLY, 4 * MTU)], BAD),
                ('data at the end', [(w.READ_LAST, 4)], BAD),
                ('an answer that does not end', [(w.READ_FIRST, 0)], BAD),
                ('an answer of two packets', [(w.READ_FIRST, MTU), (w.READ_LAST, 100)], BAD),
                ('an answer of a packet', [(w.READ_MIDDLE, MTU)], BAD),
                ('an answer of nothing in the middle', [(w.READ_MIDDLE, 0)], BAD)):
            s.case(f'{what}, {name}', lambda op=opcode, a=answers, want=want: answered(
                s, op, 8, [response(s, o, n, size) for n, (o, size) in enumerate(a)], want))
        s.case(f'{what}, what does not answer it', lambda op=opcode: beside(s, op))
        s.case(f'{what}, answered again and late', lambda op=opcode: late(s, op))
        s.case(f'{what}, what is behind it is answered first', lambda op=opcode: behind(s, op))
        s.case(f'{what}, a bad answer flushes what is behind it', lambda op=opcode: flushes(
            s, op))
        s.case(f'{what}, its answer acknowledges a WRITE before it', lambda op=opcode: before(
            s, op))
        s.case(f'{what}, an RNR NAK for an answer', lambda op=opcode: not_ready(s, op))
        s.case(f'{what}, a sequence NAK for an answer', lambda op=opcode: out_of_sequence(
            s, op))
    s.case('no answer', lambda: unanswered(s))
    s.case('ACKs for all answer there is', lambda: unanswered(s, acknowledged=True))


def good(s, opcode, psn=SENT_PSN):
    """A good answer to what was posted for the first eight bytes."""
    if opcode == ADD:
        return atomic_ack(s, psn)
    if opcode == WRITE:
        return ack(s, psn=psn)
    return response(s, w.READ_ONLY, 0, 8 if opcode == READ else 0, psn)


def placed(s, opcode):
    """What GOOD leaves in the local memory."""
    want = {READ: b'a' * 8, ADD: b'originAL'[::-1]}.get(opcode, b'.' * 8)
    return outside_wrong(s.target, 8) or (
        None if s.target.local.read(8, 0) == want else 'not the data that was sent')


def waits_wrong(s, opcode, psn=SENT_PSN):
    """What was sent is no answer: it still waits, and completes by a good one, once."""
    t = s.target
    if not t.silent() or t.ended():
        return 'it was taken for an answer'
    for _ in range(3):
        s.wire.send(good(s, opcode, psn)())
    s.wire.settle()
    status = t.completion()
    if status != OK:
        return f'the good answer: status {status}'
    if not t.silent():
        return 'it completed twice'
    return outside_wrong(t, 0) or works_wrong(s)


def works_wrong(s):
    """The queue pair still asks and is answered."""
    t = s.target
    t.post(READ, 8)
    psn = s.wire.wait_for(w.READ_REQUEST).psn
    s.wire.send(good(s, READ, psn)())
    status = t.completion()
    if status != OK or t.ended():
        return f'a READ afterwards: status {status}'
    return placed(s, READ)


def beside(s, opcode):
    for name, make, how in (
            ('an ACK', ack(s), {}),
            ('an ACK of what was never sent', ack(s, psn=SENT_PSN + 1), {}),
            ('an atomic acknowledgment with payload', atomic_ack(s, extra=b'more'), {}),
            ('one cut short', lambda: atomic_ack(s)()[:-4], {}),
            ('an answer cut short', lambda: response(s, w.READ_ONLY, 0, 0)()[:-4], {}),
            ('an answer with padding alone', lambda: s.target.bth(
                w.READ_ONLY, SENT_PSN, pad=3, ack=False) + w.aeth(), {}),
            ('the PSN before', response(s, w.READ_ONLY, 0, 0, SENT_PSN - 1), {}),
            ('the PSN behind', response(s, w.READ_ONLY, 0, 0, SENT_PSN + 1), {}),
            ('a PSN far away', response(s, w.READ_ONLY, 0, 0, SENT_PSN ^ 1 << 23), {}),
            ('data of the PSN behind', response(s, w.READ_ONLY, 0, 8, SENT_PSN + 1), {}),
            ('a request of its PSN', lambda: s.target.write(psn=SENT_PSN), {}),
            ('a FLUSH of its PSN', lambda: s.target.flush(psn=SENT_PSN), {}),
            ('from another address', response(s, w.READ_ONLY, 0, 0),
             {'source': socket.inet_aton('10.79.0.3')}),
            ('without a right ICRC', response(s, w.READ_ONLY, 0, 0), {'trailer': b'\0' * 4})):
        ask(s, opcode, 8)
        for _ in range(20):
            s.wire.send(make(), **how)
        wrong = waits_wrong(s, opcode)
        if wrong:
            return f'{name}: {wrong}'
    return None


def late(s, opcode):
    """An answer answers one request, however often it comes."""
    t = s.target
    ask(s, opcode, 8)
    s.wire.send(good(s, opcode)())
    status = t.completion()
    if status != OK:
        return f'status {status}'
    t.post(opcode, 8)
    s.wire.wait_for(REQUESTS[opcode])
    for _ in range(20):
        s.wire.send(good(s, opcode)())
        s.wire.send(response(s, w.READ_ONLY, 0, 8)())
    return waits_wrong(s, opcode, SENT_PSN + 1)


def behind(s, opcode):
    """It is asked for again, since its answer seems to be lost; nothing is placed."""
    t = s.target
    for second in READ, ADD, WRITE, FLUSH, ATOMIC_WRITE:
        first = ask(s, opcode, 8)
        t.post(second, 8)
        s.wire.wait_for(REQUESTS[second])
        for _ in range(5):
            s.wire.send(good(s, second, SENT_PSN + 1)())
        if not t.silent() or t.ended():
            return f'opcode {second} behind it completed'
        if s.wire.wait_for(REQUESTS[opcode])[:3] != first[:3]:
            return f'opcode {second}: it was not asked for again as before'
        wrong = outside_wrong(t, 0)
        if wrong:
            return f'opcode {second}: {wrong}'
        s.wire.send(good(s, opcode)())
        s.wire.send(good(s, second, SENT_PSN + 1)())
        status = [t.completion(), t.completion()]
        if status != [OK, OK] or t.ended():
            return f'opcode {second}: statuses {status}'
        wrong = placed(s, second)
        if wrong:
            return f'opcode {second}: {wrong}'
    return None


def flushes(s, opcode):
    t = s.target
    for second in READ, FLUSH:
        ask(s, opcode, 8)
        t.post(second, 8)
        s.wire.wait_for(REQUESTS[second])
        s.wire.send(response(s, w.READ_ONLY, 0, 8)())
        s.wire.send(good(s, opcode)())
        s.wire.send(good(s, second, SENT_PSN + 1)())
        s.wire.settle()
        status = [t.completion(), t.completion()]
        if status != [BAD, e.IBV_WC_WR_FLUSH_ERR] or not t.ended() or not t.silent():
            return f'opcode {second}: statuses {status}'
        wrong = outside_wrong(t, 0)
        if wrong:
            return f'opcode {second}: {wrong}'
    return None


def before(s, opcode):
    t = s.target
    ask(s, WRITE, 16)
    t.post(opcode, 8)
    s.wire.wait_for(REQUESTS[opcode])
    s.wire.send(good(s, opcode, SENT_PSN + 1)())
    status = [t.completion(), t.completion()]
    if status != [OK, OK] or t.ended():
        return f'statuses {status}'
    return outside_wrong(t, 0) or works_wrong(s)


def not_ready(s, opcode):
    """It waits, and asks again as often as it may."""
    t = s.target
    first = ask(s, opcode, 8, rnr_retries=2)
    for _ in range(2):
        s.wire.send(ack(s, w.RNR | 1)())
        if s.wire.wait_for(REQUESTS[opcode]) != first:
            return 'not the request that it was'
    if not t.silent() or t.ended():
        return 'it was taken for an answer'
    s.wire.send(ack(s, w.RNR | 1)())
    status = t.completion()
    if status != e.IBV_WC_RNR_RETRY_EXC_ERR or not t.ended():
        return f'then status {status}'
    ask(s, opcode, 8)
    s.wire.send(ack(s, w.RNR | 1)())
    s.wire.wait_for(REQUESTS[opcode])
    return waits_wrong(s, opcode)


def out_of_sequence(s, opcode):
    first = ask(s, opcode, 8)
    for _ in range(20):
        s.wire.send(ack(s, w.NAK_SEQUENCE)())
    if s.wire.wait_for(REQUESTS[opcode]) != first:
        return 'not the request that it was'
    return waits_wrong(s, opcode)


def unanswered(s, acknowledged=False):
    """
    It asks as often as it may, always for the same, and then gives up. An
    acknowledgment says that the answer was lost: it does not wait for the timer.
    """
    t = s.target
    for opcode, retries in itertools.product((READ, ADD, FLUSH, ATOMIC_WRITE), (0, 1, 3)):
        t.fresh(sends=True, timeout=14 if acknowledged else 8, retries=retries)
        t.post(opcode, 8)
        for _ in range(20 if acknowledged else 0):
            s.wire.send(ack(s)())
        asked = s.wire.received()
        if acknowledged and len(asked) < 1 + min(retries, 1):
            return f'opcode {opcode}, {retries} retries: it waits after an ACK'
        status = t.completion()
        asked += s.wire.received()
        if status != e.IBV_WC_RETRY_EXC_ERR or not t.ended():
            return f'opcode {opcode}, {retries} retries: status {status}'
        if asked[0].opcode != REQUESTS[opcode] or asked != asked[:1] * (1 + retries):
            return f'opcode {opcode}, {retries} retries: {asked}'
        s.wire.send(good(s, opcode)())
        if not t.silent():
            return f'opcode {opcode}: something completed afterwards'
        wrong = outside_wrong(t, 0)
        if wrong:
            return f'opcode {opcode}: {wrong}'
    return None
