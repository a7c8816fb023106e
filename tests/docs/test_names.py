"""What pages, messages and files name exists: files, functions, tests, settings, commands."""

import ast
import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import online_svm
from online_svm.predictor.protocol import ProtocolConfig
from scripts import make_settings_docs
from workers import errors
from workers.cli.app import COMMANDS, application
from workers.config.settings import WorkerSettings

ROOT = Path(__file__).parents[2]


def read(path):
    return (ROOT / path).read_text("utf-8")


def tracked():
    """Return the files of the repository."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    told = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    return list(filter(None, told.split("\0")))


# CONTRIBUTING.md and docs/explanation

CONTRIBUTING = read("CONTRIBUTING.md")
ARCHITECTURE = read("docs/explanation/architecture.md")
TASKS = read("docs/explanation/extending.md")
DRAWING, ORDER = re.findall(r"```text\n(.*?)```", ARCHITECTURE, re.S)
FILES = re.compile(r"`((?:online_svm|workers|tests|scripts|docs)/[\w/.]+)")


@pytest.mark.parametrize(
    ("named", "most"),
    [
        (re.findall(r"`([\w.-]+/[\w./-]*)`|\]\((\S+)\)", CONTRIBUTING), 15),
        (FILES.findall(ARCHITECTURE), 25),
        (FILES.findall(TASKS), 25),
    ],
    ids=["contributing", "architecture", "extending"],
)
def test_every_file_and_folder_that_a_page_names_is_there(named, most):
    paths = {"".join(path) for path in named}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert len(paths) > most


def test_every_target_that_the_page_names_is_one():
    named = set(re.findall(r"`make ([\w-]+)", CONTRIBUTING))
    assert named <= set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    assert named


def members(path):
    """Yield the functions and classes of a file, and the methods as `Class.method`."""
    for node in ast.parse(read(path)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{f.name}" for f in node.body
                        if isinstance(f, ast.FunctionDef))  # fmt: skip


def test_every_function_that_the_page_names_is_there():
    functions = set(re.findall(r"`([\w/]+\.py)::([\w.]+)`", ARCHITECTURE))
    assert [(path, name) for path, name in functions if name not in members(path)] == []
    assert len(functions) > 10


@pytest.mark.parametrize("task", ["member to the ensemble", "kind of feature", "alarm", "command"])
def test_a_common_task_touches_at_most_four_files_and_names_a_commit(task):
    section = re.search(rf"## Add an? {task}\n(.*?)\n## ", TASKS, re.S)[1]
    assert 1 < len(re.findall(r"^\d\. ", section, re.M)) <= 4
    assert re.search(r"Look at `[0-9a-f]{8}`", section)


def drawn():
    """Return the folders of the drawing as paths."""
    found, above = set(), []
    for line in DRAWING.splitlines():
        indent, name = re.match(r"( *)([\w/]+)/ ", line).groups()
        above = [*above[: len(indent) // 2], name]
        found.add("/".join(above))
    return found


@pytest.mark.parametrize("package", ["online_svm", "workers"])
def test_the_drawing_has_the_folders_that_there_are_and_no_others(package):
    there = {
        path.parent.relative_to(ROOT).as_posix()
        for pattern in ("__init__.py", "*.lua")
        for path in (ROOT / package).rglob(pattern)
    }
    # Folders within this one are told of in a word.
    told = {path for path in there if not re.match(r"online_svm/calibration/\w", path)}
    assert {path for path in drawn() if path.split("/")[0] == package} == told


def test_the_order_of_imports_on_the_page_is_the_one_that_is_tested():
    layers = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(read("tests/test_imports.py")).body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("LIBRARY", "SERVICE")
    }
    pages = re.split(r"\nworkers ", ORDER.removeprefix("online_svm "))
    for text, name in zip(pages, ("LIBRARY", "SERVICE"), strict=True):
        printed = [{part.strip() for part in layer.split(",")} for layer in text.split(">")]
        assert printed == [layer for layer in layers[name] if layer != {"__main__"}]


# docs/guarantees.md

GUARANTEES = read("docs/guarantees.md")
TEST = re.compile(r"`(tests/[\w/.]+)::(\w+)`")
NAMED_TESTS = sorted(set(TEST.findall(GUARANTEES)))
TABLE = GUARANTEES.partition("| promise |")[2].partition("\n\n")[0].splitlines()[2:]
PROMISES = [line.strip("| ").split(" | ") for line in TABLE if not line.startswith("| **")]


@pytest.mark.parametrize(("path", "name"), NAMED_TESTS)
def test_every_test_that_the_page_names_exists(path, name):
    assert re.search(rf"^(async )?def {name}\(", read(path), re.MULTILINE)


def test_every_promise_has_its_condition_and_its_tests():
    for promise, condition, tests in PROMISES:
        assert promise
        assert condition
        assert ", ".join(f"`{path}::{name}`" for path, name in TEST.findall(tests)) == tests
    assert len(NAMED_TESTS) > 100
    assert len(PROMISES) > 40


# docs/errors.md

ERRORS = read("docs/errors.md")
NEVER_END = (errors.ReadTooLarge, errors.InvalidStoredSnapshot, errors.InvalidPublication,
             errors.CommitRefused, errors.Stopped)  # fmt: skip


def test_each_error_of_a_command_has_its_code_and_remedy():
    ends = {
        name: kind.exit_code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.WorkerError) and not issubclass(kind, NEVER_END)
    }
    del ends["WorkerError"]
    rows = re.findall(r"^\| `(\w+)` \| (\d) \| .+ \| .+ \|$", ERRORS, re.MULTILINE)
    assert {name: int(code) for name, code in rows} == ends


def test_each_exit_code_has_a_line():
    lines = re.findall(r"^\| (\d+) \| ", ERRORS, re.MULTILINE)
    assert lines == ["0", "1", "2", "3", "4", "5", "130"]
    codes = {kind.exit_code for kind in errors.WorkerError.__subclasses__()}
    assert {str(code) for code in codes} <= set(lines)


# Commands and settings

PROSE = {"authors", "bench", "below", "feed", "in", "needs", "says", "with"}
"""Words that follow the name of the project in sentences; `bench` was a command once."""

SETTINGS = {*WorkerSettings.model_fields, *ProtocolConfig.model_fields}

AFTER_SET = {"a", "aside", "by", "had", "has", "of", "one", "shrank", "that", "the", "to"}
"""Words after `set` in sentences."""

OF_OTHERS = {"maxmemory", "--no-", "--head", "--num-cpus", "--card", "--ink", "--line"}
"""A setting of Redis, the beginning of a switch, options of Ray, colours of the page."""

NO_SETTINGS = {
    "binary_data", "cb_obj", "classes_", "config_hash", "decision_function",
    "decision_function_shape", "default_rng", "download_data", "false_alarm", "from_prefit",
    "inverse_pignistic", "is_right", "log_wealth", "max_steps", "n_bins", "n_classes",
    "n_features", "n_splits", "online_svm", "partial_fit", "predict_proba", "sample_weight",
    "score_version", "set_data_from_numpy", "taxonomy_bins", "true_label",
}  # fmt: skip
"""Names with an underscore: parameters and attributes of the library and of others, columns."""


def test_each_text_names_commands_that_there_are():
    wrong = [
        f"{path}: {line.strip()}"
        for path in tracked()
        if (ROOT / path).is_file()
        for line in (ROOT / path).read_bytes().decode("utf-8", "replace").splitlines()
        if "kubectl" not in line
        for word in re.findall(r"online-svm ([a-z]+)\b(?![-:@/])", line)
        if word not in {*COMMANDS, *PROSE}
    ]
    assert wrong == []


SQL = re.compile(r"\s*(SELECT|INSERT|DELETE|UPDATE|CREATE|PRAGMA|AND) ")
"""Statements name tables and columns."""


def text_of(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or " " for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.fixture(scope="module")
def messages():
    """Texts with a blank that are no docstrings; a blank for each value put in."""
    found = []
    for package in ("online_svm", "workers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            nodes = list(ast.walk(ast.parse(read(path))))
            passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if isinstance(node, ast.JoinedStr):
                    passed |= set(map(id, node.values))
            found += [text_of(node) for node in nodes if id(node) not in passed]
    assert len(found) > 1000
    return [text for text in found if " " in text and not SQL.match(text)]


def options(command):
    """Yield the options of a command and of those below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


