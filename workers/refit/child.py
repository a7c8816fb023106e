"""The process that computes refits: how it is begun, and what it answers.

On the pipe each message is one byte (its kind), eight bytes (the length) and the body; nothing is
pickled. `python -m workers.refit.child` is the child's end, and ProcessRefitter the other. It
imports no more than refits need: a worker that starts must wait for that.
"""

import os
import struct
import subprocess
import sys
from typing import IO, TYPE_CHECKING

from workers.fast_imports import importing

if TYPE_CHECKING:
    from online_svm.refit.learner import Learner

CONFIG, LOAD, TASK, STATE = b"C", b"L", b"T", b"S"
DONE, FAILED = b"D", b"F"

Message = tuple[bytes, bytes]

HEAD = struct.Struct(">cQ")
"""What each message begins with."""

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

Child = subprocess.Popen[bytes]


def begin() -> Child:
    """Return a new process that answers the messages of refit_pool.py until its pipe closes.

    It is at work on its imports at once: whoever knows early that it will be needed begins early.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "workers.refit.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | _ONE_THREAD,
        # Ctrl-C in a terminal goes to the whole group; the child ends when its pipe does.
        start_new_session=True,
    )


def end(child: Child) -> None:
    """End a process at once."""
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def framed(kind: bytes, body: bytes) -> bytes:
    """Return one message as it goes through the pipe."""
    return HEAD.pack(kind, len(body)) + body


def write_message(pipe: IO[bytes], kind: bytes, body: bytes = b"") -> None:
    """Write one message."""
    pipe.write(framed(kind, body))
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Return kind and body of the next message.

    Raises
    ------
    EOFError
        If the other end is gone.
    """
    kind, length = HEAD.unpack(_exactly(pipe, HEAD.size))
    return kind, _exactly(pipe, length)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError("the pipe was closed")
    return data


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer messages until the pipe is closed."""
    from online_svm.config import PredictorConfig
    from online_svm.refit.learner import Learner

    learner: Learner | None = None
    while True:
        try:
            kind, body = read_message(source)
        except EOFError:
            return
        if kind == CONFIG:
            learner = Learner(PredictorConfig.model_validate_json(body))
        assert learner is not None
        learner, answer = _answered(learner, kind, body)
        try:
            write_message(target, *answer)
        except BrokenPipeError:
            return


def _answered(learner: "Learner", kind: bytes, body: bytes) -> tuple["Learner", Message]:
    """Return the answer to a message, after the learner that answers the next one."""
    from online_svm.refit.task import RefitTask

    try:
        if kind == TASK:
            return learner, (DONE, learner.refit(RefitTask.from_state(body)).state())
        if kind == STATE:
            return learner, (DONE, learner.state())
        if kind == LOAD:
            return learner.from_state(body, learner.config), (DONE, b"")
    except Exception as error:  # whatever it is, the parent reports it and tries elsewhere
        return learner, (FAILED, repr(error).encode())
    return learner, (DONE, b"")


def main() -> None:
    """Serve on standard input and output; a stray print must not get between the messages."""
    with importing():
        import online_svm.refit.learner  # noqa: F401  (`serve` needs it)
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
