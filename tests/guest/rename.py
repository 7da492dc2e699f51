# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rename.py INDEX NAME...: give an RDMA device these names in turn, 500 times.

What `rdma dev set` does, without a process for each time.
"""

import os
import socket
import struct
import sys

ROUNDS = 500
# Of <rdma/rdma_netlink.h> and <linux/netlink.h>
NETLINK_RDMA, REQUEST_ACK, NLDEV_SET, DEV_INDEX, DEV_NAME = 20, 1 | 4, 5 << 10 | 2, 1, 2


def attribute(kind, value):
    return struct.pack('=HH', 4 + len(value), kind) + value + bytes(-len(value) % 4)


def rename(sock, index, name):
    attributes = (attribute(DEV_INDEX, struct.pack('=I', index)) +
                  attribute(DEV_NAME, name.encode() + b'\0'))
    header = struct.pack('=IHHII', 16 + len(attributes), NLDEV_SET, REQUEST_ACK, 0, 0)
    sock.send(header + attributes)
    error = struct.unpack_from('=i', sock.recv(4096), 16)[0]
    if error:
        sys.exit(f'{name}: {os.strerror(-error)}')


def main():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA) as sock:
        for _ in range(ROUNDS):
            for name in sys.argv[2:]:
                rename(sock, int(sys.argv[1]), name)


if __name__ == '__main__':
    main()