NAMED = {
    r"\bset ([a-z][a-z_]*)": {*SETTINGS, *AFTER_SET, *OF_OTHERS},
    r"\b([a-z]+_[a-z_]*[a-z])\b": {*SETTINGS, *NO_SETTINGS},
    r"(?<![\w-])(--[a-z][a-z0-9-]*)": {*options(application()), "--help", *OF_OTHERS},
}


@pytest.mark.parametrize("pattern", NAMED)
def test_each_name_in_a_message_is_one_of_a_setting_or_an_option(pattern, messages):
    known = NAMED[pattern]
    assert [t for t in messages for name in re.findall(pattern, t) if name not in known] == []


def test_the_page_of_the_settings_is_up_to_date_and_has_each_once():
    assert make_settings_docs.main(["--check"]) == 0
    lines = make_settings_docs.render().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("- `")]
    found = [name for name in rows if name in WorkerSettings.model_fields]
    assert sorted(found) == sorted(WorkerSettings.model_fields)


# The top level and CITATION.cff

ENTRIES = {
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile",
    "README.md", "SECURITY.md", "deploy", "docs", "online_svm", "pyproject.toml", "scripts",
    "tests", "workers",
}  # fmt: skip


def test_the_top_level_has_these_entries_and_hidden_files_alone():
    names = {path.partition("/")[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} == ENTRIES


def test_the_citation_has_what_its_format_requires_and_agrees_with_the_package():
    found = yaml.safe_load(read("CITATION.cff"))
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert (found["cff-version"], bool(found["message"])) == ("1.2.0", True)
    assert set(found) <= {
        "cff-version", "message", "type", "title", "abstract", "authors", "version", "license",
        "keywords",
    }  # fmt: skip
    assert found["version"] == online_svm.__version__
    shared = ("name", "license", "keywords")
    assert [found["title" if name == "name" else name] for name in shared] == [
        project[name] for name in shared
    ]
    assert found["abstract"].rstrip(".") == project["description"].rstrip(".")
    first = found["authors"][0]["name"]
    assert f"Copyright (c) 2026, {first}\n" in read("LICENSE")


SAID_BY = ("README.md", "SECURITY.md", "deploy/README.md", "docs/*.md", "docs/how-to/*.md")
"""Pages that say when to choose a setting."""
ONLY_NAMED = {"settings.md", "messages.md", "http.md", "glossary.md", "errors.md"}


def test_a_page_says_when_to_choose_each_setting():
    pages = [page for pattern in SAID_BY for page in ROOT.glob(pattern)]
    text = "\n".join(page.read_text("utf-8") for page in pages if page.name not in ONLY_NAMED)
    named = {
        name
        for name in WorkerSettings.model_fields
        if re.search(rf"`{name}\b|--{name.replace('_', '-')}\b|_{name.upper()}\b", text)
    }
    assert set(WorkerSettings.model_fields) - named == {"semantics"}
