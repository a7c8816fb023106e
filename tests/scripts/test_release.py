"""The inspection of wheels refuses an extension module that some machine cannot load."""

import subprocess
import zipfile

import pytest
from system_tools import tool

from scripts.release import inspected
from scripts.release.archives import KERNELS, NotReleasable

PLATFORM = "manylinux_2_28_x86_64"
MODULE = """
#define SHOWN __attribute__((visibility("default")))
void *PyModuleDef_Init(void *definition);
SHOWN void *PyInit__v1(void) { return PyModuleDef_Init(0); }
"""
"""An extension module that the inspection accepts."""


@pytest.fixture
def wheel(tmp_path):
    """Make a wheel whose only file is a compiled module; `tags` are those of its name."""

    def made(added="", *flags, tags=f"cp311-abi3-{PLATFORM}"):
        source, module = tmp_path / "module.c", tmp_path / "module.so"
        source.write_text(MODULE + added)
        command = [tool("cc", "gcc"), "-shared", "-fPIC", "-fvisibility=hidden", "-s"]
        subprocess.run([*command, "-o", module, source, *flags], check=True, timeout=60)
        path = tmp_path / f"online_svm-1.0-{tags}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(module, f"{KERNELS}/_v1.abi3.so")
        return path

    return made


def test_a_module_of_the_stable_abi_is_accepted(wheel, capsys):
    inspected.check(wheel())
    assert "1 extension modules" in capsys.readouterr().out


LATER = "unsigned arc4random(void); unsigned used(void) { return arc4random(); }"
MORE = "SHOWN int more(void) { return 1; }"
THREADS = ("-Wl,--no-as-needed", "-l:libpthread.so.0")


def using(name):
    return f"int {name}(void); int used(void) {{ return {name}(); }} void *kept = &used;"


def naming(path):
    return f'__attribute__((used)) static const char path[] = "{path}";'


@pytest.mark.parametrize(
    ("added", "flags", "reason"),
    [
        (using("PyDict_GetItemRef"), (), "not of the stable ABI: .*PyDict_GetItemRef"),
        (using("_PyDict_SetItem_KnownHash"), (), "not of the stable ABI: .*_PyDict_SetItem_Known"),
        (LATER, (), r"glibc: \[\(2, 36\)\]"),
        (naming("/home/builds/smo.c"), (), r"paths: \[b.+builds"),
        ("", THREADS, r"libraries: \['libpthread.so.0'\]"),
        (MORE, (), r"symbols: .*more"),
        ("", ("-DPyModuleDef_Init=other",), "uses Python: False"),
    ],
)
def test_a_module_that_some_machine_cannot_load_is_refused(wheel, added, flags, reason):
    with pytest.raises(NotReleasable, match=reason):
        inspected.check(wheel(added, *flags))


@pytest.mark.parametrize("tags", ["cp311-cp311", "cp312-abi3"])
def test_a_wheel_that_is_not_for_every_python_since_3_11_is_refused(wheel, tags):
    with pytest.raises(NotReleasable, match="tags: "):
        inspected.check(wheel(tags=f"{tags}-{PLATFORM}"))
