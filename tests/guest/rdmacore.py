# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdmacore.py FOLDER DEVICE GID: run rdma-core's tests in FOLDER/tests, print KTAP.

Those are all that its run_tests.py finds. A case may skip for the reasons below alone, and
of Debian 12's as many as they say must skip.
"""

import collections
import functools
import importlib
import os
import sys
import time
import unittest

# How the suite's reason begins, and how many cases of Debian 12's have it. What they mean
# is in Documentation/testing.rst.
SKIPS = {
    'Can not run the test over non MLX5 device': 63,
    'Could not open mlx5 context (This is not an MLX5 device)': 14,
    'PCI device must be passed by the user': 2,
    'Can not run the test over non EFA device': 16,
    'ODP is not supported - No ODP caps': 16,
    'Device memory is not supported': 14,
    'Allocating dmabuf is not supported by /dev/dri/': 10,
    'Create XRCD is not supported': 7,
    'Create QP type 8 is not supported': 6,
    'Parent Domain is not supported on this device': 6,
    'Create Raw Packet QP': 5,
    'Create Extended CQ is not supported': 5,
    'Extended CQ is not supported': 4,
    'Rereg MR is not supported (Failed to rereg MR: IBV_REREG_MR_ERR_CMD. Errno: 95': 4,
    'cuda-python 12.0+ must be installed': 2,
    'Query device real time is not supported': 1,
    'Importing a device is not supported': 1,
}
# Of Debian 12's.
PASSES = 97
# On the debug kernel, those that move this driver's objects and locks.
DEBUG_MODULES = ('atomic', 'cq', 'mr', 'pd', 'qp')


class KtapResult(unittest.TestResult):
    """Prints each result as it comes, in KTAP."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.passes = 0
        self.skips = collections.Counter()

    def case(self, name, good, note=''):
        self.count += 1
        print(f'{"ok" if good else "not ok"} {self.count} {name}{note}', flush=True)

    def line(self, test, good=True, note=''):
        took = time.monotonic() - self.start
        self.case(test.id().replace('tests.', '', 1).replace('#', ''), good, note)
        if took > 5:
            print(f'# took {took:.1f} s', flush=True)

    def startTest(self, test):
        self.start = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        self.passes += 1
        self.line(test)

    def addSkip(self, test, reason):
        if not hasattr(self, 'start'):
            self.start = time.monotonic()
        reason = ' '.join(str(reason).split())
        known = next((words for words in SKIPS if reason.startswith(words)), None)
        if known:
            self.skips[known] += 1
            self.line(test, note=f' # SKIP {reason}')
        else:
            print('# it skips for a new reason:', reason)
            self.line(test, False)

    def addFailure(self, test, err):
        text = self._exc_info_to_string(err, test)
        print('\n'.join('# ' + line for line in text.splitlines()))
        self.line(test, False)

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def netdev_of(device):
    """The netdev of a software device, which has no PCI function to have one."""
    with open(f'/sys/class/infiniband/{device}/parent', encoding='ascii') as file:
        return file.read().strip()


def add_address(case, device, port, index):
    """In the place of RDMATestCase._get_ip_mac: tells the tests an IP address."""
    address, mac = case.get_ip_mac_address(netdev_of(device))
    case.args.append([device, port, index, address, mac])


def found(debug):
    """The suite, as run_tests.py finds it, or what of it the debug kernel runs."""
    loader = unittest.defaultTestLoader
    names = [f'tests.test_{name}' for name in DEBUG_MODULES] if debug else ['tests']
    return unittest.TestSuite(loader.loadTestsFromModule(importlib.import_module(name))
                              for name in names)


def whole(result):
    """No case of Debian 12's has come to skip, or is not found any more."""
    for words, want in SKIPS.items():
        skipped = result.skips[words]
        if skipped != want:
            print(f'# {skipped} cases skip, not {want}: {words}')
    result.case('as many cases skip as are known to, for each reason', result.skips == SKIPS)
    print(f'# {result.passes} cases pass of {PASSES}')
    result.case('all others pass', result.passes == PASSES)


def main():
    folder, device, gid = sys.argv[1:]
    sys.argv[1:] = ['--dev', device, '--gid', gid]
    sys.path[:0] = [folder, os.path.join(folder, 'tests')]
    from args_parser import parser
    parser.parse_args()
    base = importlib.import_module('tests.base')
    # It stays the same, and each look is a process.
    base.RDMATestCase.get_ip_mac_address = staticmethod(
        functools.cache(base.RDMATestCase.get_ip_mac_address))
    base.RDMATestCase.get_net_name = staticmethod(netdev_of)
    base.RDMATestCase._get_ip_mac = add_address
    debug = os.environ.get('SMW_KERNEL') == 'debug'
    print('KTAP version 1')
    result = KtapResult()
    found(debug).run(result)
    if not debug:
        whole(result)
    print(f'1..{result.count}', flush=True)


main()
