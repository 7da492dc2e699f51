#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Write kunit/icrc_vectors.h: RoCE v2 packets and their ICRCs.

The packets are whole, from the IP header to the ICRC. Some were captured from
hardware and carry the ICRC that the hardware computed; their ICRCs are checked
here, not computed. The rest are built here with zlib's CRC-32, which shares no
code with the module.
"""
import argparse
import ipaddress
import os
import struct
import zlib

ROCE_PORT = 4791
# Opcode: bytes of the extension headers after the BTH.
OPCODES = {
    0x00: 0, 0x01: 0, 0x02: 0, 0x03: 4, 0x04: 0, 0x05: 4, 0x06: 16, 0x07: 0,
    0x08: 0, 0x09: 4, 0x0a: 16, 0x0b: 20, 0x0c: 16, 0x0d: 4, 0x0e: 0, 0x0f: 4,
    0x10: 4, 0x11: 4, 0x12: 12, 0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4,
    0x1c: 20, 0x1d: 16,
}
NO_PAYLOAD = {0x0c, 0x11, 0x12, 0x13, 0x14, 0x1c}


def icrc(packet):
    """ICRC of a packet from its IP header to the byte before the ICRC."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        udp = 20
        for variant in (1, 8, 10, 11):
            masked[variant] = 0xff
    else:
        udp = 40
        masked[0] |= 0x0f
        for variant in (1, 2, 3, 7):
            masked[variant] = 0xff
    for variant in (udp + 6, udp + 7, udp + 8 + 4):
        masked[variant] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked)))


def checksum(header):
    total = sum(struct.unpack('!%dH' % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def pattern(count, seed):
    return bytes((seed * 29 + i * 37 + 11) & 0xff for i in range(count))


def transport(opcode, payload, qpn=0x812345, psn=0x8abcdf):
    pad = -len(payload) % 4
    bth = struct.pack('!BBHII', opcode, 0x40 | pad << 4, 0xffff, qpn,
                      0x80000000 | psn)
    return bth + pattern(OPCODES[opcode], opcode) + payload + bytes(pad)


def ipv4(data, tos=0, ttl=64, ident=0, udp_check=0):
    udp = struct.pack('!HHHH', 0xd23f, ROCE_PORT, 8 + len(data) + 4, udp_check)
    src, dst = (ipaddress.ip_address(a).packed for a in ('192.0.2.1', '192.0.2.201'))
    head = struct.pack('!BBHHHBBH4s4s', 0x45, tos, 20 + len(udp) + len(data) + 4,
                       ident, 0x4000, ttl, 17, 0, src, dst)
    head = head[:10] + struct.pack('!H', checksum(head)) + head[12:]
    return head + udp + data


def ipv6(data, traffic_class=0, flow=0, hops=64, udp_check=0x1234):
    udp = struct.pack('!HHHH', 0xd23f, ROCE_PORT, 8 + len(data) + 4, udp_check)
    src, dst = (ipaddress.ip_address(a).packed for a in ('2001:db8::1', '2001:db8::c9'))
    head = struct.pack('!IHBB16s16s', 6 << 28 | traffic_class << 20 | flow,
                       len(udp) + len(data) + 4, 17, hops, src, dst)
    return head + udp + data


def captured(text):
    packet = bytes.fromhex(text)
    if icrc(packet[:-4]) != packet[-4:]:
        raise SystemExit('a captured packet disagrees: ' + icrc(packet[:-4]).hex())
    return packet


def vectors():
    # Published with Scapy's tests of its RoCE layer, ICRC by the sender.
    yield 'captured: UC SEND Only', captured(
        '45010040047840004011b4d5c0a80007c0a80007'
        'c00012b7002caca2' '2460ffff000000d300cf1710'
        '4630818be28935d90e9a95505401be885e500000' '78f353f3')
    yield 'captured: CNP of a ConnectX-4 Lx, TOS 0xc2 and BECN set', captured(
        '45c2003c718c4000401191610a0011010a001201'
        '000012b700280000' '8100ffff4000011800000000'
        '00000000000000000000000000000000' '82fd002a')
    for opcode in OPCODES:
        payload = b'' if opcode in NO_PAYLOAD else pattern(opcode + 1, 3)
        for name, ip in (('IPv4', ipv4), ('IPv6', ipv6)):
            packet = ip(transport(opcode, payload))
            yield '%s, opcode 0x%02x' % (name, opcode), packet + icrc(packet)
    data = transport(0x04, pattern(256, 5))
    for name, packet in (
            ('IPv4, every variant field set',
             ipv4(data[:4] + b'\xff' + data[5:], tos=0xff, ttl=1, udp_check=0xbeef)),
            ('IPv4, identification set', ipv4(data, ident=0x1234)),
            ('IPv6, every variant field set',
             ipv6(data[:4] + b'\xff' + data[5:], traffic_class=0xff,
                  flow=0xfffff, hops=1, udp_check=0xbeef))):
        yield name, packet + icrc(packet)


def write_header(path, rows):
    with open(path, 'w') as out:
        out.write('/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */\n'
                  '/* Written by a script: tests/proto/%s. */\n'
                  % os.path.basename(__file__))
        for number, (_, packet) in enumerate(rows):
            out.write('static const u8 icrc_packet_%d[] = {\n' % number)
            for at in range(0, len(packet), 12):
                out.write('\t%s,\n' % ', '.join('0x%02x' % b for b in packet[at:at + 12]))
            out.write('};\n\n')
        out.write('static const struct icrc_row icrc_rows[] = {\n')
        for number, (name, _) in enumerate(rows):
            out.write('\t{ "%s",\n\t  icrc_packet_%d, sizeof(icrc_packet_%d) },\n'
                      % (name, number, number))
        out.write('};\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('header', help='C header to write')
    args = parser.parse_args()
    write_header(args.header, list(vectors()))


if __name__ == '__main__':
    main()
