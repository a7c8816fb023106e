"""Whatever a parser is fed, it answers or refuses by a named error, and changes nothing then."""

import json
from hashlib import sha256

import numpy as np
import pytest
from fuzzing import FACTOR, fuzz
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES, InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import pack, unpack
from online_svm.stream.input_batch import Example
from online_svm.stream.schema import FeatureSchema
from workers.broker.leases import Holder
from workers.config.environment import PROCESS_ENVIRONMENT
from workers.config.settings import Limits, WorkerSettings, load
from workers.errors import BadConfiguration, InvalidStoredSnapshot, StateLost
from workers.feed.pinned_config import pinned_config
from workers.feed.position import START, Position
from workers.feed.recent_ids import RecentIds
from workers.feed.state import FeedState, Pointer, initial_fields
from workers.message.decode import decode
from workers.push.sources import BadSource, Reading, rows
from workers.session import snapshots
from workers.session.answer import process

pytestmark = pytest.mark.timeout(180 * FACTOR)  # so many times the examples
CONFIG = PredictorConfig(features=2, classes=("p", "q"), window=40, refit_every=10, gamma=0.5)
LIMITS = Limits(max_entry_bytes=2048, dedupe_window=5)


def refusal(errors, parse, *given):
    """Return what a parser said when it refused by a named error; empty if it did not."""
    try:
        parse(*given)
    except errors as error:
        return str(error) or "nothing said"
    return ""


# Messages

numbers = st.one_of(st.floats(), st.integers(), st.sampled_from([1e999, -0.0, 5e-324, 1e101]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def as_json(value):
    return json.dumps(value).encode()


texts = st.one_of(
    st.binary(max_size=64),
    values.map(as_json),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(lambda v: b"[%d,%d]" % v),
    st.sampled_from(
        [b"[" * 3000, b'{"a":' * 300, b"[1,2]\0", b"[" + b"9" * 5000 + b",1]", b" [1 ,2 ] ",
         b"p", b"q", b"\xff"]
    ),
)  # fmt: skip
names = st.one_of(st.sampled_from([b"x", b"xb", b"y", b"id", b"for"]), st.binary(max_size=6))
entries = st.one_of(
    st.lists(st.tuples(names, texts), max_size=5),
    texts.map(lambda x: [(b"x", x), (b"y", b"p")]),
    st.binary(max_size=40).map(lambda raw: [(b"xb", raw), (b"y", b"q")]),
)


def flat(pairs):
    return [part for pair in pairs for part in pair]


@pytest.fixture(scope="module")
def trained():
    """A predictor at work, as the bytes of its state."""
    predictor, generator = OnlinePredictor(CONFIG), np.random.default_rng(0)
    for x in generator.normal(size=(30, 2)).round(3):
        predictor.step(Example(x.tolist(), "p" if x[0] > 0 else "q"))
    return predictor.snapshot()


@fuzz(60)
@given(st.lists(entries, max_size=24))
def test_any_entries_are_answered_and_rejected_ones_change_nothing(trained, batch):
    predictor = OnlinePredictor(CONFIG)
    predictor.restore(trained)
    numbered = [(b"%d-0" % (i + 1), flat(pairs)) for i, pairs in enumerate(batch)]
    if not numbered:
        return
    decoded = decode(numbered, predictor.schema, LIMITS)
    for error in decoded.rejected.values():
        assert error.code in REJECTION_CODES
        assert len(error.reason) < 400
        assert error.reason.isprintable()
    refused = [numbered[i] for i in decoded.rejected]
    if refused:
        recent = RecentIds(5)
        outcome = process(predictor, LIMITS, Position(n=30), refused, recent)
        assert predictor.snapshot() == trained
        assert recent.prepend_to(b"") == RecentIds(5).prepend_to(b"")
        assert {json.loads(payload)["status"] for payload in outcome.out} == {"rejected"}
        assert all(len(letter.head) <= 1024 for letter in outcome.dlq)
    outcome = process(predictor, LIMITS, START, numbered, RecentIds(5))
    assert all(json.loads(payload)["seq"] == i for i, payload in enumerate(outcome.out))


@fuzz(100)
@given(st.lists(entries, max_size=6))
def test_a_feed_adopts_no_features_from_what_it_rejects(batch):
    unknown = FeatureSchema(PredictorConfig())
    decoded = decode([(b"1-0", flat(pairs)) for pairs in batch], unknown, LIMITS)
    assert (decoded.schema.dimension is None) == (not decoded.accepted)
    assert unknown.dimension is None


# Snapshots


def damaged(data, positions, byte, cut):
    changed = bytearray(data)
    for position in positions:
        changed[position % len(changed)] ^= byte
    return bytes(changed[: len(changed) - cut])


damage = st.tuples(
    st.lists(st.integers(0, 1 << 20), max_size=4), st.integers(1, 255), st.integers(0, 200)
)


plain = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 1 << 40), st.text(max_size=3),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
json_like = st.one_of(
    plain, st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=3), plain, max_size=3)
)


