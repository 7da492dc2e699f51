# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What drop monitors see: a packet that is dropped, and no other."""

import os
import re
import socket

import packets_ip
import wire as w
from target import PSN

TRACE = '/sys/kernel/tracing/instances/smw_drops'


def cases(s):
    t, wire = s.target, s.wire
    for name, count, send in (
            ('for a queue pair that is not there', 1, lambda: wire.send(
                w.bth(w.WRITE_ONLY, 0xfffff0, PSN) + t.write()[12:])),
            ('damaged', 1, lambda: wire.send(t.write(), trailer=b'\1\2\3\4')),
            ('cut off', 1, lambda: wire.send_cut(t.write(), 40)),
            ('with IP options', 1, lambda: packets_ip.options(s)),
            ('from another address', 1, lambda: wire.send(
                t.write(), source=socket.inet_aton('10.79.0.3'))),
            ('to a group of nobody\'s', 1, lambda: wire.send(
                w.bth(w.UD | w.SEND_ONLY, 0xffffff, PSN) + w.deth(1, 1))),
            ('that is executed', 0, lambda: wire.send(t.write())),
            ('that is refused aloud', 0, lambda: wire.send(t.write(rkey=1)))):
        s.case(f'drop monitors: a packet {name}', lambda c=count, f=send: seen(s, c, f))


def put(name, text):
    with open(f'{TRACE}/{name}', 'w', encoding='ascii') as file:
        file.write(text)


def drops(act):
    """Where this module dropped packets while ACT ran."""
    os.mkdir(TRACE)
    try:
        put('events/skb/kfree_skb/enable', '1')
        act()
        with open(f'{TRACE}/trace', encoding='ascii') as file:
            return re.findall(r'kfree_skb: .*location=(smw_\w+)', file.read())
    finally:
        os.rmdir(TRACE)


def seen(s, count, send):
    s.target.fresh()
    found = drops(lambda: (send(), s.wire.settle()))
    return None if found == ['smw_rx_packet'] * count else f'drops {found}'
