"""Cut anywhere: what is judged piece by piece is judged as a whole.

A piece of a trace is replayed from the state that its first event claims, without what came before. That is right if
the claim leaves nothing out that the rest of the trace can tell. So for each spec whose traces are cut there is a
relation, *the piece knows what the rest can tell*, between the state of the whole and that of the piece. A claim has
it; and of every step that is taken in pieces two things are proved: both states accept it or both refuse it, and the
relation holds again behind it. By induction over the events, the piece ends as the whole does.

What is left is about folding and fitting, whatever the spec, and is proved of any step function: replaying two parts
one after the other is replaying both at once, and joining pieces is associative, so that splits may be joined in any
grouping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import z3

from gapless.properties.proof import symbolic
from gapless.properties.proof.induction import Obligation, Question, Theory
from gapless.properties.proof.symbolic import State, Unknown
from gapless.properties.proof.terms.boolean_terms import all_of, any_of, negated
from gapless.spec.catalog import SPECS, Spec

LAWS = "joining"
"""The name of the laws of every spec in the ledger."""


@dataclass(frozen=True)
class CutPlan:
    """The way to cut traces of a spec: steps taken in pieces, and knowledge of a piece about the whole.

    `knows(whole, piece, number)` holds for every number · `where(whole)`: in which states the whole is cut ·
    `claim(empty, whole)`: the state that the piece behind the cut begins with, made of an empty one ·
    `given(whole, piece, *arguments)`: by step, what the files say of its arguments behind a cut.
    """

    spec: str
    steps: tuple[str, ...]
    knows: Callable[[State, State, Any], Any]
    where: Callable[[State], Any]
    claim: Callable[[State, State], State]
    given: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def _of_log(whole: State, piece: State, _number: Any) -> Any:
    """The end and the begin of the log, its safe part, and the time: the log looks back no further."""
    return (
        whole.file_size == piece.file_size
        and whole.base == piece.base
        and whole.end == piece.end
        and whole.clock == piece.clock
        and piece.clock <= piece.newest
        and piece.newest <= whole.newest
    )


def _of_queue(whole: State, piece: State, number: Any) -> Any:
    """Its ends, and every message from where the piece begins; what lies before is indexed already."""
    return (
        whole.start == piece.start
        and whole.end == piece.end
        and whole.indexed == piece.indexed
        and piece.first <= piece.indexed
        and (
            number < piece.first
            or (
                whole.positions[number] == piece.positions[number]
                and whole.sizes[number] == piece.sizes[number]
                and whole.tags[number] == piece.tags[number]
            )
        )
    )


def _of_cursors(whole: State, piece: State, number: Any) -> Any:
    """Both queues' ends and cursors, and what became of every half and op that no cursor has passed."""
    return (
        whole.half_end == piece.half_end
        and whole.half_cursor == piece.half_cursor
        and whole.op_end == piece.op_end
        and whole.op_cursor == piece.op_cursor
        and whole.expired == piece.expired
        and (number < piece.half_cursor or whole.how[number] == piece.how[number])
        and (
            number < piece.op_cursor
            or (
                whole.consumed[number] == piece.consumed[number]
                and (piece.op_end <= number or whole.reaches[number] == piece.reaches[number])
            )
        )
    )


def _of_partition(whole: State, piece: State, _number: Any) -> Any:
    """Its offsets, its epoch and its segment; of both indexes, whatever an entry that comes next is compared with."""
    return (
        whole.opened == piece.opened
        and whole.compacted == piece.compacted
        and whole.start == piece.start
        and whole.stable == piece.stable
        and whole.high == piece.high
        and whole.end == piece.end
        and whole.cleaned == piece.cleaned
        and whole.flushed == piece.flushed
        and piece.saved <= whole.saved
        and whole.epoch == piece.epoch
        and whole.since == piece.since
        and whole.segment == piece.segment
        and whole.reached == piece.reached
        and whole.indexed == piece.indexed
        and whole.index_reached <= piece.index_reached
        and whole.newest == piece.newest
        and whole.timed == piece.timed
        and (
            (whole.first == piece.first and whole.newer == piece.newer)
            or (whole.first < whole.indexed and piece.first < whole.indexed and whole.timed == whole.newest)
        )
    )


def _points_behind_the_cut(whole: State, piece: State, _offset: Any, position: Any, _begins: Any) -> Any:
    """A log is cut behind all that one entry of its index stands for."""
    return whole.index_reached == piece.index_reached or piece.index_reached <= position


