"""Traced entries: a log line after the commit, and spans where an exporter is named."""

import gzip
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from structlog.testing import capture_logs
from system_tools import package
from world import rows

from workers.errors import BadConfiguration
from workers.session import spans

SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-aaf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = OTHER[:-1] + "0"

pytestmark = pytest.mark.servers("embedded")


def traced(world, *traces):
    """Push entries with these trace contexts, and let a worker answer them in one batch."""
    for i, (row, trace) in enumerate(zip(rows(len(traces)), traces, strict=True), 1):
        sent = row + (["traceparent", trace] if trace else [])
        world.store.call("XADD", world.store.keys.input, f"{i}-0", *sent)
    with capture_logs() as logs:
        world.answer(len(traces))
    return [line for line in logs if line["event"] == "answered"]


def test_a_sampled_trace_has_one_log_line_a_batch(world):
    (line,) = traced(world, None, SAMPLED, UNSAMPLED, SAMPLED)
    assert {name: line[name] for name in ("traceparent", "entries", "seq", "feed")} == {
        "traceparent": SAMPLED, "entries": 2, "seq": 1, "feed": world.feed
    }  # fmt: skip
    assert (line["first"], line["last"]) == (b"2-0", b"4-0")


def test_without_traces_nothing_is_logged_of_answers(world):
    assert traced(world, None, None) == []


@pytest.fixture(scope="module")
def provider():
    """OpenTelemetry's provider of this process, which can be set once, and its memory."""
    package("opentelemetry.sdk.trace", "pip install 'online-svm[otel]'")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory, made = InMemorySpanExporter(), TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(memory))
    trace.set_tracer_provider(made)
    return memory


@pytest.fixture
def exported(provider, monkeypatch):
    """Switch spans on; return a function that gives those that were made."""
    monkeypatch.setenv(spans.EXPORTER, "otlp")
    provider.clear()
    return provider.get_finished_spans


def test_read_decide_and_commit_are_spans_below_the_one_that_asked(world, exported):
    traced(world, SAMPLED, OTHER, SAMPLED, UNSAMPLED)
    by_trace = {}
    for span in exported():
        by_trace.setdefault(format(span.context.trace_id, "032x"), []).append(span)
    assert by_trace.keys() == {SAMPLED[3:35], OTHER[3:35]}
    for found in by_trace.values():
        *stages, batch = sorted(found, key=lambda span: span.name == "online_svm.batch")
        assert [span.name for span in stages] == ["read", "decide", "commit"]
        assert format(batch.parent.span_id, "016x") == SAMPLED[36:52]
        assert {span.parent.span_id for span in stages} == {batch.context.span_id}
        ends = [batch.start_time, *(span.end_time for span in stages)]
        assert [span.start_time for span in stages] == ends[:-1]
        assert (ends, batch.end_time) == (sorted(ends), ends[-1])
        assert dict(batch.attributes) == {
            "online_svm.feed": world.feed, "online_svm.entries": 4, "online_svm.seq": 0
        }  # fmt: skip


class Collector(BaseHTTPRequestHandler):
    """What an OpenTelemetry collector does with OTLP over HTTP: parse the message, and say so."""

    def do_POST(self):
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        sent = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        self.server.received.append((self.path, self.headers["Content-Type"], sent))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(trace_service_pb2.ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_):
        pass


EXPORTING = """
import sys, types
from workers.session import spans
from workers.session.answer import Outcome
from workers.feed.position import Position

spans.start()
traces = spans.BatchTraces("mail")
traces.read(1_000)
outcome = Outcome(
    Position(b"1-0", 0, 0), Position(b"2-0", 1, 1), [b"2-0"], [], [], [], [], [],
    traces={0: sys.argv[1]},
)
traces.decided(outcome)
traces.committed(outcome)
from opentelemetry import trace
trace.get_tracer_provider().shutdown()
"""


def test_a_collector_gets_the_spans_as_otlp():
    package("opentelemetry.exporter.otlp.proto.http", "pip install 'online-svm[otel]'")
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        server.received = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        given = {
            spans.EXPORTER: "otlp", "OTEL_SERVICE_NAME": "test",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        }  # fmt: skip
        subprocess.run(
            [sys.executable, "-c", EXPORTING, SAMPLED], env=os.environ | given, check=True,
            timeout=120,
        )  # fmt: skip
        server.shutdown()
    ((path, kind, sent),) = server.received
    assert (path, kind) == ("/v1/traces", "application/x-protobuf")
    (resource,) = sent.resource_spans
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert about["service.name"] == "test"
    (scope,) = resource.scope_spans
    assert scope.scope.name == "online_svm"
    by_name = {span.name: span for span in scope.spans}
    assert by_name.keys() == {"online_svm.batch", "read", "decide", "commit"}
    batch = by_name.pop("online_svm.batch")
    assert {span.trace_id.hex() for span in scope.spans} == {SAMPLED[3:35]}
    assert batch.parent_span_id.hex() == SAMPLED[36:52]
    assert {span.parent_span_id for span in by_name.values()} == {batch.span_id}
    assert (by_name["read"].start_time_unix_nano, batch.start_time_unix_nano) == (1_000, 1_000)


def test_a_batch_without_traces_has_a_trace_of_its_own(world, exported):
    traced(world, None, None)
    assert [span.name for span in exported()] == ["read", "decide", "commit", "online_svm.batch"]
    assert exported()[-1].parent is None


def test_without_an_exporter_no_span_is_made(world, exported, monkeypatch):
    monkeypatch.delenv(spans.EXPORTER)
    traced(world, SAMPLED)
    assert exported() == ()
    spans.start()  # needs no package


def test_an_unknown_exporter_is_named(monkeypatch):
    package("opentelemetry.sdk.trace", "pip install 'online-svm[otel]'")
    monkeypatch.setenv(spans.EXPORTER, "zipkin")
    with pytest.raises(BadConfiguration, match="OTEL_TRACES_EXPORTER is 'zipkin'"):
        spans.start()


def test_without_the_extra_the_command_names_it(monkeypatch):
    monkeypatch.setenv(spans.EXPORTER, "otlp")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry", None)
    with pytest.raises(BadConfiguration, match=r"online-svm\[otel\]"):
        spans.start()
