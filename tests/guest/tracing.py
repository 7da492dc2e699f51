# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""tracing.py DEVICE GID-INDEX: what is told of binds, invalidates and refusals.

Two queue pairs of this process, connected to each other, do one thing at a time;
then the trace event, the window's line in debugfs and the counters must say so,
number for number.
"""

import json
import os
import re
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from tracefs import Trace

LENGTH, START, SIZE = 65536, 4000, 3000
WRITE, READ, ATOMIC = (e.IBV_ACCESS_REMOTE_WRITE, e.IBV_ACCESS_REMOTE_READ,
                       e.IBV_ACCESS_REMOTE_ATOMIC)
REMOTE = WRITE | READ | ATOMIC
FLUSH = 1 << 8          # FLUSH_GLOBAL, which pyverbs does not know yet
NAMES = ((e.IBV_ACCESS_LOCAL_WRITE, 'LOCAL_WRITE'), (WRITE, 'REMOTE_WRITE'),
         (READ, 'REMOTE_READ'), (ATOMIC, 'REMOTE_ATOMIC'), (e.IBV_ACCESS_MW_BIND, 'MW_BIND'),
         (FLUSH, 'FLUSH_GLOBAL'))


def names(rights):
    return '|'.join(name for bit, name in NAMES if rights & bit)


def span(start, length):
    return f'{start:#x}+{length:#x}'


class World:
    """A device with an owner's and a peer's queue pair, and a region."""

    def __init__(self, name, gid_index):
        self.name, self.gid_index = name, gid_index
        self.context = Context(name=name)
        self.pd, self.other_pd = PD(self.context), PD(self.context)
        self.pdn, self.other_pdn = sorted(
            pd['pdn'] for pd in self.rdma('pd') if pd.get('pid') == os.getpid())
        self.cq = CQ(self.context, 64)
        everything = e.IBV_ACCESS_LOCAL_WRITE | REMOTE | e.IBV_ACCESS_MW_BIND
        self.mr = MR(self.pd, LENGTH, everything)
        self.local = MR(self.pd, LENGTH, everything)
        self.other_local = MR(self.other_pd, LENGTH, everything)
        self.owner = self.peer = None

    def rdma(self, what, *flags):
        of_port = what in ('qp', 'cm_id')
        where = ['link', f'{self.name}/1'] if of_port else ['dev', self.name]
        out = subprocess.run(['rdma', '-j', *flags, 'resource', 'show', what, *where],
                             check=True, capture_output=True, text=True).stdout
        return [x for x in json.loads(out) if x.get('ifname') == self.name]

    def renames(self, *given):
        """A process that gives the device these names in turn."""
        out = subprocess.run(['rdma', '-j', 'dev', 'show', self.name], check=True,
                             capture_output=True, text=True).stdout
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'rename.py')
        return subprocess.Popen([sys.executable, '-B', script,
                                 str(json.loads(out)[0]['ifindex']), *given])

    def qp(self, pd, rights):
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = rights
        return QP(pd, init, attr)

    def path(self):
        """To this device itself."""
        route = GlobalRoute(dgid=self.context.query_gid(1, self.gid_index),
                            sgid_index=self.gid_index)
        return AHAttr(port_num=1, is_global=1, gr=route, dlid=0)

    def connect(self, qp, to, retries=7, rnr_retries=7):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = to.qp_num
        attr.path_mtu, attr.max_dest_rd_atomic, attr.max_rd_atomic = e.IBV_MTU_1024, 4, 4
        attr.min_rnr_timer, attr.timeout = 12, 14
        attr.retry_cnt, attr.rnr_retry = retries, rnr_retries
        attr.ah_attr = self.path()
        qp.to_rts(attr)

    def fresh(self, owner_pd=None, rights=REMOTE, **retries):
        """A new connection; what was bound to the old one is free."""
        for qp in self.owner, self.peer:
            if qp:
                qp.close()
        # The peer's last SEND may have had no answer, and its time may have run out.
        while self.cq.poll(1)[0]:
            pass
        self.owner = self.qp(owner_pd or self.pd, rights)
        self.peer = self.qp(self.pd, REMOTE)
        self.connect(self.owner, self.peer)
        self.connect(self.peer, self.owner, **retries)

    def status(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            count, completions = self.cq.poll(1)
            if count:
                return completions[0].status
            time.sleep(0.001)
        raise TimeoutError('no completion')

    def bind(self, window, offset=START, length=SIZE, rights=REMOTE, mr=None):
        """Status and new key of a type 2 bind by the owner."""
        mr = mr or self.mr
        wr = SendWR(opcode=e.IBV_WR_BIND_MW)
        wr.set_bind_wr(window, MWBindInfo(mr, mr.buf + offset, length, rights))
        self.owner.post_send(wr)
        return self.status(), wr.rkey

    def bind_type1(self, window, length=SIZE, rights=REMOTE):
        info = MWBindInfo(self.mr, self.mr.buf + START, length, rights if length else 0)
        self.owner.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED))
        return self.status()

    def invalidate(self, rkey):
        # The key shares its place in the request with immediate data.
        wr = SendWR(opcode=e.IBV_WR_LOCAL_INV, imm_data=rkey)
        self.owner.post_send(wr)
        return self.status()

    def invalidate_by_send(self, rkey):
        """What the owner's receive ends with."""
        place = [SGE(self.local.buf, 8, self.local.lkey)]
        self.owner.post_recv(RecvWR(num_sge=1, sg=place))
        self.peer.post_send(SendWR(opcode=e.IBV_WR_SEND_WITH_INV, imm_data=rkey, num_sge=1,
                                   sg=place))
        return self.status()

    def write(self, rkey, va, length=8):
        wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1,
                    sg=[SGE(self.local.buf, length, self.local.lkey)])
        wr.set_wr_rdma(rkey, va)
        self.peer.post_send(wr)
        return self.status()

    # ---- what is told ----

    def windows(self):
        """Lines of the list, by key."""
        with open(f'/sys/kernel/debug/smw/{self.name}/windows', encoding='ascii') as file:
            head, *lines = [line.split() for line in file]
        return {int(line[0], 16): dict(zip(head, line)) for line in lines}

    def counters(self):
        time.sleep(0.02)
        path = f'/sys/class/infiniband/{self.name}/ports/1/hw_counters/'
        with open(path + 'lifespan', 'w', encoding='ascii') as file:
            file.write('0')
        out = subprocess.run(['rdma', '-j', 'statistic', 'show', 'link', f'{self.name}/1'],
                             check=True, capture_output=True, text=True).stdout
        return json.loads(out)[0]

    def bound_windows(self):
        """What `rdma resource show mr -dd` says of the region."""
        mrs = {int(mr['rkey'], 16): mr for mr in self.rdma('mr', '-dd') if 'rkey' in mr}
        return mrs[self.mr.rkey]['drv_bound_windows']


