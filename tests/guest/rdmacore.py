# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdmacore.py FOLDER DEVICE GID: run rdma-core's tests in FOLDER/tests, print KTAP."""

import importlib
import os
import sys
import time
import unittest

# The suites that have nothing to do with one vendor's hardware.
MODULES = ('addr', 'atomic', 'cq', 'cq_events', 'cqex', 'device', 'fork', 'mr',
           'odp', 'parent_domain', 'pd', 'qp', 'qpex', 'rdmacm',
           'relaxed_ordering', 'shared_pd')
# On the debug kernel, those that move this driver's objects and locks.
DEBUG_MODULES = ('atomic', 'cq', 'mr', 'pd', 'qp')


class KtapResult(unittest.TestResult):
    """Prints each result as it comes, in KTAP."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def line(self, test, status='ok', note=''):
        self.count += 1
        name = test.id().replace('tests.', '', 1).replace('#', '')
        took = time.monotonic() - self.start
        print(f'{status} {self.count} {name}{note}', flush=True)
        if took > 5:
            print(f'# took {took:.1f} s', flush=True)

    def startTest(self, test):
        self.start = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        self.line(test)

    def addSkip(self, test, reason):
        if not hasattr(self, 'start'):
            self.start = time.monotonic()
        self.line(test, note=f' # SKIP {" ".join(str(reason).split())}')

    def addFailure(self, test, err):
        text = self._exc_info_to_string(err, test)
        print('\n'.join('# ' + line for line in text.splitlines()))
        self.line(test, 'not ok')

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


def main():
    folder, device, gid = sys.argv[1:]
    sys.argv[1:] = ['--dev', device, '--gid', gid]
    sys.path[:0] = [folder, os.path.join(folder, 'tests')]
    from args_parser import parser
    parser.parse_args()
    base = importlib.import_module('tests.base')
    base.RDMATestCase.get_net_name = staticmethod(netdev_of)
    base.RDMATestCase._get_ip_mac = add_address
    suite = unittest.TestSuite()
    loader = unittest.defaultTestLoader
    debug = os.environ.get('SMW_KERNEL') == 'debug'
    for name in DEBUG_MODULES if debug else MODULES:
        suite.addTests(loader.loadTestsFromModule(
            importlib.import_module(f'tests.test_{name}')))
    print('KTAP version 1')
    result = KtapResult()
    suite.run(result)
    print(f'1..{result.count}', flush=True)


main()
