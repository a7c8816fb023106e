import structlog

from workers.cli import logs


def lines(capsys, *events):
    logs.configure()
    try:
        for event, values in events:
            structlog.get_logger().info(event, **values)
    finally:
        structlog.reset_defaults()
    return capsys.readouterr().err.splitlines()


def test_a_log_line_goes_to_standard_error_with_time_and_level(capsys):
    (line,) = lines(capsys, ("at work", {"epoch": 3}))
    assert line.startswith("timestamp=")
    assert 'level=info event="at work" epoch=3' in line


def test_a_value_cannot_forge_another_line(capsys):
    hostile = 'x\n2026 level=error event="forged"\x1b[2J\u2028'
    found = lines(capsys, ("rejected", {"reason": hostile, "raw": b"\xff\n"}))
    assert len(found) == 1
    assert found[0].isprintable()


def test_a_value_is_shortened(capsys):
    (line,) = lines(capsys, ("rejected", {"reason": "a" * 1_000_000}))
    assert len(line) < 2 * logs.LONGEST
