"""Tabs of the page: one panel of cards is shown at a time, chosen by click or by arrow keys.

The browser does it alone, by `assets/tabs.js`: the server draws all panels. The roles are those of
the pattern "tabs" of the ARIA authoring guide. A tab cannot name its panel by ID, for each part of
Bokeh has a tree of its own; the panel has the name of its tab instead.
"""

from collections.abc import Sequence

from bokeh.models import Column, UIElement

from workers.dashboard.card import grid, markup
from workers.dashboard.text import safe


class Tabs:
    """A list of tabs, and a panel for each.

    Parameters
    ----------
    names : sequence of str
    chosen : str
        The one that is shown; the first where it is none of the names.

    Attributes
    ----------
    parts : list of bokeh.models.UIElement
        The list, and the panels.
    """

    def __init__(self, names: Sequence[str], chosen: str) -> None:
        shown = chosen if chosen in names else names[0]
        buttons = "".join(_tab(name, name == shown) for name in names)
        told = f'<div role="tablist" class="tabs" aria-label="More of this feed">{buttons}</div>'
        self._cards = {name: grid("28rem") for name in names}
        panels = [_panel(name, self._cards[name], name == shown) for name in names]
        self.parts: list[UIElement] = [markup(told), *panels]

    def fill(self, name: str, children: Sequence[UIElement]) -> None:
        """Show these in a panel."""
        self._cards[name].children = list(children)


def _tab(name: str, is_chosen: bool) -> str:
    chosen, stop = ("true", 0) if is_chosen else ("false", -1)
    return (
        f'<button type="button" role="tab" data-tab="{safe(name)}" aria-selected="{chosen}" '
        f'tabindex="{stop}">{safe(name.capitalize())}</button>'
    )


def _panel(name: str, cards: UIElement, is_chosen: bool) -> Column:
    """Return a panel; a grid would be shown whether or not it is visible."""
    attributes = {"role": "tabpanel", "aria-label": name.capitalize(), "tabindex": "0"}
    return Column(
        children=[cards],
        name=f"tab {name}",
        visible=is_chosen,
        sizing_mode="stretch_width",
        html_attributes=attributes,
    )
