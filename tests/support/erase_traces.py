"""A feed with one entry of a person, and what would be a trace of it."""

import struct

from archived_feed import entry

from workers.broker.store import Store

PERSON = "person-7"
VALUE = 3.141592653
TRACES = (PERSON.encode(), b"3.141592653", struct.pack("<d", VALUE))
AT = entry(50)[0].encode()
KEPT = {"keep_input": True, "replay_budget": 40}
CHANGES = KEPT | {"dedupe_window": 60}


def push_with_person(store, begin=0, end=100):
    """Push entries; the fiftieth is the person's."""
    for i in range(begin, end):
        at, fields = entry(i)
        if i == 50:
            fields = {"x": f"[{VALUE}, 2]", "y": "b", "id": PERSON}
        store.call(
            "XADD", store.keys.input, at, *(part for pair in fields.items() for part in pair)
        )


def stored(store):
    """Return the bytes of every key of the server, as Redis dumps them."""
    keys = store.call("KEYS", "*")
    return b"\n".join([*keys, *(store.call("DUMP", key) for key in keys)])


def traces_in(data):
    return [trace for trace in TRACES if trace in data]


class Cut(BaseException):
    """The process ends here."""


class CutStore(Store):
    """A store that ends at its n-th call: Redis has done those before it, and not this one.

    To Redis that is also an end right after the call before, whose reply was lost.
    """

    left = 10**9

    def call(self, *command):
        return self._counted(super().call, *command)

    def run(self, script, keys, args):
        return self._counted(super().run, script, keys, args)

    def append(self, stream, entries):
        return self._counted(super().append, stream, entries)

    def _counted(self, do, *arguments):
        self.left -= 1
        if self.left == 0:
            raise Cut
        return do(*arguments)
