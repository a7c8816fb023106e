"""Run the page in a separate process, so that it does not delay answers."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workers.config.environment import PREFIX
from workers.python_process import command, environment

_END_SECONDS = 10.0  # time for the page process to exit before it is killed


@contextmanager
def page_process(feeds: Sequence[str], url: str, port: int, *options: str) -> Iterator[None]:
    """Serve the page of feeds on loopback within the block; `options` are passed to `dashboard`.

    The page process prints its address, or an error, on standard error. It exits when its standard
    input ends, so that it never outlives this process.
    """
    page = ("dashboard", *feeds, "--port", str(port))
    # The URL may hold a password, so it is passed in the environment, not in the list of processes.
    # It includes the credentials of other settings, so those are not passed.
    inherited = {name: text for name, text in environment().items() if not name.startswith(PREFIX)}
    process = subprocess.Popen(
        command("-m", "workers.cli", *page, *options, "--until-input-ends"),
        env=inherited | {f"{PREFIX}REDIS": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
