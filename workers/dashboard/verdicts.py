"""The verdict on a feed as HTML: a mark and a colour, the sentence, and what to do."""

from workers.dashboard.text import safe
from workers.reading.incidents import Incident
from workers.reading.verdict import Level, Verdict, incident_sentence

_MARKS: dict[Level, str] = {"bad": "✕", "care": "!", "wait": "…", "well": "✓"}
"""A colour is never the only sign."""

_MOST = 500  # characters


def marked(verdict: Verdict) -> str:
    """Return the sentence with its mark."""
    mark = f'<span class="mark" aria-hidden="true">{_MARKS[verdict.level]}</span>'
    return f'<span class="verdict-{verdict.level}">{mark} {safe(verdict.sentence, _MOST)}</span>'


def banner(verdict: Verdict) -> str:
    """Return the verdict as the head of a page.

    Examples
    --------
    >>> banner(Verdict("well", "Probabilities hold")).count("Probabilities hold.")
    1
    """
    advice = f"<p>{safe(verdict.advice, _MOST)}</p>" if verdict.advice else ""
    mark = f'<span class="mark" aria-hidden="true">{_MARKS[verdict.level]}</span>'
    told = f"<p><b>{mark} {safe(verdict.sentence, _MOST)}.</b></p>"
    return f'<div class="verdict is-{verdict.level}">{told}{advice}</div>'


def incident_row(incident: Incident) -> list[str]:
    """Return the cells of an incident: since and until which example, its alarms, what it says."""
    until = "open" if incident.until is None else f"{incident.until:,}"
    kinds = ", ".join(sorted(incident.kinds))
    kind = "bad" if incident.until is None else "soft"
    return [
        f"{incident.since:,}", f'<span class="{kind}">{until}</span>', f"{len(incident.parts):,}",
        safe(kinds), safe(incident_sentence(incident), _MOST),
    ]  # fmt: skip
