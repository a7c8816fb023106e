"""The report of a past run: what its sentences say, and that its file needs nothing else."""

import re

import orjson
import pytest
from browser import chromium, expecting, tab

from online_svm.stream.alarm import Alarm
from workers.admin.notes import note
from workers.broker.store import Store
from workers.dashboard import past_run
from workers.dashboard.html_report import sentences
from workers.dashboard.past_export import read_export
from workers.dashboard.past_run import NothingKept, read_past
from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import Excerpt
from workers.errors import BadConfiguration
from workers.reading.incidents import RaisedAlarm

HEAD = "entry,status,label,probability,lower,upper,is_right"
HOSTILE = "</script><script>alert(1)</script>\x1b[2J"


@pytest.fixture
def mail(feeds, embedded_url, feed):
    made = feeds(embedded_url, feed)
    for n in range(1, 11):
        made.answer(label="ham", y="ham" if n % 5 else "spam", id=HOSTILE)
        made.report(n, accuracy=0.8, probability=0.75)
    yield made
    made.delete()


@pytest.fixture
def run(run_command, embedded_url):
    """Run `report`; return exit code, standard output, standard error."""
    return lambda *arguments: run_command("report", *arguments, "--redis", embedded_url)


def test_a_report_of_a_feed_without_reports_warns_of_nothing(
    run, feeds, embedded_url, feed, tmp_path, caplog
):
    made = feeds(embedded_url, feed)
    for _ in range(2):
        made.answer(label="ham", y="ham")
    code, _, said = run(feed, "--out", tmp_path / "report.html")
    made.delete()
    assert (code, "WARNING" in said, caplog.messages) == (0, False, [])


def alarm(n, entry=b"1700000000000-0"):
    found = Alarm(n, "calibration", "class", "fraud", "bets", 5.7, 5.3, 10, 0.06, 0.03, 0.09)
    return RaisedAlarm(entry, n - 1, found)


def test_an_alarm_is_told_with_what_was_announced_and_what_came():
    figures = {"label": "fraud", "examples": 70, "frequency": 0.14, "probability": 0.08, "z": 9.0}
    message = {"n": 500, "scored": 500, "windowed": {"classes": [figures]}}
    told = sentences(Excerpt("f", reports=parsed([(b"1-0", message)]), alarms=[alarm(440)]))
    assert (
        "At 2023-11-14 22:13:20, example 440: the probability of class fraud is too low by 0.060 "
        "(0.030 to 0.090) since n = 10; it was announced at 0.080 and came at 0.140."
    ) in told
    assert any(text.startswith("Of the parts, class fraud is farthest off") for text in told)


def test_of_many_alarms_the_first_are_told_and_the_others_counted():
    """Each with the time of its commit where that is known."""
    raised = [alarm(440, entry=b"17-0"), *(alarm(n) for n in range(1000, 1009))]
    told = sentences(Excerpt("f", alarms=raised, committed={b"17-0": 1_700_000_060_000}))
    assert "10 alarms were raised." in told
    assert sum(text.startswith("At ") for text in told) == 5
    assert ["committed at 2023-11-14 22:14:20" in text for text in told].count(True) == 1
    assert "5 alarms followed, the last at 2023-11-14 22:13:20." in told


def test_notes_are_told_with_who_said_them_and_marked_in_the_file(mail, run, tmp_path):
    note(mail.store, "deployed v2", 5, "ann@desk")
    code, out, _ = run(mail.name, "--out", str(tmp_path / "r.html"))
    assert code == 0
    assert "ann@desk noted at example 5: deployed v2." in out.splitlines()
    assert "deployed v2" in (tmp_path / "r.html").read_text("utf-8")


def test_a_quiet_run_says_that_no_alarm_was_raised(mail, embedded_url):
    with Store(embedded_url, mail.name) as store:
        told = sentences(read_past(store))
    assert told == [
        "Too early to say (needs about 100 more labels): 10 answers scored.",
        f"The reports of feed {mail.name} from 1970-01-01 00:00:01 to 1970-01-01 00:00:10 (UTC) "
        "end with 10 examples learned, of which 10 were scored.",
        "Over all scored examples 80.0 % were right and 75.0 % was announced.",
        "Over the last ones 80.0 % were right and 75.0 % was announced.",
        "No alarm was raised.",
        "The last answer has the guarantee exact.",
    ]


