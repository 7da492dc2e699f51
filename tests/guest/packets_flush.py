# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""FLUSH: answered by an empty READ response, or refused (IBTA A19.4.1)."""

import itertools

import wire as w
from target import CLEAN, LENGTH, MTU, PSN

BOTH = w.GLOBAL | w.PERSISTENT


def cases(s):
    t, end = s.target, LENGTH
    s.case('a FLUSH is answered by an empty READ response', lambda: answered(s))
    for name, syndrome, change in (
            ('for persistence', w.NAK_ACCESS, {'placement': w.PERSISTENT}),
            ('for both', w.NAK_ACCESS, {'placement': BOTH}),
            ('of 2^31 bytes', w.NAK_INVALID, {'length': 0x80000000}),
            ('of 2^32 - 1 bytes', w.NAK_INVALID, {'length': 0xffffffff}),
            ('a byte before', w.NAK_ACCESS, {'offset': -1}),
            ('a byte behind', w.NAK_ACCESS, {'offset': end - 15}),
            ('a byte longer', w.NAK_ACCESS, {'length': end + 1}),
            ('of 2^31 - 1 bytes', w.NAK_ACCESS, {'length': 0x7fffffff}),
            ('of no bytes behind the end', w.NAK_ACCESS, {'offset': end + 1, 'length': 0}),
            ('of a range that wraps', w.NAK_ACCESS, {'offset': -16, 'length': 0x7fffffff}),
            ('of a region without the right', w.NAK_ACCESS,
             {'offset': t.local.buf - t.mr.buf, 'rkey': t.local.rkey}),
            ('of a whole region without the right', w.NAK_ACCESS,
             {'rkey': t.local.rkey, 'selectivity': w.REGION}),
            ('by a wrong key byte', w.NAK_ACCESS, {'rkey': t.mr.rkey ^ 1}),
            ('by an unknown key', w.NAK_ACCESS, {'rkey': t.mr.rkey ^ 0x5a5a00}),
            ('of no bytes by a wrong key', w.NAK_ACCESS,
             {'rkey': t.mr.rkey ^ 1, 'length': 0}),
            ('of a whole region by a wrong key', w.NAK_ACCESS,
             {'rkey': t.mr.rkey ^ 1, 'selectivity': w.REGION})):
        s.refused(f'a FLUSH {name}', lambda c=change: t.flush(**c), syndrome)
    s.case('a FLUSH of every reserved kind', lambda: reserved(s))
    s.harmless('a FLUSH with payload', lambda: [
        s.wire.send(t.flush() + b'X' * n) for n in (4, 16, 256)], 3)
    s.harmless('every truncation of a FLUSH', lambda: [
        s.wire.send(t.flush()[:n]) for n in range(32)], 28)
    s.case('a FLUSH 100 times is answered 100 times', lambda: again(s))
    s.case('a FLUSH again with another key, address or placement', lambda: changed(s))
    s.case('a FLUSH older than what is remembered', lambda: forgotten(s))
    s.case('a FLUSH behind a READ is answered behind it', lambda: behind_read(s))


def empty_wrong(answers, *psns):
    """They are to be empty READ responses of these PSNs."""
    wanted = [(w.READ_ONLY, psn, w.ACKED, b'') for psn in psns]
    got = [(a.opcode, a.psn, a.syndrome, a.rest) for a in answers]
    return None if got == wanted else f'answers {answers}'


def answered(s):
    t = s.target
    for change in ({}, {'length': LENGTH}, {'offset': LENGTH - 1, 'length': 1}, {'length': 0},
                   {'offset': LENGTH, 'length': 0}, {'reserved': (1 << 26) - 1},
                   {'selectivity': w.REGION, 'offset': -1 << 40, 'length': 0xffffffff}):
        t.fresh()
        s.wire.send(t.write())
        s.wire.received()
        s.wire.send(t.flush(psn=PSN + 1, **change))
        wrong = empty_wrong(s.wire.received(), PSN + 1)
        if wrong:
            return f'{change}: {wrong}'
        # It takes one PSN, and changes nothing.
        s.wire.send(t.write(offset=16, psn=PSN + 2))
        s.wire.settle()
        if t.memory() != b'X' * 32 + CLEAN[32:]:
            return f'{change}: the memory is not what it should be'
    return None


def reserved(s):
    t = s.target
    for placement, selectivity in itertools.product(range(16), range(4)):
        if 1 <= placement <= 3 and selectivity <= 1:
            continue
        t.fresh()
        s.wire.send(t.flush(placement=placement, selectivity=selectivity))
        answers = s.wire.received()
        if [a.syndrome for a in answers] != [w.NAK_INVALID] or not t.ended():
            return f'placement {placement}, selectivity {selectivity}: {answers}'
    return None


def again(s):
    t = s.target
    t.fresh()
    for _ in range(101):
        s.wire.send(t.flush())
    wrong = empty_wrong(s.wire.received(), *[PSN] * 101)
    return wrong or ('it ended' if t.ended() else None)


def changed(s):
    """Persistence is refused, and to one that still waits that is the end."""
    t = s.target
    t.fresh()
    s.wire.send(t.flush())
    s.wire.received()
    for name, request, syndromes in (
            ('another region', t.flush(rkey=t.other.rkey, offset=t.other.buf - t.mr.buf), []),
            ('a wrong key byte', t.flush(rkey=t.mr.rkey ^ 1), []),
            ('another address', t.flush(offset=8), []),
            ('a READ of its PSN', t.read(), []),
            ('an atomic of its PSN', t.atomic(), []),
            ('an ATOMIC WRITE of its PSN', t.write(w.ATOMIC_WRITE, length=8,
                                                   payload=b'X' * 8), []),
            ('persistence', t.flush(placement=BOTH), [w.NAK_ACCESS]),
            ('a shorter range', t.flush(length=8), []),
            ('a longer range', t.flush(length=LENGTH + 1), []),
            ('a reserved kind', t.flush(selectivity=2), [w.NAK_INVALID])):
        s.wire.send(request)
        answers = s.wire.received()
        if [a.syndrome for a in answers] != syndromes or t.ended() or not t.untouched():
            return f'{name}: answers {answers}, ended {t.ended()}'
    return None


def forgotten(s):
    """Four are remembered (max_dest_rd_atomic): the first of five is not."""
    t = s.target
    t.fresh()
    for n in range(5):
        s.wire.send(t.flush(psn=PSN + n))
    wrong = empty_wrong(s.wire.received(), *range(PSN, PSN + 5))
    if wrong:
        return wrong
    s.wire.send(t.flush(psn=PSN))
    if s.wire.received():
        return 'the forgotten one is answered'
    s.wire.send(t.flush(psn=PSN + 4))
    return empty_wrong(s.wire.received(), PSN + 4)


def behind_read(s):
    t = s.target
    t.fresh()
    s.wire.send(t.read(length=LENGTH))
    s.wire.send(t.flush(psn=PSN + LENGTH // MTU))
    answers = s.wire.received()
    if len(answers) != LENGTH // MTU + 1:
        return f'{len(answers)} answers'
    return empty_wrong(answers[-1:], PSN + LENGTH // MTU)
