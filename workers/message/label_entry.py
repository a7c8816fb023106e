"""Decode a label entry: the label of an example that came before."""

from collections.abc import Mapping

from online_svm.errors import InvalidExample
from online_svm.stream.input_batch import LateLabel
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message.entry_decode import Fields, check_names, check_size, pairs, read_id, read_label

_FIELDS = frozenset((b"for", b"y", b"id"))
_NO_LABELS = frozenset((b"x", b"xb", b"p"))


def is_label_entry(fields: Fields, schema: FeatureSchema) -> bool:
    """Return whether an entry is to be read as a label, where labels may come late.

    That is one with `for`, or one with `id` and `y` and no features.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> schema = FeatureSchema(PredictorConfig(horizon=10))
    >>> is_label_entry([b"id", b"a", b"y", b"spam"], schema)
    True
    >>> is_label_entry([b"id", b"a", b"y", b"spam"], FeatureSchema(PredictorConfig()))
    False
    """
    if not schema.takes_late_labels:
        return False
    names = fields if isinstance(fields, Mapping) else fields[::2]
    if b"for" in names:
        return True
    has_both = b"y" in names and b"id" in names
    return has_both and not any(name in names for name in _NO_LABELS)


def decode_label_entry(fields: Fields, schema: FeatureSchema, limits: Limits) -> LateLabel:
    """Return what a label entry holds.

    Raises
    ------
    InvalidExample
        If it holds other fields, lacks the label, or its label or an id cannot be read.
    """
    check_size(fields, limits)
    check_names(fields, schema)
    given = dict(pairs(fields))
    other = sorted(given.keys() - _FIELDS)
    if other:
        raise InvalidExample(
            "label_entry",
            f"a label entry has for, y and id; {other[0].decode()} is of an example",
        )
    if b"y" not in given:
        raise InvalidExample("label_entry", "a label entry needs y, the label")
    if b"id" in given:
        read_id(given[b"id"])
    example = read_id(given.get(b"for", given.get(b"id", b"")), "for")
    label = read_label(given[b"y"], schema)
    assert label is not None
    return LateLabel(example, label)
