# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""An address that is taken from the host: nothing leaves from it any more."""

import socket
import subprocess
import time

import pyverbs.enums as e
from pyverbs.addr import AH

import wire as w
from target import PEER_QPN, QKEY

ADDRESS = {4: '10.79.0.55', 6: 'fd79::55'}
PREFIX = {4: 24, 6: 64}


def cases(s):
    for version in 4, 6:
        for name, kind in (('RC', e.IBV_QPT_RC), ('UC', e.IBV_QPT_UC), ('UD', e.IBV_QPT_UD)):
            s.case(f'source: {name}, IPv{version}: the address goes, to a peer elsewhere',
                   lambda kind=kind, version=version: elsewhere(s, kind, version))
        s.case(f'source: UD, IPv{version}: the address goes, to a peer of this host',
               lambda version=version: here(s, version))


def raw(version):
    return socket.inet_pton(socket.AF_INET6 if version == 6 else socket.AF_INET,
                            ADDRESS[version])


def change(what, version):
    subprocess.run(['ip', 'addr', what, f'{ADDRESS[version]}/{PREFIX[version]}', 'dev', 'near'] +
                   (['nodad'] if what == 'add' and version == 6 else []), check=True)


def index_of(s, version):
    """The GID's index, once it is there; None once it is not."""
    want = raw(version) if version == 6 else b'\0' * 10 + b'\xff\xff' + raw(version)
    for index in range(16):
        try:
            gid = s.device.context.query_gid(1, index).gid
        except Exception:                       # pylint: disable=broad-except
            continue
        if bytes.fromhex(str(gid).replace(':', '')) == want:
            return index
    return None


def await_gid(s, version, there):
    end = time.monotonic() + 10 * s.wire.slow
    while (index_of(s, version) is not None) != there:
        if time.monotonic() > end:
            raise TimeoutError('the address does not come or go')
        time.sleep(0.01)


def leave_from(s, address):
    """How many packets of ours have come from an address."""
    s.wire.settle()
    count = 0
    while True:
        try:
            frame, where = s.wire.raw.recvfrom(4096 + 200)
        except BlockingIOError:
            return count
        if where[2] != socket.PACKET_OUTGOING and w.parse(frame) and address in frame[22:38]:
            count += 1


def while_there(s, version, act):
    """Do it while the address is there, and with the queue pair's path from it."""
    usual = s.device.gid_index[version]
    change('add', version)
    try:
        await_gid(s, version, True)
        s.device.gid_index[version] = index_of(s, version)
        result = act()
    finally:
        s.device.gid_index[version] = usual
        change('del', version)
    await_gid(s, version, False)
    return result


def post(s, kind, ah, qpn=PEER_QPN):
    if kind == e.IBV_QPT_UD:
        wr = s.target.request(e.IBV_WR_SEND, 64)
        wr.set_wr_ud(ah, qpn, QKEY)
        s.target.qp.post_send(wr)
    else:
        s.target.post(e.IBV_WR_RDMA_WRITE, 64)


def elsewhere(s, kind, version):
    t = s.target

    def begin():
        t.fresh(sends=True, version=version, kind=kind)
        ah = AH(s.device.pd, attr=t.path(version)) if kind == e.IBV_QPT_UD else None
        post(s, kind, ah)
        return ah, leave_from(s, raw(version))
    ah, before = while_there(s, version, begin)
    post(s, kind, ah)
    after = leave_from(s, raw(version))
    if ah:
        ah.close()
    return None if before == 1 and after == 0 else f'{before} packets before, {after} after'


def here(s, version):
    """To itself, by the other address; each send and each receive completes once."""
    t = s.target

    def begin():
        t.fresh(version=version, kind=e.IBV_QPT_UD)
        ah = AH(s.device.pd, attr=t.path(version, s.wire.pairs[version][0]))
        return ah, send_to_itself(s, ah)
    ah, before = while_there(s, version, begin)
    after = send_to_itself(s, ah)
    ah.close()
    return None if before == 2 and after == 1 else f'{before} completions, {after} after'


def send_to_itself(s, ah):
    t = s.target
    t.post_receive(256, offset=1024)
    post(s, e.IBV_QPT_UD, ah, t.qp.qp_num)
    s.wire.settle()
    return t.cq.poll(8)[0]
