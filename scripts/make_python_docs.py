"""Write docs/python.md from the docstrings of the public names; --check only compares."""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import online_svm
from online_svm import PredictorConfig, river
from scripts.generated_page import write_or_check

TARGET = Path(__file__).parents[1] / "docs" / "python.md"

_INTRODUCTION = """\
# Python

Made from the docstrings of `online_svm` by `scripts/make_python_docs.py`; `make doctest` runs
their examples, in which `np` is NumPy. The [how-to](how-to/estimators.md) says which class to take
for what. `n` is the number of rows, `d` of features, `K` of classes. Methods that scikit-learn,
river and pydantic give to their own kind (`score`, `model_dump`) are described there; one that
several classes share stands with the first of them.
"""

GROUPS = {
    "Models": ("OnlineClassifier", "OnlineCalibrator"),
    "For river": ("OnlineClassifier", "CalibratedModel", "calibrate"),
    "The state machine of a feed": ("OnlinePredictor", "PredictorConfig", "Example", "Prediction"),
    "Machines for a table": (
        *("OnlineSVC", "ProbabilitySVC", "ProbabilisticSVC"),
        *("ImpliedPosterior", "InductiveVennClassifier"),
    ),
    "Maps from scores to probabilities": (
        *("VennAbers", "IsotonicMap", "ScoreBinning", "PlattScaling"),
        *("TemperatureScaling", "VectorScaling", "MatrixScaling"),
        *("EvidentialBinning", "EvidentialIsotonic", "EvidentialLogistic"),
    ),
    "Belief functions": ("dempster_combine", "pignistic", "inverse_pignistic"),
    "Errors": ("OnlineSVMError", "InvalidExample"),
}
"""The public names of `online_svm`, and of `online_svm.river`, in the order of the page."""

_SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)
_NAMED = {"Parameters", "Attributes", "Returns", "Raises"}


def members() -> Iterator[tuple[str, str, Any]]:
    """Yield the group, the name with its module, and the object of each public name."""
    for group, names in GROUPS.items():
        module = river if group == "For river" else online_svm
        for name in names:
            yield group, f"{module.__name__}.{name}", getattr(module, name)


def render() -> str:
    """Return the page."""
    parts, last, shown = [_INTRODUCTION], "", set()
    for group, name, member in members():
        if group != last:
            parts.append(f"## {group}\n")
        last = group
        parts.append(f"### {name.removeprefix('online_svm.')}\n")
        parts.append(f"`{_called(name, member)}`\n")
        parts.append(_markdown(member))
        for each, found in methods(member):
            defined = getattr(found, "__func__", found)
            if defined not in shown:
                parts.append(f"**`{_called(each, found)}`** {_markdown(found)}")
            shown.add(defined)
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def methods(member: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class of this package defines, by name."""
    if not isinstance(member, type) or member is PredictorConfig:
        return  # its properties are derived from the settings
    for name, found in inspect.getmembers_static(member):
        owner = next((c for c in member.__mro__ if name in vars(c)), object)
        is_method = inspect.isfunction(found) or isinstance(found, property | classmethod)
        if is_method and not name.startswith("_") and owner.__module__.startswith("online_svm"):
            yield name, found.__get__(None, member) if isinstance(found, classmethod) else found


def _called(name: str, member: Any) -> str:
    if isinstance(member, property) or (
        isinstance(member, type) and issubclass(member, PredictorConfig | Exception)
    ):
        return name
    signature = inspect.signature(member)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    own = [parameter for parameter in bare if parameter.name != "self"]
    kept = signature.replace(parameters=own, return_annotation=signature.empty)
    return f"{name}{kept}"


def _markdown(member: Any) -> str:
    """Return a docstring of numpydoc's form as Markdown."""
    text = inspect.getdoc(member) or ""
    first, *sections = _SECTION.split(text)
    parts = [_fenced(first)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        form = _items(body) if title in _NAMED else _fenced(body)
        parts.append(f"*{title}*\n\n{form}")
    return "\n".join(part.strip() + "\n" for part in parts)


def _items(body: str) -> str:
    """Return the entries of a section as a list: names, their types, then what they are."""
    entries: list[list[str]] = []
    after: list[str] = []
    for line in body.strip().splitlines():
        is_sentence = bool(after) or line.startswith(("Raises ", ">>>"))
        if is_sentence:
            after.append(line)
        elif line.startswith(" ") and entries:
            entries[-1].append(line.strip())
        elif line:
            name, _, kind = line.partition(" : ")
            entries.append([f"- `{name}`" + (f" ({kind})" if kind else "")])
    lines = (f"{head}: {' '.join(text)}" if text else head for head, *text in entries)
    return "\n".join([*lines, "", *after])


def _fenced(text: str) -> str:
    """Fence the examples of a text, each up to the next empty line."""
    fence = "```pycon\n{}\n```"
    return re.sub(
        r"^>>> (?:.+\n?)+", lambda m: fence.format(m[0].rstrip()) + "\n", text, flags=re.MULTILINE
    )


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
