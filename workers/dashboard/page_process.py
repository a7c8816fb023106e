"""The page in a separate process, so that no answer waits for it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workers.config.environment import PREFIX
from workers.python_process import command, environment

_END_SECONDS = 10.0  # for the page to end, before it is killed


@contextmanager
def page_process(feeds: Sequence[str], url: str, port: int, *options: str) -> Iterator[bytes]:
    """Serve the page of feeds on loopback while the block runs; `options` are more of `dashboard`.

    The page process prints its address, or why it cannot serve, on standard error; with `--json`
    only to this process, which yields it. It ends with this process, even if that is killed: then
    its standard input ends.
    """
    page, is_printed = ("dashboard", *feeds, "--port", str(port)), "--json" in options
    # The URL may hold a password, which no list of processes may show. It is complete, so that the
    # settings it was made of are left out.
    inherited = {name: text for name, text in environment().items() if not name.startswith(PREFIX)}
    process = subprocess.Popen(
        command("-m", "workers.cli", *page, *options, "--until-input-ends"),
        env=inherited | {f"{PREFIX}REDIS": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if is_printed else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if is_printed else None,
    )
    try:
        yield b"" if process.stdout is None else process.stdout.readline()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
