"""`export`: which options go together. The table: `test_answers_shown.py`; archives: `history/`."""

import pytest


@pytest.mark.parametrize(
    "of_the_table", [("table.csv",), ("--features",), ("--overwrite",), ("--raw",)]
)
def test_parquet_files_take_no_option_of_the_table(run_command, tmp_path, of_the_table):
    code, _, err = run_command("export", "f", *of_the_table, "--to", tmp_path / "cold")
    assert (code, "are of the CSV table: leave them out, or --to" in err) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("of_files", ["--follow", "--take-group", "--accept-gap", "--json"])
def test_the_table_takes_no_option_of_parquet_files(run_command, of_files):
    code, out, err = run_command("export", "f", of_files)
    assert (code, out, "are of Parquet files: give --to DIR" in err) == (2, "", True)
