# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What hostile packets aim at: a queue pair, its memory, and memory beside it."""

import os
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR

import ring
import wire as w

PSN = 1000              # the first that the queue pair expects
SENT_PSN = 5000         # the first that it sends
PEER_QPN = 0x777        # ours; nobody looks at it but us
QKEY = 0x1234567        # of UD
MTU = 256
LENGTH = 16384
FLUSH_GLOBAL = 1 << 8   # which pyverbs does not know yet
REMOTE = (e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_REMOTE_ATOMIC | FLUSH_GLOBAL)
CLEAN = b'.' * LENGTH


def gid(raw):
    """A GID of 16 bytes as pyverbs takes it."""
    return GID(':'.join(raw[i:i + 2].hex() for i in range(0, 16, 2)))


class Device:
    """The device and what all queue pairs of a test share."""

    def __init__(self, name, gid_index, gid_index6, wire):
        self.name, self.wire = name, wire
        self.gid_index = {4: gid_index, 6: gid_index6}
        self.context = Context(name=name)
        self.pd = PD(self.context)

    def counts(self, *names):
        """Counters by name, all where none is named. The kernel keeps what it read for a jiffy."""
        time.sleep(0.02)
        path = f'/sys/class/infiniband/{self.name}/ports/1/hw_counters/'
        with open(path + 'lifespan', 'w', encoding='ascii') as file:
            file.write('0')
        counts = {}
        for name in names or set(os.listdir(path)) - {'lifespan'}:
            with open(path + name, encoding='ascii') as file:
                counts[name] = int(file.read())
        return counts

    def counters(self, *names):
        """Their sum."""
        return sum(self.counts(*names).values())

    def dropped(self):
        return self.counters('rx_dropped', 'rx_malformed', 'rx_icrc_errors',
                             'rx_pkey_violations')


