# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Each packet is counted under the name of what came of it, and under no other."""

import pyverbs.enums as e

import wire as w
from packets_answer import ack, ask
from packets_ud import datagram
from target import PSN, QKEY

RC, UC, UD = e.IBV_QPT_RC, e.IBV_QPT_UC, e.IBV_QPT_UD
WRITE = e.IBV_WR_RDMA_WRITE


def cases(s):
    t, wire = s.target, s.wire
    # What is sent to which queue pair; how many of them it takes, and how many it answers;
    # and what is counted besides.
    for name, kind, send, taken, answers, want in (
            ('a WRITE three times', RC, lambda: [wire.send(t.write()) for _ in range(3)],
             3, 3, {'duplicate_request': 2}),
            ('a READ twice', RC, lambda: [wire.send(t.read()) for _ in range(2)],
             2, 2, {'duplicate_request': 1}),
            ('an atomic twice', RC, lambda: [wire.send(t.atomic()) for _ in range(2)],
             2, 2, {'duplicate_request': 1}),
            ('a WRITE behind a gap', RC, lambda: wire.send(t.write(psn=PSN + 1)),
             1, 1, {'out_of_sequence': 1}),
            ('three WRITEs behind a gap', RC, lambda: [
                wire.send(t.write(psn=PSN + n)) for n in (1, 2, 3)],
             3, 1, {'out_of_sequence': 3}),
            ('a SEND without a receive', RC, lambda: wire.send(t.bth(w.SEND_ONLY) + b'X' * 16),
             1, 1, {'send_rnr_err': 1}),
            ('a SEND longer than the receive', RC, lambda: too_long(s),
             1, 1, {'resp_invalid_request_errors': 1}),
            ('a MIDDLE without its FIRST', RC, lambda: wire.send(t.write(w.WRITE_MIDDLE)),
             1, 1, {'resp_invalid_request_errors': 1}),
            ('an atomic that is not aligned', RC, lambda: wire.send(t.atomic(offset=4)),
             1, 1, {'resp_invalid_request_errors': 1}),
            ('a wrong key', RC, lambda: wire.send(t.write(rkey=t.mr.rkey ^ 1)),
             1, 1, {'resp_remote_access_errors': 1}),
            ('cut off', RC, lambda: wire.send_cut(t.write(), 20), 0, 0, {'rx_malformed': 1}),
            ('of another version', RC, lambda: wire.send(t.write(version=1)),
             0, 0, {'rx_malformed': 1}),
            ('of another transport', RC, lambda: wire.send(t.write(w.UC | w.WRITE_ONLY)),
             0, 0, {'rx_malformed': 1}),
            ('damaged', RC, lambda: wire.send(t.write(), trailer=b'\1\2\3\4'),
             0, 0, {'rx_icrc_errors': 1}),
            ('of another partition', RC, lambda: wire.send(t.write(pkey=0x8001)),
             0, 0, {'rx_pkey_violations': 1}),
            ('for a queue pair that is not there', RC, lambda: wire.send(
                w.bth(w.WRITE_ONLY, 0xfffff0, PSN) + t.write()[12:]), 0, 0, {'rx_dropped': 1}),
            ('a SEND without a receive, UC', UC, lambda: wire.send(
                t.bth(w.UC | w.SEND_ONLY) + b'X' * 16), 1, 0, {'rx_dropped': 1}),
            ('a SEND behind a gap, UC', UC, lambda: behind_gap(s), 1, 0, {'out_of_sequence': 1}),
            ('a wrong key, UC', UC, lambda: wire.send(
                t.write(w.UC | w.WRITE_ONLY, rkey=t.mr.rkey ^ 1)),
             1, 0, {'resp_remote_access_errors': 1}),
            ('a datagram without a receive', UD, lambda: wire.send(datagram(t)),
             1, 0, {'rx_dropped': 1}),
            ('a datagram of another Q_Key', UD, lambda: wire.send(datagram(t, qkey=QKEY + 1)),
             1, 0, {'rx_qkey_violations': 1})):
        s.case(f'counted: {name}', lambda row=(kind, send, taken, answers, want): received(s, *row))
    # What answers a WRITE; how often that is sent then; and what is counted besides.
    for name, answer, times, want in (
            ('an ACK', [ack(s)], 1, {}),
            ('an ACK twice', [ack(s)] * 2, 1, {'rx_dropped': 1}),
            ('a sequence NAK', [ack(s, w.NAK_SEQUENCE)], 2, {'packet_seq_err': 1}),
            ('an RNR NAK', [ack(s, w.RNR | 1)], 2, {'rcvd_rnr_err': 1, 'rnr_nak_retry_err': 1}),
            ('an RNR NAK twice', [ack(s, w.RNR | 28)] * 2, 1,
             {'rcvd_rnr_err': 2, 'rnr_nak_retry_err': 1}),
            ('an access NAK', [ack(s, w.NAK_ACCESS)], 1, {'req_remote_access_errors': 1}),
            ('an invalid request NAK', [ack(s, w.NAK_INVALID)], 1, {})):
        s.case(f'counted: {name}', lambda row=(answer, times, want): answered(s, *row))


def too_long(s):
    s.target.post_receive(8)
    s.wire.send(s.target.bth(w.SEND_ONLY) + b'X' * 16)


def behind_gap(s):
    s.target.post_receive()
    s.wire.send(s.target.bth(w.UC | w.SEND_ONLY, PSN + 1) + b'X' * 16)


def counted(s, before, want):
    after = s.device.counts()
    more = {name: n - before[name] for name, n in after.items() if n != before[name]}
    want = {name: n for name, n in want.items() if n}
    return None if more == want else f'{more}, not {want}'


def received(s, kind, send, taken, answers, want):
    s.target.fresh(kind=kind)
    before = s.device.counts()
    send()
    s.wire.settle()
    return counted(s, before, {'rcvd_pkts': taken, 'sent_pkts': answers, **want})


def answered(s, answer, times, want):
    """Without an answer it is sent once: it has no timeout."""
    before = s.device.counts()
    ask(s, WRITE, 16)
    for make in answer:
        s.wire.send(make())
    if times > 1:
        s.wire.wait_for(w.WRITE_ONLY)
    s.wire.settle()
    return counted(s, before, {'rcvd_pkts': len(answer), 'sent_pkts': times, **want})
