"""The page of the settings has each of them as it is."""

from scripts import make_settings_docs
from workers.config.settings import WorkerSettings


def test_the_page_of_the_settings_is_up_to_date():
    assert make_settings_docs.main(["--check"]) == 0


def test_the_page_has_each_setting_once():
    lines = make_settings_docs.render().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    found = [name for name in rows if name in WorkerSettings.model_fields]
    assert sorted(found) == sorted(WorkerSettings.model_fields)
