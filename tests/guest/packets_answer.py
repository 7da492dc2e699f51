# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Responses to a requester: wrong ones, and ones that nobody asked for."""

import itertools
import os
import random
import socket
import struct
import time

import pyverbs.enums as e

import wire as w
from ring import FLUSH
from target import CLEAN, LENGTH, MTU, SENT_PSN

READ, ADD, SWAP, WRITE = (e.IBV_WR_RDMA_READ, e.IBV_WR_ATOMIC_FETCH_AND_ADD,
                          e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WR_RDMA_WRITE)
ATOMIC_WRITE = 15       # which not every pyverbs knows
OK, BAD = e.IBV_WC_SUCCESS, e.IBV_WC_BAD_RESP_ERR
LONG = 2 * MTU + 100
READS = (w.READ_FIRST, w.READ_MIDDLE, w.READ_LAST, w.READ_ONLY)
REQUESTS = {READ: w.READ_REQUEST, ADD: w.FETCH_ADD, SWAP: w.CMP_SWAP, WRITE: w.WRITE_ONLY,
            e.IBV_WR_SEND: w.SEND_ONLY, FLUSH: w.FLUSH, ATOMIC_WRITE: w.ATOMIC_WRITE}


def cases(s):
    s.case('a READ of three packets, answered well', lambda: answered(
        s, READ, LONG, good_read(s), OK))
    s.case('an atomic, answered well', lambda: answered(s, ADD, 8, [atomic_ack(s)], OK))
    for name, length, answers in (
            ('a READ response longer than asked', 100, [(w.READ_ONLY, 200)]),
            ('a READ response much longer than asked', 100, [(w.READ_ONLY, 1024)]),
            ('a READ response of one byte more', 100, [(w.READ_ONLY, 101)]),
            ('a READ response shorter than asked', 100, [(w.READ_ONLY, 50)]),
            ('an empty READ response', 100, [(w.READ_ONLY, 0)]),
            ('a READ response too many', MTU, [(w.READ_FIRST, MTU), (w.READ_LAST, 100)]),
            ('a READ response that ends early', LONG, [(w.READ_FIRST, MTU), (w.READ_LAST, 100)]),
            ('a FIRST that is not full', LONG, [(w.READ_FIRST, 100)]),
            ('a MIDDLE that is more than full', LONG, [(w.READ_FIRST, MTU),
                                                       (w.READ_MIDDLE, MTU + 4)]),
            ('data for a READ of none', 0, [(w.READ_ONLY, 4)])):
        s.case(name, lambda n=length, a=answers: answered(
            s, READ, n, [response(s, op, i, size) for i, (op, size) in enumerate(a)], BAD))
    s.case('READ responses of every order of opcodes', lambda: orders(s))
    s.case('what does not answer the request', lambda: beside(s))
    s.case('ACKs do not complete what wants another answer', lambda: acks(s))
    s.case('ACKs of what was never sent', lambda: ahead(s))
    s.case('an ACK of a SEND completes it once', lambda: completes_once(s))
    s.case('what answers another kind of request', lambda: of_another_kind(s))
    s.case('a NAK of every code', lambda: naks(s))
    s.case('an answer of every syndrome', lambda: syndromes(s))
    s.case('a NAK that overtakes the response before it', lambda: overtaken(s))
    s.case('a flood of RNR NAKs', lambda: rnr_flood(s))
    s.case('an RNR NAK when the time of the one before ends', lambda: rnr_again(s))
    s.case('a flood of sequence NAKs', lambda: sequence_flood(s))
    s.case('responses from another address', lambda: elsewhere(s))
    s.case('READ responses with a PSN off by everything', lambda: off(s))
    s.case('responses of random bytes', lambda: noise(s))


def response(s, opcode, n, size, psn=None, fill=None, syndrome=w.ACKED):
    """The N-th READ response; made when the queue pair is there."""
    def make():
        data = bytes([fill or 0x61 + n]) * size
        header = s.target.bth(opcode, SENT_PSN + n if psn is None else psn, pad=-size % 4,
                              ack=False)
        if opcode != w.READ_MIDDLE:
            header += w.aeth(syndrome)
        return header + data + b'\0' * (-size % 4)
    return make


def good_read(s):
    return [response(s, w.READ_FIRST, 0, MTU), response(s, w.READ_MIDDLE, 1, MTU),
            response(s, w.READ_LAST, 2, 100)]


def read_bytes():
    return b'a' * MTU + b'b' * MTU + b'c' * 100


def atomic_ack(s, psn=SENT_PSN, extra=b'', original=b'originAL', syndrome=w.ACKED):
    return lambda: (s.target.bth(w.ATOMIC_ACK, psn, ack=False) + w.aeth(syndrome) + original +
                    extra)


