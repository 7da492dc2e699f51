# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Packets that are truncated, damaged, or sent to the wrong place."""

import os
import struct

import wire as w
from target import LENGTH, PSN


def cases(s):
    t, wire = s.target, s.wire
    s.case('a good packet is executed', lambda: t.fresh() or s.works_wrong())
    s.harmless('every truncation', lambda: [
        wire.send_cut(t.write(), n) for n in range(48)], 43)
    s.harmless('every truncation of the headers, with an ICRC that fits', lambda: [
        wire.send(t.write()[:n]) for n in range(28)], 24)
    unknown = [op for op in range(256) if op not in w.KNOWN]
    s.harmless('every unknown opcode', lambda: [
        wire.send(t.write(op)) for op in unknown], len(unknown))
    s.harmless('a wrong ICRC', lambda: wire.send(t.write(), trailer=b'\1\2\3\4'), 1)
    s.harmless('every bit of an ICRC', lambda: [
        wire.send(t.write(), trailer=struct.pack('<I', 1 << n)) for n in range(32)], 32)
    s.harmless('every bit of a packet', lambda: flip_bits(s), 8 * (28 + 16 - 1))
    s.harmless('a wrong queue pair', lambda: [
        wire.send(w.bth(w.WRITE_ONLY, qpn, PSN) + t.write()[12:])
        for qpn in (0, 1, 2, 0xffffff)], 4)
    s.harmless('another partition', lambda: wire.send(t.write(pkey=0x8001)), 1)
    s.case('another partition or transport, damaged', lambda: damaged(s))
    s.harmless('another header version', lambda: [
        wire.send(t.write(version=v)) for v in range(1, 16)], 15)
    s.harmless('padding longer than the payload', lambda: [
        wire.send(t.write(pad=3, payload=b'XX'[:n])) for n in range(3)], 3)
    s.harmless('responses that nothing waits for', lambda: [
        wire.send(t.bth(op, psn) + w.aeth() + b'X' * 32)
        for op in sorted(w.RESPONSES) for psn in (PSN, 0, 5000)], 0)
    ranges(s)
    s.case('every opcode with random bytes behind it', lambda: every_opcode(s))
    s.case('2,000 packets of noise', lambda: noise(s))


def damaged(s):
    """What has a wrong ICRC counts as that alone: its other mistakes may be the wire's."""
    t, device = s.target, s.device
    t.fresh()
    before, dropped = device.counters('rx_icrc_errors'), device.dropped()
    s.wire.send(t.write(pkey=0x8001), trailer=b'\1\2\3\4')
    s.wire.send(t.write(w.UC | w.WRITE_ONLY), trailer=b'\1\2\3\4')
    s.wire.settle()
    errors, dropped = device.counters('rx_icrc_errors') - before, device.dropped() - dropped
    if (errors, dropped) != (2, 2) or not t.untouched():
        return f'{errors} ICRC errors of {dropped} counted'
    return s.works_wrong()


def flip_bits(s):
    """Each bit after the BTH's own, with the ICRC of the packet as it was."""
    good = s.wire.packet(s.target.write())
    for bit in range(8 * 28, 8 * len(good) - 32):
        # Routers may change eight bits of the BTH, which change nothing here.
        if bit // 8 == 28 + 4:
            continue
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        s.wire.send_packet(bytes(bad))


def ranges(s):
    t = s.target
    end = t.mr.buf + LENGTH
    for name, syndrome, change in (
            ('an unknown key', w.NAK_ACCESS, {'rkey': t.mr.rkey ^ 0x5a5a00}),
            ('a wrong key byte', w.NAK_ACCESS, {'rkey': t.mr.rkey ^ 1}),
            ('key 0', w.NAK_ACCESS, {'rkey': 0}),
            ('a key of the local memory', w.NAK_ACCESS,
             {'rkey': t.local.lkey, 'va': t.local.buf}),
            ('a byte before', w.NAK_ACCESS, {'offset': -1}),
            ('a byte behind', w.NAK_ACCESS, {'va': end - 15}),
            ('a range that wraps', w.NAK_ACCESS, {'va': 0xfffffffffffffff8}),
            ('a longer RETH than payload', w.NAK_INVALID, {'length': 32}),
            ('a shorter RETH than payload', w.NAK_INVALID, {'length': 8}),
            ('less payload than RETH', w.NAK_INVALID, {'payload': b'X' * 12}),
            ('more payload than the path MTU', w.NAK_INVALID,
             {'payload': b'X' * 260, 'length': 260}),
            ('more than 2^31', w.NAK_INVALID, {'length': 0x80000001}),
            ('a MIDDLE without its FIRST', w.NAK_INVALID, {'opcode': w.WRITE_MIDDLE}),
            ('a FIRST that is not full', w.NAK_INVALID, {'opcode': w.WRITE_FIRST})):
        s.refused(name, lambda c=change: t.write(**c), syndrome)
    s.refused('a READ out of range', lambda: t.read(length=LENGTH + 1), w.NAK_ACCESS)
    s.refused('a READ of more than 2^31', lambda: t.read(length=0x80000001), w.NAK_INVALID)
    s.refused('an atomic not aligned', lambda: t.atomic(offset=4), w.NAK_INVALID)
    s.refused('an atomic behind the end', lambda: t.atomic(offset=LENGTH), w.NAK_ACCESS)


def every_opcode(s):
    t = s.target
    for op in w.KNOWN:
        for size in (0, 4, 16, 28, 64, 256):
            t.fresh()
            s.wire.send(t.bth(op) + os.urandom(size))
            s.wire.settle()
            if not t.untouched():
                return f'opcode {op:#x} with {size} bytes placed something'
    return None


def noise(s):
    t = s.target
    t.fresh()
    for _ in range(2000):
        s.wire.send(os.urandom(4) + struct.pack('>I', t.qp.qp_num) +
                    os.urandom(ord(os.urandom(1))))
        s.wire.settle()
        if t.ended():
            if not t.untouched():
                return 'something was placed'
            t.fresh()
    return None if t.untouched() else 'something was placed'
