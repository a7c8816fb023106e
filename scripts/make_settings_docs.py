"""Write docs/settings.md from the models of the settings; --check only compares."""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pydantic_core import PydanticUndefined

from online_svm.config import PredictorConfig
from scripts.generated_page import write_or_check
from workers.cli.options import COMMON, metavar
from workers.config.environment import PROCESS_ENVIRONMENT
from workers.config.retention_settings import RetentionSettings
from workers.config.settings import Limits, WorkerSettings

TARGET = Path(__file__).parents[1] / "docs" / "settings.md"

_INTRODUCTION = """\
# Settings

Made from the models of the settings by `scripts/make_settings_docs.py`; a default is in
parentheses. `online-svm check` prints the settings in force, and where each comes from.

A setting has one name everywhere: `--refit-every` on the command line, `ONLINE_SVM_REFIT_EVERY` in
the environment, and `refit_every` in the file that `--config` names, or in a section
`[feed."sensors-*"]` of it. This is also the order of precedence.

"""

_GROUPS = {
    "What people set first": "`online-svm worker --help` shows these; `--help-all` all.",
    "Predictor": "How answers are computed: fixed for the life of a feed.",
    "Limits of an entry": "What is learned, and the form of answers: fixed, too.",
    "What is kept": "Stored with the feed, like `keep_input` and `retain_bytes`: a start keeps the "
    "values that it does not give. Answers stay the same.",
    "Service": "Each start may have others. Answers stay the same.",
}


def render() -> str:
    """Return the page."""
    groups: dict[str, list[str]] = {title: [] for title in _GROUPS}
    groups["What people set first"] = list(COMMON)
    for name in WorkerSettings.model_fields:
        if name not in COMMON:
            groups[_group(name)].append(name)
    parts = [_INTRODUCTION]
    for title, names in groups.items():
        parts.append(f"## {title}\n\n{_GROUPS[title]}\n\n{_list(names)}\n")
    lines = "".join(f"- `{name}`: {text}\n" for name, text in PROCESS_ENVIRONMENT.items())
    parts.append(f"## Further variables\n\n{lines}")
    return "".join(parts)


def _group(name: str) -> str:
    if name in PredictorConfig.model_fields:
        return "Predictor"
    if name in RetentionSettings.model_fields:
        return "What is kept"
    return "Limits of an entry" if name in Limits.model_fields else "Service"


def _list(names: Iterable[str]) -> str:
    lines = []
    for name in names:
        field = WorkerSettings.model_fields[name]
        choices = metavar(field).strip("<>")
        is_choice = "|" in choices and "VALUE" not in choices
        form = f" ({choices.replace('|', ', ')})" if is_choice else ""
        lines.append(f"- `{name}`{_default(name)}: {field.description or ''}{form}\n")
    return "".join(lines)


def _default(name: str) -> str:
    value = WorkerSettings.model_fields[name].get_default()
    if value in (None, PydanticUndefined, ()):
        return ""
    return f" (`{','.join(value) if isinstance(value, tuple) else value}`)"


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