def ack(s, syndrome=w.ACKED, psn=SENT_PSN):
    return lambda: s.target.bth(w.ACK, psn, ack=False) + w.aeth(syndrome)


def ask(s, opcode, length, **how):
    """A queue pair whose request is on the wire."""
    t = s.target
    t.fresh(sends=True, **how)
    t.post(opcode, length)
    return s.wire.wait_for(REQUESTS[opcode])


def outside_wrong(t, length):
    """Nothing but the first LENGTH bytes may have been written to."""
    if t.local.read(LENGTH, 0)[length:] != CLEAN[length:]:
        return 'something was placed outside'
    return None if t.untouched() else 'something was placed in another region'


def answered(s, opcode, length, answers, want):
    t = s.target
    ask(s, opcode, length)
    for make in answers:
        s.wire.send(make())
    s.wire.settle()
    status = t.completion()
    if status != want or t.ended() != (want != OK):
        return f'status {status}, ended {t.ended()}'
    if want == OK and opcode == READ and t.local.read(length, 0) != read_bytes():
        return 'not the data that was sent'
    return outside_wrong(t, length)


def orders(s):
    """
    What counts is that the READ ends with its last byte: a response that says
    so too early or too late is an error. All others are as long as they should.
    """
    t = s.target
    for run in itertools.product(READS, repeat=3):
        ask(s, READ, LONG)
        for n, op in enumerate(run):
            s.wire.send(response(s, op, n, (MTU, MTU, 100)[n])())
        s.wire.settle()
        ends = [op in (w.READ_LAST, w.READ_ONLY) for op in run]
        status = t.completion()
        if status != (OK if ends == [False, False, True] else BAD):
            return f'{[hex(op) for op in run]}: status {status}'
        wrong = outside_wrong(t, LONG)
        if wrong:
            return f'{[hex(op) for op in run]}: {wrong}'
    return None


def finish_wrong(s, length=LONG):
    """What was sent was no answer: the READ still waits, and completes by good ones."""
    t = s.target
    if not t.silent() or t.ended():
        return 'it was taken for an answer'
    if t.local.read(LENGTH, 0) != CLEAN:
        return 'something was placed'
    for make in good_read(s):
        s.wire.send(make())
    s.wire.settle()
    status = t.completion()
    if status != OK or t.local.read(length, 0) != read_bytes():
        return f'the good answer: status {status}'
    return outside_wrong(t, length)


def beside(s):
    for name, answers in (
            ('an atomic acknowledgment with payload', [atomic_ack(s, extra=b'more')]),
            ('one cut short', [lambda: atomic_ack(s)()[:-4]]),
            ('the second response first', [response(s, w.READ_MIDDLE, 1, MTU)]),
            ('the last response first', [response(s, w.READ_LAST, 2, 100)]),
            ('the PSN before', [response(s, w.READ_FIRST, 0, MTU, SENT_PSN - 1)]),
            ('the PSN behind', [response(s, w.READ_ONLY, 0, MTU, SENT_PSN + 3)]),
            ('a request of its PSN', [lambda: s.target.write(psn=SENT_PSN)])):
        ask(s, READ, LONG)
        for make in answers:
            s.wire.send(make())
        wrong = finish_wrong(s)
        if wrong:
            return f'{name}: {wrong}'
    return None


def acks(s):
    t = s.target
    for opcode in READ, ADD, SWAP, FLUSH, ATOMIC_WRITE:
        ask(s, opcode, 8)
        for n in range(20):
            s.wire.send(ack(s, psn=SENT_PSN + n % 3)())
        if not t.silent() or t.ended():
            return f'opcode {opcode}: an ACK completed it'
        wrong = outside_wrong(t, 0)
        if wrong:
            return wrong
    return None


def ahead(s):
    t = s.target
    ask(s, WRITE, 16)
    for off_by in (1, 2, 1000, (1 << 23) - 1, 1 << 23, (1 << 24) - 1):
        for syndrome in (w.ACKED, w.RNR, w.NAK_SEQUENCE, w.NAK_ACCESS, w.NAK_OPERATIONAL):
            s.wire.send(ack(s, syndrome, SENT_PSN + off_by)())
    if not t.silent() or t.ended():
        return 'it was taken for an answer'
    s.wire.send(ack(s)())
    status = t.completion()
    return None if status == OK else f'status {status}'


def completes_once(s):
    t, before = s.target, s.device.counters('rx_dropped')
    ask(s, e.IBV_WR_SEND, 16)
    for _ in range(20):
        s.wire.send(ack(s)())
    if t.completion() != OK or not t.silent():
        return 'not one completion'
    late = s.device.counters('rx_dropped') - before
    if late != 19:
        return f'{late} of 19 late ones were counted'
    return 'it ended' if t.ended() else None


