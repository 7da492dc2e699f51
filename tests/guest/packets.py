# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""packets.py DEVICE GID-INDEX ADDRESS: malformed and hostile packets.

A queue pair waits in RTR for a peer at the device's own address; the packets
come from a raw socket with headers and ICRC made here. After each case its
memory must be as it was, and its state as the case says.
"""

import os
import socket
import struct
import sys
import time
import zlib

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

PORT = 4791
PSN = 1000
LENGTH = 4096
REMOTE = (e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_REMOTE_ATOMIC)
WRITE_ONLY, WRITE_FIRST, WRITE_MIDDLE, READ_REQUEST = 0x0a, 0x06, 0x07, 0x0c
CMP_SWAP, ACK = 0x13, 0x11
# What the device implements of RC (drivers/proto/opcode.c).
KNOWN = set(range(0x15)) | {0x16, 0x17, 0x1d}


class Target:
    """A responder in RTR and the memory that packets aim at."""

    def __init__(self, device, gid_index, address):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        self.mr = MR(self.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE | REMOTE)
        self.gid_index, self.address = gid_index, address
        self.qp = None

    def fresh(self):
        """A new queue pair, and memory of a known pattern."""
        if self.qp:
            self.qp.close()
        cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = REMOTE
        self.qp = QP(self.pd, init, attr)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = self.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_dest_rd_atomic, attr.min_rnr_timer, attr.rq_psn = 4, 12, PSN
        gid = socket.inet_pton(socket.AF_INET6, '::ffff:' + self.address)
        route = GlobalRoute(dgid=self.context.query_gid(1, self.gid_index),
                            sgid_index=self.gid_index)
        assert gid
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, dlid=0)
        attr.qp_access_flags = REMOTE
        self.qp.to_rtr(attr)
        self.mr.write('.' * LENGTH, LENGTH)

    def untouched(self):
        return self.mr.read(LENGTH, 0) == b'.' * LENGTH

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state


def headers(address, udp_len):
    """IPv4 and UDP headers as a raw socket sends them."""
    source = socket.inet_aton(address)
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + udp_len, 7, 0x4000, 64, 17, 0,
                     source, source)
    return ip, struct.pack('>HHHH', 50000, PORT, udp_len, 0)


def icrc(ip, udp, transport):
    masked = bytearray(ip + udp + transport)
    masked[1] = masked[8] = 0xff
    masked[10:12] = masked[26:28] = b'\xff\xff'
    if len(masked) > 32:
        masked[32] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked)))


class Wire:
    """A raw socket to the device's own address, from one CPU: packets keep order."""

    def __init__(self, address):
        os.sched_setaffinity(0, {0})
        self.address = address
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.fence = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.fence.bind((address, 0))
        self.fence.settimeout(20)

    def send(self, transport, trailer=None, cut=None):
        """Send TRANSPORT with its ICRC, or TRAILER for it; CUT to that many bytes."""
        ip, udp = headers(self.address, 8 + len(transport) + 4)
        whole = transport + (icrc(ip, udp, transport) if trailer is None else trailer)
        if cut is not None:
            ip, udp = headers(self.address, 8 + cut)
            whole = whole[:cut]
        self.raw.sendto(ip + udp + whole, (self.address, 0))

    def settle(self):
        """Wait until what was sent has been received: it may be left to ksoftirqd."""
        self.fence.sendto(b'', self.fence.getsockname())
        self.fence.recv(1)


def bth(opcode, qpn, psn, pad=0, version=0, pkey=0xffff, ack=True):
    return struct.pack('>BBHII', opcode, pad << 4 | version, pkey, qpn,
                       ack << 31 | psn)


def reth(va, rkey, length):
    return struct.pack('>QII', va, rkey, length)


def counters(device):
    """How many packets were dropped. The kernel keeps what it read for a jiffy."""
    time.sleep(0.02)
    path = f'/sys/class/infiniband/{device}/ports/1/hw_counters/'
    with open(path + 'lifespan', 'w', encoding='ascii') as file:
        file.write('0')
    names = 'rx_dropped', 'rx_malformed', 'rx_icrc_errors'
    total = 0
    for name in names:
        with open(path + name, encoding='ascii') as file:
            total += int(file.read())
    return total


