"""Configurations from a file and from the command line, and what is said of bad ones."""

import pytest

from online_svm.config import PredictorConfig
from workers.config.settings import WorkerSettings, load
from workers.errors import BadConfiguration
from workers.offline.backtest.configurations import configurations, sections_of


def compared(tmp_path, text, *texts, given=None):
    path = tmp_path / "compare.toml"
    path.write_text(text)
    return configurations(given or WorkerSettings(), sections_of(path, texts))


def test_the_first_section_is_the_base_of_the_others(tmp_path):
    base, wide = compared(tmp_path, "[calm]\nwindow = 500\nC = 2\n[wide]\ngamma = 0.1\nC = 3\n")
    assert base.predictor == PredictorConfig(window=500, C=2)
    assert wide.predictor == PredictorConfig(window=500, C=3, gamma=0.1)
    assert wide.changes == {"window": 500, "C": 3.0, "gamma": 0.1}


def test_without_a_file_the_base_is_what_a_worker_would_have():
    given = load({"C": "4"})
    base, linear = configurations(given, sections_of(None, ["linear:kernel=linear"]))
    assert (base.name, base.predictor, base.changes) == ("base", PredictorConfig(C=4), {})
    assert linear.predictor == PredictorConfig(C=4, kernel="linear")


def test_texts_add_to_sections_and_are_read_as_a_workers_options_are(tmp_path):
    one, two = compared(
        tmp_path,
        "[one]\nC = 2\n",
        "one:window=none,maps=platt,mixed",
        'two:classes=no,yes,class_weight={"no":1,"yes":3}',
        "two:gamma=scale,dedupe_window=10",
    )
    assert two.limits.dedupe_window == 10  # limits of an entry belong to a configuration
    assert one.predictor == PredictorConfig(C=2, window=None, maps=("platt", "mixed"))
    assert two.predictor.classes == ("no", "yes")
    assert two.predictor.class_weight == {"no": 1.0, "yes": 3.0}
    assert two.predictor.window is None


BAD = {
    "C = 2\n": r"'C' stands outside a configuration; write \[name\] above it",
    "": r"no configuration; write \[name\]",
    "[a\n": "not TOML",
    "[a]\nx = " + "[" * 5000: "not TOML",
    "[a]\ngama = 2\n": r"configuration a: unknown setting 'gama': did you mean gamma\?",
    "[a]\nbatch = 2\n": "configuration a: unknown setting 'batch'",
    "[a]\nredis = 'redis://h'\n": "configuration a: unknown setting 'redis'",
    "[a]\nC = nan\n": "configuration a: setting C: must be a finite number",
    "[a]\nmaturity = 'arrival'\n": "configuration a: maturity",
    "[a]\nmax_features = 0\n": "configuration a: setting max_features",
    "['a b']\n": "configuration 'a b': a name has",
    "[" + "a" * 25 + "]\n": "a name has 1 to 24",
    "[a.b]\n": "configuration a: unknown setting 'b'",
    "# " + "a" * (1 << 20): "more than",
}


@pytest.mark.parametrize(("text", "told"), BAD.items(), ids=BAD.values())
def test_a_bad_file_is_told_in_one_line_that_names_it(tmp_path, text, told):
    with pytest.raises(BadConfiguration, match=told) as raised:
        compared(tmp_path, text)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 400


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path):
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    for name, told in (("none", "No such file"), ("", "cannot be read"), ("b.toml", "not TOML")):
        with pytest.raises(BadConfiguration, match=told):
            sections_of(tmp_path / name)


@pytest.mark.parametrize("text", ["wide", "wide:gamma", "gamma=1", "wide:=2", "wide:C=1,C=2"])
def test_a_text_that_is_no_configuration_is_told_with_how_to_write_one(text):
    with pytest.raises(BadConfiguration, match=r"--set .*(NAME:setting=value|keep one)"):
        sections_of(None, [text])


def test_the_errors_are_those_of_a_worker(tmp_path):
    with pytest.raises(BadConfiguration) as theirs:
        load({"gamma": "wide"})
    with pytest.raises(BadConfiguration) as ours:
        compared(tmp_path, "[a]\ngamma = 'wide'\n")
    assert str(ours.value) == f"configuration a: {theirs.value}"


def test_with_a_given_score_the_first_text_is_the_base():
    texts = ["one:scores=probability,classes=a,b", "two:scores=margin"]
    assert [*sections_of(None, texts, has_base=False)] == ["one", "two"]
    assert sections_of(None, [], has_base=False) == sections_of(None) == {"base": {}}
