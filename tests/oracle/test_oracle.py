"""What feeds answer, report, alarm and reject, byte for byte, by whatever code computes it.

The digests in `digests.json` change with the number of the semantics, and with nothing else:
`make oracle` then writes them anew.
"""

import json
from pathlib import Path

import pytest
from oracle_feeds import COMBINED, feeds
from oracle_library import library_digest, library_inputs
from oracle_work import answered, combined, digests, server

RECORDED = Path(__file__).with_name("digests.json")
INTO = "both"


def recorded():
    """Return the digests that are kept, by what answered and the name of the feed."""
    return json.loads(RECORDED.read_text("utf-8"))


def differing(found, expected):
    """Return what was found of each feed that differs from what is kept."""
    return {name: found.get(name) for name in expected if found.get(name) != expected[name]}


def served_by_one_process(notes, options=()):
    """Return the digests of all feeds, answered by one worker, and of their combination."""
    with server() as client:
        answered(client, feeds(), notes, options)
        combined(client, INTO)
        return {name: digests(client, name) for name in (*feeds(), INTO)}


@pytest.mark.timeout(500)
def test_a_worker_of_all_feeds_gives_the_bytes_that_are_kept(tmp_path):
    found = served_by_one_process(tmp_path / "notes")
    assert differing(found, recorded()["streams"]) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_worker_of_each_feed_gives_the_same_bytes_in_small_batches(tmp_path):
    check_alone(tmp_path, 7)


@pytest.mark.scale
@pytest.mark.timeout(900)
def test_a_worker_of_each_feed_gives_the_same_bytes_in_large_batches(tmp_path):
    check_alone(tmp_path, 1024)


def check_alone(folder, batch):
    expected = recorded()["streams"]
    found = {}
    with server() as client:
        for name, feed in feeds().items():
            answered(client, {name: feed}, folder / name, ("--batch", str(batch)))
            found[name] = digests(client, name)
        combined(client, INTO)
        found[INTO] = digests(client, INTO)
    assert differing(found, expected) == {}


@pytest.mark.parametrize("name", sorted(library_inputs()))
def test_the_predictor_alone_gives_the_answers_that_are_kept(name):
    assert library_digest(*library_inputs()[name]) == recorded()["library"][name]


def test_every_feed_has_its_digests():
    kept = recorded()
    assert kept["streams"].keys() == {*feeds(), INTO}
    assert kept["library"].keys() == library_inputs().keys()
    assert set(COMBINED) < feeds().keys()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        streams = served_by_one_process(Path(directory) / "notes")
    library = {name: library_digest(*given) for name, given in library_inputs().items()}
    text = json.dumps({"streams": streams, "library": library}, indent=1)
    RECORDED.write_text(text + "\n", "utf-8")
