"""`explain`: rebuild one old answer."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from workers.cli.common import Json, RedisOptions, Source, show, show_json

if TYPE_CHECKING:
    from online_svm.predictor.explanation import Explanation, SupportVector
    from workers.offline.explain import Explained, Value

_MAX_FEATURES, _MAX_CHARS = 12, 40  # features in a line, characters of a name or a text
_MAX_CONTRIBUTIONS = 6  # features whose contribution is shown
_MISMATCH = 5  # exit code


def explain(
    source: Source,
    id: Annotated[
        str, Argument(metavar="ID", help="ID of the answer's entry, or the id of its producer.")
    ],
    *,
    redis: RedisOptions,
    json: Json = False,
) -> None:
    """Rebuild one old answer: what it rested on, and proof by replay that its bytes are these.

    It reads only, and needs the input since the snapshot before the answer (worker --keep-input).
    It ends with exit code 5 if the replay gives other bytes.
    """
    from workers.cli.progress import doing
    from workers.offline.explain import explain_answer
    from workers.reading.registry import require
    from workers.recording.reader import reading

    with (
        reading(source, redis.store) as store,
        doing("answering the input before it again"),
    ):
        require(store)
        found = explain_answer(store, id)
    if json:
        show_json(asdict(found))
    else:
        for line in describe(found):
            show(line)
    if not found.is_identical:
        raise typer.Exit(_MISMATCH)


def describe(found: "Explained") -> list[str]:
    """Return an explained answer as lines of text."""
    answer = found.answer
    lines = [f"answer {found.entry}, entry {answer.get('seq', '?'):,} of the feed"]
    if answer.get("status") == "ok":
        lines.append(
            f"  said       {answer['label']}, probability {answer['probability']:.4f} in "
            f"[{answer['lower']:.4f}, {answer['upper']:.4f}], by {answer['method']}"
        )
        lines.append(f"  guarantee  {answer['guarantee']}{_because(answer)}")
    else:
        lines.append(f"  said       {answer.get('status')}{_because(answer)}")
    if found.experts:
        lines.append(f"  experts    {_experts(found.experts)}")
    if found.values:
        lines.append(f"  features   {_features(found, found.values)}")
    lines += _contributions(found)
    if found.rests_on is not None:
        lines += _basis(found, found.rests_on)
    if found.noted is not None:
        note = found.noted
        lines.append(f"  noted      {note['detail']} (at example {note['n']:,}, {note['writer']})")
    lines.append(f"  proof      {_proof(found)}")
    return lines


_SOURCES = {
    "label-history": "the labels just before",
    "base-rate": "how often each class came",
    "regression": "a regression on all features",
    "score": "the score that came with it",
}
_MODEL = "the model of the window"


def _experts(weights: dict[str, float]) -> str:
    """Say in a sentence whose probabilities the answer is an average of, the largest part first."""
    parts = dict.fromkeys([_MODEL, *_SOURCES.values()], 0.0)
    for name, weight in weights.items():
        source = next(
            (words for begin, words in _SOURCES.items() if name.startswith(begin)), _MODEL
        )
        parts[source] += weight
    shares = sorted(((part, words) for words, part in parts.items() if part >= 0.005), reverse=True)
    return "an average: " + ", ".join(f"{part:.0%} {words}" for part, words in shares)


def _because(answer: dict[str, Any]) -> str:
    return f": {answer['reason']}" if answer.get("reason") else ""


def _basis(found: "Explained", basis: "Explanation") -> list[str]:
    return [
        f"  model      {basis.model}, trained when {basis.freeze:,} were learned; maps "
        f"{basis.calibration}; decision values {_numbers(basis.scores)}",
        f"  calibrated on {sum(basis.counts):,} examples: {_counts(basis, basis.counts)}",
        f"  of the {sum(basis.near)} nearest in decision value: {_counts(basis, basis.near)}",
        *(
            f"  near       support vector ({basis.kernel}) at distance {vector.distance:.3g}, "
            f"weight {_numbers(vector.coefficients)}: {_features(found, _of_vector(found, vector))}"
            for vector in basis.support_vectors
        ),
    ]


def _contributions(found: "Explained") -> list[str]:
    """Return a line for each of the largest contributions."""
    lines: list[str] = []
    for one in found.contributions[:_MAX_CONTRIBUTIONS]:
        sent = found.values[one.feature]
        value = f"{sent:.4g}" if isinstance(sent, float) else str(sent)
        typical = "the usual value" if one.typical is None else f"{one.typical:.4g}"
        lines.append(
            f"  {'because' if not lines else '':<9}  {one.name[:_MAX_CHARS]}={value[:_MAX_CHARS]}: "
            f"{one.effect:+.3f} compared with {typical}"
        )
    return lines


def _counts(basis: "Explanation", counts: tuple[int, ...]) -> str:
    named = zip(basis.classes, counts, strict=True)
    return ", ".join(f"{count:,} {label or '(not seen yet)'}" for label, count in named)


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _of_vector(found: "Explained", vector: "SupportVector") -> "tuple[Value, ...]":
    """Return the values of a support vector: numbers, and others if the example has the same."""
    triples = zip(vector.values, vector.same, found.values, strict=True)
    return tuple(
        value if same is None else (sent if same else "(another)") for value, same, sent in triples
    )


def _features(found: "Explained", values: "tuple[Value, ...]") -> str:
    names = found.features or tuple(str(i) for i in range(len(values)))
    pairs = [(name, v) for name, v in zip(names, values, strict=True) if v is not None]
    texts = (
        (name, f"{v:.4g}" if isinstance(v, float) else str(v)) for name, v in pairs[:_MAX_FEATURES]
    )
    shown = " ".join(f"{name[:_MAX_CHARS]}={text[:_MAX_CHARS]}" for name, text in texts)
    more = len(pairs) - _MAX_FEATURES
    return f"{shown} and {more} more" if more > 0 else shown


def _proof(found: "Explained") -> str:
    text = f"replayed {found.replayed:,} entries from entry {found.from_seq:,} on"
    if found.is_identical:
        return f"{text}; the bytes are the committed ones"
    return f"{text}; the bytes DIFFER from the committed ones: online-svm verify tells where from"
