# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""resources.py DEVICE GID-INDEX ADDRESS: what the `rdma` tool says of objects and counters.

A process makes objects of every kind; `rdma resource` must list them with their numbers
and their owner, and none of them once they are gone. `rdma statistic` must count what is
done, and nothing besides.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH
from pyverbs.cq import CQ
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

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
        self.ud = self.unconnected(e.IBV_QPT_UD, self.deep, self.srq)
        self.uc = self.unconnected(e.IBV_QPT_UC, self.deep)

    def unconnected(self, kind, cq, srq=None):
        cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=kind, scq=cq, rcq=cq, cap=cap, srq=srq, sq_sig_all=1)
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


@contextlib.contextmanager
def program(*words):
    """It runs as long as it is looked at."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(what, look):
    """What LOOK returns once it is anything."""
    end = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < end, f'no {what}'
    return found


def listeners(o, address):
    """A listener's address and its owner, in the words that people read."""
    with program('rping', '-s', '-a', address, '-p', '18999') as server:
        want = f'state LISTEN ps TCP pid {server.pid} comm rping src-addr {address}:18999'
        wait_for(want, lambda: want in subprocess.run(
            ['rdma', 'resource', 'show', 'cm_id', 'link', f'{o.name}/1'], check=True,
            capture_output=True, text=True).stdout)


def ends(o, process, state):
    """Those of a process's connections."""
    return [x for x in o.rdma('cm_id') if x.get('pid') == process.pid and x['state'] == state]


def connections(o, address):
    """A connection's two ends: addresses, owners, and the queue pairs between them."""
    here = f'{address}:18998'
    with program('rping', '-s', '-a', address, '-p', '18998') as server:
        wait_for('listener', lambda: ends(o, server, 'LISTEN'))
        with program('rping', '-c', '-a', address, '-p', '18998') as client:
            wait_for('connection', lambda: ends(o, server, 'CONNECT') and
                     ends(o, client, 'CONNECT'))
            (theirs,), (ours,) = ends(o, client, 'CONNECT'), ends(o, server, 'CONNECT')
            there = theirs['src-addr']
            assert there.startswith(f'{address}:') and there != here, theirs
            expect(theirs, dst_addr=here, ps='TCP', comm='rping')
            expect(ours, src_addr=here, dst_addr=there, ps='TCP', comm='rping')
            numbers = {qp['pid']: qp for qp in o.rdma('qp') if qp['type'] == 'RC'}
            for one, end, other in ((client, theirs, ours), (server, ours, theirs)):
                expect(numbers[one.pid], lqpn=end['lqpn'], rqpn=other['lqpn'], state='RTS',
                       comm='rping')


# ---- rdma statistic ----

def wr(o, opcode, length):
    return SendWR(opcode=opcode, num_sge=1, sg=[SGE(o.local.buf, length, o.local.lkey)])


def send(o, qp, want, length=8):
    qp.post_send(wr(o, e.IBV_WR_SEND, length))
    ends_with(o, want)


def ends_with(o, *want):
    got = sorted(o.status() for _ in want)
    assert got == sorted(want), f'statuses {got}'


def writes(o):
    o.fresh()
    for _ in range(WRITES):
        assert o.write(o.mr.rkey, o.mr.buf) == e.IBV_WC_SUCCESS


def read(o):
    """Of three packets."""
    o.fresh()
    request = wr(o, e.IBV_WR_RDMA_READ, 3000)
    request.set_wr_rdma(o.mr.rkey, o.mr.buf)
    o.peer.post_send(request)
    ends_with(o, e.IBV_WC_SUCCESS)


def no_receive(o):
    o.fresh(rnr_retries=2)
    send(o, o.peer, e.IBV_WC_RNR_RETRY_EXC_ERR)


def short_receive(o):
    o.fresh()
    o.owner.post_recv(RecvWR(num_sge=1, sg=[SGE(o.local.buf, 8, o.local.lkey)]))
    o.peer.post_send(wr(o, e.IBV_WR_SEND, 9))
    ends_with(o, e.IBV_WC_LOC_LEN_ERR, e.IBV_WC_REM_INV_REQ_ERR)


def no_answer(o):
    o.fresh(retries=2)
    o.owner.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
    send(o, o.peer, e.IBV_WC_RETRY_EXC_ERR)


def no_receive_of_uc(o):
    one, other = (o.unconnected(e.IBV_QPT_UC, o.cq) for _ in range(2))
    o.connect(one, other)
    o.connect(other, one)
    send(o, one, e.IBV_WC_SUCCESS)
    one.close()
    other.close()


def datagram(o, qkey):
    """To a queue pair without a receive."""
    ud, ah = o.unconnected(e.IBV_QPT_UD, o.cq), AH(o.pd, attr=o.path())
    request = wr(o, e.IBV_WR_SEND, 8)
    request.set_wr_ud(ah, ud.qp_num, qkey)
    ud.post_send(request)
    ends_with(o, e.IBV_WC_SUCCESS)
    ah.close()
    ud.close()


# What is done; requests and answers; and what is counted besides them, by either way. To
# a queue pair that takes nothing, and as a datagram, they are packets by either way.
STATISTICS = (
    ('WRITEs', writes, WRITES, WRITES, {}),
    ('a READ of three packets', read, 1, 3, {}),
    ('no receive', no_receive, 3, 3, {
        'send_rnr_err': 3, 'rcvd_rnr_err': 3, 'rnr_nak_retry_err': 2,
        'retry_rnr_exceeded_err': 1}),
    ('too short a receive', short_receive, 1, 1, {'resp_invalid_request_errors': 1}),
    ('no answer', no_answer, 0, 0, {
        'sent_pkts': 3, 'rx_dropped': 3, 'local_ack_timeout_err': 3, 'retry_exceeded_err': 1}),
    ('UC, no receive', no_receive_of_uc, 1, 0, {'rx_dropped': 1}),
    ('UD, no receive', lambda o: datagram(o, QKEY), 0, 0, {
        'sent_pkts': 1, 'rcvd_pkts': 1, 'rx_dropped': 1}),
    ('UD, another Q_Key', lambda o: datagram(o, QKEY + 1), 0, 0, {
        'sent_pkts': 1, 'rcvd_pkts': 1, 'rx_qkey_violations': 1}),
)


def counted_since(o, before):
    """What changed, by name."""
    after = o.counters()
    return {name: after[name] - before[name] for name in after
            if isinstance(after[name], int) and after[name] != before[name]}


def statistic(o, wire, act, requests, answers, want):
    with open(f'/sys/kernel/debug/smw/{o.name}/same_host', 'w', encoding='ascii') as file:
        file.write('0' if wire else '1')
    before = o.counters()
    act(o)
    more = counted_since(o, before)
    packets = requests + answers
    if packets:
        carried = {'sent_pkts': packets, 'rcvd_pkts': packets} if wire else \
            {'sent_local': requests}
        want = {**carried, **want}
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
    s.case('a connection', lambda: connections(o, address))
    for wire, way in ((False, 'direct path'), (True, 'packets')):
        for what, *row in STATISTICS:
            s.case(f'statistic, {way}: {what}', lambda w=wire, r=row: statistic(o, w, *r))
    s.case('statistic: no counters of queue pairs', lambda: no_qp_counters(o))
    o.close()
    s.case('no object is left', lambda: gone(before, name))
    print(f'1..{s.cases}')


if __name__ == '__main__':
    main()
