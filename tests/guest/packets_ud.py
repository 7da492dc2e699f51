# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A UD queue pair: it listens to everyone, and takes what has its Q_Key."""

import random
import socket
import subprocess

import pyverbs.enums as e

import wire as w
from target import CLEAN, PSN, QKEY

UD = e.IBV_QPT_UD
GRH = 40
# The queue pair for management datagrams: its number and its Q_Key.
GSI, GSI_QKEY = 1, 0x80010000
DATA = b'X' * 32


def cases(s):
    t = s.target
    rng = random.Random(64)
    stranger = {4: socket.inet_aton('10.79.0.77'),
                6: socket.inet_pton(socket.AF_INET6, 'fd79::77')}
    for version in 4, 6:
        s.case(f'UD: a datagram of anyone, IPv{version}',
               lambda version=version: taken(s, version, source=stranger[version]))
    s.case('UD: opcodes of RC and UC', lambda: dropped(s, lambda: [
        s.wire.send(datagram(t, op)) for op in w.KNOWN + w.KNOWN_UC],
        len(w.KNOWN + w.KNOWN_UC)))
    s.case('UD: opcodes that it has not', lambda: dropped(s, lambda: [
        s.wire.send(datagram(t, op)) for op in range(w.UD, 256) if op not in w.KNOWN_UD],
        256 - w.UD - len(w.KNOWN_UD)))
    s.case('UD: every truncation', lambda: dropped(s, lambda: [
        s.wire.send_cut(datagram(t, op), n) for op in w.KNOWN_UD for n in range(56)], 100))
    s.case('UD: a flood of wrong Q_Keys', lambda: wrong_qkeys(s, rng))
    s.case('UD: wrong partition, version and ICRC', lambda: dropped(s, lambda: (
        s.wire.send(datagram(t, pkey=0x1234)), s.wire.send(datagram(t, version=1)),
        s.wire.send(datagram(t), trailer=b'\0\0\0\0')), 3))
    s.case("UD: to another netdev's address", lambda: dropped(s, lambda: s.wire.send(
        datagram(t), target=socket.inet_aton('127.0.0.1')) or s.wire.send(
        datagram(t), target=other_address())))
    s.case('UD: to a group, by the address of one', lambda: dropped(s, lambda: s.wire.send(
        datagram(t, qpn=0xffffff)), 1))
    s.case('UD: of any PSN', lambda: any_psn(s, rng))
    s.case('UD: without a receive', lambda: no_receive(s))
    s.case('UD: longer than the receive', lambda: dropped(s, lambda: [
        s.wire.send(datagram(t, payload=b'X' * n)) for n in (36, 256, 1024)], 0, room=32))
    s.case('UD: management datagrams of another Q_Key', lambda: wrong_qkeys(
        s, rng, qpn=GSI, right=GSI_QKEY) or management_lives(s))
    s.case("UD: a management datagram to another netdev's address", lambda: dropped(
        s, lambda: s.wire.send(management(s), target=other_address())) or management_lives(s))
    s.case('UD: management datagrams that are none', lambda: garbage(s, rng))
    for name, kind in (('RC', e.IBV_QPT_RC), ('UC', e.IBV_QPT_UC)):
        s.case(f'UD: datagrams to {name}', lambda kind=kind: to_connected(s, kind))


