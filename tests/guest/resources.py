# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""resources.py DEVICE GID-INDEX: what the `rdma` tool says of objects and counters.

A process makes objects of every kind; `rdma resource` must list them with their numbers
and their owner, and none of them once they are gone.
"""

import json
import os
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

from tracing import LENGTH, Suite, World

WRITES = 10
QKEY = 0x1234


def summary(name):
    """How many objects of each kind the device has."""
    out = subprocess.run(['rdma', '-j', 'resource', 'show', name], check=True,
                         capture_output=True, text=True).stdout
    counts = next(x for x in json.loads(out) if x['ifname'] == name)
    return {kind: n for kind, n in counts.items() if kind not in ('ifindex', 'ifname')}


class Objects(World):
    """One of everything more than tracing needs."""

    def __init__(self, name, gid_index):
        super().__init__(name, gid_index)
        self.fresh()
        init = SrqInitAttr(SrqAttr(max_wr=8, max_sge=1))
        self.srq = SRQ(self.pd, init)
        self.deep = CQ(self.context, 500)
        self.ud = self.unconnected(e.IBV_QPT_UD, self.srq)
        self.uc = self.unconnected(e.IBV_QPT_UC, None)

    def unconnected(self, kind, srq):
        cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=kind, scq=self.deep, rcq=self.deep, cap=cap, srq=srq)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        # With attributes UD is brought to RTS and UC to INIT.
        return QP(self.pd, init, attr)

    def mine(self, what):
        return [x for x in self.rdma(what) if x.get('pid') == os.getpid()]

    def close(self):
        for one in (self.ud, self.uc, self.owner, self.peer, self.srq, self.deep, self.cq,
                    self.mr, self.local, self.other_local, self.pd, self.other_pd, self.context):
            one.close()


def expect(row, **want):
    for name, value in want.items():
        name = name.replace('_', '-')
        assert row.get(name) == value, f'{name} is {row.get(name)}, not {value}: {row}'


def counted(before, name):
    more = {kind: n - before[kind] for kind, n in summary(name).items()}
    want = {'pd': 2, 'cq': 2, 'qp': 4, 'cm_id': 0, 'mr': 3, 'ctx': 1, 'srq': 1}
    assert more == want, f'{more}, not {want}'


def contexts(o):
    mine = o.mine('ctx')
    assert len(mine) == 1, mine
    expect(mine[0], comm='python3')


def domains(o):
    mine = {pd['pdn']: pd for pd in o.mine('pd')}
    assert set(mine) == {o.pdn, o.other_pdn}, mine
    ctxn = o.mine('ctx')[0]['ctxn']
    # Two regions, four queue pairs and a shared receive queue; one region.
    expect(mine[o.pdn], users=7, ctxn=ctxn, comm='python3')
    expect(mine[o.other_pdn], users=1, ctxn=ctxn)


def queues(o):
    # A CQ of 64 and one of 500 have room for the next power of two, less one.
    mine = sorted((cq['cqe'], cq['users']) for cq in o.mine('cq'))
    # Once as send CQ and once as receive CQ of each queue pair.
    assert mine == [(127, 4), (511, 4)], mine


def regions(o):
    mine = {int(mr['rkey'], 16): mr for mr in o.mine('mr')}
    assert set(mine) == {o.mr.rkey, o.local.rkey, o.other_local.rkey}, mine
    for mr, pdn in ((o.mr, o.pdn), (o.local, o.pdn), (o.other_local, o.other_pdn)):
        row = mine[mr.rkey]
        expect(row, mrlen=LENGTH, pdn=pdn, comm='python3')
        assert int(row['lkey'], 16) == mr.lkey, row


def queue_pairs(o):
    mine = {qp['lqpn']: qp for qp in o.mine('qp')}
    assert set(mine) == {o.owner.qp_num, o.peer.qp_num, o.ud.qp_num, o.uc.qp_num}, mine
    for qp, to in ((o.owner, o.peer), (o.peer, o.owner)):
        row = mine[qp.qp_num]
        expect(row, rqpn=to.qp_num, type='RC', state='RTS', pdn=o.pdn, comm='python3')
        expect(row, path_mig_state='MIGRATED')
    expect(mine[o.ud.qp_num], type='UD', state='RTS', pdn=o.pdn)
    expect(mine[o.uc.qp_num], type='UC', state='INIT', pdn=o.pdn)


def srqs(o):
    mine = o.mine('srq')
    assert len(mine) == 1, mine
    expect(mine[0], type='BASIC', pdn=o.pdn, comm='python3')
    assert mine[0]['lqpn'] in (str(o.ud.qp_num), [str(o.ud.qp_num)]), mine[0]


def kernels(o):
    """What the RDMA core has for management datagrams."""
    for what, want in (('qp', {'lqpn': 1, 'type': 'GSI', 'state': 'RTS'}), ('cq', {'cqe': 1023}),
                       ('pd', {'users': 1})):
        rows = [x for x in o.rdma(what) if 'pid' not in x]
        assert len(rows) == 1, rows
        expect(rows[0], comm='ib_core', **want)


def listeners(o, address):
    """A listener's address and its owner, in the words that people read."""
    with subprocess.Popen(['rping', '-s', '-a', address, '-p', '18999'], stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:
        try:
            end = time.monotonic() + 20
            want = f'state LISTEN ps TCP pid {server.pid} comm rping src-addr {address}:18999'
            said = ''
            while want not in said and time.monotonic() < end:
                said = subprocess.run(['rdma', 'resource', 'show', 'cm_id', 'link',
                                       f'{o.name}/1'], check=True, capture_output=True,
                                      text=True).stdout
            assert want in said, f'{want!r} is not in {said!r}'
        finally:
            server.kill()


def statistics(o, wire):
    """Each write is one step on the direct path; by packets a request and its answer."""
    with open(f'/sys/kernel/debug/smw/{o.name}/same_host', 'w', encoding='ascii') as file:
        file.write('0' if wire else '1')
    o.fresh()
    before = o.counters()
    for _ in range(WRITES):
        assert o.write(o.mr.rkey, o.mr.buf) == e.IBV_WC_SUCCESS
    after = o.counters()
    more = {name: after[name] - before[name] for name in after
            if isinstance(after[name], int) and after[name] != before[name]}
    want = {'sent_pkts': 2 * WRITES, 'rcvd_pkts': 2 * WRITES} if wire else {'sent_local': WRITES}
    assert more == want, f'{more}, not {want}'


def no_qp_counters(o):
    """A counter of one queue pair alone is hardware's; the core calls that ENOMEM."""
    done = subprocess.run(['rdma', 'statistic', 'qp', 'bind', 'link', f'{o.name}/1', 'lqpn',
                           str(o.owner.qp_num)], check=False, capture_output=True, text=True)
    assert done.returncode and 'Cannot allocate memory' in done.stderr, done


def gone(before, name):
    after = summary(name)
    assert after == before, f'{after}, before {before}'


def main():
    name, gid_index, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    before = summary(name)
    o = Objects(name, gid_index)
    s = Suite(o, None)
    s.case('as many objects as were made', lambda: counted(before, name))
    s.case('context', lambda: contexts(o))
    s.case('protection domains', lambda: domains(o))
    s.case('completion queues', lambda: queues(o))
    s.case('memory regions', lambda: regions(o))
    s.case('queue pairs', lambda: queue_pairs(o))
    s.case('shared receive queue', lambda: srqs(o))
    s.case('the kernel\'s own objects', lambda: kernels(o))
    s.case('a listener', lambda: listeners(o, address))
    s.case('statistic: direct path', lambda: statistics(o, False))
    s.case('statistic: packets', lambda: statistics(o, True))
    s.case('statistic: no counters of queue pairs', lambda: no_qp_counters(o))
    o.close()
    s.case('no object is left', lambda: gone(before, name))
    print(f'1..{s.cases}')


if __name__ == '__main__':
    main()
