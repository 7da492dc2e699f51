#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""smc.py eid NAME | server ADDRESS -p PORT | client ADDRESS -p PORT [forever]

TCP sockets that the kernel carries over RDMA (SMC-R). The server sends back, backwards,
what comes. An enterprise ID is what two ends of version 2 must have in common.
"""
import contextlib
import os
import socket
import struct
import sys

IPPROTO_SMC = 256
NETLINK_GENERIC = 16
NLMSG_ERROR = 2
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
SMC_NETLINK_ADD_UEID, SMC_NETLINK_REMOVE_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 11, 1
NLM_F_REQUEST_ACK = 5
LENGTHS = 1, 1000, 100000, 4 << 20


def ask(netlink, family, command, attribute, text):
    """One request with one string; the attributes of the answer, if there are any."""
    value = text.encode() + b'\0'
    value = struct.pack('=HH', 4 + len(value), attribute) + value + b'\0' * (-len(value) % 4)
    netlink.send(struct.pack('=IHHIIBBH', 20 + len(value), family, NLM_F_REQUEST_ACK, 1, 0,
                             command, 1, 0) + value)
    attributes = {}
    while True:
        answer = netlink.recv(65536)
        if struct.unpack_from('=H', answer, 4)[0] == NLMSG_ERROR:
            error = struct.unpack_from('=i', answer, 16)[0]
            if error:
                raise OSError(-error, os.strerror(-error))
            return attributes
        at = 20
        while at < len(answer):
            length, kind = struct.unpack_from('=HH', answer, at)
            attributes[kind] = answer[at + 4:at + length]
            at += length + -length % 4


def set_eid(name):
    """There is room for four, the same name more than once: what an earlier run left goes."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as netlink:
        family, = struct.unpack('=H', ask(netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                                          CTRL_ATTR_FAMILY_NAME,
                                          'SMC_GEN_NETLINK')[CTRL_ATTR_FAMILY_ID])
        with contextlib.suppress(FileNotFoundError):
            ask(netlink, family, SMC_NETLINK_REMOVE_UEID, SMC_NLA_EID_TABLE_ENTRY,
                name.ljust(32))
        ask(netlink, family, SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY, name.ljust(32))


def receive(sock, length):
    data = bytearray()
    while len(data) < length:
        part = sock.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def serve(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC) as listener:
        listener.bind((address, port))
        listener.listen()
        peer, _ = listener.accept()
        with peer:
            try:
                while True:
                    length, = struct.unpack('=Q', receive(peer, 8))
                    peer.sendall(receive(peer, length)[::-1])
            except (EOFError, OSError):
                pass


def call(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC) as sock:
        sock.connect((address, port))
        while True:
            for length in LENGTHS:
                data = os.urandom(length)
                sock.sendall(struct.pack('=Q', length) + data)
                if receive(sock, length) != data[::-1]:
                    sys.exit(f'{length} bytes: wrong')
                print(f'{length} bytes', flush=True)
            if 'forever' not in sys.argv:
                return


if sys.argv[1] == 'eid':
    set_eid(sys.argv[2])
else:
    (serve if sys.argv[1] == 'server' else call)(sys.argv[2], int(sys.argv[4]))
