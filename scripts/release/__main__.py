"""`make release-check`: build a release twice, compare, look inside, install it and use it.

Python runs this without any package of the project, as `python -m scripts.release`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from scripts.release import archives, installed, licences


def main(arguments: list[str] | None = None) -> int:
    """Check a release of what is committed; return 1 with the reason where a check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what compiles the kernels")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the release goes")
    parser.add_argument("--python", action="append", help="a Python to install it for")
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as name:
            folder = Path(name)
            wheel = archives.checked(folder, given.out)
            for python in given.python or [sys.executable]:
                installed.check(python, wheel, folder, is_quick=given.quick)
        licences.check()
    except archives.NotReleasable as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