CUTS = (
    CutPlan(
        "partition",
        (
            "lead",
            "append",
            "index",
            "index_time",
            "seal",
            "roll",
            "flush",
            "save",
            "raise_watermark",
            "delete",
            "clean",
        ),
        _of_partition,
        where=lambda whole: (
            whole.opened
            and whole.indexed == whole.end
            and whole.timed == whole.newest
            and whole.stable == whole.start
            and whole.high == whole.start
            and whole.cleaned == whole.start
            and whole.flushed == whole.start
            and whole.start <= whole.saved
        ),
        claim=lambda empty, whole: replace(
            empty,
            opened=True,
            compacted=whole.compacted,
            start=whole.start,
            stable=whole.start,
            high=whole.start,
            end=whole.end,
            cleaned=whole.start,
            flushed=whole.start,
            saved=whole.start,
            epoch=whole.epoch,
            since=whole.since,
            segment=whole.segment,
            reached=whole.reached,
            indexed=whole.end,
            index_reached=whole.reached,
            newest=whole.newest,
            timed=whole.timed,
        ),
        given={"index": _points_behind_the_cut},
    ),
    CutPlan(
        "log",
        ("append", "roll"),
        _of_log,
        where=lambda _whole: True,
        claim=lambda empty, whole: replace(
            empty, file_size=whole.file_size, base=whole.base, end=whole.end, clock=whole.clock, newest=whole.clock
        ),
    ),
    CutPlan(
        "queue",
        ("append", "index", "find_file"),
        _of_queue,
        where=lambda whole: whole.indexed == whole.end,
        claim=lambda empty, whole: replace(empty, start=whole.start, first=whole.end, indexed=whole.end, end=whole.end),
    ),
    CutPlan(
        "checkpoint",
        ("half", "resolve", "advance", "op", "consume_op", "advance_ops"),
        _of_cursors,
        where=lambda whole: whole.half_cursor == whole.half_end and whole.op_cursor == whole.op_end,
        claim=lambda empty, whole: replace(
            empty,
            expired=whole.expired,
            first=whole.half_end,
            half_flushed=whole.half_end,
            half_end=whole.half_end,
            half_cursor=whole.half_end,
            op_end=whole.op_end,
            op_cursor=whole.op_end,
        ),
    ),
)


def obligations(spec: Spec) -> Iterator[Obligation]:
    """That pieces of this spec's traces are judged as the whole is."""
    for cut in CUTS:
        if cut.spec == spec.name:
            yield from of_cut(spec, cut)


def of_cut(spec: Spec, cut: CutPlan) -> Iterator[Obligation]:
    """All that must be shown of one way to cut."""

    def one(step: str, ask: Callable[[Theory], Question]) -> Obligation:
        return Obligation(spec, "a_piece_is_judged_as_the_whole", step, ask)

    yield one("its claim knows enough", partial(_knows_too_little, cut=cut))
    for name in cut.steps:
        step = spec.actions[name]
        yield one(f"{name} gets one answer", partial(_other_answer, cut=cut, step=step))
        yield one(f"{name} keeps what is known", partial(_forgets, cut=cut, step=step))


def _knows_too_little(theory: Theory, cut: CutPlan) -> Question:
    """A whole that is cut, and a claim that does not know what the rest can tell."""
    whole, empty = theory.before, symbolic.symbolic(theory.spec.initial)
    number = Unknown(z3.Int("some number"))
    with symbolic.read(theory.reading):
        here = symbolic.formula(cut.where, whole)
        enough = symbolic.formula(cut.knows, whole, cut.claim(empty, whole), number)
    return Question((*theory.known, here, negated(enough)), whole, {}, {"number": number})


class _Both:
    """The whole and a piece of it, which knows as much as the rest can tell, and nothing else."""

    def __init__(self, theory: Theory, cut: CutPlan) -> None:
        self.theory = theory
        self.cut = cut
        self.whole = theory.before
        self.piece = symbolic.unknown_state(theory.spec.initial, "piece ")
        with symbolic.read(theory.reading):
            holds = [theory.reading.everywhere(i, self.piece) for i in theory.invariants]
            knows = theory.reading.everywhere(cut.knows, self.whole, self.piece)
        self.known = (*theory.known, *holds, knows)

    def given(self, step: Callable[..., State], args: dict[str, Unknown]) -> list[Any]:
        """The knowledge about arguments behind a cut."""
        says = self.cut.given.get(step.__name__)
        if says is None:
            return []
        with symbolic.read(self.theory.reading):
            return [symbolic.formula(says, self.whole, self.piece, *args.values())]

    def ways(self, step: Callable[..., State], args: dict[str, Unknown]) -> list[symbolic.Way]:
        """The ways of the piece through a step."""
        with symbolic.read(self.theory.reading):
            return symbolic.ways(step, self.piece, args)


