# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Keys: wrong ones, and windows that are another's, too small, or gone."""

import random
import time

import pyverbs.enums as e

import wire as w
from target import CLEAN, FLUSH_GLOBAL, PSN, REMOTE, Target

WINDOW, SIZE = 4096, 1000       # bytes of the region that a window is bound to
# What each of requests() needs.
RIGHTS = (e.IBV_ACCESS_REMOTE_WRITE, e.IBV_ACCESS_REMOTE_READ, e.IBV_ACCESS_REMOTE_ATOMIC,
          e.IBV_ACCESS_REMOTE_WRITE, FLUSH_GLOBAL, FLUSH_GLOBAL)


def cases(s):
    s.case('a flood of wrong keys: each costs the connection', lambda: flood(s))
    s.case('after the first wrong key the right one is no use either', lambda: too_late(s))
    s.case('through a window: inside works, a byte outside ends it', lambda: edges(s))
    s.case('a window of another queue pair', lambda: others_window(s))
    s.case('a window after LOCAL_INV', lambda: gone(s, invalidated))
    s.case('a window after its deallocation', lambda: gone(s, deallocated))
    s.case('every other key byte of a window', lambda: key_bytes(s))
    s.case('a window without the right', lambda: no_right(s))
    s.case('SEND with invalidate of another\'s window', lambda: others_invalidate(s))


def requests(t, key, offset, psn=PSN):
    """One of each kind that uses a key, 16 bytes or eight, in the order of RIGHTS."""
    return (t.write(rkey=key, offset=offset, psn=psn),
            t.read(rkey=key, offset=offset, psn=psn),
            t.atomic(rkey=key, offset=offset, psn=psn),
            t.write(w.ATOMIC_WRITE, rkey=key, offset=offset, length=8, payload=b'X' * 8,
                    psn=psn),
            t.flush(rkey=key, offset=offset, psn=psn),
            t.flush(rkey=key, offset=offset, psn=psn, selectivity=w.REGION))


def flood(s):
    """Guess as an attacker would who has a connection and is given new ones."""
    t, rng = s.target, random.Random(1)
    guesses = 300 // s.wire.slow
    start, before = time.monotonic(), s.device.counters('resp_remote_access_errors')
    spent = 0.0
    for _ in range(guesses):
        t.fresh()
        sent = time.monotonic()
        for _ in range(3):
            key = rng.randrange(1 << 32)
            # The chance to hit one of a dozen keys is 3e-9 a guess.
            s.wire.send(t.write(rkey=key))
        s.wire.settle()
        spent += time.monotonic() - sent
        if not t.ended() or not t.untouched():
            return f'key {key:#x}: ended {t.ended()}'
    counted = s.device.counters('resp_remote_access_errors') - before
    if counted != guesses:
        return f'{counted} keys were looked at in {guesses} connections'
    print(f'# {guesses} connections, {3 * guesses} packets, {counted} keys tried,',
          f'{time.monotonic() - start:.2f} s, {spent:.2f} s of them sending')
    return None


def too_late(s):
    t = s.target
    for wrong in requests(t, 0x12345600, 0) if t.qp else ():
        t.fresh()
        s.wire.send(wrong[:4] + t.bth(w.WRITE_ONLY)[4:8] + wrong[8:])
        for n in range(100):
            s.wire.send(t.write(psn=PSN + n))
        answers = s.wire.received()
        if not t.ended() or not t.untouched() or len(answers) != 1:
            return f'{len(answers)} answers, ended {t.ended()}'
    return None


def edges(s):
    t = s.target
    for offset, size, inside in ((WINDOW, 1, True), (WINDOW + SIZE - 1, 1, True),
                                 (WINDOW, SIZE, False), (WINDOW - 1, 1, False),
                                 (WINDOW + SIZE, 1, False), (WINDOW + SIZE - 1, 2, False),
                                 (WINDOW - 1, 16, False)):
        t.fresh(sends=True)
        window = t.window()
        key = t.bind(window, WINDOW, SIZE)
        data = b'X' * min(size, 16)
        # A SIZE of more than a packet is one byte of payload short of its RETH.
        s.wire.send(t.write(rkey=key, offset=offset, length=size, payload=data,
                            pad=-len(data) % 4) + b'\0' * (-len(data) % 4))
        s.wire.settle()
        placed = t.memory() == CLEAN[:offset] + data + CLEAN[offset + len(data):]
        ended = t.ended()
        window.close()
        if (placed, ended) != (inside, not inside):
            return f'{size} bytes at {offset}: placed {placed}, ended {ended}'
        if not inside and not t.untouched():
            return f'{size} bytes at {offset}: something was placed'
    return None


