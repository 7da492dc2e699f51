# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Opcodes in all orders, and PSNs off by everything.

A model of the responder says what a run of requests must lead to: which bytes
are written, whether the connection ends, and with which NAK.
"""

import itertools
import random
import struct

import wire as w
from target import CLEAN, LENGTH, MTU, PSN

STRIDE = 2048           # from the memory of one message to that of the next
SHORT = 16
STARTS = {w.SEND_FIRST, w.SEND_ONLY, w.SEND_ONLY_IMM, w.SEND_ONLY_INV, w.WRITE_FIRST,
          w.WRITE_ONLY, w.WRITE_ONLY_IMM, w.READ_REQUEST, w.CMP_SWAP, w.FETCH_ADD,
          w.FLUSH, w.ATOMIC_WRITE}
SENDS = {w.SEND_FIRST, w.SEND_MIDDLE, w.SEND_LAST, w.SEND_LAST_IMM, w.SEND_ONLY,
         w.SEND_ONLY_IMM, w.SEND_LAST_INV, w.SEND_ONLY_INV}
OPEN = {w.SEND_FIRST, w.SEND_MIDDLE, w.WRITE_FIRST, w.WRITE_MIDDLE}
INVALIDATES = {w.SEND_LAST_INV, w.SEND_ONLY_INV}
IMMEDIATE = {w.SEND_LAST_IMM, w.SEND_ONLY_IMM, w.WRITE_LAST_IMM, w.WRITE_ONLY_IMM}
WRITES = {w.WRITE_FIRST, w.WRITE_MIDDLE, w.WRITE_LAST, w.WRITE_LAST_IMM, w.WRITE_ONLY,
          w.WRITE_ONLY_IMM, w.ATOMIC_WRITE}
# The ones that shape messages, for longer runs.
SHAPES = (w.SEND_FIRST, w.SEND_MIDDLE, w.SEND_LAST, w.WRITE_FIRST, w.WRITE_MIDDLE,
          w.WRITE_LAST, w.WRITE_ONLY, w.READ_REQUEST)


def cases(s):
    quick = s.wire.slow > 1
    pairs = list(itertools.product(w.KNOWN, repeat=2))
    triples = list(itertools.product(SHAPES, repeat=3))
    rng = random.Random(4791)
    if quick:
        pairs, triples = rng.sample(pairs, 100), rng.sample(triples, 60)
    s.case(f'{len(w.KNOWN)} opcodes alone', lambda: runs(s, [(op,) for op in w.KNOWN]))
    s.case(f'{len(pairs)} pairs of opcodes', lambda: runs(s, pairs))
    s.case(f'{len(triples)} triples of opcodes', lambda: runs(s, triples))
    for name, make in (('WRITE', s.target.write), ('READ', s.target.read),
                       ('atomic', s.target.atomic), ('FLUSH', s.target.flush)):
        s.harmless(f'a {name} with a PSN off by everything', lambda m=make: [
            s.wire.send(m(psn=PSN + off)) for off in offsets(rng, 50 if quick else 400)])
    s.case('a gap is told once', lambda: gap(s))
    s.harmless('ACKs and NAKs with a PSN off by everything', lambda: [
        s.wire.send(s.target.bth(w.ACK, PSN + off) + w.aeth(syndrome))
        for off in offsets(rng, 30) for syndrome in (w.ACKED, w.NAK_ACCESS, w.RNR)])


def offsets(rng, count):
    edges = [1, 2, 3, 31, 32, 33, 1 << 22, (1 << 23) - 1, 1 << 23, (1 << 23) + 1,
             (1 << 24) - 2, (1 << 24) - 1]
    return edges + [rng.randrange(1, 1 << 24) for _ in range(count)]


def message_length(run, at):
    """Of the WRITE that begins at AT, so that what may follow fits."""
    length = MTU
    for op in run[at + 1:]:
        if op != w.WRITE_MIDDLE:
            break
        length += MTU
    return length + SHORT


def packet(t, run, at, psn):
    """The AT-th packet of a run; each message has memory of its own."""
    if run[at] & w.UC:
        plain = [op & ~w.UC for op in run]
        return bytes([run[at]]) + packet(t, plain, at, psn)[1:]
    op, va = run[at], t.mr.buf + at * STRIDE
    payload = bytes([0x41 + at]) * (MTU if op in OPEN else SHORT)
    if op in (w.CMP_SWAP, w.FETCH_ADD):
        old = int.from_bytes(CLEAN[:8], 'little')
        return t.atomic(op, at * STRIDE, compare=old, psn=psn)
    if op == w.READ_REQUEST:
        return t.read(at * STRIDE, SHORT, psn=psn)
    if op == w.FLUSH:
        return t.flush(at * STRIDE, SHORT, psn=psn)
    headers = t.bth(op, psn)
    if op == w.ATOMIC_WRITE:
        return headers + w.reth(va, t.mr.rkey, 8) + payload[:8]
    if op in (w.WRITE_FIRST, w.WRITE_ONLY, w.WRITE_ONLY_IMM):
        length = message_length(run, at) if op == w.WRITE_FIRST else SHORT
        headers += w.reth(va, t.mr.rkey, length)
    if op in IMMEDIATE:
        headers += b'IMMD'
    if op in INVALIDATES:
        headers += struct.pack('>I', t.mr.rkey)
    if op in w.RESPONSES:
        if op != w.READ_MIDDLE:
            headers += w.aeth()
        if op == w.ATOMIC_ACK:
            headers += b'\0' * 8
        if op in (w.ACK, w.ATOMIC_ACK):
            payload = b''
    return headers + payload


class Model:
    """An RC responder of which only memory and connection are seen."""

    def __init__(self):
        self.memory = bytearray(CLEAN)
        self.psn, self.kind, self.at = PSN, None, 0
        self.ended, self.naks = False, []

    def end(self, *naks):
        self.ended, self.naks = True, list(naks)

    def place(self, data):
        self.memory[self.at:self.at + len(data)] = data
        self.at += len(data)

    def take(self, at, op):
        if self.ended or op in w.RESPONSES:
            return
        kind = 'send' if op in SENDS else 'write' if op in WRITES else 'other'
        if (op in STARTS) == bool(self.kind) or self.kind not in (None, kind):
            self.end(w.NAK_INVALID)
            return
        if op in INVALIDATES:           # of a region, which nobody may: class J
            self.end()
            return
        self.psn += 1
        self.execute(at, op, kind)
        self.kind = kind if op in OPEN else None

    def execute(self, at, op, kind):
        if op in STARTS:
            self.at = at * STRIDE
        if op == w.CMP_SWAP:
            self.place((1).to_bytes(8, 'little'))
        elif op == w.FETCH_ADD:
            old = int.from_bytes(CLEAN[:8], 'little')
            self.place((old + 1).to_bytes(8, 'little'))
        elif op == w.ATOMIC_WRITE:
            self.place(bytes([0x41 + at]) * 8)
        elif kind == 'write':
            self.place(bytes([0x41 + at]) * (MTU if op in OPEN else SHORT))


class UnreliableModel(Model):
    """UC: what does not fit is dropped, with the rest of its message."""

    def take(self, at, op):
        op &= ~w.UC
        kind = 'send' if op in SENDS else 'write'
        self.psn += 1
        if op in STARTS or self.kind == kind:
            self.execute(at, op, kind)
            self.kind = kind if op in OPEN else None
        else:
            self.kind = None


def runs(s, every, model=Model, **how):
    for run in every:
        wrong = run_wrong(s, run, model(), how)
        if wrong:
            return f'{[hex(op) for op in run]}: {wrong}'
    return None


def run_wrong(s, run, model, how):
    t = s.target
    t.fresh(**how)
    for i in range(len(run)):
        t.post_receive(offset=i * 1024)
    for at, op in enumerate(run):
        s.wire.send(packet(t, run, at, model.psn))
        model.take(at, op)
    naks = [a.syndrome for a in s.wire.received()
            if a.syndrome is not None and a.syndrome & w.NAK == w.NAK]
    if t.ended() != model.ended:
        return f'ended {t.ended()}, not {model.ended}'
    if naks != model.naks:
        return f'NAKs {naks}, not {model.naks}'
    if t.memory() != model.memory or t.other.read(LENGTH, 0) != CLEAN:
        return 'the memory is not what it should be'
    return None


def gap(s):
    t = s.target
    t.fresh()
    for n in range(1, 50):
        s.wire.send(t.write(psn=PSN + n))
    answers = [(a.opcode, a.psn, a.syndrome) for a in s.wire.received()]
    if answers != [(w.ACK, PSN, w.NAK_SEQUENCE)]:
        return f'answers {answers}'
    return None if t.untouched() else 'something was placed'