def _other_answer(theory: Theory, cut: CutPlan, step: Callable[..., State]) -> Question:
    """A step that the whole accepts and the piece refuses, or the other way round."""
    both = _Both(theory, cut)
    args, of_whole = theory.ways(step)
    differ = symbolic.taken(of_whole) != symbolic.taken(both.ways(step, args))
    return Question((*both.known, *both.given(step, args), differ), both.whole, args)


def _forgets(theory: Theory, cut: CutPlan, step: Callable[..., State]) -> Question:
    """A step that both accept, behind which the piece does not know enough."""
    both = _Both(theory, cut)
    args, of_whole = theory.ways(step)
    of_piece = both.ways(step, args)
    number = Unknown(z3.Int("some number"))
    with symbolic.read(theory.reading):
        cases = [
            all_of(one.walked, other.walked, negated(symbolic.formula(cut.knows, one.outcome, other.outcome, number)))
            for one in of_whole
            for other in of_piece
            if one.accepted and other.accepted
        ]
    return Question((*both.known, *both.given(step, args), any_of(*cases)), both.whole, args, {"number": number})


# -- laws of every spec --------------------------------------------------------------------------------------------


def laws() -> Iterator[Obligation]:
    """The laws of folding and fitting, for any steps."""
    any_spec = SPECS["log"]  # which of them makes no difference: the questions name none

    def law(sentence: str, part: str, terms: Callable[[], tuple[Any, ...]]) -> Obligation:
        return Obligation(any_spec, sentence, part, lambda _theory: Question(terms()), subject=LAWS)

    yield law("joining_is_associative", "three pieces", _not_associative)
    yield law("part_after_part_is_the_whole", "no events", lambda: _parts(first=True))
    yield law("part_after_part_is_the_whole", "one event more", lambda: _parts(first=False))


def _not_associative() -> tuple[Any, ...]:
    """Three pieces for which it matters which two are joined first. A misfit joins with nothing."""
    state = z3.DeclareSort("State")
    piece = z3.Datatype("Piece")
    piece.declare("misfit")
    piece.declare("piece", ("claim", state), ("end", state))
    made = piece.create()

    def joined(a: Any, b: Any) -> Any:
        fit = all_of(made.is_piece(a), made.is_piece(b), made.end(a) == made.claim(b))
        return z3.If(fit, made.piece(made.claim(a), made.end(b)), made.misfit)

    a, b, c = (z3.Const(name, made) for name in "abc")
    return (joined(joined(a, b), c) != joined(a, joined(b, c)),)


def _parts(*, first: bool) -> tuple[Any, ...]:
    """Two parts, the first empty or one event longer than a lawful one, that differ from both at once.

    A refusal is a state from which every step leads to itself.
    """
    state, event = z3.DeclareSort("State"), z3.DeclareSort("Event")
    some = z3.Datatype("Events")
    some.declare("none")
    some.declare("first", ("event", event), ("rest", some))
    events = some.create()
    step = z3.Function("step", state, event, state)
    replay = z3.Function("replay", state, events, state)
    followed = z3.Function("followed", events, events, events)  # one part, and the other behind it
    s, e, rest, other = z3.Const("s", state), z3.Const("e", event), z3.Const("rest", events), z3.Const("other", events)
    meanings = (
        z3.ForAll([s], replay(s, events.none) == s),
        z3.ForAll([s, e, rest], replay(s, events.first(e, rest)) == replay(step(s, e), rest)),
        z3.ForAll([other], followed(events.none, other) == other),
        z3.ForAll([e, rest, other], followed(events.first(e, rest), other) == events.first(e, followed(rest, other))),
    )

    def same(begin: Any, part: Any, behind: Any) -> Any:
        return replay(begin, followed(part, behind)) == replay(replay(begin, part), behind)

    begin, behind, part = z3.Const("begin", state), z3.Const("behind", events), z3.Const("part", events)
    if first:
        return (*meanings, negated(same(begin, events.none, behind)))
    holds = z3.ForAll([s, other], same(s, part, other))
    return (*meanings, holds, negated(same(begin, events.first(z3.Const("one", event), part), behind)))
