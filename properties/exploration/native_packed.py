"""What a search's text needs of how states are packed: its constants, and the functions that depend on them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapless.properties.exploration.loop_text import FORGET, FORGET_WORD
from gapless.properties.exploration.native_bits import BELOW, compared_maps, equal_in_map
from gapless.properties.exploration.packing import LINE, OUT, Packing
from gapless.properties.exploration.table_text import HASH, HASH_WORD, SLOTS
from gapless.spec.catalog import Spec
from gapless.traces.replay.kernel_source import found_in

PLACED = "WORD", "SHIFT", "LEAST", "MASK"


def packed(text: str, spec: Spec, packing: Packing, known: Mapping[str, int]) -> str:
    """The whole text for states that are packed in one way; `known`: what else its constants are."""
    words = range(packing.words)
    known = {**known, "WORDS": packing.words, "ORIGIN": packing.origin, "WIDTH": packing.width}
    known |= {"LINE": LINE if packing.words == 1 else 1, "OUT": OUT}
    for field, (word, shift, least, mask) in enumerate(packing.rows.tolist()):
        known |= {f"F{field}_{name}": value for name, value in zip(PLACED, (word, shift, least, mask), strict=True)}
    each = HASH.format(
        more="".join(HASH_WORD.format(word=word) for word in words if word),
        same=" and ".join(f"row[{word}] == new[{word}]" for word in words),
        copied="".join(f"    new[{word}] = row[{word}]\n" for word in words),
    )
    each += SLOTS[packing.words == 1] + BELOW
    asked = {(int(one), int(count)) for one, count in re.findall(r"equal_(\d+)_(\d+)\(", text)}
    compared = sorted(set(re.findall(r"(compared_(\d+)_(\d+)_[a-z]+_(\d+))\(", text)))
    for _, *numbers, count in compared:
        asked |= {(int(number), int(count)) for number in numbers}
    for number, count in sorted(asked):
        field = len(spec.scalars) + number
        default = int(getattr(spec.initial, spec.maps[number]).default)
        each += equal_in_map(number, field, count, default, packing.rows[field].tolist(), packing.width)
    for name, one, other, _ in compared:
        places = [packing.rows[len(spec.scalars) + int(number)].tolist() for number in (one, other)]
        each += compared_maps(name, places, packing.width)
    blank = packing.packed(
        [int(getattr(spec.initial, name)) for name in spec.scalars],
        [getattr(spec.initial, name).cleared().__getitem__ for name in spec.maps],
    )
    for number in range(len(spec.maps)):
        bit, shift, _, _ = packing.rows[len(spec.scalars) + number].tolist()
        end = bit + (packing.width << shift)
        lines = ""
        for word in range(bit // 64, (end + 63) // 64):
            low, high = max(bit, 64 * word) - 64 * word, min(end, 64 * word + 64) - 64 * word
            lines += FORGET_WORD.format(low=64 * word, word=word, ones=(1 << high) - (1 << low), blank=blank[word])
        each += FORGET.format(number=number, field=len(spec.scalars) + number, words=lines)
    return _without_the_unused("".join(f"{name} = {value}\n" for name, value in known.items()), each + text)


def _without_the_unused(head: str, text: str) -> str:
    """The functions that somebody calls: the others would be compiled for nothing."""
    pieces = re.split(r"\n\n\n(?=@|def )", text)
    named = {match[1]: piece for piece in pieces if (match := re.search(r"^def (\w+)", piece, re.MULTILINE))}
    wanted, pending = set[str](), [name for name, piece in named.items() if piece.lstrip().startswith("@exported")]
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += [one for one in found_in(r"\b(\w+)\(", named[name]) if one in named]
    return head + "".join(f"\n\n{piece}\n" for name, piece in named.items() if name in wanted)