class Suite:
    def __init__(self, device, gid_index, address):
        self.device = device
        self.target = Target(device, gid_index, address)
        self.wire = Wire(address)
        self.cases = 0

    def say(self, passed, name, why=''):
        self.cases += 1
        if not passed and why:
            print('#', why)
        print('ok' if passed else 'not ok', self.cases, name, flush=True)

    def write(self, **kw):
        """The transport bytes of a good RDMA WRITE ONLY of 16 bytes."""
        t = self.target
        fields = {'opcode': WRITE_ONLY, 'qpn': t.qp.qp_num, 'psn': PSN}
        fields.update({k: v for k, v in kw.items() if k in
                       ('opcode', 'qpn', 'psn', 'pad', 'version', 'pkey')})
        return (bth(**fields) + reth(kw.get('va', t.mr.buf),
                                     kw.get('rkey', t.mr.rkey), kw.get('length', 16)) +
                kw.get('payload', b'X' * 16))

    def harmless(self, name, send, packets=1):
        """Nothing is placed, the queue pair lives on, the packets are counted."""
        t = self.target
        t.fresh()
        before = counters(self.device)
        send()
        self.wire.settle()
        counted = counters(self.device) - before
        alive = t.state() == e.IBV_QPS_RTR
        # It still takes a good one.
        still = t.untouched()
        self.wire.send(self.write())
        self.wire.settle()
        works = t.mr.read(16, 0) == b'X' * 16
        self.say(alive and still and works and counted >= packets, name,
                 f'alive {alive}, untouched {still}, works {works}, counted {counted}')

    def refused(self, name, transport):
        """Nothing is placed and the connection ends."""
        t = self.target
        t.fresh()
        self.wire.send(transport())
        self.wire.settle()
        ended = t.state() == e.IBV_QPS_ERR
        self.say(ended and t.untouched(), name, f'ended {ended}')

    def duplicates(self):
        """A READ and an atomic asked for again when their key is dead: refused, but
        the requester may be past them, so the connection lives on."""
        t = self.target
        t.fresh()
        other = MR(t.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE | REMOTE)
        read = bth(READ_REQUEST, t.qp.qp_num, PSN) + reth(other.buf, other.rkey, 64)
        swap = bth(CMP_SWAP, t.qp.qp_num, PSN + 1) + struct.pack(
            '>QIQQ', other.buf, other.rkey, 1, 2)
        for packet in (read, swap):
            self.wire.send(packet)
        self.wire.settle()
        other.close()
        for packet in (read, swap):
            self.wire.send(packet)
        self.wire.settle()
        alive = t.state() == e.IBV_QPS_RTR
        self.wire.send(self.write(psn=PSN + 2))
        self.wire.settle()
        works = t.mr.read(16, 0) == b'X' * 16
        self.say(alive and works, 'duplicates by a key that is dead',
                 f'alive {alive}, works {works}')

    def run(self):
        t, wire = self.target, self.wire
        t.fresh()
        wire.send(self.write())
        wire.settle()
        self.say(t.mr.read(16, 0) == b'X' * 16, 'a good packet is executed')
        t.fresh()
        whole = len(self.write()) + 4
        self.harmless('every truncation', lambda: [
            wire.send(self.write(), cut=n) for n in range(whole)], whole - 5)
        unknown = [op for op in range(256) if op not in KNOWN]
        self.harmless('every truncation of the headers, with an ICRC that fits', lambda: [
            wire.send(self.write()[:n]) for n in range(28)], 24)
        self.harmless('every unknown opcode', lambda: [
            wire.send(self.write(opcode=op)) for op in unknown], len(unknown))
        self.harmless('a wrong ICRC', lambda: wire.send(self.write(), b'\1\2\3\4'))
        self.harmless('every bit of an ICRC', lambda: [
            wire.send(self.write(), struct.pack('<I', 1 << n)) for n in range(32)], 32)
        self.harmless('a wrong queue pair', lambda: [
            wire.send(self.write(qpn=q)) for q in (0, 1, 2, t.qp.qp_num ^ 1, 0xffffff)], 5)
        self.harmless('another partition', lambda: wire.send(self.write(pkey=0x8001)))
        self.harmless('another header version', lambda: [
            wire.send(self.write(version=v)) for v in range(1, 16)], 15)
        self.harmless('padding longer than the payload', lambda: [
            wire.send(self.write(pad=3, payload=b'XX'[:n])) for n in range(3)], 3)
        self.harmless('responses that nothing waits for', lambda: [
            wire.send(bth(op, t.qp.qp_num, PSN) + b'\0' * 12 + b'X' * 32)
            for op in (0x0d, 0x0f, 0x10)], 0)
        self.harmless('a PSN ahead', lambda: [
            wire.send(self.write(psn=PSN + n)) for n in (1, 2, 0x7fffff)], 0)
        self.harmless('an old PSN', lambda: [
            wire.send(self.write(psn=(PSN - n) & 0xffffff)) for n in (1, 2, 0x7fffff)], 0)
        self.harmless('an old READ or atomic, never executed', lambda: [
            wire.send(bth(READ_REQUEST, t.qp.qp_num, PSN - 1) +
                      reth(t.mr.buf, t.mr.rkey, 64)),
            wire.send(bth(CMP_SWAP, t.qp.qp_num, PSN - 1) +
                      struct.pack('>QIQQ', t.mr.buf, t.mr.rkey, 1, 2))], 0)
        self.duplicates()
        end = t.mr.buf + LENGTH
        for name, change in (
                ('an unknown key', {'rkey': t.mr.rkey ^ 0x5a5a00}),
                ('a wrong key byte', {'rkey': t.mr.rkey ^ 1}),
                ('key 0', {'rkey': 0}),
                ('a byte before', {'va': t.mr.buf - 1}),
                ('a byte behind', {'va': end - 15}),
                ('a range that wraps', {'va': 0xfffffffffffffff8}),
                ('a longer RETH than payload', {'length': 32}),
                ('a shorter RETH than payload', {'length': 8}),
                ('less payload than RETH, with an ICRC that fits', {'payload': b'X' * 12}),
                ('more than 2^31', {'length': 0x80000001}),
                ('a MIDDLE without its FIRST', {'opcode': WRITE_MIDDLE}),
                ('a FIRST that is not full', {'opcode': WRITE_FIRST})):
            self.refused(name, lambda c=change: self.write(**c))
        self.refused('a READ out of range', lambda: bth(
            READ_REQUEST, t.qp.qp_num, PSN) + reth(t.mr.buf, t.mr.rkey, LENGTH + 1))
        self.refused('an atomic not aligned', lambda: bth(
            CMP_SWAP, t.qp.qp_num, PSN) + struct.pack('>QIQQ', t.mr.buf + 4, t.mr.rkey,
                                                      1, 2))
        self.every_opcode()
        self.noise()
        print(f'1..{self.cases}')

    def every_opcode(self):
        """Each known opcode, first and last, with random bytes behind the BTH."""
        t, survived = self.target, True
        for op in sorted(KNOWN):
            for size in (0, 4, 16, 28, 64, 1024):
                t.fresh()
                self.wire.send(bth(op, t.qp.qp_num, PSN) + os.urandom(size))
                self.wire.settle()
                survived = survived and t.untouched()
        self.say(survived, 'every opcode with random bytes behind it')

    def noise(self):
        t, survived = self.target, True
        t.fresh()
        for _ in range(2000):
            self.wire.send(os.urandom(4) + struct.pack('>I', t.qp.qp_num) +
                           os.urandom(ord(os.urandom(1))))
            self.wire.settle()
            if t.state() != e.IBV_QPS_RTR:
                survived = survived and t.untouched()
                t.fresh()
        self.say(survived and t.untouched(), '2,000 packets of noise')


def main():
    Suite(sys.argv[1], int(sys.argv[2]), sys.argv[3]).run()


main()
