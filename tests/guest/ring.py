# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""FLUSH, which Debian 12's pyverbs has no call for.

The provider writes a request into the ring, and the device sees it when it is told
how far the ring is filled. In between it is made another.
"""

import ctypes
import itertools
import struct

import pyverbs.enums as e

FLUSH = 14
# struct rxe_queue_buf of <rdma/rdma_user_rxe.h>
LOG2_SLOT, MASK, PRODUCER, SLOTS = 0, 4, 128, 384
# struct rxe_send_wqe, with the FLUSH that it has since Linux 6.2
WR_ID, OPCODE, REMOTE_ADDR, RKEY, TYPE, LENGTH = 0, 12, 24, 36, 40, 184

ids = itertools.count(0xf1a5_0000_0000_0000)


def word(address):
    return ctypes.c_uint32.from_address(address)


def rings():
    """Where the rings of this process are."""
    with open('/proc/self/maps', encoding='ascii') as maps:
        for line in maps:
            where, rights, *_, name = line.split(maxsplit=5)
            if rights == 'rw-s' and 'uverbs' in name:
                yield int(where.split('-')[0], 16)


def slot_of(wr_id):
    """The next slot that the device will look at, where it holds this request."""
    for ring in rings():
        index = word(ring + PRODUCER).value & word(ring + MASK).value
        slot = ring + SLOTS + (index << word(ring + LOG2_SLOT).value)
        if ctypes.c_uint64.from_address(slot + WR_ID).value == wr_id:
            return slot
    raise LookupError('no ring holds the request')


def put(slot, offset, form, *values):
    field = (ctypes.c_char * struct.calcsize(form)).from_address(slot + offset)
    struct.pack_into(form, field, 0, *values)


def post_flush(qp, rkey, address, length, placement, selectivity):
    """QP is a QPEx that may RDMA WRITE."""
    wr_id = next(ids)
    qp.wr_start()
    qp.wr_id, qp.wr_flags = wr_id, e.IBV_SEND_SIGNALED
    qp.wr_rdma_write(rkey, address)
    slot = slot_of(wr_id)
    put(slot, OPCODE, '=I', FLUSH)
    put(slot, REMOTE_ADDR, '=Q', address)
    put(slot, RKEY, '=I', rkey)
    put(slot, TYPE, '=BB', placement, selectivity)
    put(slot, LENGTH, '=I', length)
    qp.wr_complete()