def other_address():
    """One that this host has, and the device has not."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.connect(('10.77.0.99', 9))
    return socket.inet_aton(probe.getsockname()[0])


def datagram(t, opcode=w.UD | w.SEND_ONLY, qkey=QKEY, payload=DATA, qpn=None, **how):
    """Its transport bytes; what has no such header has as many bytes in its place."""
    imm = b'IMM!' if opcode & 0x1f == w.SEND_ONLY_IMM else b''
    bth = t.bth(opcode, **how) if qpn is None else w.bth(opcode, qpn, PSN)
    return bth + w.deth(qkey, 0x777) + imm + payload


def fresh(s, version=4, room=256):
    s.target.fresh(kind=UD, version=version)
    if room is not None:
        s.target.post_receive(GRH + room)


def received(t):
    return t.local.read(GRH + len(DATA) + 16, 0)


def taken(s, version=4, **how):
    """A good datagram arrives, behind its network header."""
    t = s.target
    fresh(s, version)
    s.wire.send(datagram(t), version=version, **how)
    s.wire.settle()
    return arrived(t, version)


def arrived(t, version=4):
    if t.completion() != e.IBV_WC_SUCCESS:
        return 'no completion'
    memory = received(t)
    if memory[GRH:] != DATA + CLEAN[:16]:
        return f'the receive has {memory}'
    if memory[20 if version == 4 else 0] >> 4 != version or not t.untouched():
        return f'its header is {memory[:GRH]}'
    return None


def works(s):
    """The receive that is posted takes a good one, and nothing came before."""
    t = s.target
    if not t.silent():
        return 'a completion'
    if received(t) != CLEAN[:GRH + len(DATA) + 16] or not t.untouched():
        return 'something was placed'
    if t.state() != e.IBV_QPS_RTS:
        return f'the queue pair is in state {t.state()}'
    s.wire.send(datagram(t))
    s.wire.settle()
    return arrived(t)


def dropped(s, send, packets=0, room=256):
    fresh(s, room=room)
    before = s.device.dropped()
    send()
    answers = s.wire.received()
    counted = s.device.dropped() - before
    if answers or counted < packets:
        return f'answers {answers}, {counted} counted of {packets}'
    return works(s)


def wrong_qkeys(s, rng, qpn=None, right=QKEY):
    fresh(s)
    wrong = [0, right ^ 1, right ^ 1 << 31] + [rng.randrange(1 << 31, 1 << 32)
                                              for _ in range(500)]
    before = s.device.counters('rx_qkey_violations')
    for qkey in wrong:
        s.wire.send(datagram(s.target, qkey=qkey, qpn=qpn))
    s.wire.settle()
    counted = s.device.counters('rx_qkey_violations') - before
    return works(s) or (f'{counted} counted of {len(wrong)}' if counted != len(wrong) else None)


def management(s, payload=bytes(256)):
    return datagram(s.target, qpn=GSI, qkey=GSI_QKEY, payload=payload)


def management_lives(s):
    """The RDMA core's queue pair still takes datagrams."""
    shown = subprocess.run(['rdma', 'resource', 'show', 'qp', 'link', f'{s.device.name}/1'],
                           capture_output=True, text=True, check=True).stdout
    if f'lqpn {GSI} type GSI state RTS' not in shown:
        return f'there is no such queue pair: {shown}'
    before = s.device.dropped()
    s.wire.send(management(s))
    s.wire.settle()
    return 'it drops datagrams' if s.device.dropped() != before else None


def garbage(s, rng):
    """Lengths that no management datagram has, and content that the core refuses."""
    fresh(s)
    for size in 0, 4, 20, 24, 252, 256, 260, 1024:
        s.wire.send(management(s, payload=b'\xff' * size))
    for _ in range(50):
        # 1 is the one version of the common header that is taken.
        s.wire.send(management(s, payload=b'\x02' + rng.randbytes(255)))
    s.wire.settle()
    s.wire.received()
    return management_lives(s) or works(s)


def to_connected(s, kind):
    t = s.target
    t.fresh(kind=kind)
    t.post_receive(1024)
    before = s.device.dropped()
    for opcode in w.KNOWN_UD:
        s.wire.send(datagram(t, opcode))
    answers = s.wire.received()
    counted = s.device.dropped() - before
    if answers or counted != len(w.KNOWN_UD):
        return f'answers {answers}, {counted} counted'
    if not t.silent() or t.state() != e.IBV_QPS_RTR:
        return f'a completion, or state {t.state()}'
    return None


def any_psn(s, rng):
    for _ in range(20):
        fresh(s)
        s.wire.send(datagram(s.target, psn=rng.randrange(1 << 24)))
        s.wire.settle()
        if wrong := arrived(s.target):
            return wrong
    return None


def no_receive(s):
    fresh(s, room=None)
    before = s.device.dropped()
    for _ in range(50):
        s.wire.send(datagram(s.target))
    s.wire.settle()
    if (counted := s.device.dropped() - before) != 50:
        return f'{counted} counted of 50'
    s.target.post_receive(GRH + 256)
    return works(s)
