"""`make release-check`: build a release twice, compare, look inside, install it and use it.

`python -m scripts.release` builds the source archive and a wheel for each platform, on any of them,
and writes a bill of materials and the checksums next to them.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from online_svm import __version__
from scripts.building.targets import TARGETS
from scripts.release import archives, inspected, installed, licences, sbom


def main(arguments: list[str] | None = None) -> int:
    """Check a release of what is committed; return 1 with the reason where a check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="this platform alone; no models, demo, worker"
    )
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the release goes")
    parser.add_argument("--platform", action="append", choices=[*TARGETS], help="one to build for")
    parser.add_argument("--python", action="append", help="a Python to install it for")
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as name:
            folder = Path(name)
            own = archives.own_platform()
            others = [own] if given.quick else [*TARGETS]
            wheels = archives.checked(folder, given.out, given.platform or others)
            for wheel in wheels:
                inspected.check(wheel)
            for wheel in (wheel for wheel in wheels if wheel.stem.endswith(own)):
                for python in given.python or [sys.executable]:
                    installed.check(python, wheel, folder, is_quick=given.quick)
        licences.check()
        sdists = given.out.glob(f"*-{__version__}.tar.gz")
        for path in sbom.write(given.out, [*wheels, *sdists]):
            print(f"{path.name}: written")
    except archives.NotReleasable as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
