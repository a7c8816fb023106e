"""Which entries of a decoded batch are answered as examples: no repeat, and no class too many."""

from online_svm.errors import InvalidExample
from online_svm.stream.labels import LabelIndex
from workers.feed.recent_ids import RecentIds
from workers.message.decode import Decoded


def admit(
    decoded: Decoded, seq: int, recent: RecentIds, classes: LabelIndex, max_classes: int | None
) -> tuple[Decoded, dict[int, int]]:
    """Return what is left of a batch, and of each repeat its position and the `seq` it repeats.

    One entry after the other, in stream order: a repeat is left out. Then a label that is new when
    there are `max_classes` already is rejected. The ids of the others are remembered, and their
    labels known. So the result is that of batches of one.

    Parameters
    ----------
    decoded : Decoded
    seq : int
        Input entries before the batch.
    recent : RecentIds
        The ids answered before the batch; those of the batch are added.
    classes : LabelIndex
        The labels known before the batch.
    max_classes : int or None
        Bound on the labels of a feed that declares none.
    """
    new = set() if classes.declared or max_classes is None else classes.unknown(decoded.labels)
    room = (max_classes or 0) - len(classes.labels)
    # Without repeats there are no more labels, so these may all stay.
    is_full = len(new) > room
    if recent.window == 0 and not is_full:
        return decoded, {}
    repeats: dict[int, int] = {}
    rejected: dict[int, InvalidExample] = {}
    added: set[str] = set()
    for position, label in zip(decoded.accepted, decoded.labels, strict=True):
        sent = decoded.ids[position] if recent.window else None
        first = None if sent is None else recent.first(sent)
        if first is not None:
            repeats[position] = first
            continue
        if is_full and label in new and label not in added:
            if len(added) >= room:
                rejected[position] = one_too_many(label, max_classes)
                continue
            added.add(label)
        if sent is not None:
            recent.add(sent, seq + position)
    left = decoded.without(repeats, rejected) if repeats or rejected else decoded
    return left, repeats


def one_too_many(label: str, max_classes: int | None) -> InvalidExample:
    """Return the error for a label that is new where there are as many as may be."""
    return InvalidExample(
        "too_many_classes",
        f"label {label[:40]!r} is not among the first {max_classes} of this feed, its limit",
    )
