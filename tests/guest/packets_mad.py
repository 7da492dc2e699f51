# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Management datagrams: what a peer may say to the connection manager, and does not."""

import random
import socket
import struct
import subprocess
import time

import wire as w
from packets_ud import datagram, fresh, management_lives, works

GSI, GSI_QKEY = 1, 0x80010000
CLASS_CM, METHOD_SEND = 7, 3
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR = range(0x10, 0x1b)
PORT = 18500
# A service id of RDMA_PS_TCP.
SERVICE = 0x0106 << 16 | PORT
# Of the classes that have methods of their own: subnet, performance, vendor, application.
CLASSES = [1, 0x81, 3, 4, 5, 6, 7, 8, 9, 0x0f, 0x10, 0x2f, 0x30, 0x4f, 0x50, 0, 0xff]


def cases(s):
    rng = random.Random(65)
    s.case('MAD: every class and method', lambda: leaves_nothing(s, lambda: [
        say(s, rng.randbytes(232), kind=kind, method=method, version=version)
        for kind in CLASSES for method in (*range(8), 0x81, 0x82, 0x92, 0xff)
        for version in (1, 2)]))
    s.case('MAD: every message of the connection manager, of random content',
           lambda: leaves_nothing(s, lambda: [
               say(s, rng.randbytes(232), attribute=attribute)
               for attribute in range(REQ - 1, APR + 3) for _ in range(20)]))
    s.case('MAD: of every length', lambda: leaves_nothing(s, lambda: [
        say_cut(s, length, kind=kind, attribute=attribute)
        for length in (*range(0, 300, 4), 508, 1024, 1400)
        for kind, attribute in ((CLASS_CM, REQ), (CLASS_CM, DREQ), (3, 0x35), (0x30, 1))]))
    s.case('MAD: segments of longer ones, in all orders', lambda: leaves_nothing(
        s, lambda: segments(s, rng)))
    s.case('MAD: by opcodes of RC and UC, to queue pairs 0 and 1', lambda: leaves_nothing(
        s, lambda: [s.wire.send(w.bth(op, qpn, 1) + w.deth(GSI_QKEY, 1) + mad(b''))
                    for op in range(256) for qpn in (0, 1)]))
    s.case('MAD: a request for a service that nobody has', lambda: rejected(s))
    s.case('MAD: messages of connections that are not there', lambda: leaves_nothing(
        s, lambda: [say(s, struct.pack('>II', rng.choice([0, 1, 2, rng.randrange(1 << 32)]),
                                       rng.choice([0, 1, 2, rng.randrange(1 << 32)])),
                        attribute=attribute)
                    for attribute in (MRA, REJ, REP, RTU, DREQ, DREP, LAP, APR, SIDR_REP)
                    for _ in range(20)]))
    s.case('MAD: requests to a listener, each of them wrong', lambda: listener(s, rng))


def mad(content, kind=CLASS_CM, version=2, method=METHOD_SEND, attribute=REQ, tid=None):
    """The 256 bytes of one."""
    tid = random.randrange(1 << 64) if tid is None else tid
    head = struct.pack('>BBBBHHQHHI', 1, kind, version, method, 0, 0, tid, attribute, 0, 0)
    return (head + content).ljust(256, b'\0')


def say_cut(s, length, **how):
    """One that is shorter or longer than any."""
    content = mad(b'', **how)[:length].ljust(length, b'\0')
    s.wire.send(datagram(s.target, qpn=GSI, qkey=GSI_QKEY, payload=content))


def segments(s, rng):
    """Reliable multi-packet protocol: of the subnet administration's class, and a vendor's."""
    for kind, method in ((3, 0x12), (3, 0x92), (0x30, 3), (0x4f, 0x81)):
        for _ in range(60):
            rmpp = struct.pack('>BBBBII', rng.choice([0, 1, 1, 1, 2]),
                               rng.choice([0, 1, 1, 2, 3, 4, 5]),
                               rng.randrange(8), rng.choice([0, 0, 1, 118, 255]),
                               rng.choice([0, 1, 2, 3, 1 << 31, 0xffffffff]),
                               rng.choice([0, 1, 20, 220, 4096, 0x7fffffff, 0xffffffff]))
            say(s, rmpp + rng.randbytes(220), kind=kind, method=method,
                tid=rng.choice([1, 2, 3]))


