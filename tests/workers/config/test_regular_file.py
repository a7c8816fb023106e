"""Files with tokens, passwords and keys: a pipe or an endless device is refused in one line."""

import os
from pathlib import Path

import pytest

from workers.config.files import read_regular
from workers.config.redis_url import complete
from workers.config.settings import WorkerSettings
from workers.dashboard.handlers import read_token
from workers.errors import BadConfiguration
from workers.gateway.tokens import grants


@pytest.fixture(params=["pipe", "/dev/zero", "/dev/full", "folder", "socket"])
def odd(request, tmp_path):
    """A path that is no regular file."""
    path = tmp_path / request.param.lstrip("/")
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "socket":
        os.mknod(path, 0o140600)
    return path if path.exists() else Path(request.param)


READS = {
    "tokens of the gateway": grants,
    "token of the page": read_token,
    "key of alarms": lambda path: WorkerSettings(alarm_secret_file=path).alarm_key,
    "password": lambda path: complete("redis://u@h", {"redis_password_file": path}),
    "authority": lambda path: complete("rediss://u@h", {"redis_ca_file": path}),
}


@pytest.mark.parametrize("name", READS)
def test_no_file_is_read_that_could_block_or_never_end(name, odd):
    with pytest.raises(BadConfiguration) as told:
        READS[name](odd)
    assert str(odd) in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["key of alarms", "password"])
def test_a_secret_of_a_megabyte_is_refused(name, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"x" * (1 << 20))
    with pytest.raises(BadConfiguration, match="of at most 65,536 bytes"):
        READS[name](path)


def test_a_link_to_a_file_is_read_within_the_bound(tmp_path):
    (tmp_path / "file").write_text("secret")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 100) == b"secret"
    assert read_regular(tmp_path / "link", 3) == b"secr"
