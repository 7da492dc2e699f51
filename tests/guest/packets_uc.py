# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A UC queue pair: it answers nothing, and what is wrong is dropped in silence."""

import itertools
import random

import pyverbs.enums as e

import wire as w
from packets_order import SHAPES, UnreliableModel, offsets, runs
from target import CLEAN, LENGTH, MTU, PSN

UC = e.IBV_QPT_UC


def cases(s):
    t = s.target
    pairs = list(itertools.product(w.KNOWN_UC, repeat=2))
    triples = list(itertools.product([w.UC | op for op in SHAPES if op != w.READ_REQUEST],
                                     repeat=3))
    rng = random.Random(32)
    if s.wire.slow > 1:
        pairs, triples = rng.sample(pairs, 40), rng.sample(triples, 40)
    s.case('UC: opcodes alone', lambda: order(s, [(op,) for op in w.KNOWN_UC]))
    s.case(f'UC: {len(pairs)} pairs of opcodes', lambda: order(s, pairs))
    s.case(f'UC: {len(triples)} triples of opcodes', lambda: order(s, triples))
    s.case('UC: opcodes of RC', lambda: dropped(s, lambda: [
        s.wire.send(t.write(op)) for op in w.KNOWN], len(w.KNOWN)))
    s.case('UC: opcodes that it has not', lambda: dropped(s, lambda: [
        s.wire.send(t.write(op)) for op in range(w.KNOWN_UC[-1] + 1, w.UC * 2)], 20))
    s.case('UC: wrong keys and ranges', lambda: dropped(s, lambda: [
        s.wire.send(write(t, psn=PSN + n, **change)) for n, change in enumerate(wrong(t))]))
    s.case('UC: a flood of wrong keys', lambda: dropped(s, lambda: [
        s.wire.send(write(t, psn=PSN + n, rkey=rng.randrange(1 << 32))) for n in range(500)]))
    s.case('UC: the rest of a message behind a gap', lambda: dropped(s, lambda: [
        s.wire.send(t.bth(w.UC | op, PSN + psn) + b'X' * MTU)
        for op in (w.WRITE_MIDDLE, w.WRITE_LAST, w.SEND_MIDDLE, w.SEND_LAST)
        for psn in offsets(rng, 20)]))
    s.case('UC: a whole message of any PSN', lambda: any_psn(s, rng))
    s.case('UC: responses', lambda: dropped(s, lambda: [
        s.wire.send(t.bth(bit | op) + w.aeth() + b'X' * 32)
        for op in sorted(w.RESPONSES) for bit in (0, w.UC)], 12))


def write(t, **how):
    return bytes([w.UC | w.WRITE_ONLY]) + t.write(**how)[1:]


def wrong(t):
    return ({'rkey': t.mr.rkey ^ 1}, {'rkey': 0}, {'rkey': t.mr.rkey ^ 0x5a5a00},
            {'rkey': t.local.lkey}, {'offset': -1}, {'offset': LENGTH - 15},
            {'va': 0xfffffffffffffff8}, {'length': 32}, {'length': 8},
            {'length': 0x80000001}, {'payload': b'X' * 260, 'length': 260})


def order(s, every):
    return runs(s, every, UnreliableModel, kind=UC)


def dropped(s, send, packets=0):
    """Nothing is placed or answered; the queue pair lives on and takes a good one."""
    t = s.target
    t.fresh(kind=UC)
    before = s.device.dropped()
    send()
    answers = s.wire.received()
    if answers or t.ended() or not t.untouched():
        return f'answers {answers}, ended {t.ended()}, untouched {t.untouched()}'
    if s.device.dropped() - before < packets:
        return f'{s.device.dropped() - before} counted of {packets}'
    s.wire.send(write(t))
    s.wire.settle()
    return None if t.memory() == b'X' * 16 + CLEAN[16:] else 'a good packet is not executed'


def any_psn(s, rng):
    t = s.target
    t.fresh(kind=UC)
    for n, off in enumerate(offsets(rng, 50)):
        payload = bytes([n + 1]) * 16
        s.wire.send(write(t, psn=PSN + off, payload=payload))
        s.wire.settle()
        if t.memory() != payload + CLEAN[16:] or t.ended():
            return f'a PSN off by {off}'
    return None