def test_a_span_holds_the_reports_and_answers_of_its_times_alone(mail, embedded_url):
    with Store(embedded_url, mail.name) as store:
        past = read_past(store, since=3000.0, until=5000.0)
        assert [report.n for report in past.reports] == [3, 4, 5]
        assert [answer.message["seq"] for answer in past.answers] == [2, 3, 4]
        assert [answer.truth.is_right for answer in past.answers] == [True, True, False]
        with pytest.raises(NothingKept, match="choose another --since or --until"):
            read_past(store, since=11_000.0)


def test_of_very_many_reports_evenly_spaced_ones_are_drawn(mail, embedded_url, monkeypatch):
    monkeypatch.setattr(past_run, "MAX_REPORTS", 4)
    with Store(embedded_url, mail.name) as store:
        assert [report.n for report in read_past(store).reports] == [4, 8]


def test_the_file_needs_no_network_and_no_text_in_it_is_a_script(mail, run, tmp_path):
    expecting()
    out = tmp_path / "report.html"
    code, told, _ = run(mail.name, "--out", str(out), "--json")
    assert code == 0
    assert orjson.loads(told)["summary"][4] == "No alarm was raised."
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="?(http|/)', out.read_text())
    with chromium() as browser, tab(browser) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.context.set_offline(True)
        page.goto(out.as_uri())
        page.get_by_text("No alarm was raised.").first.wait_for()
        page.get_by_text("</script><script>alert").first.wait_for()
        assert page.locator("canvas").count() > 5
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_a_file_that_is_there_stays(mail, run, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("mine")
    code, _, err = run(mail.name, "--out", str(out))
    assert (code, "--overwrite" in err, out.read_text()) == (2, True, "mine")


def test_an_exported_file_tells_the_same_as_the_feed_but_for_the_alarms(
    mail, run, run_command, embedded_url, tmp_path
):
    path = tmp_path / "answers.csv"
    run_command("export", mail.name, path, "--redis", embedded_url)
    past = read_export(path)
    right = [n % 5 != 0 for n in range(1, 11)]
    assert [one.truth.is_right for one in past.answers] == right
    assert past.reports[-1].scored == 10
    assert past.reports[-1].methods["headline"][:3] == pytest.approx((0.8, 0.7, 0.8))
    assert [one.message["seq"] for one in read_export(path, 3000.0, 5000.0).answers] == [2, 3, 4]
    code, told, _ = run(str(path), "--out", str(tmp_path / "report.html"))
    assert code == 0
    assert "Over all scored examples 80.0 % were right and 80.0 % was announced." in told
    assert "An exported file does not tell of alarms" in told


FOREIGN = {
    "other columns": ("a,b\n1,2\n", "has no column 'entry'"),
    "no ID": (f"{HEAD}\nx-1,ok,a,1,1,1,1\n", "line 2: 'x-1'"),
    "empty": (f"{HEAD}\n", "holds no answer"),
    "NUL": ("entry,status\x00", "is no CSV|has no column"),
}


@pytest.mark.parametrize(("text", "message"), FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_no_export_is_named(tmp_path, text, message):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=message):
        read_export(path)


def test_a_long_export_is_drawn_in_evenly_spaced_points(tmp_path, monkeypatch):
    monkeypatch.setattr(past_run, "MAX_REPORTS", 4)
    path = tmp_path / "answers.csv"
    rows = [f"{i}-0,ok,{i},a,0.5,0.4,0.6,{i % 2}" for i in range(1000)]
    path.write_text("\n".join(["entry,status,n,label,probability,lower,upper,is_right", *rows]))
    past = read_export(path)
    assert [report.scored for report in past.reports] == [400, 800, 1000]
    assert past.reports[-1].methods["headline"][:2] == (0.5, pytest.approx(0.4))