class Suite:
    def __init__(self, world, trace):
        self.world, self.trace, self.cases = world, trace, 0

    def case(self, name, check):
        self.cases += 1
        try:
            check()
            print('ok', self.cases, name, flush=True)
        except Exception as error:          # pylint: disable=broad-except
            for line in f'{type(error).__name__}: {error}'.splitlines():
                print('#', line)
            print('not ok', self.cases, name, flush=True)

    def told(self):
        """(name, text) of each event since the last clear."""
        return re.findall(r' (smw_\w+): (.*)', self.trace.text())

    def event(self, name, reason, *parts):
        """The one event of NAME says REASON and, word by word, PARTS."""
        texts = [text for event, text in self.told() if event == name]
        assert len(texts) == 1, f'{len(texts)} events {name}: {self.told()}'
        for part in (f': {reason}', *parts):
            assert part in texts[0], f'{part!r} is not in {texts[0]!r}'

    def counted(self, before, **more):
        after = self.world.counters()
        for name, value in more.items():
            assert after[name] - before[name] == value, \
                f'{name}: {before[name]} and then {after[name]}'

    def line(self, key, **want):
        line = self.world.windows().get(key)
        assert line, f'no line of {key:#010x}'
        for name, value in want.items():
            name = name.replace('_', '-')
            assert line[name] == str(value), f'{name} is {line[name]}, not {value}: {line}'


