"""Traced entries: a log line for each, and spans of OpenTelemetry.

After the commit of a batch, each sampled trace of its entries gets a log line. If the environment
names an exporter (`OTEL_TRACES_EXPORTER`), each batch also gets a span `online_svm.batch` with the
children `read`, `decide` and `commit`, below the span that each of its traces names, or a trace of
its own. Neither can change an answer: both come after it.
"""

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from workers.errors import BadConfiguration
from workers.log import Logger
from workers.message.entry_decode import TRACEPARENT, is_sampled
from workers.session.answer import Outcome

EXPORTER = "OTEL_TRACES_EXPORTER"
"""OpenTelemetry's own setting: `otlp` or `console`; here the default is `none`."""

MAX_TRACES = 128  # traces of a batch that get spans; more would take longer than the batch

_STAGES = ("read", "decide", "commit")
_MISSING = "spans need OpenTelemetry: pip install 'online-svm[otel]'"

log = Logger("online_svm.worker")

Times = tuple[int, int, int]
"""Begin and end of reading, and end of deciding, in nanoseconds since 1970."""


def is_on() -> bool:
    """Return whether the environment names an exporter of spans."""
    return os.environ.get(EXPORTER, "none") != "none"


def start() -> None:
    """Let this process export spans, if the environment asks for it.

    The other settings are the standard's: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
    `OTEL_TRACES_SAMPLER` and so on. Raises BadConfiguration for an unknown exporter, or without
    the extra.
    """
    if not is_on():
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(_exporter(os.environ[EXPORTER])))
    except ImportError:
        raise BadConfiguration(_MISSING) from None
    trace.set_tracer_provider(provider)


def _exporter(name: str) -> Any:
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    raise BadConfiguration(f"{EXPORTER} is {name[:80]!r}: write otlp, console or none")


class BatchTraces:
    """Times the batches of a feed, and tells of their traces once they are committed."""

    def __init__(self, feed: str) -> None:
        self._feed, self._read = feed, (0, 0)
        self._decided: dict[bytes, Times] = {}  # by the ID of the last entry, until the commit

    def clear(self) -> None:
        """Forget batches that are not committed."""
        self._decided.clear()

    def read(self, began: int) -> None:
        """Note that the next batch was read from `began`, by `time.time_ns`, until now."""
        self._read = began, time.time_ns()

    def decided(self, outcome: Outcome) -> None:
        """Note that the batch is answered."""
        self._decided[outcome.after.cursor] = (*self._read, time.time_ns())

    def committed(self, outcome: Outcome) -> None:
        """Tell of a committed batch."""
        times = self._decided.pop(outcome.after.cursor, None)
        by_trace: dict[str, list[int]] = {}
        for index, trace in outcome.traces.items():
            by_trace.setdefault(trace, []).append(index)
        for trace, indices in by_trace.items():
            if is_sampled(trace):
                ids = [outcome.ids[i] for i in (indices[0], indices[-1])]
                log.info(
                    "answered", feed=self._feed, traceparent=trace, entries=len(indices),
                    first=ids[0], last=ids[1], seq=outcome.before.seq + indices[0],
                )  # fmt: skip
        if times is not None and is_on():
            self._export(outcome, (*times, time.time_ns()), [*by_trace][:MAX_TRACES])

    def _export(self, outcome: Outcome, times: Sequence[int], traces: Sequence[str]) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        tracer = trace.get_tracer("online_svm")
        about = {
            "online_svm.feed": self._feed,
            "online_svm.entries": len(outcome.ids),
            "online_svm.seq": outcome.before.seq,
        }
        for carrier in [{TRACEPARENT: sent} for sent in traces] or [{}]:
            above = TraceContextTextMapPropagator().extract(carrier)
            batch = tracer.start_span(
                "online_svm.batch", above, attributes=about, start_time=times[0]
            )
            inside = trace.set_span_in_context(batch, above)
            for stage, begin, end in zip(_STAGES, times, times[1:], strict=False):
                tracer.start_span(stage, inside, start_time=begin).end(end)
            batch.end(times[-1])
