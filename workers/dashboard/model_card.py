"""The model card of a feed: one page of facts from its streams, as Markdown and as HTML.

It follows the questions of Mitchell et al. (2019), "Model cards for model reporting", with the
cards of the page that are text. Nothing on it is written by hand except notes: a note that begins
with `purpose:` states what the feed is for.
"""

from collections.abc import Mapping, Sequence

from workers.dashboard.answer_cards import FeaturesCard, PartsCard
from workers.dashboard.card import PARTS, TextCard
from workers.dashboard.class_cards import ActionsCard, DetectionCard
from workers.dashboard.fact_cards import FactsCard, SettingsCard
from workers.dashboard.handlers import asset
from workers.dashboard.monitor_cards import AlarmsCard
from workers.dashboard.section import Section
from workers.dashboard.shown_feed import Excerpt
from workers.dashboard.text import safe

CARDS: Sequence[type[TextCard]] = (
    FactsCard, DetectionCard, PartsCard, ActionsCard, FeaturesCard, AlarmsCard, SettingsCard,
)  # fmt: skip
"""Cards of the page that the model card has, in its order."""


def model_card(past: Excerpt) -> dict[str, Sequence[Section]]:
    """Return the sections of the model card by title."""
    verdict = past.trust()
    found: dict[str, Sequence[Section]] = {
        "Verdict": [Section([f"{verdict.sentence}. {verdict.advice}".strip()])]
    }
    for card in CARDS:
        sections = card.sections(past)
        found[card.title] = [Section([sections])] if isinstance(sections, str) else sections
    return found


def as_markdown(title: str, card: Mapping[str, Sequence[Section]]) -> str:
    """Return a card as Markdown."""
    lines = [line.replace("- ", "# ", 1) for line in Section([title]).markdown()]
    for heading, sections in card.items():
        lines += ["", f"## {heading}"]
        for section in sections:
            lines += ["", *section.markdown()]
    return "\n".join(lines) + "\n"


def as_html(title: str, card: Mapping[str, Sequence[Section]]) -> str:
    """Return a card as one HTML file without scripts."""
    style = f"<style>{PARTS}{asset('page.css')}{asset('card.css')}</style>"
    parts = [
        '<!DOCTYPE html>\n<html lang="en" data-theme="auto"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title, 200)}</title>{style}</head><body><main><h1>{safe(title, 200)}</h1>"
    ]
    for heading, sections in card.items():
        parts.append(f"<h2>{heading}</h2>" + "".join(section.html() for section in sections))
    return "\n".join(parts) + "\n</main></body></html>\n"
