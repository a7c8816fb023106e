"""The page of the errors names each error that ends a command, with its exit code."""

import inspect
import re
from pathlib import Path

from workers import errors

PAGE = (Path(__file__).parents[2] / "docs/errors.md").read_text("utf-8")
NEVER_END = (errors.ReadTooLarge, errors.InvalidStoredSnapshot, errors.InvalidPublication,
             errors.CommitRefused, errors.Stopped)  # fmt: skip


def test_each_error_that_ends_a_command_is_there_with_its_code_and_a_way_out():
    ends = {
        name: kind.exit_code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.WorkerError) and not issubclass(kind, NEVER_END)
    }
    del ends["WorkerError"]
    rows = re.findall(r"^\| `(\w+)` \| (\d) \| .+ \| .+ \|$", PAGE, re.MULTILINE)
    assert {name: int(code) for name, code in rows} == ends


def test_each_exit_code_has_a_line():
    lines = re.findall(r"^\| (\d+) \| ", PAGE, re.MULTILINE)
    assert lines == ["0", "1", "2", "3", "4", "5", "130"]
    codes = {kind.exit_code for kind in errors.WorkerError.__subclasses__()}
    assert {str(code) for code in codes} <= set(lines)
