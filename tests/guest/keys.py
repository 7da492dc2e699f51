# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""keys.py DEVICE: how well can keys be guessed from keys that were seen?

Allocates windows and regions in turn, keeps their keys in order, and lets
predictors loose on them that know all keys before. A predictor's hits are held
against chance, with bounds that chance passes once in more than 10^6 runs. What
is printed is in Documentation/memory-windows.rst.
"""

import math
import os
import sys

import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import MR, MW
from pyverbs.pd import PD

SPACE = 1 << 24
COUNT = 600 if os.environ.get('SMW_KERNEL') == 'debug' else 6000
SIGMAS = 6


def keys_of(context):
    """COUNT keys in the order of allocation; three of four are windows."""
    pd, keys, things = PD(context), [], []
    for n in range(COUNT):
        if n % 4:
            things.append(MW(pd, e.IBV_MW_TYPE_2 if n % 2 else e.IBV_MW_TYPE_1))
        else:
            things.append(MR(pd, 64, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ))
        keys.append(things[-1].rkey)
        if n % 3 == 0:              # and not all of them live on
            things.pop(n // 7 % len(things)).close()
    for thing in things:
        thing.close()
    pd.close()
    return keys


def far_off(ones, tries):
    """By how many standard deviations a fair coin's ONES of TRIES are off."""
    return abs(ones - tries / 2) / math.sqrt(tries / 4)


def bits(index):
    return [index >> n & 1 for n in range(24)]


def balance(indices):
    """The most lopsided bit."""
    return max(far_off(sum(i >> n & 1 for i in indices), len(indices)) for n in range(24))


def pairs_of_bits(indices):
    """Of all bits of a key and all bits of the next, the most alike or unlike."""
    worst = 0
    for shift in range(24):
        # One rotation of the key before against the next: 24 pairs at once.
        counts = [0] * 24
        for before, after in zip(indices, indices[1:]):
            same = ~((before << shift | before >> (24 - shift)) ^ after)
            for n in range(24):
                counts[n] += same >> n & 1
        worst = max(worst, *(far_off(count, len(indices) - 1) for count in counts))
    return worst


def hits(indices, predict):
    """How often PREDICT is right about the next index, from the three before."""
    return sum(predict(*indices[n - 3:n]) % SPACE == indices[n]
               for n in range(3, len(indices)))


def multiplier(a, b, c):
    """The next of a linear congruential generator that gave these three."""
    first, second = (b - a) % SPACE, (c - b) % SPACE
    if first % 2 == 0:
        return c + second
    return c + second * second * pow(first, -1, SPACE)


def affine(indices):
    """
    Each bit of a key as an affine function of the 24 bits before: where the key
    before is a sum of earlier ones, so is the guess. (keys right, worst bit).
    """
    basis, right, tried, agree = {}, 0, 0, [0] * 24
    for before, after in zip(indices, indices[1:]):
        row, guess = before << 1 | 1, 0
        while row and row.bit_length() in basis:
            other = basis[row.bit_length()]
            row, guess = row ^ other[0], guess ^ other[1]
        if row:
            basis[row.bit_length()] = (row, after ^ guess)
            continue
        right, tried = right + (guess == after), tried + 1
        agree = [n + bit for n, bit in zip(agree, bits(~(guess ^ after)))]
    return right, max(far_off(count, tried) for count in agree)


def chi_square(values):
    counts = [0] * 256
    for value in values:
        counts[value] += 1
    expected = len(values) / 256
    return sum((count - expected) ** 2 / expected for count in counts)


class Suite:
    def __init__(self):
        self.cases = 0

    def case(self, name, measured, bound):
        self.cases += 1
        print('ok' if measured <= bound else 'not ok', self.cases, name)
        print(f'# {measured:.4g}, at most {bound:.4g}', flush=True)


def guesses(s, keys):
    indices = [key >> 8 for key in keys]
    steps = [(b - a) % SPACE for a, b in zip(indices, indices[1:])]
    flips = [a ^ b for a, b in zip(indices, indices[1:])]
    s.case('keys that came twice', len(keys) - len(set(indices)), 0)
    s.case('the most lopsided bit of an index, in sigmas', balance(indices), SIGMAS)
    s.case('two bits of keys in turn, in sigmas', pairs_of_bits(indices), SIGMAS)
    s.case('steps that repeat', len(steps) - len(set(steps)), 12)
    s.case('bit patterns that repeat', len(flips) - len(set(flips)), 12)
    s.case('an index near the one before, of 512',
           sum(min(step, SPACE - step) <= 256 for step in steps), 12)
    for name, predict in (('the same step again', lambda a, b, c: c + c - b),
                          ('the same bits flipped', lambda a, b, c: c ^ b ^ a),
                          ('a linear congruential generator', multiplier)):
        s.case(f'guessed by: {name}', hits(indices, predict), 1)
    right, worst = affine(indices)
    s.case('guessed by: an affine map of the bits before', right, 1)
    s.case('one bit of that guess, in sigmas', worst, SIGMAS)


def low_bytes(s, keys):
    """Those of windows and of regions, and the steps between them."""
    bound = 255 + SIGMAS * math.sqrt(2 * 255) + 20
    windows = [key & 0xff for n, key in enumerate(keys) if n % 4]
    regions = [key & 0xff for n, key in enumerate(keys) if not n % 4]
    s.case('low bytes of windows, chi square', chi_square(windows), bound)
    s.case('low bytes of regions, chi square', chi_square(regions), bound)
    s.case('steps of low bytes, chi square', chi_square(
        [(b - a) % 256 for a, b in zip(windows, windows[1:])]), bound)


def main():
    context = Context(name=sys.argv[1])
    keys = keys_of(context)
    s = Suite()
    guesses(s, keys)
    low_bytes(s, keys)
    left = math.log2(SPACE - 1 - COUNT)
    print(f'# {COUNT} keys seen: an index not seen yet is one of 2^{left:.2f}, a key one of',
          f'2^{left + 8:.2f}')
    print(f'1..{s.cases}')


main()
