"""The commands of docs/how-to/late-labels.md, typed by someone with a raw table."""

import csv
import json
import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from world import Worker

from workers.broker import embedded
from workers.broker.embedded_directory import state_directory
from workers.broker.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "late-labels.md").read_text("utf-8")
AT_ONCE, LATER = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
NAMES = [
    "number", "applied", "country", "purpose", "amount", "owner", "phone", "born", "remark",
    "outcome",
]  # fmt: skip
COLUMN = NAMES.index("outcome")


def applications(count):
    """Return a table as it is exported: categories, dates, gaps, remarks, an id and a label."""
    rng = np.random.default_rng(0)
    start, rows = datetime(2024, 1, 5, 9), []
    for i in range(count):
        country = str(rng.choice(["DE", "FR", "PL", ""]))
        purpose = str(rng.choice(["car", "flat", "trip"]))
        amount = "" if rng.random() < 0.1 else f"{rng.lognormal(8.0, 1.0):.2f}"
        risk = 1.5 * (purpose == "trip") - (country == "DE") + rng.normal()
        born = datetime(1990, 1, 1) + timedelta(days=int(rng.integers(-9000, 4000)))
        owner = str(rng.choice(["yes", "no", "NA"]))
        phone = str(rng.choice(["0049", "0033", "0048", "?"]))
        rows.append([
            f"A{i:04}", f"{start + timedelta(minutes=20 * i):%Y-%m-%d %H:%M}", country, purpose,
            amount, owner, phone, f"{born:%Y-%m-%d}", f"spoke to {rng.random():.9f}",
            "default" if risk > 0.5 else "paid",
        ])  # fmt: skip
    return rows


def unlabelled(rows):
    return [[*row[:COLUMN], ""] for row in rows]


def written(path, rows, names=NAMES):
    with path.open("w", newline="", encoding="utf-8") as table:
        csv.writer(table).writerows([names, *rows])


def typed(line):
    program, *arguments = shlex.split(line)
    assert program == "online-svm"
    return arguments


@pytest.fixture
def run(run_command, tmp_path, monkeypatch):
    """Run a command as a user without an embedded server, in a directory with the tables."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield run_command
    embedded.stop(state_directory())


def pushed(run, line):
    code, out, told = run(*typed(line))
    assert (code, out) == (0, ""), told
    return told


def answers_of(store):
    found = store.call("XRANGE", store.keys.out, "-", "+")
    return [json.loads(fields[1]) for _, fields in found]


def test_two_commands_answer_a_raw_table_whose_labels_come_a_day_late(run, tmp_path):
    rows = applications(300)
    yesterday, today, tomorrow = rows[:180], rows[180:240], rows[240:]
    work, push = AT_ONCE.splitlines()
    table = tmp_path / "loans.csv"
    with Worker(*typed(work)) as worker:
        written(table, yesterday + unlabelled(today))
        told = pushed(run, push)
        assert "60 rows without, answered and not learned" in told
        with Store(embedded.running().url, "loans") as store:
            worker.wait_for(store, 240)
            written(table, today + unlabelled(tomorrow))
            pushed(run, push)
            worker.wait_for(store, 360)
            found = answers_of(store)
        worker.stopped()
        status = json.loads(run("status", "loans", "--json")[1])
    assert {one["status"] for one in found} == {"warming", "ok"}
    assert [one["status"] for one in found[180:]] == ["ok"] * 180
    sent = [*rows[:240], *rows[180:]]
    assert [one["id"] for one in found] == [row[0] for row in sent]
    assert (status["n"], status["seq"], status["dlq"]) == (240, 360, 0)
    kinds = {name: one["kind"] for name, one in status["validity"]["features"].items()}
    assert kinds == {
        "applied": "time", "country": "category", "purpose": "category", "amount": "number",
        "owner": "category", "phone": "category", "born": "time", "remark": "text",
    }  # fmt: skip


def test_a_feed_without_a_horizon_refuses_labels_alone_before_one_is_sent(run, tmp_path):
    rows = applications(20)
    work, push = AT_ONCE.splitlines()
    written(tmp_path / "loans.csv", unlabelled(rows))
    written(tmp_path / "outcomes.csv", [[row[0], row[COLUMN]] for row in rows], NAMES[::COLUMN])
    pushed(run, push)
    with Worker(*typed(work)) as worker, Store(embedded.running().url, "loans") as store:
        worker.wait_for(store, 20)
        code, _, told = run(*typed(LATER.splitlines()[-1].replace("credit", "loans")))
        assert (code, store.length(store.keys.input)) == (2, 20)
        assert "'loans' has no horizon" in told
        assert "online-svm reset loans, then worker loans --horizon" in told
        worker.stopped()
