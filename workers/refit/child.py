"""The refit process: how it is started, and how it answers messages.

`python -m workers.refit.child` runs in the child, `RefitPool` in the parent; `messages.py` is what
they exchange. The child imports only what refits need, because a starting worker waits for it.
"""

import os
import subprocess
import sys
import time
from typing import IO

from workers.fast_imports import importing
from workers.refit.messages import read_message, write_message

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

Child = subprocess.Popen[bytes]


def begin() -> Child:
    """Start a process that answers messages until its pipe closes.

    It begins its imports at once, so a caller that will need it should start it early.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "workers.refit.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | _ONE_THREAD,
        # Ctrl-C in a terminal goes to the whole group; the child ends when its pipe closes.
        start_new_session=True,
    )


def end(child: Child) -> None:
    """Kill a process, and close its pipes."""
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer messages until the pipe is closed.

    Parameters
    ----------
    source, target : binary file
        The ends of the pipes.
    """
    with importing():
        from workers.refit.served_learner import ServedLearners
    learners = ServedLearners()
    while True:
        try:
            message = read_message(source)
            began = time.perf_counter()
            answer = learners.answer(*message)
            write_message(target, *answer, seconds=time.perf_counter() - began)
        except (EOFError, BrokenPipeError):
            return


def main() -> None:
    """Serve on standard input and output; other prints go to standard error."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