class Target:
    """A queue pair connected to the wire, anew for each case, and its memory."""

    def __init__(self, device):
        self.device, self.wire = device, device.wire
        access = e.IBV_ACCESS_LOCAL_WRITE | REMOTE | e.IBV_ACCESS_MW_BIND
        self.cq = CQ(device.context, 64)
        self.mr = MR(device.pd, LENGTH, access)         # what keys name
        self.other = MR(device.pd, LENGTH, access)      # and must not reach
        self.local = MR(device.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
        self.qp = None

    def close(self):
        for thing in self.qp, self.local, self.other, self.mr, self.cq:
            if thing:
                thing.close()

    def fresh(self, sends=False, version=4, retries=7, timeout=0, rnr_retries=7,
              kind=e.IBV_QPT_RC):
        """A new queue pair in RTR, or in RTS where it SENDS or is UD; memory is clean."""
        if self.qp:
            self.qp.close()
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        attr.qp_access_flags = REMOTE if kind == e.IBV_QPT_RC else e.IBV_ACCESS_REMOTE_WRITE
        self.qp = self.queue_pair(kind, attr)
        attr.dest_qp_num, attr.path_mtu = PEER_QPN, e.IBV_MTU_256
        attr.max_dest_rd_atomic, attr.max_rd_atomic = 4, 4
        attr.min_rnr_timer, attr.rq_psn, attr.sq_psn = 1, PSN, SENT_PSN
        attr.timeout, attr.retry_cnt, attr.rnr_retry = timeout, retries, rnr_retries
        attr.ah_attr = self.path(version)
        if kind == e.IBV_QPT_UD:
            pass                # pyverbs has taken it to RTS
        elif sends:
            self.qp.to_rts(attr)
        else:
            self.qp.to_rtr(attr)
        for mr in self.mr, self.other, self.local:
            mr.write(CLEAN.decode(), LENGTH)
        while self.cq.poll(64)[0]:
            pass
        self.wire.version = version
        self.wire.drain()

    def queue_pair(self, kind, attr):
        """One of RC is built for ring.py, too."""
        how = {'qp_type': kind, 'scq': self.cq, 'rcq': self.cq, 'sq_sig_all': 1,
               'cap': QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)}
        if kind != e.IBV_QPT_RC:
            return QP(self.device.pd, QPInitAttr(**how), attr)
        init = QPInitAttrEx(pd=self.device.pd, send_ops_flags=e.IBV_QP_EX_WITH_RDMA_WRITE,
                            comp_mask=e.IBV_QP_INIT_ATTR_PD |
                            e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, **how)
        return QPEx(self.device.context, init, attr)

    def path(self, version, peer=None):
        peer = peer or self.wire.pairs[version][1]
        if version == 4:
            peer = b'\0' * 10 + b'\xff\xff' + peer
        route = GlobalRoute(dgid=gid(peer), sgid_index=self.device.gid_index[version])
        return AHAttr(port_num=1, is_global=1, gr=route, dlid=0)

    # ---- looking at it ----

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state

    def ended(self):
        return self.state() == e.IBV_QPS_ERR

    def memory(self):
        return self.mr.read(LENGTH, 0)

    def untouched(self):
        return self.memory() == CLEAN and self.other.read(LENGTH, 0) == CLEAN

    def completion(self, seconds=5):
        """The status of the next completion; None where there is none."""
        end = time.monotonic() + seconds * self.wire.slow
        while True:
            count, completions = self.cq.poll(1)
            if count:
                return completions[0].status
            if time.monotonic() > end:
                return None
            time.sleep(0.001)

    def silent(self):
        """Nothing completes by what was sent so far."""
        self.wire.settle()
        return not self.cq.poll(1)[0]

    # ---- what it is asked ----

    def bth(self, opcode, psn=PSN, **how):
        return w.bth(opcode, self.qp.qp_num, psn, **how)

    def write(self, opcode=w.WRITE_ONLY, offset=0, length=16, payload=b'X' * 16, va=None,
              rkey=None, **how):
        """The transport bytes of a good RDMA WRITE ONLY, but for what is given."""
        return (self.bth(opcode, **how) +
                w.reth(self.mr.buf + offset if va is None else va,
                       self.mr.rkey if rkey is None else rkey, length) + payload)

    def read(self, offset=0, length=16, rkey=None, **how):
        return (self.bth(w.READ_REQUEST, **how) +
                w.reth(self.mr.buf + offset, self.mr.rkey if rkey is None else rkey, length))

    def atomic(self, opcode=w.FETCH_ADD, offset=0, rkey=None, swap_add=1, compare=0, **how):
        return (self.bth(opcode, **how) +
                w.atomic_eth(self.mr.buf + offset, self.mr.rkey if rkey is None else rkey,
                             swap_add, compare))

    def flush(self, offset=0, length=16, rkey=None, placement=w.GLOBAL, selectivity=w.RANGE,
              reserved=0, **how):
        return (self.bth(w.FLUSH, **how) + w.feth(placement, selectivity, reserved) +
                w.reth(self.mr.buf + offset, self.mr.rkey if rkey is None else rkey, length))

    # ---- what it does itself ----

    def post_receive(self, length=1024, offset=0):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.local.buf + offset, length,
                                                    self.local.lkey)]))

    def request(self, opcode, length):
        """A request from or to the first bytes of the local memory."""
        return SendWR(opcode=opcode, num_sge=1,
                      sg=[SGE(self.local.buf, length, self.local.lkey)])

    def post(self, opcode, length):
        """Post one, to memory of the peer's where it names any."""
        if opcode == ring.FLUSH:
            ring.post_flush(self.qp, 1, 0x1000, length, w.GLOBAL, w.RANGE)
            return
        wr = self.request(opcode, length)
        if opcode in (e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WR_ATOMIC_CMP_AND_SWP):
            wr.set_wr_atomic(rkey=1, addr=0x1000, compare_add=1, swap=2)
        elif opcode != e.IBV_WR_SEND:
            wr.set_wr_rdma(1, 0x1000)
        self.qp.post_send(wr)

    def bind(self, window, offset, length, rights=REMOTE):
        """Bind a type 2 window as this queue pair's own; return its key."""
        wr = SendWR(opcode=e.IBV_WR_BIND_MW)
        wr.set_bind_wr(window, MWBindInfo(self.mr, self.mr.buf + offset, length, rights))
        self.qp.post_send(wr)
        status = self.completion()
        assert status == e.IBV_WC_SUCCESS, f'bind: {status}'
        return wr.rkey

    def window(self):
        return MW(self.device.pd, e.IBV_MW_TYPE_2)

    def invalidate(self, rkey):
        # The key shares its place in the request with immediate data.
        wr = SendWR(opcode=e.IBV_WR_LOCAL_INV, imm_data=rkey)
        self.qp.post_send(wr)
        status = self.completion()
        assert status == e.IBV_WC_SUCCESS, f'invalidate: {status}'