def bound(s):
    w = s.world
    w.fresh()
    window = MW(w.pd, e.IBV_MW_TYPE_2)
    first, before = window.rkey, w.counters()
    s.line(first, type=2, state='free', start='-', lkey='-', qp='-', accesses=0, refusals=0,
           last_refusal='-')
    assert not w.bound_windows(), f'bound windows {w.bound_windows()}'
    s.trace.clear()
    status, key = w.bind(window)
    assert status == e.IBV_WC_SUCCESS, f'status {status}'
    va = w.mr.buf + START
    rights = e.IBV_ACCESS_LOCAL_WRITE | REMOTE | e.IBV_ACCESS_MW_BIND
    s.event('smw_mw_bind', 'ok', f'{w.name}: window 0x', f'new key byte {key & 0xff:#04x}',
            f'lkey {w.mr.lkey:#010x}, {span(va, SIZE)}, {names(REMOTE)};',
            f'qp {w.owner.qp_num}, key {first:#010x} type 2 free',
            f'region {names(rights)} on {span(w.mr.buf, LENGTH)}, one pd')
    s.counted(before, mw_binds=1, mw_bind_errors=0)
    s.line(key, type=2, state='valid', start=f'{va:#x}', length=SIZE, rights='rwa--',
           lkey=f'{w.mr.lkey:#010x}', qp=w.owner.qp_num, accesses=0, refusals=0)
    assert w.bound_windows() == 1, f'bound windows {w.bound_windows()}'
    for n in range(1, 4):
        assert w.write(key, va) == e.IBV_WC_SUCCESS
        s.line(key, accesses=n, refusals=0)
    s.trace.clear()
    assert w.invalidate(key) == e.IBV_WC_SUCCESS
    s.event('smw_mw_invalidate', 'ok', f'{w.name}: key {key:#010x}: ok',
            f'qp {w.owner.qp_num}, key {key:#010x} type 2 valid, bound to qp {w.owner.qp_num},',
            'one pd')
    s.counted(before, mw_binds=1, mw_invalidates=1, mw_invalidate_errors=0,
              mw_access_refused=0)
    s.line(key, state='free', start='-', accesses=3)
    assert not w.bound_windows()
    window.close()
    assert key not in w.windows(), 'it is still in the list'


def flushable(s):
    """The right to flush is shown as the others are."""
    w = s.world
    w.fresh()
    window = MW(w.pd, e.IBV_MW_TYPE_2)
    mr = MR(w.pd, LENGTH, e.IBV_ACCESS_MW_BIND | FLUSH)
    s.trace.clear()
    status, key = w.bind(window, mr=mr, rights=READ | FLUSH)
    assert status == e.IBV_WC_SUCCESS, f'status {status}'
    s.event('smw_mw_bind', 'ok', f', {names(READ | FLUSH)};',
            f'region {names(e.IBV_ACCESS_MW_BIND | FLUSH)} on')
    s.line(key, rights='r--f-')
    window.close()
    mr.close()


def refused(s, reason, rkey, va, parts, line=None, window=1, length=8):
    """The peer's write is refused, and everything says why."""
    w = s.world
    before, old = w.counters(), w.windows().get(line)
    s.trace.clear()
    status = w.write(rkey, va, length)
    assert status == e.IBV_WC_REM_ACCESS_ERR, f'status {status}'
    s.event('smw_access_refused', f'{reason}:', f'{w.name}: rkey {rkey:#010x}:',
            f'needed REMOTE_WRITE on {span(va, length)},',
            f'qp {w.owner.qp_num} of pd', *parts)
    s.counted(before, mw_access_refused=window, resp_remote_access_errors=1,
              req_remote_access_errors=1)
    if line:
        s.line(line, refusals=int(old['refusals']) + 1, accesses=old['accesses'],
               last_refusal=reason)


