#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rds.py ADDRESS: two RDS sockets of one address talk over an RDMA device.

Messages of many sizes both ways, then RDMA WRITE and READ into memory that the one lends
to the other: the kernel registers it by REG_MR and takes it back by LOCAL_INV.
"""
import ctypes
import mmap
import os
import socket
import struct
import sys

SOL_RDS = 276
SO_RDS_TRANSPORT = 8
RDS_TRANS_IB = 0
RDS_CMSG_RDMA_ARGS = 1
RDS_CMSG_RDMA_DEST = 2
RDS_CMSG_RDMA_MAP = 3
RDS_RDMA_READWRITE = 1
RDS_RDMA_USE_ONCE = 8
RDS_RDMA_NOTIFY_ME = 32
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33


def make_socket(address):
    sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
    sock.setsockopt(SOL_RDS, SO_RDS_TRANSPORT, struct.pack('I', RDS_TRANS_IB))
    for option in SO_SNDBUFFORCE, SO_RCVBUFFORCE:
        sock.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    sock.settimeout(30)
    sock.bind(address)
    return sock


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def expect(what, condition):
    if not condition:
        sys.exit(f'{what}: wrong')


def say(what):
    print(what, flush=True)


def message(here, there, length):
    """One message, and back again."""
    data = os.urandom(length)
    here.sendto(data, there.getsockname())
    expect(f'message of {length} bytes', there.recv(length + 1) == data)
    there.sendto(data[::-1], here.getsockname())
    expect(f'answer of {length} bytes', here.recv(length + 1) == data[::-1])


def lend(owner, peer, memory):
    """The owner's message tells the peer the cookie of the memory."""
    cookie = ctypes.c_uint64()
    args = struct.pack('QQQQ', address_of(memory), len(memory),
                       ctypes.addressof(cookie), RDS_RDMA_READWRITE | RDS_RDMA_USE_ONCE)
    owner.sendmsg([b'lent'], [(SOL_RDS, RDS_CMSG_RDMA_MAP, args)], 0, peer.getsockname())
    _, control, _, _ = peer.recvmsg(16, 256)
    found = [data for _, kind, data in control if kind == RDS_CMSG_RDMA_DEST]
    expect('a cookie came', len(found) == 1)
    return found[0]


def rdma(owner, peer, length, write):
    lent, own = mmap.mmap(-1, length), mmap.mmap(-1, length)
    source, sink = (own, lent) if write else (lent, own)
    source[:] = os.urandom(length)
    cookie = lend(owner, peer, lent)
    local = ctypes.create_string_buffer(struct.pack('QQ', address_of(own), length), 16)
    flags = RDS_RDMA_NOTIFY_ME | (RDS_RDMA_READWRITE if write else 0)
    args = cookie + struct.pack('QQQQQQ', 0, length, ctypes.addressof(local), 1, flags, 7)
    peer.sendmsg([b'done'], [(SOL_RDS, RDS_CMSG_RDMA_ARGS, args)], 0, owner.getsockname())
    expect('the message behind it', owner.recv(16) == b'done')
    # The status of the operation.
    _, control, _, _ = peer.recvmsg(16, 256)
    expect('status', [data for _, _, data in control] == [struct.pack('Qi4x', 7, 0)])
    expect(f'RDMA of {length} bytes, write {write}', source[:] == sink[:])


def main():
    here, there = (make_socket((sys.argv[1], port)) for port in (4000, 4001))
    for length in 1, 100, 4096, 5000, 65536, 1 << 20:
        message(here, there, length)
        say(f'message of {length} bytes')
    for length in 4096, 65536, 1 << 20:
        for write in True, False:
            rdma(there, here, length, write)
            say(f'RDMA of {length} bytes, write {write}')


main()
