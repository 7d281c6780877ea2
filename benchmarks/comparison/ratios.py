"""Statistics of the rounds: medians, spreads, and ratios of each round's pair."""

import statistics

from .suite import OURS


def better(metric, one, other):
    """How many times as good one value is as another; None if that has no meaning."""
    if not metric.higher_is_better:
        one, other = other, one
    if one is None or not other:
        return None
    return one / other


def values_of(result, name, metric):
    """A system's value in each round, in the metric's unit."""
    values = (each.values.get(metric.key) for each in result.rounds[name])
    return [None if value is None else value * metric.factor for value in values]


def ratios_of(result, ours, other, metric):
    """How many times as good ours is as another in each round. A disturbance of a round affects
    both."""
    pairs = zip(values_of(result, ours, metric), values_of(result, other, metric))
    return [better(metric, one, another) for one, another in pairs]


def pairs_of(result):
    """(ours, other) for all pairs that are compared and have figures."""
    systems = [system for system in result.case.systems() if system.name in result.rounds]
    return [
        (ours.name, other.name)
        for ours in systems
        if ours.role == OURS
        for other in systems
        if other.role != OURS and (not other.against or ours.name in other.against)
    ]


def summary(values):
    """(median, spread: half the range) of the numbers in it; (None, None) if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    return statistics.median(known), (max(known) - min(known)) / 2
