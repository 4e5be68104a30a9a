"""The bound for a client's permits."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound, most, untouched

BOUND = Bound(
    says="two permits, three requests, a timeout of two or none that is known, two ticks, one cut, one answer each",
    within=lambda s: s.clock <= 2 and s.cuts <= 1 and most(s.answers) <= 1 and (s.permits == 2 or untouched(s)),
    numbers={
        "permits": (0, 2),
        "timeout": (0, 2),
        "number": (0, 1, 2),
        "time": (0, 1, 2, 3),
        "within": FLAG,
    },
)

WITH_DEVIATIONS = replace(
    BOUND,
    says="two permits, three requests, a timeout of one, one tick, one cut, one answer each",
    within=lambda s: s.clock <= 1 and BOUND.within(s),
    numbers={**BOUND.numbers, "timeout": (1,), "time": (0, 1, 2)},
)

WIDE = replace(
    BOUND,
    says="two permits, five requests, a timeout of two or none that is known, three ticks, one cut, one answer each",
    within=lambda s: s.clock <= 3 and s.cuts <= 1 and most(s.answers) <= 1 and (s.permits == 2 or untouched(s)),
    numbers={**BOUND.numbers, "number": range(5), "time": range(5)},
)
