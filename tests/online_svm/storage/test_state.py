"""One vocabulary for saving and continuing: `state`, and `from_state` or `restore`."""

import ast
from collections.abc import Iterator
from pathlib import Path

LIBRARY = Path(__file__).parents[3] / "online_svm"

OTHER_WORDS = {
    "arrays", "from_arrays", "to_arrays", "header", "from_header", "load", "dump", "save",
    "load_state", "state_dict", "to_bytes", "from_bytes",
}  # fmt: skip

WHOLES = {"LabelledEstimator.save", "OnlineClassifier.load", "OnlineCalibrator.load"}
"""The public names of an estimator that writes a file."""

CONTINUED_BY_NAME = {"Calibrator"}
"""A calibrator is continued by `calibrators_from_state`, which knows its kind by name."""

CONTINUED_BY_RESET = {"Refitter", "InlineRefitter"}
"""A refitter passes on its learner's state; it owns a process, so `reset` continues it."""

PUBLIC = {"OnlinePredictor", "FrozenPredictor"}
"""Classes that write and read bytes: `snapshot` and `restore`."""


def classes() -> Iterator[tuple[ast.ClassDef, dict[str, ast.FunctionDef]]]:
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node, {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}


def test_no_class_saves_or_continues_under_another_name() -> None:
    found = {
        f"{node.name}.{name}"
        for node, methods in classes()
        for name in methods.keys() & OTHER_WORDS
    }
    assert found == WHOLES


def test_what_has_a_state_is_continued_from_it() -> None:
    half = {
        node.name
        for node, methods in classes()
        if ("state" in methods) != bool({"from_state", "restore"} & methods.keys())
        and not any(getattr(base, "id", "").startswith("Stored") for base in node.bases)
    }
    assert half == CONTINUED_BY_RESET | CONTINUED_BY_NAME | PUBLIC


def test_from_state_is_a_class_method_whose_first_argument_is_the_state() -> None:
    checked = 0
    for node, methods in classes():
        if "from_state" not in methods:
            continue
        method = methods["from_state"]
        decorators = [d.id for d in method.decorator_list if isinstance(d, ast.Name)]
        assert method.args.args[1].arg == "state", node.name
        assert "classmethod" in decorators, node.name
        checked += 1
    assert checked > 5
