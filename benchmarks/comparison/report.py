"""The results as a table in the terminal, as Markdown and as JSON, in one form for all suites."""

import shlex

from . import ratios
from .suite import OURS

EXPLAINED = (
    "Medians of {rounds} rounds; ± is half the range of the rounds. The columns “batchrpc is” say"
    " how many times better batchrpc is than the row's system: the median of the rounds' ratios."
)


def text_of(value):
    """A number with three or four significant digits."""
    if value is None:
        return ""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 else 3}f}"


def _value_cell(values):
    median, spread = ratios.summary(values)
    if median is None:
        return ""
    text = text_of(median)
    if len(values) > 1 and median:
        text += f" ± {spread / abs(median) * 100:.0f} %"
    return text


def _ratio_cell(values):
    median, spread = ratios.summary(values)
    if median is None:
        return ""
    decimals = 1 if median >= 10 else 2
    text = f"{median:.{decimals}f} ×"
    if len(values) > 1:
        text += f" ± {spread:.{decimals}f}"
    return text


def table(result):
    """(headings, rows). A row is a system's cells, or its name and why it has no figures."""
    case = result.case
    pairs = ratios.pairs_of(result)
    compared = list(dict.fromkeys(ours for ours, _ in pairs))
    headings, columns = ["system"], []
    for metric in case.metrics:
        headings.append(metric.heading())

        def value(name, metric=metric):
            return _value_cell(ratios.values_of(result, name, metric))

        columns.append(value)
        for ours in compared if metric.compared else ():
            headings.append(f"{ours} is")

            def ratio(name, metric=metric, ours=ours):
                if (ours, name) not in pairs:
                    return ""
                return _ratio_cell(ratios.ratios_of(result, ours, name, metric))

            columns.append(ratio)
    rows = []
    for system in case.systems():
        name = system.name
        if name in result.rounds:
            rows.append([name, *(column(name) for column in columns)])
        else:
            rows.append([name, why_absent(result.absent[name])])
    return headings, rows


def why_absent(absence):
    if absence.install:
        return f"not measured: {absence.reason} ({absence.install})"
    return f"failed: {absence.reason}"


def terminal(result):
    """A table with columns as wide as necessary; numbers are aligned right."""
    headings, rows = table(result)
    whole = [row for row in rows if len(row) == len(headings) and len(row) > 2]
    widths = [max(len(row[i]) for row in [headings, *whole]) for i in range(len(headings))]
    widths[0] = max(len(row[0]) for row in [headings, *rows])

    def line(row):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "  ".join(cells).rstrip()

    lines = [result.case.title, line(headings)]
    lines += [line(row) if row in whole else f"{row[0].ljust(widths[0])}  {row[1]}" for row in rows]
    return "\n".join(lines) + "\n"


def markdown(result):
    headings, rows = table(result)
    lines = [f"**{result.case.title}**", "", _markdown_line(headings)]
    lines.append(_markdown_line(["---"] + ["---:"] * (len(headings) - 1)))
    for row in rows:
        lines.append(_markdown_line(row + [""] * (len(headings) - len(row))))
    return "\n".join(lines) + "\n"


def _markdown_line(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def section(results, machine, command, rounds, figure=None):
    """A suite's results as Markdown: method and machine, the figure, the tables."""
    parts = [f"`{command}`. {machine}", EXPLAINED.format(rounds=rounds)]
    if figure:
        parts.append(f"![Medians of each system]({figure})")
    parts += [markdown(result).strip() for result in results]
    return "\n\n".join(parts) + "\n"


def document(suite, section_text):
    """A complete section with a heading."""
    return f"## {suite.title}\n\n{suite.about.strip()}\n\n{section_text}"


def to_json(suite, results):
    return {
        "suite": suite.name,
        "title": suite.title,
        "cases": [_case_to_json(result) for result in results],
    }


def _case_to_json(result):
    case = result.case
    return {
        "case": case.title,
        "metrics": [
            {
                "key": metric.key,
                "name": metric.name,
                "unit": metric.unit,
                "higher_is_better": metric.higher_is_better,
            }
            for metric in case.metrics
        ],
        "systems": [_system_to_json(result, system) for system in case.systems()],
    }


def _system_to_json(result, system):
    case, name = result.case, system.name
    job = next(job for job in case.jobs if system in job.systems)
    entry = {
        "system": name,
        "role": system.role,
        "commands": [shlex.join(command) for command in job.commands],
    }
    if name not in result.rounds:
        absence = result.absent[name]
        entry["cannot_run"] = absence.reason
        if absence.install:
            entry["install"] = absence.install
        return entry
    entry["version"] = result.rounds[name][-1].version
    entry["values"] = {
        metric.key: _numbers(ratios.values_of(result, name, metric)) for metric in case.metrics
    }
    if system.role != OURS:
        entry["ours_is"] = {
            ours: {
                metric.key: _numbers(ratios.ratios_of(result, ours, name, metric))
                for metric in case.metrics
            }
            for ours, other in ratios.pairs_of(result)
            if other == name
        }
    return entry


def _numbers(values):
    median, spread = ratios.summary(values)
    return {"median": median, "spread": spread, "rounds": values}