def say(s, content, source=None, **how):
    s.wire.send(datagram(s.target, qpn=GSI, qkey=GSI_QKEY, payload=mad(content, **how)),
                **({'source': source} if source else {}))


def objects(s):
    with open(f'/sys/kernel/debug/smw/{s.device.name}/objects', encoding='ascii') as file:
        return dict(line.split() for line in file)


def same_objects(s, before, seconds=20):
    """What messages and their answers took is given back."""
    end = time.monotonic() + seconds * s.wire.slow
    while (now := objects(s)) != before:
        if time.monotonic() > end:
            return f'objects {now}, before {before}'
        time.sleep(0.1)
    return None


def quiet(s):
    """The objects when no message of what was before has its answer on the way any more."""
    fresh(s)
    end = time.monotonic() + 20 * s.wire.slow
    while (now := objects(s))['kernel_ah'] != '0' and time.monotonic() < end:
        time.sleep(0.1)
    return now


def leaves_nothing(s, send):
    before = quiet(s)
    send()
    s.wire.received()
    return same_objects(s, before) or management_lives(s) or works(s)


def mapped(address):
    return b'\0' * 10 + b'\xff\xff' + address


def request(s, ident, service=SERVICE):
    """A request to connect, as the RDMA core's own would be."""
    ours, theirs = s.wire.pairs[4][1], s.wire.pairs[4][0]
    path = struct.pack('>HH16s16sIBBBB', 0xffff, 0xffff, mapped(ours), mapped(theirs), 0,
                       0, 64, 0, 14 << 3)
    ip = struct.pack('>BBH16s16s', 0, 4 << 4, 40000, b'\0' * 12 + ours, b'\0' * 12 + theirs)
    return (struct.pack('>IIQQII', ident, 0, service, 0x1234, 0, 0) +
            struct.pack('>IIII', 0x777 << 8 | 1, 1, 20 << 3, 1234 << 8 | 20 << 3 | 7) +
            struct.pack('>HBB', 0xffff, 3 << 4 | 7, 15 << 4) + path + b'\0' * 44 + ip)


def answers(s, attribute):
    """What the connection manager has answered."""
    found = []
    for packet in s.wire.received():
        if packet.opcode == w.UD | w.SEND_ONLY and packet.qpn == GSI:
            # DETH, then the datagram
            if struct.unpack('>H', packet.rest[24:26])[0] == attribute:
                found.append(packet)
    return found


def wait_answer(s, attribute, seconds=10):
    end = time.monotonic() + seconds * s.wire.slow
    while time.monotonic() < end:
        if found := answers(s, attribute):
            return found
        time.sleep(0.01)
    return []


def rejected(s):
    before = quiet(s)
    say(s, request(s, 77, service=0x0106 << 16 | 9))
    if not wait_answer(s, REJ):
        return 'it is not rejected'
    return same_objects(s, before) or management_lives(s) or works(s)


def listener(s, rng):
    """Whether the server stands them all is rping's affair; the link does, and nothing stays."""
    before = quiet(s)
    server = subprocess.Popen(['rping', '-s', '-P', '-a', socket.inet_ntoa(s.wire.pairs[4][0]),
                               '-p', str(PORT)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10 * s.wire.slow
        while not listens() and time.monotonic() < end:
            time.sleep(0.05)
        s.wire.drain()
        say(s, request(s, 0x1000))
        if not (reply := wait_answer(s, REP)):
            return 'a good request has no reply'
        ident = struct.unpack('>I', reply[0].rest[8 + 24:8 + 28])[0]
        for n in range(300):
            wrong = bytearray(request(s, 0x2000 + n))
            for _ in range(rng.randrange(1, 4)):
                wrong[rng.randrange(len(wrong))] = rng.randrange(256)
            say(s, bytes(wrong))
        for attribute in (LAP, APR, MRA, REP, RTU, REQ, DREP, DREQ, REJ):
            for theirs in (0x1000, 0x2000, 0):
                say(s, struct.pack('>II', theirs, ident) + rng.randbytes(224),
                    attribute=attribute)
        s.wire.received()
    finally:
        server.kill()
        server.wait()
    return same_objects(s, before, 60) or management_lives(s) or works(s)


def listens():
    shown = subprocess.run(['rdma', 'resource', 'show', 'cm_id'], capture_output=True,
                           text=True, check=False).stdout
    return f':{PORT} ' in shown and 'LISTEN' in shown
