# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Requests that come while a long READ is answered: they wait, in bounded memory."""

import contextlib
import os
import subprocess
import time

import pyverbs.enums as e
from pyverbs.mr import MR

import wire as w
from target import MTU, PSN, REMOTE

STOCK = os.environ.get('SMW_KERNEL', 'stock') == 'stock'
# So long that its responses are still being sent when a case has looked; where all is
# slow that would take minutes, and nobody could tell when it is over.
LENGTH = 1 << (28 if STOCK else 22)
BEHIND = PSN + LENGTH // MTU
# As many as may wait (drivers/net/rx.c).
BACKLOG = 256


def cases(s):
    if STOCK:
        s.case('behind a READ: a WRITE waits', lambda: waits(s, 1, 16, 0))
        s.case('behind a READ: packets longer than the path MTU do not', lambda: waits(
            s, 20, MTU + 4, 20))
        s.case('behind a READ: more than may wait', lambda: waits(
            s, BACKLOG + 50, 16, 50))
    s.case('behind a READ: the queue pair goes', lambda: goes(s))
    s.case('behind a READ: a WRITE is executed after it', lambda: executed(s))


def discard(what):
    """What leaves the device's netdev; the host's queue has room for what comes."""
    subprocess.run(['tc', 'qdisc', what, 'dev', 'near', 'root', 'netem', 'loss', '100%'],
                   check=True)


@contextlib.contextmanager
def region_of(s, length=LENGTH):
    """To be read by a queue pair in RTR; whatever happens, the READ is over then."""
    t = s.target
    subprocess.run(['modprobe', 'sch_netem'], check=True)
    with MR(s.device.pd, length, e.IBV_ACCESS_LOCAL_WRITE | REMOTE) as region:
        t.fresh()
        discard('add')
        try:
            yield t, region
        finally:
            t.fresh()
            discard('del')
            s.wire.settle()
            s.wire.drain()


def send_behind(s, t, region, requests, length=LENGTH):
    """A READ and what comes while it is answered, as fast as can be: all is made before."""
    packets = [s.wire.packet(request) for request in
               [t.bth(w.READ_REQUEST) + w.reth(region.buf, region.rkey, length)] + requests]
    for packet in packets:
        s.wire.send_packet(packet)


def waits(s, count, size, dropped):
    """Of COUNT packets so many are dropped at once; the others wait, and do nothing."""
    with region_of(s) as (t, region):
        before = s.device.dropped()
        send_behind(s, t, region, [t.write(psn=BEHIND + n, length=size, payload=b'X' * size)
                                   for n in range(count)])
        s.wire.settle()
        # Once the READ is over, the first of them is executed or refused.
        untouched, state = t.untouched(), t.state()
        counted = s.device.dropped() - before
    if counted != dropped:
        return f'{counted} dropped of {count}'
    return None if untouched and state == e.IBV_QPS_RTR else f'state {state}'


def executed(s):
    """Of a READ that ends soon."""
    length = 1 << 18
    with region_of(s, length) as (t, region):
        send_behind(s, t, region, [t.write(psn=PSN + length // MTU)], length)
        end = time.monotonic() + 20 * s.wire.slow
        while t.memory()[:16] != b'X' * 16:
            if time.monotonic() > end:
                return 'it is not executed'
            time.sleep(0.01)
    return None


def goes(s):
    """With all that waits."""
    for _ in range(3):
        with region_of(s) as (t, region):
            send_behind(s, t, region, [t.write(psn=BEHIND + n) for n in range(BACKLOG)])
