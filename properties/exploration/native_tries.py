"""Writes how a step is tried with all its arguments: what can be said of many calls at once is said of them at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gapless.properties.exploration.loop_text import EACH_CALL, EACH_TAKEN, RANGES, TRY, TRY_ONE
from gapless.properties.exploration.native_bits import TURNED, bits_of
from gapless.traces.replay.kernel_source import Functions, Subtree, deeper, names_in

ENDS = re.compile(r"^( *)return( .*)$", re.MULTILINE)
COUNTED = re.compile(r"    refused\[(\d+)\] \+= 1\n    return 0\n")
QUESTIONS = 8  # of a step up to which all its calls are asked before any is taken
EXACT = "last = cut + 1\n"  # what leaves one call of a run
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Tries(Functions):
    """Functions that try a step with all its arguments, run by run: in a run, the last one grows by one each time.

    A need that comes first and does not look at the arguments is asked once, for all of them; one that compares the
    last with something else says where in a run to begin or to end, and so does one that asks something of all numbers
    up to the last.
    """

    def __init__(self, loads: Callable[[str], str], called: str) -> None:
        super().__init__(loads, called)
        self.before: dict[str, tuple[int, str, bool, str, str, str]] = {}  # what is asked of all runs, and of each

    def guarded(self, code: int, part: Subtree, last: str, *, one_run: bool, numbers: range) -> Subtree:
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
        asked = ""
        if one_run and EXACT not in narrowed:
            asked = self._asked(part, last, numbers)
            part = (asked and self._taken(part)) or part
            asked = asked and f"        every = below(last - first) << (first - CALLS_{code}_FIRST)\n{asked}"
        self.before[f"try_{code}"] = code, last, one_run, guards, narrowed, asked
        return part

    def _taken(self, part: Subtree) -> Subtree | None:
        """What is left to ask of calls of which none is refused; None where all are."""
        if part.yes is None or part.no is None:
            return None if COUNTED.fullmatch(part.text) else part
        yes, no = self._taken(part.yes), self._taken(part.no)
        return self.subtree(part.text, yes, no) if yes and no else yes or no

    @staticmethod
    def _asked(part: Subtree, last: str, numbers: range) -> str:
        """The lines that ask all calls of a run, none for another; no lines where nothing is asked, or not for sure."""
        lines, anything = "", False
        taken, count, pending = ["0"], 0, [(part, "every")]
        while pending:
            one, within = pending.pop()
            if one.yes is None or one.no is None:
                reason = COUNTED.fullmatch(one.text)
                if reason:
                    lines += f"        refused[{reason[1]}] += count_of({within})\n"
                else:
                    taken.append(within)
                continue
            count += 1
            bits = bits_of(one.text, last, numbers)
            if bits is None or count > QUESTIONS:
                return ""
            anything |= last in names_in(one.text)
            lines += f"        is_{count} = {bits}\n"
            lines += f"        yes_{count} = {within} & is_{count}\n        no_{count} = {within} & ~is_{count}\n"
            pending += [(one.yes, f"yes_{count}"), (one.no, f"no_{count}")]
        return f"{lines}        taken = {' | '.join(taken)}\n" if anything else ""

    def write(self, name: str, body: str) -> None:
        """One more function: of calls, where it is what remains of a step."""
        if name not in self.before:
            super().write(name, body)
            return
        code, last, one_run, guards, narrowed, asked = self.before[name]
        own = [one for one in names_in(guards + narrowed + asked + body) if one.startswith("s_")]
        loads = self.loads(" ".join(own))
        given = [one for one in names_in(narrowed + asked) if one.startswith("a_") and one != last]
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
            narrowed=deeper(deeper(narrowed)), asked=asked, body=deeper(deeper(lines)),
            each=EACH_TAKEN.format(code=code) if asked else EACH_CALL,
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
