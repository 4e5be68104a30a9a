"""The bound for a commit log."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

PLACES = (0, 4, 8, 16, 20, 24, 32)  # two records of four bytes and a blank of eight fill a file of sixteen

BOUND = Bound(
    says="files of 16 bytes, records of 4, two files, times 0 and 1",
    within=lambda s: s.end < 32 and s.newest < 2,
    numbers={
        "position": PLACES,
        "open.position": (0, 16),
        "file_size": (8, 16),
        "append.size": (0, 4),
        "roll.size": (4, 8, 12, 16),
        "claimed": PLACES,
        "to": PLACES,
        "kept": PLACES,
        "time": (0, 1),
        "checkpoint.time": (0, 1, 2),
        "omit.position": (0, 8),
        "since": (0,),
        "until": (0, 8),
        "pause": (999, 1000),
        **dict.fromkeys(("known", "fits", "intact", "sealed", "marked"), FLAG),
    },
    worth={
        "append": lambda a: a.claimed in (a.position, 0) and one_wrong(a.known, a.fits, a.intact, a.sealed),
    },
)

WIDE_PLACES = range(0, 196, 4)
WIDE = replace(
    BOUND,
    says="files of 16 bytes, records of 4 and 8, twelve files, times 0 to 4",
    within=lambda s: s.end < 192 and s.newest < 5,
    numbers={
        **BOUND.numbers,
        **dict.fromkeys(("position", "claimed", "to", "kept"), WIDE_PLACES),
        "open.position": (0, 16, 32),
        "append.size": (0, 4, 8),
        "time": range(5),
        "checkpoint.time": range(6),
    },
)
