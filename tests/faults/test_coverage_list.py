import re
from pathlib import Path


def test_every_file_that_the_list_of_faults_names_is_there():
    text = Path(__file__).with_name("README.md").read_text()
    named = set(re.findall(r"`((?:tests|scripts|\.ci)/[\w/.]+)`", text))
    assert len(named) > 40
    assert [name for name in named if not (Path(__file__).parents[2] / name).exists()] == []
