"""A feed whose answers are compact: the same bytes always, and read by all that read answers."""

import csv
import json
import random

import pytest
from session_steps import advance, answer_batch
from world import CONFIG, COUNT, drain, outcome, push, rows, session, take_back

from workers.admin.verify import verify, verify_history
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.dashboard.feed_follower import FeedFollower
from workers.dashboard.past_run import read_past
from workers.errors import BadConfiguration
from workers.monitor.health import StatusCache
from workers.offline.comparison import compare
from workers.offline.explain import explain_answer
from workers.reading.answers import answer
from workers.session.join.sources import Source

pytestmark = pytest.mark.servers("embedded")  # a form of answers is no matter of the server

COMPACT = Limits(payload="compact")
OPTIONS = {"limits": COMPACT, "snapshot_every": 60, "keep_input": True}


def answered(store, limits=COMPACT, **options):
    """Answer the whole of a small feed."""
    push(store, rows())
    drain(session(store, **(OPTIONS | {"limits": limits} | options)), COUNT)
    return store


@pytest.fixture
def compact(store):
    return answered(store)


@pytest.fixture
def both(compact, redis_url, feed):
    """The same feed with compact and with full answers."""
    with Store(redis_url, f"{feed}-full") as other:
        yield compact, answered(other, limits=Limits())


def read(source, count):
    """Return so many answers of a source of a combination."""
    found = []
    while len(found) < count:
        after = found[-1].entry if found else b"0-0"
        found += source.read(after, len(found), count - len(found))
    return found


def test_batches_and_take_overs_at_any_point_change_no_byte(redis_url, feed):
    found = []
    for seed in range(4):
        with Store(redis_url, f"{feed}-{seed}", block_ms=1) as store:
            push(store, rows())
            choose = random.Random(seed)
            while (state := store.state()) is None or state.position.seq < COUNT:
                # The worker before is dropped, perhaps with a commit that was never confirmed.
                worker = session(store, batch=choose.choice((1, 7, 64)), **OPTIONS)
                for _ in range(choose.randrange(1, 9)):
                    advance(worker) if choose.random() < 0.5 else answer_batch(worker)
            found.append(outcome(store)[0])
    assert all(payloads == found[0] for payloads in found)


def test_reports_are_those_of_the_full_form_and_answers_a_third_of_the_bytes(both):
    compact, full = both
    (short, met), (long, full_met) = (outcome(store)[0] for store in both)
    assert met == full_met
    assert [entry for entry, _ in short] == [entry for entry, _ in long]
    answers = [(a, b) for (_, a), (_, b) in zip(short, long, strict=True) if b'"c":[' in a]
    assert len(answers) > COUNT / 2
    assert all(3 * len(a) < len(b) for a, b in answers)
    # Rejected entries and those of the warm-up are told alike.
    others = [pair for pair in zip(short, long, strict=True) if b'"c":[' not in pair[0][1]]
    assert others
    assert all(ours == theirs for ours, theirs in others)
    assert compact.state().pinned.config_hash != full.state().pinned.config_hash


def test_verify_recomputes_it_and_finds_a_changed_digit(compact):
    assert verify(compact).is_identical
    history = [[part.encode() for part in fields] for fields in rows()]
    assert verify_history(compact, history).is_identical
    (last, fields), (before, _) = compact.call("XREVRANGE", compact.keys.out, "+", "-", "COUNT", 2)
    take_back(compact, compact.keys.out, before)
    compact.call("XADD", compact.keys.out, last, "p", fields[1].replace(b'"c":[', b'"c":[1'))
    found = verify(compact)
    assert [difference.id for difference in found.differences] == [last]


def test_an_answer_is_explained_by_replay(compact):
    found = explain_answer(compact, "200-0")
    assert found.is_identical
    assert (found.answer["seq"], found.answer["payload"]) == (199, "compact")
    assert found.rests_on.model == found.answer["model"]


def test_tail_shows_the_same_line_and_gives_json_in_the_full_form(both, run):
    short, long = (run("tail", store.keys.feed, "-n", 1)[1].split() for store in both)
    assert short == [word for word in long if word in short]  # without the maps
    message = json.loads(run("tail", both[0].keys.feed, "-n", 1, "--json")[1])
    assert (message["status"], message["payload"], message["maps"]) == ("ok", "compact", {})
    assert {"true_label", "is_right", "probabilities", "venn"} <= message.keys()


def test_an_export_has_the_columns_of_full_answers_but_for_the_maps(both, run):
    texts = (run("export", store.keys.feed, "-")[1] for store in both)
    short, long = (list(csv.DictReader(text.splitlines())) for text in texts)
    maps = {name for name in long[0] if name.partition(" ")[0] in CONFIG.maps}
    assert maps
    assert set(long[0]) - set(short[0]) == maps
    assert set(short[0]) - set(long[0]) == {"payload"}
    for ours, theirs in zip(short, long, strict=True):
        for name in set(long[0]) - maps:
            if name.startswith(("prob", "lower", "upper", "venn", "score")) and theirs[name]:
                assert float(ours[name]) == pytest.approx(float(theirs[name]), abs=1.1e-6)
            else:
                assert ours[name] == theirs[name], name


def test_a_report_of_the_past_and_a_comparison_read_it(both):
    told = read_past(both[0])
    assert {each.message["status"] for each in told.answers} == {"ok", "warming", "rejected"}
    assert all(each.message["payload"] == "compact" for each in told.answers[-20:])
    found = compare(*both)
    # Rounding does not count: the losses are the same up to the sixth decimal.
    assert found.losses["brier"].difference == pytest.approx(0.0, abs=2e-6)
    assert found.losses["brier"].first > 0


def test_the_page_and_the_metrics_see_the_newest_answer(compact):
    follower = FeedFollower(compact.url, compact.keys.feed)
    follower.viewers = 1
    follower.update()
    newest = follower.shown.status.answer
    assert (newest["payload"], newest["status"]) == ("compact", "ok")
    shown = [one for one in follower.shown.answers if one.message["status"] == "ok"]
    assert len(shown) > COUNT / 2
    assert {one.truth.is_right for one in shown} == {True, False}
    follower.close()
    cache, feed = StatusCache(compact.url), compact.keys.feed
    answer = cache.get({feed: None}, True)[feed].answer
    assert answer["guarantee"] == newest["guarantee"] == "exact"
    cache.close()


def test_a_combination_takes_the_venn_hull_of_compact_answers(both):
    short, long = (read(Source(store), 200) for store in both)
    known = [(a.bounds, b.bounds) for a, b in zip(short, long, strict=True) if a.bounds]
    assert len(known) > 100
    for ours, theirs in known:
        assert ours == pytest.approx(theirs, abs=1.1e-6)


def test_a_combination_refuses_a_feed_whose_compact_answers_leave_its_belief_out(store):
    config = CONFIG.model_copy(update={"maps": ("evidential-logistic",)})
    session(store, config=config, limits=COMPACT)
    with pytest.raises(BadConfiguration, match=r"compact answers leave out.*payload"):
        Source(store)


def test_the_form_is_fixed_for_the_life_of_a_feed(compact, run):
    code, _, said = run("worker", compact.keys.feed, "--payload", "full")
    assert (code, "payload" in said) == (2, True)
    newest = compact.call("XREVRANGE", compact.keys.out, "+", "-", "COUNT", 1)[0]
    assert answer(newest)["payload"] == "compact"
