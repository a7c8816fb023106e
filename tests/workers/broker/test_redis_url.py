"""A URL of Redis that cannot be used ends every command in one line, without what is secret."""

import pytest

from workers.broker.client import client
from workers.broker.servers import check_url, servers_of
from workers.config.redis_url import redacted
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
        ("redis+cluster://h:1,h:port", "cannot be used"),
        ("redis+cluster://h,,h", "cannot be used"),
        ("redis+cluster://h/1", "a cluster has database 0 alone"),
        ("redis+cluster://h?db=0", "unknown option 'db'"),
        ("redis+cluster://h?ssl_ca_certs=x", "TLS needs rediss://"),
        ("redis+cluster://h?sentinel_password=x", "unknown option 'sentinel_password'"),
        ("redis+sentinel://h", "name the service that the sentinels watch"),
        ("redis+sentinel://h/a/zz", "'zz' is no database: write /a/0"),
        ("redis+sentinel://h/a/0/1", "'0/1' is no database"),
        ("rediss+sentinel://h/a?ssl_cert_reqs=none", "would take any server"),
        ("redis+other://h", "cannot be used"),
        ("unix+cluster:///run/redis.sock", "cannot be used"),
    ],
)
def test_a_url_that_cannot_be_used_ends_in_one_line(run_command, url, why):
    for command in (("status",), ("push", "f", "Phishing"), ("worker", "f")):
        code, _, told = run_command(*command, "--redis", url)
        assert code == 2
        assert told.startswith("online-svm: redis URL ")
        assert told.count("\n") == 1
        assert told[:-1].isprintable()
        assert why in told


HALF = "unter2"
"""What a URL that is cut at a character of the password would leave of it."""


@pytest.mark.parametrize("url", [
    *(f"redis://u:h{cut}{HALF}@127.0.0.1:1/0" for cut in ("", "/", "#", "?", "@", "?=")),
    *(f"redis://u:1?h{HALF}@{host}" for host in ("h/0", "127.0.0.1:1", "127.0.0.1:notaport")),
    f"redis://u:p?{HALF}=1@h/0", f"redis://127.0.0.1:1/0?password=h{HALF}", f"redis://h/0?password=h{HALF}&bogus=h{HALF}",
    f"redis://u:h{HALF}@h/zz", f"redis://[{HALF}@127.0.0.1", f"http://me:h{HALF}@127.0.0.1/",
    f"me:h{HALF}@127.0.0.1", f"unix://me:h{HALF}@/nowhere/redis.sock",
    f"redis+cluster://u:h{HALF}@h:1,h:port", f"redis+cluster://u:h{HALF}@h/h",
    f"redis+sentinel://u:h{HALF}@h", f"redis+sentinel://h/a?sentinel_password=h{HALF}&bogus=1",
])  # fmt: skip
def test_a_url_that_is_refused_or_leads_nowhere_shows_no_password(run_command, url):
    code, *said = run_command("status", "--redis", url)
    assert code == 2, said
    assert HALF not in "".join(said)
    assert HALF not in redacted(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://h/",
        "redis://[::1]:6379/15",
        "redis://u:p%40%3F@h:1/0?client_name=me",
        "unix:///run/redis.sock?db=1&password=x",
        "unix://u:p@/run/redis.sock",
        "redis+cluster://u:p%40%3F@a:7000,b,[::1]:7002/",
        "redis+sentinel://u:p@a,b:26380/main.service/15?sentinel_username=x&sentinel_password=y",
    ],
)
def test_a_url_without_tls_is_taken(url):
    assert check_url(url) == {}


def test_a_url_with_tls_verifies_the_server():
    url = "rediss://h/0?ssl_ca_certs=a&ssl_certfile=b&ssl_keyfile=c&ssl_cert_reqs=required"
    assert check_url(url) == {"ssl_cert_reqs": "required", "ssl_check_hostname": True}


def test_the_servers_of_a_url_are_connected_to_with_its_credentials():
    found = servers_of("rediss+cluster://u:p%40@a:7000,[::1]?ssl_ca_certs=/x y&client_name=me")
    urls = [found.url_of(host) for host in found.hosts]
    options = "?ssl_ca_certs=%2Fx+y&client_name=me"
    assert urls == [f"rediss://u:p%40@{host}/0{options}" for host in ("a:7000", "[::1]:6379")]
    assert [check_url(url)["ssl_check_hostname"] for url in urls] == [True, True]
    with pytest.raises(BadConfiguration):
        client("redis+cluster://a:7000")


def test_sentinels_get_their_own_credentials_and_never_those_of_the_servers():
    url = "rediss+sentinel://u:hunter2@s1/main/3?ssl_ca_certs=ca&sentinel_username=v&sentinel_password=w%2F"
    found = servers_of(url)
    assert found.url_of(("10.0.0.1", 1)) == "rediss://u:hunter2@10.0.0.1:1/3?ssl_ca_certs=ca"
    asked = found.url_of_sentinel(found.hosts[0])
    assert asked == "rediss://s1:26379?ssl_ca_certs=ca&username=v&password=w%2F"
    check_url(asked)
    assert redacted(url) == "rediss+sentinel://s1/main/3"
    assert "hunter2" not in repr(found)
    assert "w/" not in repr(found)