def all_refused(s, t, key, prepare=lambda: None):
    """Every kind of request by KEY is refused, in a connection of its own each."""
    for kind in range(len(RIGHTS)):
        t.fresh()
        prepare()
        s.wire.send(requests(t, key, WINDOW)[kind])
        answers = s.wire.received()
        if [a.syndrome for a in answers] != [w.NAK_ACCESS] or not t.ended():
            return f'kind {kind}: answers {answers}, ended {t.ended()}'
        if not t.untouched():
            return f'kind {kind}: something was placed'
    return None


def others_window(s):
    """Type 2B: same PD, same region, another queue pair; the owner is unharmed."""
    owner = Target(s.device)
    owner.fresh(sends=True)
    window = owner.window()
    key = owner.bind(window, WINDOW, SIZE)
    t = s.target
    t.fresh()
    wrong = all_refused(s, s.target, key) if owner.untouched() else 'touched'
    t.fresh()
    # The very addresses of the window.
    for request in requests(t, key, owner.mr.buf + WINDOW - t.mr.buf):
        s.wire.send(request)
    s.wire.settle()
    if not wrong and not (t.ended() and owner.untouched()):
        wrong = 'the window let another queue pair in'
    s.wire.send(owner.write(rkey=key, offset=WINDOW))
    s.wire.settle()
    if not wrong and owner.memory()[WINDOW:WINDOW + 16] != b'X' * 16:
        wrong = 'its own queue pair is refused'
    window.close()
    owner.close()
    return wrong


def invalidated(t, window, key):
    t.invalidate(key)


def deallocated(t, window, key):
    window.close()


def gone(s, how):
    t = s.target
    for kind in range(len(RIGHTS)):
        t.fresh(sends=True)
        window = t.window()
        key = t.bind(window, WINDOW, SIZE)
        s.wire.send(requests(t, key, WINDOW)[kind])
        if s.wire.received()[0].syndrome != w.ACKED:
            return f'kind {kind}: refused while bound'
        how(t, window, key)
        memory = t.memory()
        s.wire.send(requests(t, key, WINDOW, PSN + 1)[kind])
        answers = s.wire.received()
        window.close()
        if [a.syndrome for a in answers] != [w.NAK_ACCESS] or not t.ended():
            return f'kind {kind}: answers {answers}'
        if t.memory() != memory:
            return f'kind {kind}: something was placed'
    return None


def key_bytes(s):
    t = s.target
    step = 16 if s.wire.slow > 1 else 1
    for byte in range(1, 256, step):
        t.fresh(sends=True)
        window = t.window()
        key = t.bind(window, WINDOW, SIZE)
        s.wire.send(t.write(rkey=key ^ byte, offset=WINDOW))
        s.wire.settle()
        ended = t.ended()
        window.close()
        if not ended or not t.untouched():
            return f'key byte off by {byte:#x}'
    return None


def no_right(s):
    t = s.target
    for kind, needed in enumerate(RIGHTS):
        t.fresh(sends=True)
        window = t.window()
        key = t.bind(window, WINDOW, SIZE, REMOTE & ~needed)
        s.wire.send(requests(t, key, WINDOW)[kind])
        answers = s.wire.received()
        window.close()
        if [a.syndrome for a in answers] != [w.NAK_ACCESS] or not t.untouched():
            return f'kind {kind}: answers {answers}'
    return None


def others_invalidate(s):
    owner = Target(s.device)
    owner.fresh(sends=True)
    window = owner.window()
    key = owner.bind(window, WINDOW, SIZE)
    t = s.target
    t.fresh()
    t.post_receive()
    s.wire.send(t.bth(w.SEND_ONLY_INV) + key.to_bytes(4, 'big') + b'X' * 16)
    answers = s.wire.received()
    s.wire.send(owner.write(rkey=key, offset=WINDOW))
    s.wire.settle()
    works = owner.memory()[WINDOW:WINDOW + 16] == b'X' * 16
    window.close()
    owner.close()
    if answers or not t.ended():
        return f'answers {answers}, ended {t.ended()}'
    return None if works else 'the window is gone'
