"""The command `gateway`: what it needs, where it listens, how it stops."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import LIMIT, free_port
from system_tools import package
from world import Worker

COMMAND = (sys.executable, "-m", "workers.cli", "gateway")


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_without_the_extra_one_line_names_it(embedded_url, tmp_path, module):
    (tmp_path / f"{module}.py").write_text("raise ImportError('no')")
    ended = subprocess.run(
        (*COMMAND, "mail", "--redis", embedded_url),
        capture_output=True, text=True, timeout=LIMIT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
    )  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'online-svm[http]'" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_it_says_where_it_is_and_ends_with_0_and_lets_who_waits_go(embedded_url, feed):
    package("starlette", "pip install 'online-svm[http]'")
    package("uvicorn", "pip install 'online-svm[http]'")
    port = free_port()
    command = ("gateway", feed, "--redis", embedded_url, "--port", port, "--json")
    with Worker(*command, stdout=subprocess.PIPE, text=True) as gateway:
        assert json.loads(gateway.stdout.readline())["port"] == port
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        sent = {"Content-Type": "application/json"}
        path = f"/feeds/{feed}/examples?timeout="
        while True:  # it listens before Redis is connected
            client.request("POST", f"{path}0", b'{"x":[1]}', sent)
            reply = client.getresponse()
            if (reply.status, reply.read())[0] == 202:
                break
            assert reply.status == 503
        client.request("POST", f"{path}60", b'{"x":[1]}', sent)
        said = gateway.stopped()
        reply = client.getresponse()
        assert reply.status == 202
        assert len(json.load(reply)["ids"]) == 1
        client.close()
    assert "Traceback" not in said
