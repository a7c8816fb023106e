"""Look the locked versions up in the database of known vulnerabilities, with pip-audit.

Fails if it finds one. If pip-audit or its service cannot be reached, it prints that the check was
not made and passes, so that a build without a network is not broken.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOCKS = tuple(sorted((Path(__file__).parents[1] / "deploy" / "lock").glob("*.txt")))
SECONDS = 120


def audit(locks: Sequence[Path], seconds: float = SECONDS) -> list[dict[str, Any]] | None:
    """Return the report of pip-audit on each locked package; None if it gave none."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        command = [sys.executable, "-P", "-m", "pip_audit", "--no-deps"]
        command += [word for lock in locks for word in ("--requirement", str(lock))]
        command += ["--disable-pip", "--progress-spinner", "off"]
        try:
            subprocess.run(
                [*command, "--format", "json", "--output", str(report)],
                capture_output=True,
                timeout=seconds,
                check=False,
            )
            found: list[dict[str, Any]] = json.loads(report.read_bytes())["dependencies"]
        except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
            return None
        return found


def verdict(found: list[dict[str, Any]] | None) -> tuple[int, list[str]]:
    """Return the exit code and the lines for what `audit` found."""
    if found is None:
        return 0, ["audit: NOT MADE: pip-audit or its service cannot be reached"]
    lines = [
        f"audit: {package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version yet'}"
        for package in found
        for vulnerability in package.get("vulns", ())
    ]
    looked_up = sum("skip_reason" not in package for package in found)
    if looked_up == 0:
        return 0, ["audit: NOT MADE: the service knows none of the packages"]
    total = f"audit: {looked_up} of {len(found)} packages looked up, {len(lines)} vulnerabilities"
    return int(bool(lines)), [*lines, total]


def main(arguments: list[str] | None = None) -> int:
    """Print what was found; return 1 if a locked version has a known vulnerability."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    code, lines = verdict(audit(LOCKS))
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
