# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A trace of one's own: whoever traces meanwhile keeps what they have."""

import os


class Trace:
    """What EVENTS ('skb/kfree_skb', 'smw') told since it began, or was cleared."""

    def __init__(self, events):
        self.path = f'/sys/kernel/tracing/instances/smw_{os.getpid()}'
        self.events = events

    def __enter__(self):
        os.mkdir(self.path)
        self.put(f'events/{self.events}/enable', '1')
        return self

    def __exit__(self, *_):
        os.rmdir(self.path)

    def put(self, name, text):
        with open(f'{self.path}/{name}', 'w', encoding='ascii') as file:
            file.write(text)

    def clear(self):
        self.put('trace', '')

    def text(self):
        with open(f'{self.path}/trace', encoding='ascii') as file:
            return file.read()
