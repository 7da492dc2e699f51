# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Packets of RoCE v2, byte by byte, and a wire that carries whatever is given to it.

The wire is the far end of a veth pair, in a namespace that has no address there:
what is sent is a frame made here, and what comes back can be looked at.
"""

import collections
import ctypes
import os
import socket
import struct
import time
import zlib

PORT = 4791
ETH_IPV4, ETH_IPV6 = 0x0800, 0x86dd

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM = 0x00, 0x01, 0x02, 0x03
SEND_ONLY, SEND_ONLY_IMM, SEND_LAST_INV, SEND_ONLY_INV = 0x04, 0x05, 0x16, 0x17
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM = 0x06, 0x07, 0x08, 0x09
WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST = 0x0a, 0x0b, 0x0c
READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 0x0d, 0x0e, 0x0f, 0x10
ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD, FLUSH, ATOMIC_WRITE = 0x11, 0x12, 0x13, 0x14, 0x1c, 0x1d
# What the device implements of RC (drivers/proto/opcode.c).
KNOWN = sorted(set(range(0x15)) | {SEND_LAST_INV, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE})
# UC has the SENDs and WRITEs, with this bit set.
UC = 0x20
KNOWN_UC = sorted(UC | op for op in range(WRITE_ONLY_IMM + 1))
# UD has these of the SENDs.
UD = 0x60
KNOWN_UD = [UD | SEND_ONLY, UD | SEND_ONLY_IMM]
RESPONSES = {READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK}

# FETH: what a FLUSH guarantees, and of which memory.
GLOBAL, PERSISTENT = 1, 2
RANGE, REGION = 0, 1

# AETH syndromes.
ACKED, RNR, NAK = 0x1f, 0x20, 0x60
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL = NAK, NAK | 1, NAK | 2, NAK | 3

Packet = collections.namedtuple('Packet', 'opcode qpn psn syndrome original rest')


def bth(opcode, qpn, psn, pad=0, version=0, pkey=0xffff, ack=True):
    return struct.pack('>BBHII', opcode, pad << 4 | version, pkey, qpn,
                       ack << 31 | psn & 0xffffff)


def reth(va, rkey, length):
    return struct.pack('>QII', va & (1 << 64) - 1, rkey, length)


def feth(placement, selectivity, reserved=0):
    return struct.pack('>I', reserved << 6 | selectivity << 4 | placement)


def deth(qkey, qpn):
    return struct.pack('>II', qkey, qpn)


def atomic_eth(va, rkey, swap_add, compare=0):
    return struct.pack('>QIQQ', va, rkey, swap_add, compare)


def aeth(syndrome=ACKED, msn=1):
    return struct.pack('>I', syndrome << 24 | msn)


def checksum(data):
    """The Internet's, of an even or odd number of bytes."""
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icrc(ip, udp, transport):
    """Over IP, UDP and TRANSPORT, with ones for what changes on the way."""
    masked = bytearray(ip + udp + transport)
    if ip[0] >> 4 == 4:
        masked[1] = masked[8] = 0xff
        masked[10:12] = b'\xff\xff'
    else:
        masked[0] |= 0x0f
        masked[1:4] = b'\xff\xff\xff'
        masked[7] = 0xff
    masked[len(ip) + 6:len(ip) + 8] = b'\xff\xff'
    if len(transport) > 4:
        masked[len(ip) + 8 + 4] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked)))


def parse(frame):
    """The Packet in an Ethernet frame, or None."""
    kind = struct.unpack('>H', frame[12:14])[0]
    start = {ETH_IPV4: 14 + 20, ETH_IPV6: 14 + 40}.get(kind)
    protocol = {ETH_IPV4: 14 + 9, ETH_IPV6: 14 + 6}.get(kind)
    if start is None or frame[protocol] != socket.IPPROTO_UDP:
        return None
    if struct.unpack('>H', frame[start + 2:start + 4])[0] != PORT:
        return None
    rest = frame[start + 8:-4]
    opcode, _, _, qpn, psn = struct.unpack('>BBHII', rest[:12])
    rest = rest[12:]
    syndrome = original = None
    if opcode in RESPONSES and opcode != READ_MIDDLE:
        syndrome, rest = rest[0], rest[4:]
    if opcode == ATOMIC_ACK:
        original, rest = struct.unpack('>Q', rest[:8])[0], rest[8:]
    return Packet(opcode, qpn & 0xffffff, psn & 0xffffff, syndrome, original, rest)


