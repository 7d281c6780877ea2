"""The generated parts of a page. Each suite has one between two markers, replaced on its own."""

from .suite import UsageError


def markers(suite_name):
    return (
        f"<!-- benchmarks/compare {suite_name}: from here on written by it -->",
        f"<!-- benchmarks/compare {suite_name}: to here -->",
    )


def _places(text, suite_name):
    begin, end = markers(suite_name)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise UsageError(f"--docs: the page needs these two lines, once each: {begin} and {end}")
    return text.index(begin) + len(begin), text.index(end)


def check(path, suite_names):
    """Raises UsageError if the page lacks the markers of these suites."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"--docs: cannot read {path}: {reason}") from None
    for name in suite_names:
        _places(text, name)


def replace(text, suite_name, section):
    start, stop = _places(text, suite_name)
    return f"{text[:start]}\n\n{section.strip()}\n\n{text[stop:]}"


def write(path, suite_name, section):
    """Reads the page again, so that other changes made in the meantime stay."""
    path.write_text(
        replace(path.read_text(encoding="utf-8"), suite_name, section), encoding="utf-8"
    )
