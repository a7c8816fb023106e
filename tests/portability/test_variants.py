"""The bytes of every mode on every machine that this one can be taken for."""

import platform
import subprocess
from pathlib import Path

import pytest
from llvmlite import binding
from machine_variants import OLD_LIBC, VARIANTS, digests
from system_tools import tool

FEW = (
    "svc interleaved 2", "svc oldest 3", "committee of five 2", "psvm oldest",
    "late labels of a committee", "drift refit of a committee 3", "combine cautious platt",
)  # fmt: skip
"""Modes which together compute with every function that once differed."""
OTHER_LIBM = Path(__file__).parents[1] / "support" / "other_libm.c"
OFTEN = ("a Nehalem throughout",)
"""What CI computes: it differs in all that the others differ in one by one, but for what surrounds
a process."""
COMPILING = 1500.0
"""Seconds that all modes may take where all machine code has to be made, on a busy machine."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where machine code for other processors is kept while the tests of this file run."""
    return tmp_path_factory.mktemp("machine-code")


@pytest.fixture(scope="module")
def plain():
    """What every mode gives on this machine as it is."""
    return digests({}, seconds=COMPILING)


@pytest.fixture(scope="module")
def few():
    """The same of a few modes."""
    return digests({}, FEW)


@pytest.mark.timeout(620)  # where no machine code is kept yet, it is made
def test_a_c_library_without_fma_changes_no_byte_of_a_few_modes(few):
    found = digests(OLD_LIBC, FEW)
    assert found["digests"] == few["digests"]


@pytest.mark.slow
@pytest.mark.timeout(2 * COMPILING)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are processors of x86-64")
@pytest.mark.parametrize("variant", OFTEN)
def test_every_mode_gives_the_same_bytes_on_another_machine(variant, plain, kept):
    check_same(variant, plain, kept)


@pytest.mark.scale
@pytest.mark.timeout(2 * COMPILING)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are processors of x86-64")
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name not in OFTEN])
def test_every_mode_gives_the_same_bytes_where_one_thing_differs(variant, plain, kept):
    check_same(variant, plain, kept)


def check_same(variant, plain, kept):
    found = digests(VARIANTS[variant], kept=kept, seconds=COMPILING)
    check_reached(VARIANTS[variant], found["machine"], plain["machine"])
    assert found["digests"] == plain["digests"]


@pytest.mark.scale
@pytest.mark.timeout(2 * COMPILING)
def test_every_mode_gives_the_same_bytes_with_a_c_library_of_other_last_bits(plain, tmp_path):
    library = tmp_path / "other_libm.so"
    options = ("-O2", "-fno-builtin", "-shared", "-fPIC")
    subprocess.run(
        [tool("cc", "gcc"), *options, "-o", library, OTHER_LIBM, "-lm"], check=True, timeout=60
    )
    found = digests({"LD_PRELOAD": str(library)}, seconds=COMPILING)
    assert found["machine"]["libm"] != plain["machine"]["libm"]
    assert found["digests"] == plain["digests"]


def check_reached(variables, machine, plain):
    """Assert that the libraries did as they were told, as far as this machine lets them."""
    here = binding.get_host_cpu_features()
    if "OPENBLAS_CORETYPE" in variables and here.get("avx512vl"):
        core = variables["OPENBLAS_CORETYPE"]
        assert machine["blas"] == ["Haswell" if core == "Zen" else core]  # it has those functions
    disabled = variables.get("NPY_DISABLE_CPU_FEATURES", "").split()
    assert not set(disabled) & set(machine["numpy"])
    if "NUMBA_CPU_NAME" in variables:
        assert machine["compiler"] == f"{variables['NUMBA_CPU_NAME']} "
    if "GLIBC_TUNABLES" in variables and here.get("fma"):
        assert machine["libm"] != plain["libm"]
    if "TZ" in variables:
        assert machine["time"] != plain["time"]
    if "PYTHONHASHSEED" in variables:
        assert machine["hash"] != plain["hash"]
    assert machine["asserts"] == ("PYTHONOPTIMIZE" not in variables)
