"""The bill of materials of a release (CycloneDX 1.6, JSON), and the checksums of its files.

Both are made from what is committed and built, without a clock, so that two builds are equal. The
components are the locked packages: those that the release was tested with. Their licences are those
of `deploy/licences.md`, their hashes those of every file that the lock accepts.
"""

import json
import re
import uuid
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from online_svm import __version__
from scripts import make_lock
from scripts.release.licences import EXTRAS, TARGET

CHECKSUMS = "SHA256SUMS"
_NAME = "online-svm"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def write(out: Path, files: Iterable[Path]) -> list[Path]:
    """Write the bill of materials and the checksums of all files to `out`; return both paths."""
    files = sorted(files)
    bill = out / f"{_NAME}-{__version__}.cdx.json"
    bill.write_text(json.dumps(bill_of(files), indent=1, sort_keys=True) + "\n", "utf-8")
    sums = out / CHECKSUMS
    lines = (f"{_digest(path)}  {path.name}\n" for path in sorted([*files, bill]))
    sums.write_text("".join(lines), "utf-8")
    return [bill, sums]


def bill_of(files: Iterable[Path]) -> dict[str, Any]:
    """Return the bill of materials of a release with these archives."""
    root = f"pkg:pypi/{_NAME}@{__version__}"
    digests = {path.name: _digest(path) for path in files}
    archives = [
        {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [_hash(digest)]}
        for name, digest in sorted(digests.items())
    ]
    components = _components()
    refs = [component["bom-ref"] for component in components]
    seed = json.dumps([root, digests, refs], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": root, "name": _NAME, "version": __version__,
                "purl": root, "licenses": [{"license": {"id": "BSD-3-Clause"}}],
                "components": archives,
            },
        },
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": refs}, *({"ref": ref} for ref in refs)],
    }  # fmt: skip


def _components() -> list[dict[str, Any]]:
    """Return the locked packages of all extras, with licence and hashes, by name."""
    licences, found = _licences(), {}
    for extra in EXTRAS:
        text = (make_lock.ROOT / "deploy" / "lock" / f"{extra}.txt").read_text("utf-8")
        for name, version in make_lock.read(extra).items():
            entry = text[text.index(f"\n{name}=={version}") + 1 :]
            hashes = _HASH.findall(re.split(r"\n(?=\w)", entry, maxsplit=1)[0])
            purl = f"pkg:pypi/{name}@{version}"
            found[purl] = {
                "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                "licenses": [{"expression": licences[name]}],
                "hashes": [_hash(digest) for digest in hashes],
                "properties": [{"name": f"{_NAME}:extra", "value": extra}],
            }  # fmt: skip
    return [found[purl] for purl in sorted(found)]


def _licences() -> dict[str, str]:
    rows = (line.split(" | ") for line in TARGET.read_text("utf-8").splitlines() if " | " in line)
    return {row[0].removeprefix("| "): row[2] for row in rows}


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
