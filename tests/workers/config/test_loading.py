"""A settings file with a section a feed."""

import pytest

from workers.config.loading import FeedSettings, load
from workers.errors import BadConfiguration

FILE = """
lease = 3.0
[predictor]
window = 100
[feed."sensors-*"]
window = 200
batch = 5
[feed.sensors-1]
batch = 7
[feed."*-1"]
C = 2.5
batch = 6
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(FILE)
    return path


def figures(settings):
    return settings.window, settings.batch, settings.C, settings.lease


def test_a_section_by_name_goes_over_patterns_and_the_file(file):
    known = FeedSettings({}, file)
    assert figures(known.general) == (100, 256, 1.0, 3.0)
    assert figures(known.of("sensors-2")) == (200, 5, 1.0, 3.0)
    assert figures(known.of("sensors-1")) == (200, 7, 2.5, 3.0)
    assert figures(known.of("returns-1")) == (100, 6, 2.5, 3.0)
    assert figures(known.of("returns")) == (100, 256, 1.0, 3.0)
    assert known.of("sensors-2").model_fields_set >= {"window", "batch", "lease"}


def test_flags_and_environment_go_over_the_sections(file, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_WINDOW", "300")
    known = FeedSettings({"batch": "9"}, file)
    assert figures(known.of("sensors-1")) == (300, 9, 2.5, 3.0)


def test_a_worker_of_one_feed_takes_the_sections_of_its_feed(file):
    assert figures(load({}, file, feed="sensors-1")) == (200, 7, 2.5, 3.0)
    assert figures(load({}, file)) == (100, 256, 1.0, 3.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[feed."a-*"]\nlease = 2', "lease"),
        ("[feed.a]\nwindwo = 2", "did you mean window"),
        ("[feed.a]\nwindow = -2", "window"),
        ("feed = 3", "sections"),
        ("[feed]\nwindow = 3", "is no section"),
    ],
)
def test_a_wrong_section_is_refused_before_any_feed_is_begun(tmp_path, text, said):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=said):
        FeedSettings({}, path)


def test_feeds_of_the_same_sections_share_their_settings(file):
    known = FeedSettings({}, file)
    assert known.of("sensors-2") is known.of("sensors-3")
