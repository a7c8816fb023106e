"""The report of a past run: what its sentences say, and that its file needs nothing else."""

import re

import orjson
import pytest
from browser import chromium, expecting, tab

from workers.admin.notes import note
from workers.broker.store import Store
from workers.dashboard import past_run
from workers.dashboard.past_export import read_export
from workers.dashboard.past_run import NothingKept, read_past
from workers.errors import BadConfiguration

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


def test_notes_are_told_with_who_said_them_and_marked_in_the_file(mail, run, tmp_path):
    note(mail.store, "deployed v2", 5, "ann@desk")
    code, out, _ = run(mail.name, "--out", str(tmp_path / "r.html"))
    assert code == 0
    assert "note       ann@desk at example 5: deployed v2" in out.splitlines()
    assert "deployed v2" in (tmp_path / "r.html").read_text("utf-8")


def test_a_quiet_run_says_what_is_known_and_that_no_alarm_was_raised(mail, run, tmp_path):
    assert run(mail.name, "--out", str(tmp_path / "r.html"))[1].splitlines() == [
        "Too early to say (needs about 100 more labels): 10 answers scored.",
        "in all     .800 (.444 to .975) right, .750 announced in .650 to .850, over 10 scored of "
        "the first 10 learned",
        "guarantee  exact",
        "reports    10 reports from 1970-01-01 00:00:01 to 1970-01-01 00:00:10, UTC",
        "alarms     none was raised",
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
    facts = {fact["name"]: fact["sentence"] for fact in orjson.loads(told)["facts"]}
    assert facts["alarms"] == "none was raised"
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="?(http|/)', out.read_text())
    with chromium() as browser, tab(browser) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.context.set_offline(True)
        page.goto(out.as_uri())
        page.get_by_text("none was raised").first.wait_for()
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
    assert "in all     .800 (.444 to .975) right, .800 announced in .700 to .900, over 10" in told
    assert "\nalarms " not in told


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
