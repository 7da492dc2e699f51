# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What is wrong with IP and UDP, or only unusual: the transport packet is good."""

import socket
import struct

import wire as w
from target import CLEAN


def cases(s):
    t, wire = s.target, s.wire
    s.case('another UDP source port', lambda: executed(s, wire.packet, port=1))
    s.case('a right UDP checksum', lambda: executed(s, lambda transport: summed(s, transport)))
    s.case('a frame with padding behind the packet', lambda: executed(
        s, lambda transport: wire.packet(transport) + b'\0' * 9))
    s.case('IPv6', lambda: executed(s, wire.packet, version=6))
    s.case('IPv6 with a right UDP checksum', lambda: executed(
        s, lambda transport: summed(s, transport), version=6))
    s.case('a packet in two fragments: all of it or nothing', lambda: fragments(s))
    s.harmless('fragments that overlap, or lack one', lambda: bad_fragments(s))
    s.harmless('a wrong UDP checksum', lambda: [
        wire.send_packet(wire.packet(t.write(), check=c)) for c in (1, 0x1234)])
    s.harmless('IPv6: a wrong UDP checksum', lambda: wire.send_packet(
        wire.packet(t.write(), check=1)), version=6)
    s.harmless('another peer\'s address', lambda: wire.send(
        t.write(), source=socket.inet_aton('10.79.0.3')), 1)
    s.harmless('its own address', lambda: wire.send(t.write(), source=wire.pairs[4][0]))
    s.harmless('a broadcast address', lambda: [
        wire.send(t.write(), target=socket.inet_aton(a))
        for a in ('10.79.0.255', '255.255.255.255', '224.0.0.1')])
    s.harmless('IPv6: another peer\'s address', lambda: wire.send(
        t.write(), source=socket.inet_pton(socket.AF_INET6, 'fd79::3')), 1, version=6)
    s.harmless('IPv4 packets at an IPv6 queue pair', lambda: wire.send(
        t.write(), version=4), 1, version=6)
    s.harmless('another UDP port', lambda: wire.send(t.write(), target_port=4790))
    s.harmless('every UDP length', lambda: udp_lengths(s))
    s.harmless('every IP length', lambda: ip_lengths(s))
    s.harmless('every IPv6 payload length', lambda: ip_lengths(s), version=6)
    s.harmless('IP options', lambda: options(s), 1)
    s.harmless('a wrong IP checksum', lambda: wire.send_packet(
        wire.packet(t.write())[:10] + b'\0\0' + wire.packet(t.write())[12:]))
    s.harmless('IPv6 extension headers', lambda: extensions(s), 1, version=6)
    s.harmless('IPv6: an ICRC of the wrong header', lambda: wire.send(
        t.write(), trailer=wire.packet(t.write(), version=4)[-4:]), 1, version=6)


def executed(s, make, version=4, **how):
    """It is as good as any other."""
    t = s.target
    t.fresh(version=version)
    s.wire.send_packet(make(t.write(), **how))
    answers = s.wire.received()
    if t.memory() != b'X' * 16 + CLEAN[16:]:
        return 'it is not executed'
    if [(a.opcode, a.syndrome) for a in answers] != [(w.ACK, w.ACKED)]:
        return f'answers {answers}'
    return None


def summed(s, transport):
    """The checksum is taken over the ICRC, which counts it as ones."""
    packet = s.wire.packet(transport)
    start = 20 if packet[0] >> 4 == 4 else 40
    addresses = packet[12:20] if start == 20 else packet[8:40]
    length = len(packet) - start
    pseudo = addresses + struct.pack('>HH', socket.IPPROTO_UDP, length)
    check = w.checksum(pseudo + packet[start:]) or 0xffff
    return packet[:start + 6] + struct.pack('>H', check) + packet[start + 8:]


def in_fragments(s, cuts, ident):
    """The IPv4 packet of a good request as fragments of (start, end)."""
    packet = s.wire.packet(s.target.write(), fragment=0, ident=ident)
    data = packet[20:]
    for start, end in cuts:
        more = 0x2000 if end < len(data) else 0
        part = data[start:end]
        yield s.wire.ip(len(part), fragment=more | start // 8, ident=ident) + part


def fragments(s):
    """Once put together it is the packet that the ICRC was made for."""
    t = s.target
    for ident, cuts in enumerate((((0, 24), (24, 56)), ((24, 56), (0, 24)),
                                  ((0, 8), (8, 16), (16, 56)))):
        t.fresh()
        for packet in in_fragments(s, cuts, ident):
            s.wire.send_packet(packet)
        s.wire.settle()
        if t.ended() or t.memory() not in (CLEAN, b'X' * 16 + CLEAN[16:]):
            return f'cuts {cuts}: ended {t.ended()}'
    return None


def bad_fragments(s):
    for ident, cuts in enumerate((((0, 32), (24, 56)), ((24, 56),), ((0, 48),),
                                  ((0, 24), (32, 56)))):
        for packet in in_fragments(s, cuts, 100 + ident):
            s.wire.send_packet(packet)


def udp_lengths(s):
    """IP and frame are right; UDP says another length than theirs."""
    good = s.wire.packet(s.target.write())
    for length in [*range(len(good) - 20), *range(len(good) - 19, 100), 0x7fff, 0xffff]:
        s.wire.send_packet(good[:24] + struct.pack('>H', length) + good[26:])


def ip_lengths(s):
    """The IP header is as it should be, but for its length."""
    good = s.wire.packet(s.target.write())
    if good[0] >> 4 == 6:
        for length in [*range(len(good) - 40), *range(len(good) - 39, 100), 0xffff]:
            s.wire.send_packet(good[:4] + struct.pack('>H', length) + good[6:])
        return
    for length in [*range(len(good)), *range(len(good) + 1, 100), 0xffff]:
        header = good[:2] + struct.pack('>H', length) + good[4:10]
        check = w.checksum(header + b'\0\0' + good[12:20])
        s.wire.send_packet(header + struct.pack('>H', check) + good[12:])


def options(s):
    """The ICRC is defined over a plain header."""
    good = s.wire.packet(s.target.write())
    header = (b'\x46' + good[1:2] + struct.pack('>H', len(good) + 4) + good[4:10])
    check = w.checksum(header + b'\0\0' + good[12:20] + b'\1\1\1\1')
    s.wire.send_packet(header + struct.pack('>H', check) + good[12:20] + b'\1\1\1\1' +
                       good[20:])


def extensions(s):
    """Hop by hop, destination options, and a fragment header of a whole packet."""
    good = s.wire.packet(s.target.write())
    for kind, header in ((0, b'\x11\0\1\4\0\0\0\0'), (60, b'\x11\0\1\4\0\0\0\0'),
                         (44, b'\x11\0\0\0\0\0\0\1')):
        s.wire.send_packet(good[:4] + struct.pack('>HB', len(good) - 40 + 8, kind) +
                           good[7:40] + header + good[40:])
