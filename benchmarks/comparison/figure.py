"""A figure of a suite: one panel per case, with one bar per system for the case's first metric.

matplotlib draws it. Without matplotlib there is no figure, and nothing else changes.
"""

import importlib.util

from . import ratios, report
from .suite import FLOOR, OURS

PACKAGE = "python3-matplotlib"
COLUMNS = 2
COLORS = {OURS: "#1f6feb", FLOOR: "#8b949e"}
PEER_COLOR = "#d29922"


def available():
    return importlib.util.find_spec("matplotlib") is not None


def png_of(svg):
    return svg.with_suffix(".png")


def _draw_case(axes, result):
    metric = result.case.metrics[0]
    names, medians, spans, colors = [], [], [], []
    for system in result.case.systems():
        if system.name not in result.rounds:
            continue
        values = [v for v in ratios.values_of(result, system.name, metric) if v is not None]
        if not values:
            continue
        median, _ = ratios.summary(values)
        names.append(system.name)
        medians.append(median)
        spans.append((median - min(values), max(values) - median))
        colors.append(COLORS.get(system.role, PEER_COLOR))
    places = range(len(names))
    axes.barh(places, medians, color=colors, xerr=list(zip(*spans)) or None, ecolor="#444444")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_title(result.case.title, fontsize=10, loc="left")
    direction = "more" if metric.higher_is_better else "less"
    axes.set_xlabel(f"{metric.heading()} ({direction} is better)", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    most = max((median + above for median, (_, above) in zip(medians, spans)), default=1)
    axes.set_xlim(0, most * 1.2)
    for place, median, (_, above) in zip(places, medians, spans):
        axes.text(
            median + above + most * 0.02, place, report.text_of(median), va="center", fontsize=8
        )


def draw(title, results, paths):
    """Writes the figure to each of `paths`, .svg or .png. Equal figures make equal files."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(results))
    lines = -(-len(results) // columns)
    most = max(len(result.case.systems()) for result in results)
    height = lines * (0.9 + 0.28 * most) + 0.5
    with matplotlib.rc_context({"svg.hashsalt": "batchrpc", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(5.6 * columns, height), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontsize=11)
        panels = figure.subplots(lines, columns, squeeze=False).flat
        for axes, result in zip(panels, results):
            _draw_case(axes, result)
        for axes in list(figure.axes)[len(results) :]:
            axes.set_visible(False)
        for path in paths:
            when_or_by = "Date" if path.suffix == ".svg" else "Software"
            figure.savefig(path, dpi=120, metadata={when_or_by: None})
