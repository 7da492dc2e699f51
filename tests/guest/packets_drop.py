# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What drop monitors see: a packet that is dropped, and no other."""

import re
import socket

import pyverbs.enums as e
from pyverbs.qp import QPAttr

import packets_ip
import wire as w
from packets_ud import datagram
from target import PSN, QKEY, SENT_PSN
from tracefs import Trace

RC, UD = e.IBV_QPT_RC, e.IBV_QPT_UD


def cases(s):
    t, wire = s.target, s.wire
    for name, kind, count, send in (
            ('for a queue pair that is not there', RC, 1, lambda: wire.send(
                w.bth(w.WRITE_ONLY, 0xfffff0, PSN) + t.write()[12:])),
            ('damaged', RC, 1, lambda: wire.send(t.write(), trailer=b'\1\2\3\4')),
            ('cut off', RC, 1, lambda: wire.send_cut(t.write(), 40)),
            ('with IP options', RC, 1, lambda: packets_ip.options(s)),
            ('from another address', RC, 1, lambda: wire.send(
                t.write(), source=socket.inet_aton('10.79.0.3'))),
            ('to a group of nobody\'s', RC, 1, lambda: wire.send(
                w.bth(w.UD | w.SEND_ONLY, 0xffffff, PSN) + w.deth(1, 1))),
            ('to a queue pair in ERR', RC, 1, lambda: in_err(s)),
            ('that acknowledges what nobody sent', RC, 1, lambda: wire.send(
                t.bth(w.ACK, SENT_PSN, ack=False) + w.aeth(w.ACKED))),
            ('of another Q_Key', UD, 1, lambda: wire.send(datagram(t, qkey=QKEY + 1))),
            ('without a receive', UD, 1, lambda: wire.send(datagram(t))),
            ('with a receive', UD, 0, lambda: (t.post_receive(256), wire.send(datagram(t)))),
            ('that is executed', RC, 0, lambda: wire.send(t.write())),
            ('that is refused aloud', RC, 0, lambda: wire.send(t.write(rkey=1)))):
        s.case(f'drop monitors: a packet {name}',
               lambda k=kind, c=count, f=send: seen(s, k, c, f))


def in_err(s):
    t = s.target
    write = t.write()
    t.qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    s.wire.send(write)


def drops(act):
    """Where this module dropped packets while ACT ran."""
    with Trace('skb/kfree_skb') as trace:
        act()
        return re.findall(r'kfree_skb: .*location=(smw_\w+)', trace.text())


def seen(s, kind, count, send):
    s.target.fresh(kind=kind)
    found = drops(lambda: (send(), s.wire.settle()))
    return None if found == ['smw_rx_packet'] * count else f'drops {found}'