def of_another_kind(s):
    """What answers other requests is a bad answer (ibv_poll_cq(3): an unexpected opcode)."""
    t = s.target
    data = [response(s, op, 0, size) for op in READS for size in (0, 8, 16)]
    original = [atomic_ack(s)]
    for opcode, answers in ((WRITE, data + original), (e.IBV_WR_SEND, data + original),
                            (ADD, data), (SWAP, data), (READ, original), (FLUSH, original),
                            (ATOMIC_WRITE, original)):
        for make in answers:
            ask(s, opcode, 8)
            s.wire.send(make())
            s.wire.settle()
            status = t.completion()
            if status != BAD or not t.ended():
                return f'opcode {opcode}, answer {make()[0]:#x}: status {status}'
            wrong = outside_wrong(t, 0)
            if wrong:
                return f'opcode {opcode}: {wrong}'
    return None


def naks(s):
    t = s.target
    meant = {1: e.IBV_WC_REM_INV_REQ_ERR, 2: e.IBV_WC_REM_ACCESS_ERR, 3: e.IBV_WC_REM_OP_ERR}
    for code, opcode in itertools.product(range(1, 32), (READ, ADD, WRITE, FLUSH, ATOMIC_WRITE)):
        ask(s, opcode, 8)
        s.wire.send(ack(s, w.NAK | code)())
        s.wire.settle()
        if code in meant:
            status = t.completion()
            if status != meant[code] or not t.ended():
                return f'code {code}: status {status}'
        elif not t.silent() or t.ended():
            return f'reserved code {code} was taken for an answer'
        wrong = outside_wrong(t, 0)
        if wrong:
            return f'code {code}: {wrong}'
    return None


def syndromes(s):
    """With the credits of an ACK it is one; who refuses sends no answer."""
    t = s.target
    middle, rest = response(s, w.READ_MIDDLE, 1, MTU), response(s, w.READ_LAST, 2, 100)
    first = response(s, w.READ_FIRST, 0, MTU)
    rows = (    # and how much has been placed before
        (READ, LONG, lambda x: [response(s, w.READ_FIRST, 0, MTU, syndrome=x), middle, rest], 0),
        (READ, LONG, lambda x: [first, middle, response(s, w.READ_LAST, 2, 100, syndrome=x)],
         2 * MTU),
        (ADD, 8, lambda x: [atomic_ack(s, syndrome=x)], 0),
        (FLUSH, 0, lambda x: [response(s, w.READ_ONLY, 0, 0, syndrome=x)], 0),
        (ATOMIC_WRITE, 0, lambda x: [response(s, w.READ_ONLY, 0, 0, syndrome=x)], 0))
    for syndrome, (opcode, length, answers, before) in itertools.product(range(128), rows):
        ask(s, opcode, length or 8)
        for make in answers(syndrome):
            s.wire.send(make())
        s.wire.settle()
        status = t.completion()
        if status != (BAD if syndrome & w.NAK else OK) or t.ended() != (status != OK):
            return f'opcode {opcode}, syndrome {syndrome:#x}: status {status}'
        wrong = outside_wrong(t, length if status == OK else before)
        if wrong:
            return f'opcode {opcode}, syndrome {syndrome:#x}: {wrong}'
    return None


def overtaken(s):
    """The READ is asked for again; the NAK is the WRITE's, when its turn has come."""
    t = s.target
    for opcode, length, answer in (
            (READ, 100, response(s, w.READ_ONLY, 0, 100)), (ADD, 8, atomic_ack(s)),
            (FLUSH, 0, response(s, w.READ_ONLY, 0, 0)),
            (ATOMIC_WRITE, 0, response(s, w.READ_ONLY, 0, 0))):
        ask(s, opcode, length or 8)
        t.post(WRITE, 16)
        s.wire.wait_for(w.WRITE_ONLY)
        refusal = ack(s, w.NAK | 2, psn=SENT_PSN + 1)
        s.wire.send(refusal())
        s.wire.wait_for(REQUESTS[opcode])
        if not t.silent() or t.ended():
            return f'opcode {opcode} was taken for refused'
        s.wire.send(answer())
        s.wire.send(refusal())
        s.wire.settle()
        status = [t.completion(), t.completion()]
        if status != [OK, e.IBV_WC_REM_ACCESS_ERR] or not t.ended():
            return f'opcode {opcode}: statuses {status}'
        wrong = outside_wrong(t, length)
        if wrong:
            return f'opcode {opcode}: {wrong}'
    return None


