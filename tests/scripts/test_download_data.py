import gzip
import hashlib

import pytest

from scripts import download_data as script
from workers.push.datasets import data_directory


@pytest.fixture
def mirror(tmp_path):
    place = tmp_path / "mirror"
    place.mkdir()
    return place


def data_file(name, content):
    return script.DataFile(name, "file:///nowhere", hashlib.sha256(content).hexdigest())


def test_a_file_is_fetched_and_kept_when_its_content_is_right(mirror, tmp_path, capsys):
    (mirror / "a").write_bytes(b"1,2\n")
    out = tmp_path / "out"
    assert script.download([data_file("a", b"1,2\n")], out, mirror.as_uri()) == 0
    assert (out / "a").read_bytes() == b"1,2\n"
    assert [path.name for path in out.iterdir()] == ["a"]
    assert "a: fetched" in capsys.readouterr().out


def test_line_ends_are_made_equal_before_the_check(mirror, tmp_path):
    (mirror / "a").write_bytes(b"1,2\r\n3,4")
    out = tmp_path / "out"
    assert script.download([data_file("a", b"1,2\n3,4\n")], out, mirror.as_uri()) == 0
    assert (out / "a").read_bytes() == b"1,2\n3,4\n"


def test_a_file_with_other_content_is_not_kept(mirror, tmp_path, capsys):
    (mirror / "a").write_bytes(b"tampered\n")
    out = tmp_path / "out"
    assert script.download([data_file("a", b"1,2\n")], out, mirror.as_uri()) == 1
    assert list(out.iterdir()) == []
    assert "a: SHA-256 is" in capsys.readouterr().err


def test_one_missing_file_does_not_keep_the_others_away(mirror, tmp_path, capsys):
    (mirror / "b").write_bytes(b"b\n")
    files = [data_file("a", b"a\n"), data_file("b", b"b\n")]
    assert script.download(files, tmp_path / "out", mirror.as_uri()) == 1
    assert (tmp_path / "out" / "b").exists()
    assert "No such file" in capsys.readouterr().err


def test_files_that_are_there_are_checked_and_not_fetched(tmp_path, capsys):
    (tmp_path / "a").write_bytes(b"a\n")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"b\n"))
    (tmp_path / "c").write_bytes(b"damaged\n")
    files = [data_file(name, f"{name}\n".encode()) for name in "abc"]
    assert script.download(files, tmp_path, "file:///nowhere") == 1
    told = capsys.readouterr()
    assert "a: checked" in told.out
    assert "b: checked" in told.out
    assert "c: SHA-256 is" in told.err


def test_an_unknown_name_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        script.main(["--out", str(tmp_path), "iris"])
    assert ended.value.code == 2
    assert "unknown: iris" in capsys.readouterr().err


def test_every_listed_file_is_the_one_the_benchmarks_use():
    assert all(script.present(file, data_directory()) for file in script.FILES)


def test_every_listed_file_has_a_public_home_of_its_own():
    assert all(file.url.startswith("https://") for file in script.FILES)
    assert len({file.url for file in script.FILES}) == len(script.FILES)