def refusals(s):
    w = s.world
    va = w.mr.buf + START

    def type2(check, rights=REMOTE, qp_rights=REMOTE):
        def run():
            w.fresh(rights=qp_rights)
            window = MW(w.pd, e.IBV_MW_TYPE_2)
            status, key = w.bind(window, rights=rights)
            assert status == e.IBV_WC_SUCCESS
            check(key)
            window.close()
        return run

    granted = f'granted {names(REMOTE)} on {span(va, SIZE)};'
    s.case('refused: bounds', type2(lambda key: refused(
        s, 'access-range', key, va + SIZE - 4, (granted,), key)))
    s.case('refused: right of the window', type2(lambda key: refused(
        s, 'access-right', key, va, (f'granted REMOTE_READ on {span(va, SIZE)};',), key), READ))
    s.case('refused: right of the queue pair', type2(lambda key: refused(
        s, 'access-qp-right', key, va, (granted, 'grants REMOTE_READ;'), key),
        qp_rights=READ))
    s.case('refused: key byte', type2(lambda key: refused(
        s, 'access-old-key', key ^ 1, va, (f'key {key:#010x} of pd {w.pdn},',), key)))
    s.case('refused: no such key', type2(lambda key: refused(
        s, 'access-no-key', key ^ 0x5a5a5a00, va, ('key 0x00000000 of pd -1, qp 0',),
        window=0)))

    def unbound(key):
        assert w.invalidate(key) == e.IBV_WC_SUCCESS
        refused(s, 'access-unbound', key, va, (f'key {key:#010x} of pd -1, qp 0',), key)
    s.case('refused: state', type2(unbound))

    def other_qp():
        w.fresh()
        window = MW(w.pd, e.IBV_MW_TYPE_2)
        _, key = w.bind(window)
        holder, old_peer = w.owner, w.peer
        w.owner = w.peer = None
        w.fresh()
        refused(s, 'access-qp', key, va,
                (f'key {key:#010x} of pd {w.pdn}, qp {holder.qp_num}',), key)
        window.close()
        holder.close()
        old_peer.close()
    s.case('refused: another queue pair', other_qp)

    def other_pd():
        w.fresh()
        window = MW(w.pd, e.IBV_MW_TYPE_1)
        assert w.bind_type1(window) == e.IBV_WC_SUCCESS
        key = window.rkey
        w.fresh(owner_pd=w.other_pd)
        refused(s, 'access-pd', key, va,
                (f'of pd {w.other_pdn} grants', f'key {key:#010x} of pd {w.pdn}, qp 0'), key)
        window.close()
    s.case('refused: another protection domain', other_pd)

    def region():
        w.fresh()
        refused(s, 'access-range', w.mr.rkey, w.mr.buf + LENGTH - 4,
                (f'on {span(w.mr.buf, LENGTH)};', f'key {w.mr.rkey:#010x} of pd {w.pdn}'),
                window=0)
    s.case('refused: a region\'s bounds', region)


def bind_refused(s, reason, parts, **how):
    w = s.world
    w.fresh()
    window = MW(how.pop('pd', w.pd), e.IBV_MW_TYPE_2)
    if how.pop('twice', False):
        assert w.bind(window)[0] == e.IBV_WC_SUCCESS
    before = w.counters()
    s.trace.clear()
    status, _ = w.bind(window, **how)
    assert status == e.IBV_WC_MW_BIND_ERR, f'status {status}'
    s.event('smw_mw_bind', f'{reason}:', f'qp {w.owner.qp_num}, key', *parts)
    s.counted(before, mw_bind_errors=1, mw_binds=0)
    window.close()


