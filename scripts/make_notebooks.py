"""Run docs/notebooks/*.py, whose cells begin with `# %%`, and write each as a notebook (.ipynb).

--check runs them too, and returns 1 if a notebook has other cells or prints other lines.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"

Cell = dict[str, Any]


def cells(source: str) -> list[Cell]:
    """Return the cells of a source, without outputs."""
    found: list[Cell] = []
    for part in source.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        text = body.strip()
        common = {"id": f"cell-{len(found)}", "metadata": {}}
        if "[markdown]" in head:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
            found.append({"cell_type": "markdown", **common, "source": _lines(text)})
        else:
            code = {"cell_type": "code", **common, "execution_count": None, "outputs": []}
            found.append({**code, "source": _lines(text)})
    return found


def executed(source: str) -> list[Cell]:
    """Run the cells in one namespace, in an empty folder; return them with their outputs."""
    matplotlib.use("agg")
    made, names, count = cells(source), dict[str, Any](), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in made:
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = _outputs("".join(cell["source"]), names, count)
    return made


def _outputs(text: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    tree, printed = ast.parse(text), io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    found: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102  # our own notebook
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    if printed.getvalue():
        output = {"output_type": "stream", "name": "stdout"}
        found.append({**output, "text": _lines(printed.getvalue())})
    if value is not None and not plt.get_fignums():
        data = {"text/plain": _lines(repr(value))}
        shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        found.append({**shown, "data": data})
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, dpi=80, bbox_inches="tight")
        plt.close(number)
        png = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        found.append({"output_type": "display_data", "metadata": {}, "data": png})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def without_pictures(made: Sequence[Cell]) -> list[Cell]:
    """Return the cells with what they print; pictures differ with the version of matplotlib."""
    return [
        cell | {"outputs": [o for o in cell["outputs"] if o["output_type"] != "display_data"]}
        if "outputs" in cell
        else cell
        for cell in made
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the notebooks, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if one differs")
    given, code = parser.parse_args(arguments), 0
    for path in sorted(FOLDER.glob("*.py")):
        made, target = executed(path.read_text("utf-8")), path.with_suffix(".ipynb")
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = {"cells": made, "metadata": {"kernelspec": kernel}}
        if given.check:
            stored = json.loads(target.read_text("utf-8"))["cells"]
            code |= without_pictures(stored) != without_pictures(made)
        else:
            text = json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 5}, indent=1)
            target.write_text(text + "\n", "utf-8")
    return code


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
