"""Array types have one home."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "online_svm" / "types.py"
SPELT_OUT = re.compile(
    r"NDArray\[np\.(float64|int64|bool_)\]|dict\[str, (np\.ndarray|NDArray)\[Any(, [^]]*\]?)?\]"
)


@pytest.mark.parametrize("package", ["online_svm", "workers"])
def test_no_file_spells_out_a_type_of_arrays_that_has_a_name(package):
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != HOME
        for match in SPELT_OUT.finditer(path.read_text("utf-8"))
    ]
    assert found == []