def bind_errors(s):
    w = s.world
    plain = MR(w.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
    for reason, parts, how in (
            ('bind-range', (f'{span(w.mr.buf + LENGTH - 10, 11)}, ',
                            f'on {span(w.mr.buf, LENGTH)}, one pd'),
             {'offset': LENGTH - 10, 'length': 11}),
            ('bind-length', ('+0x0, ',), {'length': 0}),
            ('bind-not-free', ('type 2 valid,',), {'twice': True}),
            ('bind-pd', ('other pd',), {'pd': w.other_pd}),
            ('bind-region-right', ('region LOCAL_WRITE on',), {'mr': plain}),
            ('bind-flush', (f', {names(FLUSH)}; ',), {'rights': FLUSH})):
        s.case(f'bind refused: {reason}',
               lambda r=reason, p=parts, h=how: bind_refused(s, r, p, **h))
    plain.close()


def invalidate_refused(s, reason, make, *parts, by_send=False):
    w = s.world
    w.fresh()
    window = MW(w.pd, e.IBV_MW_TYPE_2)
    _, key = w.bind(window)
    bad = make(key)
    before = w.counters()
    s.trace.clear()
    status = w.invalidate_by_send(bad) if by_send else w.invalidate(bad)
    wanted = e.IBV_WC_REM_INV_REQ_ERR if by_send else e.IBV_WC_MW_BIND_ERR
    assert status == wanted, f'status {status}'
    s.event('smw_mw_invalidate', f'{reason};', f'{w.name}: key {bad:#010x}:',
            f'qp {w.owner.qp_num}, key', *parts)
    s.counted(before, mw_invalidate_errors=1, mw_invalidates=0)
    window.close()


def invalidate_errors(s):
    w = s.world
    s.case('invalidate refused: key byte', lambda: invalidate_refused(
        s, 'inv-key', lambda key: key ^ 1, 'type 2 valid, bound to qp'))
    s.case('invalidate refused: key byte, in a SEND', lambda: invalidate_refused(
        s, 'inv-key', lambda key: key ^ 1, 'type 2 valid, bound to qp', by_send=True))
    s.case('invalidate refused: no such key', lambda: invalidate_refused(
        s, 'inv-no-key', lambda key: key ^ 0x5a5a5a00, 'key 0x00000000'))
    s.case('invalidate refused: a region', lambda: invalidate_refused(
        s, 'inv-region', lambda key: w.mr.rkey, f'{w.mr.rkey:#010x} type 0 valid'))

    def again(key):
        assert w.invalidate(key) == e.IBV_WC_SUCCESS
        return key
    s.case('invalidate refused: state', lambda: invalidate_refused(
        s, 'inv-free', again, 'type 2 free, bound to qp 0, one pd'))


def renamed(s):
    """The device gets other names while events tell them."""
    w = s.world
    other, told = f'{w.name}x', set()
    w.fresh()
    window = MW(w.pd, e.IBV_MW_TYPE_1)
    with w.renames(other, w.name) as renames:
        while renames.poll() is None:
            s.trace.clear()
            for _ in range(50):
                assert w.bind_type1(window) == e.IBV_WC_SUCCESS
            told |= {text.split(':')[0] for _, text in s.told()}
    assert not renames.returncode, f'rename.py: {renames.returncode}'
    assert told <= {w.name, other}, f'{told}'
    window.close()


def main():
    world = World(sys.argv[1], int(sys.argv[2]))
    with Trace('smw') as trace:
        s = Suite(world, trace)
        s.case('a bind, accesses and an invalidate', lambda: bound(s))
        s.case('a bind with the right to FLUSH', lambda: flushable(s))
        refusals(s)
        bind_errors(s)
        invalidate_errors(s)
        s.case('a device that is renamed meanwhile', lambda: renamed(s))
        print(f'1..{s.cases}')


if __name__ == '__main__':
    main()
