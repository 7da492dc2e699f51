# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""packets.py DEVICE GID-INDEX GID-INDEX-6 [REGEX]: malformed and hostile packets.

Queue pairs wait for a peer at the far end of a veth pair, where wire.py makes
packets; target.py is the queue pair and its memory. After each case its memory
must be as the case says, and so must its state; the memory and the queue pair
of a bystander are never touched.

    packets_form.py      truncated, damaged, misdirected
    packets_ip.py        what is wrong below the transport headers
    packets_order.py     opcodes in all orders, PSNs off by everything
    packets_replay.py    requests again, with another key, range or content
    packets_key.py       wrong keys, windows that are another's or gone
    packets_flush.py     FLUSH
    packets_answer.py    responses, to a queue pair that asked
    packets_empty.py     those to a FLUSH and an ATOMIC WRITE
    packets_uc.py        a UC queue pair, which drops in silence
    packets_ud.py        a UD queue pair, which listens to everyone
    packets_wait.py      requests that come while a READ is answered
    packets_drop.py      what drop monitors see of all that
    packets_count.py     and what the counters do
    packets_source.py    an address that goes, under those who send from it
    packets_mad.py       management datagrams, for the RDMA core's connection manager
"""

import re
import sys
import time

import pyverbs.enums as e

import packets_answer
import packets_count
import packets_drop
import packets_empty
import packets_flush
import packets_form
import packets_ip
import packets_key
import packets_mad
import packets_order
import packets_replay
import packets_source
import packets_uc
import packets_ud
import packets_wait
import wire as w
from target import CLEAN, LENGTH, Device, Target


class Suite:
    def __init__(self, device, only):
        self.device, self.wire, self.only = device, device.wire, only
        self.target = Target(device)
        self.bystander = Target(device)
        self.bystander.fresh()
        self.cases = 0

    def case(self, name, check):
        """CHECK returns what is wrong, or nothing."""
        if not re.search(self.only, name):
            return
        start, self.cases = time.monotonic(), self.cases + 1
        try:
            wrong = check() or self.bystander_wrong()
        except Exception as error:          # pylint: disable=broad-except
            wrong = f'{type(error).__name__}: {error}'
        if wrong:
            print('#', wrong)
        print('not ok' if wrong else 'ok', self.cases, name)
        print(f'# {time.monotonic() - start:.1f} s', flush=True)

    def bystander_wrong(self):
        if self.bystander.state() != e.IBV_QPS_RTR or not self.bystander.untouched():
            return 'the bystander is not what it was'
        return None

    def harmless(self, name, send, packets=0, **how):
        """Nothing is placed, the queue pair lives on, at least PACKETS are counted."""
        self.case(name, lambda: self.harmless_wrong(send, packets, how))

    def harmless_wrong(self, send, packets, how):
        t = self.target
        t.fresh(**how)
        before = self.device.dropped()
        send()
        self.wire.settle()
        counted = self.device.dropped() - before
        if t.state() != e.IBV_QPS_RTR:
            return f'the queue pair is in state {t.state()}'
        if not t.untouched():
            return 'something was placed'
        if counted < packets:
            return f'{counted} counted of {packets}'
        return self.works_wrong()

    def works_wrong(self):
        """It still takes a good packet."""
        t = self.target
        self.wire.send(t.write())
        self.wire.settle()
        if t.memory() != b'X' * 16 + CLEAN[16:]:
            return 'a good packet is not executed any more'
        return None

    def refused(self, name, make, syndrome=None):
        """Nothing is placed, the connection ends, and the NAK says so."""
        self.case(name, lambda: self.refused_wrong(make, syndrome))

    def refused_wrong(self, make, syndrome):
        t = self.target
        t.fresh()
        self.wire.send(make())
        answers = self.wire.received()
        if not t.ended() or not t.untouched():
            return f'ended {t.ended()}, untouched {t.untouched()}'
        if syndrome and [a.syndrome for a in answers] != [syndrome]:
            return f'answers {answers}'
        return None

    def bystander_works(self):
        self.wire.version = 4
        self.wire.send(self.bystander.write())
        self.wire.settle()
        if self.bystander.memory() != b'X' * 16 + CLEAN[16:LENGTH]:
            return 'its good packet is not executed'
        self.bystander.fresh()
        return None

    def run(self):
        for part in (packets_form, packets_ip, packets_order, packets_replay, packets_key,
                     packets_flush, packets_answer, packets_empty, packets_uc, packets_ud,
                     packets_wait, packets_drop, packets_count, packets_source, packets_mad):
            part.cases(self)
            self.case(f'after {part.__name__}: the bystander works', self.bystander_works)
        print(f'1..{self.cases}')


def main():
    wire = w.Wire('near', 'far', 'remote', ('10.79.0.1', '10.79.0.2'),
                  ('fd79::1', 'fd79::2'))
    device = Device(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), wire)
    Suite(device, sys.argv[4] if len(sys.argv) > 4 else '').run()


main()
