"""What the scripts share: their progress, their errors and the names that options give."""

import time

import pytest
import typer
from world import wait_until

from scripts import command_line
from scripts.command_line import main, stage_progress, tell
from workers.errors import BadConfiguration


def test_a_stage_is_told_once_it_has_lasted_and_a_short_one_never(monkeypatch):
    monkeypatch.setattr(command_line, "STAGE_SECONDS", 1.0)
    told = []
    monkeypatch.setattr(command_line, "note", told.append)
    tell("nobody listens")
    with stage_progress():
        tell("short")
        tell("long")
        wait_until(lambda: told)
        tell("cut off by the end")
    time.sleep(1.5)
    assert told == ["long"]


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (BadConfiguration("--rows x:\n  unknown"), 2, "bench: --rows x: unknown\n"),
        (KeyboardInterrupt(), 130, ""),
        (None, 0, ""),
    ],
)
def test_a_script_ends_with_the_code_of_its_error_in_one_line(capsys, raised, code, told):
    app = typer.Typer()

    @app.command()
    def fails() -> None:
        if raised is not None:
            raise raised

    with pytest.raises(SystemExit) as ended:
        main(app, "bench", [])
    assert ended.value.code == code
    assert capsys.readouterr().err == told
