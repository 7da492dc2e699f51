# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Requests again: what they may repeat is what was allowed the first time."""

import wire as w
from target import CLEAN, LENGTH, MTU, PSN

# Bytes of a READ of three packets.
LONG = 2 * MTU + 100


def cases(s):
    s.case('a READ again, whole or from any packet on', lambda: read_again(s))
    s.case('a READ again with another key, range or PSN', lambda: read_changed(s))
    s.case('an atomic 100 times executes once', lambda: atomic_again(s))
    s.case('an atomic again with another key, address or operation',
           lambda: atomic_changed(s))
    s.case('an ATOMIC WRITE again with other content', lambda: atomic_write_again(s))
    s.case('a WRITE again with other content, key or range', lambda: write_again(s))
    s.case('a SEND again takes no receive', lambda: send_again(s))
    s.case('a READ older than what is remembered', lambda: forgotten(s))
    s.case('a READ again after its window was invalidated', lambda: after_invalidate(
        s, lambda t, key, psn: t.read(rkey=key, psn=psn)))
    s.case('an atomic again after its window was invalidated', lambda: after_invalidate(
        s, lambda t, key, psn: t.atomic(rkey=key, psn=psn)))
    s.case('a FLUSH again after its window was invalidated', lambda: after_invalidate(
        s, lambda t, key, psn: t.flush(rkey=key, psn=psn)))
    s.case('a SEND with invalidate again invalidates nothing', lambda: invalidate_again(s))
    s.case('the rest of a WRITE after its window was invalidated', lambda: rest_of_write(s))


def fill(t):
    data = bytes(i * 7 % 251 for i in range(LENGTH))
    t.mr.write(data, LENGTH)
    return data


def read_data(answers):
    return b''.join(a.rest for a in answers if w.READ_FIRST <= a.opcode <= w.READ_ONLY)


def read_again(s):
    t = s.target
    t.fresh()
    data = fill(t)
    s.wire.send(t.read(length=LONG))
    if read_data(s.wire.received()) != data[:LONG]:
        return 'the first answer is not the data'
    for skip in (0, 1, 2, 0, 2):
        s.wire.send(t.read(skip * MTU, LONG - skip * MTU, psn=PSN + skip))
        answers = s.wire.received()
        if read_data(answers) != data[skip * MTU:LONG] or answers[0].psn != PSN + skip:
            return f'from packet {skip}: {len(answers)} answers'
    return 'it ended' if t.ended() else None


def read_changed(s):
    t = s.target
    t.fresh()
    fill(t)
    s.wire.send(t.read(length=LONG))
    s.wire.received()
    for name, request in (
            ('another region', t.read(length=LONG, rkey=t.other.rkey)),
            ('a wrong key byte', t.read(length=LONG, rkey=t.mr.rkey ^ 1)),
            ('key 0', t.read(length=LONG, rkey=0)),
            ('longer', t.read(length=LONG + 1)),
            ('much longer', t.read(length=0x7fffffff)),
            ('shorter', t.read(length=LONG - 1)),
            ('empty', t.read(length=0)),
            ('a byte on', t.read(1, LONG)),
            ('elsewhere', t.read(4096, LONG)),
            ('from the second packet, whole', t.read(0, LONG, psn=PSN + 1)),
            ('from the second packet, wrong place', t.read(0, LONG - MTU, psn=PSN + 1)),
            ('the PSN before', t.read(length=LONG, psn=PSN - 1)),
            ('an atomic of its PSN', t.atomic()),
            ('a FLUSH of its PSN', t.flush()),
            ('an ATOMIC WRITE of its PSN', t.write(w.ATOMIC_WRITE, length=8,
                                                   payload=b'X' * 8))):
        before = t.memory()
        s.wire.send(request)
        if read_data(answers := s.wire.received()):
            return f'{name}: data is sent'
        if any(a.opcode == w.ATOMIC_ACK for a in answers) or t.memory() != before:
            return f'{name}: an atomic is executed'
        if t.ended():
            return f'{name}: the connection ends'
    return None


def value(t, offset=0):
    return int.from_bytes(t.memory()[offset:offset + 8], 'little')


def atomic_again(s):
    t = s.target
    t.fresh()
    old = value(t)
    for _ in range(101):
        s.wire.send(t.atomic())
    answers = s.wire.received()
    if value(t) != old + 1 or t.memory()[8:] != CLEAN[8:]:
        return f'it was executed {value(t) - old} times'
    if {(a.opcode, a.original) for a in answers} != {(w.ATOMIC_ACK, old)}:
        return 'the answers are not those of the first'
    return None if len(answers) == 101 else f'{len(answers)} answers'


def atomic_changed(s):
    t = s.target
    t.fresh()
    old = value(t)
    s.wire.send(t.atomic())
    s.wire.received()
    memory = t.memory()
    for name, request, answered in (
            ('another region', t.atomic(rkey=t.other.rkey), False),
            ('a wrong key byte', t.atomic(rkey=t.mr.rkey ^ 1), False),
            ('another address', t.atomic(offset=8), False),
            ('another operand', t.atomic(swap_add=1000), True),
            ('another operation', t.atomic(w.CMP_SWAP, compare=old + 1, swap_add=5), True),
            ('a READ of its PSN', t.read(), False),
            ('a FLUSH of its PSN', t.flush(), False)):
        s.wire.send(request)
        answers = s.wire.received()
        if t.memory() != memory or not t.other.read(LENGTH, 0) == CLEAN:
            return f'{name}: memory changed'
        if [a.original for a in answers] != ([old] if answered else []):
            return f'{name}: answers {answers}'
    return 'it ended' if t.ended() else None


