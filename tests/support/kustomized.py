"""What `kustomize build` makes of the overlays here, as far as these files use it.

No kustomize is at hand for tests. This follows resources, JSON patches (RFC 6902, by the library
jsonpatch), `$patch: delete` and the namespace, and refuses everything else in a kustomization.
"""

from pathlib import Path
from typing import Any

import jsonpatch
import yaml

Resource = dict[str, Any]

_KNOWN = {"apiVersion", "kind", "namespace", "resources", "patches", "labels"}
_GLOBAL = {"Namespace"}


def documents(path: Path) -> list[Resource]:
    return [found for found in yaml.safe_load_all(path.read_text("utf-8")) if found]


def build(folder: Path) -> list[Resource]:
    (settings,) = documents(folder / "kustomization.yaml")
    assert settings["kind"] == "Kustomization"
    assert set(settings) <= _KNOWN, set(settings) - _KNOWN
    found = [each for name in settings["resources"] for each in _resources(folder / name)]
    for patch in settings.get("patches", ()):
        found = _patched(found, patch)
    for pairs in settings.get("labels", ()):
        for each in found:
            each["metadata"].setdefault("labels", {}).update(pairs["pairs"])
    if "namespace" in settings:
        for each in found:
            if each["kind"] not in _GLOBAL:
                each["metadata"]["namespace"] = settings["namespace"]
    return found


def _resources(path: Path) -> list[Resource]:
    assert path.exists(), path
    return build(path) if path.is_dir() else documents(path)


def _patched(found: list[Resource], patch: dict[str, Any]) -> list[Resource]:
    target, change = patch["target"], yaml.safe_load(patch["patch"])
    named = [
        each
        for each in found
        if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])
    ]
    assert len(named) == 1, target
    place = found.index(named[0])
    if isinstance(change, dict):
        assert change["$patch"] == "delete"
        assert (change["kind"], change["metadata"]["name"]) == (target["kind"], target["name"])
        assert change["apiVersion"] == named[0]["apiVersion"]
        return found[:place] + found[place + 1 :]
    return [*found[:place], jsonpatch.apply_patch(named[0], change), *found[place + 1 :]]
