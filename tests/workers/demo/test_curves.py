"""The picture of cumulative curves."""

from matplotlib.figure import Figure

from workers.demo.curves import draw_curves


def report(n):
    own = {"accuracy": 0.8, "lower": 0.7, "probability": 0.75, "upper": 0.85}
    venn = {"predicted": own, "log_loss": 0.5}
    platt = {"predicted": own | {"lower": None, "upper": None}, "log_loss": 0.25}
    return {"n": n, "scored": n, "headline": venn, "venn": venn, "maps": {"platt": platt}}


def shown_in(axes):
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.texts]


def test_each_kind_of_line_is_in_a_legend(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    draw_curves({"f": [report(25), report(50)]}, tmp_path / "curves.png")
    _, venn, platt = (shown_in(axes) for axes in drawn[0].axes)
    assert venn == ["mean lower and upper probability", "accuracy"]
    assert platt == ["mean probability", "accuracy"]