def rnr_flood(s):
    """It waits as long as it is told, sends again, and survives."""
    t = s.target
    ask(s, WRITE, 16)
    for n in range(2000):
        s.wire.send(ack(s, w.RNR | 1 + n % 4)())
    if not t.silent() or t.ended():
        return 'a flood ended it'
    s.wire.wait_for(w.WRITE_ONLY)
    s.wire.send(ack(s)())
    status = t.completion()
    if status != OK:
        return f'then acknowledged: status {status}'
    # With a limit, one NAK counts once, however often the wire brings it.
    ask(s, WRITE, 16, rnr_retries=3)
    for _ in range(50):
        s.wire.send(ack(s, w.RNR | 28)())
    if not t.silent():
        return 'one RNR NAK brought 50 times exceeded three retries'
    s.wire.wait_for(w.WRITE_ONLY)
    s.wire.send(ack(s)())
    status = t.completion()
    return None if status == OK else f'limited: status {status}'


def rnr_again(s):
    """Two CPUs send the answers."""
    cpus = os.sched_getaffinity(0)
    try:
        return rnr_again_on(s, max(cpus), min(cpus))
    finally:
        os.sched_setaffinity(0, cpus)


def rnr_again_on(s, cpu, other):
    """
    The timer fires on one CPU, while on another one it is started again for the next
    request: that one is sent when the ACK before it comes, and not again before its time.
    """
    t, rng, looked = s.target, random.Random(3), 0
    rounds = 500 // s.wire.slow
    t.fresh(sends=True)
    for n in range(SENT_PSN, SENT_PSN + 2 * rounds, 2):
        s.wire.received()
        t.post(WRITE, 16)
        t.post(WRITE, 16)
        psns = [p.psn for p in s.wire.received()]
        if psns != [n, n + 1]:
            return f'requests with PSNs {psns}, not {n} and the next one'
        wait, again = s.wire.packet(ack(s, w.RNR | 12, n)()), [     # 0.64 and 328 ms
            s.wire.packet(ack(s, psn=n)()), s.wire.packet(ack(s, w.RNR | 30, n + 1)())]
        os.sched_setaffinity(0, {cpu})
        start = time.monotonic()
        s.wire.send_packet(wait)
        os.sched_setaffinity(0, {other})
        while time.monotonic() < start + 0.00064 + rng.uniform(-0.0001, 0.0002):
            pass
        start = time.monotonic()
        for packet in again:
            s.wire.send_packet(packet)
        time.sleep(0.001)
        sent = [p.psn for p in s.wire.received()].count(n + 1)
        if time.monotonic() < start + 0.3:
            looked += 1
            if sent != 1:
                return f'round {looked}: sent {sent} times'
        s.wire.send(ack(s, psn=n + 1)())
        if [t.completion(), t.completion()] != [OK, OK]:
            return 'not two completions'
    print(f'# {looked} of {rounds} rounds were in time')
    return None if looked else 'this host is too slow to tell'


def sequence_flood(s):
    """It sends again, but not once a NAK for ever."""
    t = s.target
    ask(s, WRITE, 16, timeout=18)
    for _ in range(2000):
        s.wire.send(ack(s, w.NAK_SEQUENCE)())
    sent = sum(p.opcode == w.WRITE_ONLY for p in s.wire.received())
    print(f'# sent again {sent} times for 2,000 NAKs')
    if sent > 2000:
        return f'sent again {sent} times'
    status = t.completion(0.2)
    if status is None:
        s.wire.send(ack(s)())
        status = t.completion()
    if status not in (OK, e.IBV_WC_RETRY_EXC_ERR):
        return f'status {status}'
    return None


def elsewhere(s):
    t = s.target
    ask(s, READ, LONG)
    before = s.device.dropped()
    for make in good_read(s):
        s.wire.send(make(), source=socket.inet_aton('10.79.0.3'))
        s.wire.send(make(), source=s.wire.pairs[4][0])
        s.wire.send(make(), target_port=4790)
    s.wire.settle()
    if s.device.dropped() - before < 3:
        return 'they were not counted'
    return finish_wrong(s) or (None if not t.ended() else 'it ended')


def off(s):
    rng = random.Random(1)
    ask(s, READ, LONG)
    for _ in range(300):
        psn = SENT_PSN + 1 + rng.randrange(1, (1 << 24) - 3)
        op = rng.choice(READS)
        s.wire.send(response(s, op, 0, rng.choice((16, 100, MTU)), psn)())
    return finish_wrong(s)


def noise(s):
    """Of the right queue pair and PSN, with any bytes behind."""
    t, rng = s.target, random.Random(2)
    lengths = {READ: 8, ADD: 8, WRITE: 8, FLUSH: 0, ATOMIC_WRITE: 0}
    for opcode, _ in itertools.product(lengths, range(3)):
        ask(s, opcode, 8)
        for _ in range(100):
            op = rng.choice(sorted(w.RESPONSES))
            s.wire.send(struct.pack('>B', op) + t.bth(op, SENT_PSN)[1:] +
                        rng.randbytes(4 * rng.randrange(80)))
        s.wire.settle()
        wrong = outside_wrong(t, lengths[opcode])
        if wrong:
            return f'opcode {opcode}: {wrong}'
    return None