def atomic_write_again(s):
    t = s.target
    t.fresh()
    make = lambda payload, **how: t.write(w.ATOMIC_WRITE, length=8, payload=payload, **how)
    s.wire.send(make(b'first...'))
    for request in (make(b'second..'), make(b'second..', offset=8),
                    make(b'second..', rkey=t.other.rkey, va=t.other.buf)):
        s.wire.send(request)
    s.wire.settle()
    if t.memory() != b'first...' + CLEAN[8:] or t.other.read(LENGTH, 0) != CLEAN:
        return 'something else was placed'
    return 'it ended' if t.ended() else None


def write_again(s):
    t = s.target
    t.fresh()
    s.wire.send(t.write(payload=b'1' * 16))
    for change in ({}, {'offset': 64}, {'rkey': t.other.rkey, 'va': t.other.buf},
                   {'rkey': 0}, {'length': 32, 'payload': b'X' * 32}):
        s.wire.send(t.write(**change))
    s.wire.send(t.write(w.WRITE_FIRST, length=2 * MTU, payload=b'X' * MTU))
    s.wire.send(t.bth(w.WRITE_LAST, PSN) + b'X' * 16)
    answers = s.wire.received()
    if t.memory() != b'1' * 16 + CLEAN[16:] or t.other.read(LENGTH, 0) != CLEAN:
        return 'it was placed again'
    if {(a.psn, a.syndrome) for a in answers} != {(PSN, w.ACKED)}:
        return f'answers {answers}'
    return 'it ended' if t.ended() else None


def send_again(s):
    t = s.target
    t.fresh()
    t.post_receive(offset=0)
    t.post_receive(offset=1024)
    for _ in range(20):
        s.wire.send(t.bth(w.SEND_ONLY) + b'X' * 16)
    s.wire.settle()
    if t.completion() != 0 or not t.silent():
        return 'not one completion'
    if t.local.read(LENGTH, 0) != b'X' * 16 + CLEAN[16:]:
        return 'the second receive was used'
    return None


def forgotten(s):
    """Four are remembered (max_dest_rd_atomic): the first of five is not."""
    t = s.target
    t.fresh()
    data = fill(t)
    for n in range(5):
        s.wire.send(t.read(psn=PSN + n))
    s.wire.received()
    s.wire.send(t.read(psn=PSN))
    if s.wire.received():
        return 'the forgotten one is answered'
    s.wire.send(t.read(psn=PSN + 4))
    if read_data(s.wire.received()) != data[:16]:
        return 'the last one is not answered'
    return 'it ended' if t.ended() else None


def after_invalidate(s, make):
    t = s.target
    t.fresh(sends=True)
    window = t.window()
    key = t.bind(window, 0, 64)
    s.wire.send(make(t, key, PSN))
    first = s.wire.received()
    memory = t.memory()
    t.invalidate(key)
    s.wire.send(make(t, key, PSN))
    answers = s.wire.received()
    window.close()
    if len(first) != 1 or first[0].opcode == w.ACK:
        return f'the first answers {first}'
    # To a requester that still waits the NAK is the end; one that does not wait
    # goes on, so the responder does too.
    if [a.syndrome for a in answers] != [w.NAK_ACCESS] or t.ended():
        return f'answers {answers}, ended {t.ended()}'
    if t.memory() != memory:
        return 'memory changed'
    s.wire.send(t.write(psn=PSN + 1))
    s.wire.settle()
    return None if t.memory()[:16] == b'X' * 16 else 'the connection does not go on'


def invalidate_again(s):
    t = s.target
    t.fresh(sends=True)
    window = t.window()
    key = t.bind(window, 0, 64)
    t.post_receive()
    request = t.bth(w.SEND_ONLY_INV) + key.to_bytes(4, 'big') + b'X' * 16
    s.wire.send(request)
    s.wire.settle()
    if t.completion() != 0:
        return 'the SEND is not received'
    again = rebind(t, window, key)
    for _ in range(10):
        s.wire.send(request)
    s.wire.send(t.write(rkey=again, psn=PSN + 1))
    s.wire.settle()
    alive = t.memory() == b'X' * 16 + CLEAN[16:]
    t.qp.close()
    t.qp = None
    window.close()
    return None if alive else 'the window bound anew with the same key is gone'


def rebind(t, window, key):
    """Bind it until it has the same key as before: the provider counts up."""
    for _ in range(256):
        again = t.bind(window, 0, 64)
        if again == key:
            return again
        t.invalidate(again)
    return again


def rest_of_write(s):
    t = s.target
    t.fresh(sends=True)
    window = t.window()
    key = t.bind(window, 0, 1024)
    s.wire.send(t.write(w.WRITE_FIRST, length=2 * MTU, payload=b'1' * MTU, rkey=key))
    s.wire.settle()
    t.invalidate(key)
    s.wire.send(t.bth(w.WRITE_LAST, PSN + 1) + b'X' * MTU)
    answers = s.wire.received()
    window.close()
    if t.memory() != b'1' * MTU + CLEAN[MTU:]:
        return 'the rest was placed'
    if not t.ended() or answers[-1].syndrome != w.NAK_ACCESS:
        return f'answers {answers}'
    return None
