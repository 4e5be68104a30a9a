"""Writes how a step is tried with all its arguments: what can be said of many calls at once is said of them at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gapless.properties.exploration.loop_text import RANGES, TRY, TRY_ONE
from gapless.traces.replay.kernel_source import Functions, Subtree, deeper, names_in

ENDS = re.compile(r"^( *)return( .*)$", re.MULTILINE)
COUNTED = re.compile(r"    refused\[(\d+)\] \+= 1\n    return 0\n")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Tries(Functions):
    """Functions that try a step with all its arguments, run by run: in a run, the last one grows by one each time.

    A need that comes first and does not look at the arguments is asked once, for all of them; one that compares the
    last with something else says where in a run to begin or to end, and so does one that asks something of all numbers
    up to the last.
    """

    def __init__(self, loads: Callable[[str], str], called: str) -> None:
        super().__init__(loads, called)
        self.before: dict[str, tuple[int, str, bool, str, str]] = {}  # what is asked of all runs, and of each

    def guarded(self, code: int, part: Subtree, last: str, *, one_run: bool) -> Subtree:
        """What is left of a step's tree to be asked of every call."""
        guards = narrowed = ""
        while part.yes is not None and part.no is not None:
            refused, kept = (part.yes, part.no) if COUNTED.fullmatch(part.yes.text) else (part.no, part.yes)
            reason = COUNTED.fullmatch(refused.text)
            if not reason:
                break
            arguments = [one for one in names_in(part.text) if one.startswith("a_")]
            outcome = f"{'not ' if refused is part.no else ''}{part.text}"
            counter = f"refused[{reason[1]}]"
            if not arguments and not narrowed:
                guards += (
                    f"    if {outcome}:\n        {counter} += CALLS_{code}_END - CALLS_{code}_FIRST\n        return 0\n"
                )
            elif last not in arguments:
                narrowed += f"if {outcome}:\n    {counter} += last - first\n    continue\n"
            elif lines := _range(part.text, last, counter, wanted=refused is part.no):
                narrowed += lines
            else:
                break
            part = kept
        self.before[f"try_{code}"] = code, last, one_run, guards, narrowed
        return part

    def write(self, name: str, body: str) -> None:
        """One more function: of calls, where it is what remains of a step."""
        if name not in self.before:
            super().write(name, body)
            return
        code, last, one_run, guards, narrowed = self.before[name]
        own = [one for one in names_in(guards + narrowed + body) if one.startswith("s_")]
        loads = self.loads(" ".join(own))
        given = [one for one in names_in(narrowed) if one.startswith("a_") and one != last]
        if given:
            narrowed = (
                "e = first\n"
                + "".join(line[4:] for line in self.loads(" ".join(given)).splitlines(keepends=True))
                + narrowed
            )
        used = [one for one in names_in(body) if one.startswith("a_")]
        lines = self.loads(" ".join(one for one in used if one != last)) + body
        if last in used:
            lines = f"    {last} = e - low\n{lines}"
        lines = ENDS.sub(
            lambda end: (f"{end[1]}{end[2].strip()}\n" if "(" in end[2] else "") + f"{end[1]}continue", lines
        )
        if one_run:
            loads, guards = deeper(loads), deeper(guards)
        text = (TRY_ONE if one_run else TRY).format(
            name=name, called=f"runs, {self.called.removeprefix('e, ')}", loads=loads, guards=guards, code=code,
            narrowed=deeper(deeper(narrowed)), body=deeper(deeper(lines)),
        )  # fmt: skip
        self.written.append(text)


def _range(question: str, last: str, counter: str, *, wanted: bool) -> str:
    """The lines that leave out of a run what a comparison of the last argument refuses; none if it is none."""
    quantified = re.fullmatch(r"holds_(\d+)\((.*)\)", question)
    if quantified:
        given = [ast.unparse(one) for one in ast.parse(question, mode="eval").body.args]  # type: ignore[attr-defined]
        if not wanted or given[1] != last or any(last in names_in(one) for one in (given[0], *given[2:])):
            return ""
        up_to = f"until_{quantified[1]}({given[0]}, max({given[0]}, last - low - 1), {', '.join(given[2:])})"
        return RANGES["<="].format(at=f"low + {up_to}", counter=counter)
    left, right = (re.fullmatch(pattern, question) for pattern in (
        rf"\({last} (<=|<|==|>=|>) (.+)\)", rf"\((.+) (<=|<|==|>=|>) {last}\)",
    ))  # fmt: skip
    if left:
        sign, bound = left[1], left[2]
    elif right:
        sign, bound = TURNED[right[2]], right[1]
    else:
        return ""
    if last in names_in(bound) or not (wanted or sign in NEGATED):
        return ""
    sign = sign if wanted else NEGATED[sign]
    return RANGES[sign].format(at=f"low + {bound}", counter=counter)