@fuzz(60)
@given(st.data(), damage)
def test_a_snapshot_that_is_damaged_or_says_something_else_is_refused_or_restored(
    trained, data, harm
):
    """Where the archive itself is sound, what it says is not; nothing is ever half taken."""
    header, arrays = unpack(trained)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(set(header) - {"format", "config"})))
        header[name] = data.draw(json_like)
    else:
        name = data.draw(st.sampled_from(sorted(arrays)))
        shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
        kind = data.draw(st.sampled_from(["<f8", "<i8", "|b1", "|u1"]))
        arrays[name] = np.full(shape, data.draw(st.sampled_from([0, 1, 77])), dtype=kind)
    changed = pack({k: v for k, v in header.items() if k != "format"}, arrays)
    for bad in (changed, damaged(trained, *harm)):
        predictor = OnlinePredictor(CONFIG)
        empty = predictor.snapshot()
        if refusal(InvalidSnapshot, predictor.restore, bad):
            assert predictor.snapshot() == empty


@fuzz(100)
@given(st.binary(max_size=300), damage)
def test_a_stored_snapshot_of_any_bytes_is_read_or_refused(body, harm):
    pointer, whole = snapshots.encode("f", "c0ffee", Position(b"9-1", 3, 2, bytes(32)), body)
    for data in (damaged(whole, *harm), body):
        named = Pointer(pointer.n, sha256(data).hexdigest(), pointer.cursor)
        said = refusal(InvalidStoredSnapshot, snapshots.decode, data, pointer, "f", "c0ffee")
        assert bool(said) == (data != whole)
        # Forged so that it hashes to what is recorded: refused or taken, and nothing else.
        said = refusal(InvalidStoredSnapshot, snapshots.decode, data, named, "f", "c0ffee")
        assert len(said) < 1000


@fuzz(150)
@given(st.one_of(st.binary(max_size=60), values.map(as_json)), st.integers(0, 80))
def test_recent_ids_of_any_bytes_are_read_or_refused(text, length):
    for body in (text, length.to_bytes(8, "big") + text, len(text).to_bytes(8, "big") + text):
        recent = RecentIds(3)
        if refusal(InvalidStoredSnapshot, recent.restore_from, body):
            assert recent.first("a") is None
        else:
            assert recent.prepend_to(b"")[:1] == b"\0"


# Configuration

known = st.sampled_from(sorted(WorkerSettings.model_fields))
settings_texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["none", "[", "{}", "a=1,b", "1e999", "nan", "-1", "9" * 400, "a,a", ",", "0"]),
)


@fuzz(120)
@given(st.dictionaries(st.one_of(known, st.text(max_size=8)), settings_texts, max_size=3))
def test_any_flags_are_taken_or_refused_in_one_line(flags):
    said = refusal(BadConfiguration, load, flags)
    assert "\n" not in said.strip()
    assert len(said) < 2000


toml_like = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.tuples(known, values.map(as_json)).map(lambda v: f"{v[0]} = {v[1].decode()}"),
        st.sampled_from(["[worker]", "[predictor]", "[limits]", "[x.y]", "batch = 1"]),
    ),
    max_size=5,
).map("\n".join)


@fuzz(120)
@given(st.one_of(toml_like.map(str.encode), st.binary(max_size=40)))
def test_any_settings_file_is_taken_or_refused(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_bytes(text)
    assert len(refusal(BadConfiguration, load, {}, path)) < 2000


@fuzz(80)
@given(known, settings_texts.filter(lambda text: "\0" not in text and text.isascii()))
def test_any_variable_is_taken_or_refused(name, text):
    variable = f"ONLINE_SVM_{name.upper()}"
    assert variable not in PROCESS_ENVIRONMENT
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, text)
        assert len(refusal(BadConfiguration, load, {})) < 2000


# Ingestion, and what is stored in Redis

PIECES = ["a,b,c", "1,2,p", "1 1:2 3:4", "@attribute a real", "@data", '"', ",,", "1 :", "?"]
line = st.one_of(
    st.text(max_size=12), values.map(lambda v: as_json({"x": v, "y": "a"}).decode()),
    st.sampled_from(PIECES),
)  # fmt: skip
lines = st.binary(max_size=80) | st.lists(line, max_size=6).map(
    lambda parts: "\n".join(parts).encode()
)


@fuzz(150)
@given(lines, st.sampled_from(["csv", "jsonl", "libsvm", "arff"]), st.booleans())
def test_any_file_is_read_or_refused_with_the_row(tmp_path, content, format_, header):
    path = tmp_path / "file"
    path.write_bytes(content)
    reading = Reading(format_, header=header)
    assert len(refusal(BadSource, lambda: list(rows(str(path), reading)))) < 1000


@fuzz(100)
@given(st.data())
def test_a_state_of_any_fields_is_read_or_refused(data):
    odd = st.sampled_from([b"1:2:3", b"9" * 5000, b"-1", b"0:" + b"a" * 64 + b":0-0"])
    flat_ = initial_fields(pinned_config(CONFIG, LIMITS))
    sound = {n.encode(): str(v).encode() for n, v in zip(flat_[::2], flat_[1::2], strict=True)}
    sound |= {b"epoch": b"1", b"writer": b"w"}
    for name in data.draw(st.lists(st.sampled_from(sorted(sound)), max_size=3)):
        sound[name] = data.draw(st.one_of(st.binary(max_size=8), odd))
    assert len(refusal((StateLost, BadConfiguration), FeedState.parse, sound, "st")) < 1000


@fuzz(100)
@given(st.one_of(st.binary(max_size=60), values.map(as_json)))
def test_a_lease_of_any_bytes_has_a_holder_or_none(text):
    holder = Holder.parse(text)
    assert holder is None or holder.encode()
