"""Who may do what: tokens by feed and right, from a file that is read again when it changes."""

import hmac
import json

import pytest
from served_gateway import serving
from structlog.testing import capture_logs

from workers.errors import BadConfiguration
from workers.gateway.tokens import Tokens, grants

ASK, LABEL, READ = ("a sixteen letter".replace(" ", letter) for letter in "xyz")
X = [0.5, 1, -2]


def table(token, rights, feeds=("plain", "la*")):
    return f"[[token]]\ntoken = {json.dumps(token)}\nfeeds = {json.dumps(feeds)}\n" + (
        f"rights = {json.dumps(rights)}\n"
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokens.toml"
    path.write_text(table(ASK, ["ask"]) + table(LABEL, ["label"]) + table(READ, ["read"]))
    return path


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_each_right_opens_its_addresses_of_its_feeds_alone(answered, file):
    example, label = {"x": X, "id": "t"}, {"id": "t", "y": "a"}
    with serving(answered, "plain", "late", "kept", tokens=file) as client:
        requests = {
            "ask": lambda feed, token: client.post(f"{feed}/examples", example, **bearer(token)),
            "label": lambda feed, token: client.post(f"{feed}/labels", label, **bearer(token)),
            "read": lambda feed, token: client.get(f"{feed}/status", **bearer(token)),
        }
        for wanted, send in requests.items():
            for right, token in {"ask": ASK, "label": LABEL, "read": READ}.items():
                assert send("/feeds/late", token).status == (200 if right == wanted else 403)
                assert send("/feeds/kept", token).status == 403, "not a feed of these tokens"
        taught = client.post("/feeds/late/examples", example | {"y": "a"}, **bearer(ASK))
        assert taught.status == 403, "an example with its label teaches"
        for token in (ASK, LABEL, READ):
            assert client.get("/feeds/late/answers/1-0", **bearer(token)).status == 200


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", f"Bearer {ASK}x", f"Basic {ASK}", ASK, "Bearer \xe9"]
)
def test_without_a_known_token_each_address_is_401(answered, file, header):
    sent = {} if header is None else {"Authorization": header}
    with serving(answered, "plain", tokens=file) as client:
        for reply in (
            client.get("/feeds/plain/status", **sent),
            client.get("/feeds/unknown/status", **sent),
            client.post("/feeds/plain/examples", {"x": X}, **sent),
        ):
            assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")


def test_the_file_is_read_again_when_it_changes_and_a_bad_one_changes_nothing(answered, file):
    new = "another token altogether".replace(" ", "-")
    with capture_logs() as logs, serving(answered, "plain", tokens=file) as client:

        def status(token):
            return client.get("/feeds/plain/status", **bearer(token)).status

        assert (status(READ), status(new)) == (200, 401)
        file.write_text(table(new, ["read"]))
        assert (status(READ), status(new)) == (401, 200)
        file.write_text(table(new, ["read"]) + f"broken {new}")
        assert (status(READ), status(new)) == (401, 200)
        file.unlink()
        assert (status(READ), status(new)) == (401, 200)
    told = json.dumps(logs)
    assert [log["event"] for log in logs] == [
        "tokens are read again", *["tokens cannot be read; those of before stay"] * 2
    ]  # fmt: skip
    assert not any(secret in told for secret in (ASK, LABEL, READ, new))


def test_every_token_is_compared_in_constant_time(file, monkeypatch):
    compared = []

    def noted(one, other):
        compared.append((one, other))
        return original(one, other)

    original = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", noted)
    Tokens(file).check(f"Bearer {ASK}", "plain", ["ask"])
    assert len(compared) == 3, "the first match does not end it"
    assert all(len(one) == len(other) == 32 for one, other in compared), "digests, not the tokens"


BAD = {
    "not TOML": "[[token]\n",
    "write tables": "",
    "nothing else": table(ASK, ["ask"]) .replace("[[", "[").replace("]]", "]"),
    "token 2: write token, feeds and rights": table(ASK, ["ask"]) + "[[token]]\ntoken = 'x'\n",
    "token 1: use at least 16": table("short", ["ask"]),
    "without a space": table("x" * 10 + " " + "y" * 10, ["ask"]),
    "rights are among ask, label, read": table(ASK, ["ask", "write"]),
    "feeds are names": table(ASK, ["ask"], []),
    "pattern": table(ASK, ["ask"], ["a b*"]),
    "more than": "#" * (1 << 20) + "\n" + table(ASK, ["ask"]),
}  # fmt: skip


@pytest.mark.parametrize("told", BAD)
def test_a_file_that_cannot_be_used_is_refused_without_showing_a_token(tmp_path, told):
    path = tmp_path / "tokens.toml"
    path.write_text(BAD[told])
    with pytest.raises(BadConfiguration) as refused:
        grants(path)
    assert told in str(refused.value)
    assert ASK not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadConfiguration, match="No such file"):
        Tokens(tmp_path / "none.toml")