def in_namespace(name, make):
    """What MAKE returns when called in another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open('/proc/self/ns/net', 'rb') as home, open(f'/run/netns/{name}', 'rb') as far:
        if libc.setns(far.fileno(), 0):
            raise OSError(ctypes.get_errno(), f'setns {name}')
        try:
            return make()
        finally:
            libc.setns(home.fileno(), 0)


class Wire:
    """The far end. Everything on one CPU: packets keep their order."""

    def __init__(self, near, namespace, netdev, address, address6):
        os.sched_setaffinity(0, {0})
        # Addresses as (the device's, ours); the wire speaks IPv4 unless told.
        self.pairs = {4: tuple(socket.inet_aton(a) for a in address),
                      6: tuple(socket.inet_pton(socket.AF_INET6, a) for a in address6)}
        self.version = 4
        self.raw = in_namespace(namespace, lambda: self.open(netdev))
        self.source = self.raw.getsockname()[4]
        with open(f'/sys/class/net/{near}/address', encoding='ascii') as file:
            self.target = bytes.fromhex(file.read().strip().replace(':', ''))
        self.fence = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.fence.bind((address[0], 0))
        self.fence.settimeout(20)
        self.slow = 10 if os.environ.get('SMW_KERNEL') == 'debug' else 1

    @staticmethod
    def open(netdev):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.bind((netdev, 0))
        raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)     # SO_RCVBUFFORCE
        raw.setblocking(False)
        return raw

    # ---- frames ----

    def ip(self, length, source=None, target=None, protocol=socket.IPPROTO_UDP,
           version=None, fragment=0x4000, ident=7, **_):
        """An IP header in front of LENGTH bytes."""
        version = version or self.version
        target, source = target or self.pairs[version][0], source or self.pairs[version][1]
        if version == 6:
            return struct.pack('>IHBB16s16s', 6 << 28, length, protocol, 64, source, target)
        header = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + length, ident, fragment, 64,
                             protocol, 0, source, target)
        return header[:10] + struct.pack('>H', checksum(header)) + header[12:]

    @staticmethod
    def udp(length, port=50000, target_port=PORT, check=0, **_):
        return struct.pack('>HHHH', port, target_port, 8 + length, check)

    def frame(self, packet):
        kind = ETH_IPV4 if packet[0] >> 4 == 4 else ETH_IPV6
        return self.target + self.source + struct.pack('>H', kind) + packet

    def packet(self, transport, trailer=None, **how):
        """IP, UDP, TRANSPORT and its ICRC, or TRAILER for it."""
        ip = self.ip(8 + len(transport) + 4, **how)
        udp = self.udp(len(transport) + 4, **how)
        return ip + udp + transport + (icrc(ip, udp, transport) if trailer is None else trailer)

    def send_packet(self, packet):
        """A whole IP packet, however wrong."""
        self.raw.send(self.frame(packet))

    def send(self, transport, **how):
        self.send_packet(self.packet(transport, **how))

    def send_cut(self, transport, length):
        """Only the first LENGTH bytes of what UDP carries."""
        whole = transport + icrc(self.ip(12 + len(transport)), self.udp(len(transport) + 4),
                                 transport)
        self.send_packet(self.ip(8 + length) + self.udp(length) + whole[:length])

    # ---- what comes of them ----

    def settle(self):
        """
        Wait until what was sent has been received, for it may be left to
        ksoftirqd. The second time also for what was sent in answer.
        """
        port = self.fence.getsockname()[1]
        ours, theirs = self.pairs[4][1], self.pairs[4][0]
        for _ in range(2):
            self.send_packet(self.ip(8, ours, theirs, version=4) +
                             self.udp(0, target_port=port))
            self.fence.recv(1)

    def received(self):
        """The Packets that have come since, settled."""
        self.settle()
        return self.drain()

    def drain(self):
        packets = []
        while True:
            try:
                frame, address = self.raw.recvfrom(4096 + 200)
            except BlockingIOError:
                return packets
            if address[2] != socket.PACKET_OUTGOING and (packet := parse(frame)):
                packets.append(packet)

    def wait_for(self, opcode, seconds=5):
        """The next packet of an opcode; the ones before it are passed by."""
        end = time.monotonic() + seconds * self.slow
        while time.monotonic() < end:
            for packet in self.drain():
                if packet.opcode == opcode:
                    return packet
            time.sleep(0.001)
        raise TimeoutError(f'no packet of opcode {opcode:#x}')
