"""A URL of Redis that cannot be used ends every command in one line, without what is secret."""

import pytest

from workers.broker.client import client
from workers.cli import app as cli
from workers.config.redis_url import check_url
from workers.errors import BadConfiguration


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://h/0?bogus=1", "unknown option 'bogus'; known: db, username"),
        ("redis://h/0?decode_responses=True", "unknown option 'decode_responses'"),
        ("redis://h/0?socket_timeout=0.001", "unknown option 'socket_timeout'"),
        ("redis://h/0?protocol=3", "unknown option 'protocol'"),
        ("redis://h/zz", "'/zz' is no database: write /0"),
        ("redis://h/0/1", "'/0/1' is no database"),
        ("redis://h/-1", "'/-1' is no database"),
        ("redis://h/99999999999999999999", "is no database"),
        ("redis://h/?db=zz", "db='zz' is no database"),
        ("redis://h/?db=1&db=2", "'db' is given twice"),
        ("redis://h/0?ssl_ca_certs=x", "TLS needs rediss://"),
        ("rediss://h/0?ssl_cert_reqs=zz", "would take any server"),
        ("rediss://h/0?ssl_check_hostname=F", "would take any server"),
        ("unix://", "write unix:///path/of/the/socket"),
        ("http://h", "cannot be used"),
        ("redis://h:99999/0", "cannot be used"),
        ("redis://h:port/0", "cannot be used"),
        ("redis://h/0#1", "cannot be used"),
        ("redis://[h/0", "cannot be used"),
        ("redis://h\x1b[2J/0", "cannot be used"),
        ("redis://h\0/0", "cannot be used"),
    ],
)
@pytest.mark.parametrize("command", [("status",), ("push", "f", "Phishing"), ("worker", "f")])
def test_a_url_that_cannot_be_used_ends_in_one_line(capsys, command, url, why):
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--redis", url])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith("online-svm: redis URL ")
    assert told.count("\n") == 1
    assert told[:-1].isprintable()
    assert why in told


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:p?hunter2=1@h/0",
        "redis://u:1?hunter2@h/0",
        "redis://u:p/hunter2@h/0",
        "redis://u:p#hunter2@h/0",
        "redis://h/0?password=hunter2&bogus=hunter2",
        "redis://u:hunter2@h/zz",
    ],
)
def test_a_url_that_is_refused_shows_no_password(url):
    with pytest.raises(BadConfiguration) as refused:
        client(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://h/",
        "redis://[::1]:6379/15",
        "redis://u:p%40%3F@h:1/0?client_name=me",
        "unix:///run/redis.sock?db=1&password=x",
        "unix://u:p@/run/redis.sock",
    ],
)
def test_a_url_without_tls_is_taken(url):
    assert check_url(url) == {}


def test_a_url_with_tls_verifies_the_server():
    url = "rediss://h/0?ssl_ca_certs=a&ssl_certfile=b&ssl_keyfile=c&ssl_cert_reqs=required"
    assert check_url(url) == {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
