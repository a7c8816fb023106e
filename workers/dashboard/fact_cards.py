"""Cards of the facts of a feed, and of its settings."""

import json
from collections.abc import Sequence

from typing_extensions import override

from workers.dashboard.card import TextCard
from workers.dashboard.section import Section
from workers.dashboard.shown_feed import Excerpt
from workers.reading.answers import as_object


class FactsCard(TextCard):
    """The facts of a feed, in the order of `status`."""

    title = "Facts"
    words = (
        "What is known of the answers at the end of the time shown. In brackets: 95 % intervals."
    )
    section = "facts"
    is_wide = True

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        rows = [[fact.name, fact.sentence] for fact in excerpt.facts()]
        if not rows:
            return "Nothing is known yet: no answer and no report is kept."
        return [Section((), ("<", "<<"), rows)]


class SettingsCard(TextCard):
    """The settings of a feed."""

    title = "Settings"
    words = "The settings that decide the answers, with those that the worker may change."
    section = "the-live-page"

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        items = [
            f"{group}.{name} = {json.dumps(value, ensure_ascii=False)}"
            for group, values in excerpt.settings.items()
            for name, value in as_object(values).items()
            if value is not None
        ]
        return [Section(items)] if items else "This source holds no settings."
