"""The table that accuses a broker or excuses it: every cell, its page, and the circumstances of a store."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest

from gapless.traces.sources.rocketmq.blame import __main__ as command
from gapless.traces.sources.rocketmq.blame import page, queues
from gapless.traces.sources.rocketmq.blame.circumstances import circumstances
from gapless.traces.sources.rocketmq.blame.situation import (
    GROUPS,
    KNOWN,
    Circumstance,
    Decision,
    DecisionCell,
    Situation,
    accuse,
    doubt,
    note,
    situation,
)
from gapless.traces.sources.rocketmq.blame.table import situations
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.rocketmq.recordings import recording

DOCS = Path(__file__).parents[3] / "docs"
TABLE = situations()
ENDS_AND_LIVES = GROUPS[0] | GROUPS[1]
VALUES = {
    name for one in TABLE for cell in one.cells for _, name, _, _ in Formatter().parse(one.template(cell)) if name
}
LETTERS = {
    Decision.VIOLATION: "V",
    Decision.DOUBT: "d",
    Decision.NOTE: "n",
    Decision.HAZARD: "h",
    Decision.PASS: "p",
}
EXPECTED = """
store/link-leads-nowhere dn
store/log-is-damaged-below-it nV
store/is-of-another-moment-than-the-log VV VV nn Vn
store/its-files-are-of-different-moments nV nV nn nn
store/a-running-broker-writes-it V V V n
store/cannot-be-read dn
store/table-has-a-row-that-no-broker-writes d
store/copied-message-differs-from-the-log dV
log/record-behind-a-gap V V V V
log/file-ends-before-the-next-begins V V V V
log/file-is-missing-behind-others V V d V
log/records-behind-the-end dn nn nn nn
log/records-behind-an-end-without-a-time d
log/torn-record-behind-the-end VVpV pppp pppp pppp
log/torn-record-behind-an-end-without-a-time d p p p
log/checkpoint-is-younger-than-the-log Vd Vd nn pp
log/entry-names-a-record-beyond-the-end Vd nn nn nn
log/last-record-departs Vn nn nn nn
log/departs-where-it-ended-at-the-last-start d p p p
log/page-ends-in-zeros VVVd VdVd dddd VVVV
log/queue-is-another-when-read-again d
log/few-records-without-their-checksum d
queue/message-before-the-checkpoint-has-no-entry V V n V
queue/message-waits-for-its-entry p p n p
queue/message-waits-and-later-ones-have-entries d d n d
queue/message-waits-for-its-entry-in-a-database d p n p
queue/entry-is-missing-that-a-start-writes-again V d d d
queue/entry-is-missing-before-the-first-file V V d V
queue/only-file-has-another-length d
queue/number-is-out-of-order-before-a-deletion d
queue/differs-when-it-is-read-again d
queue/dead-letter-names-a-light-queue d
queue/files-are-gone-that-none-can-delete d
queue/slot-behind-the-end-is-no-entry h
queue/slot-behind-the-end-repeats-the-last V h h h
queue/topic-is-saved-and-has-no-folder d
queue/topic-is-saved-and-a-queue-has-no-file d
queue/more-topics-are-saved-and-have-no-files d
queue/no-file-of-a-topic-that-is-not-saved n
queue/entries-without-a-message d
queue/database-is-dispatched-beyond-the-log pd nn nn pp
queue/second-copy-lacks-entries d
queue/message-whose-time-is-over-is-in-no-topic VVVp VVpp VVpp VVpp
transaction/acknowledged-commit-without-a-final V d n d
transaction/back-check-names-a-half-beyond-the-log VV Vd Vn Vd
transaction/half-was-delayed d
transaction/cursor-passed-an-undecided-half VV Vd Vd Vd
transaction/cursor-is-beyond-its-queue V d p p
transaction/lacks-what-may-lie-in-damage nV
client/log-cannot-be-read d
client/acknowledged-message-beyond-the-log V d n p
client/log-is-of-another-store d
client/last-messages-have-no-sender V d d d
client/answers-may-have-been-in-a-pool dV
client/was-handed-what-is-a-half-here Vd
hash_index/last-items-point-at-no-record VVdd VVdd nVnd VVdd
hash_index/file-is-not-whole VV dV dV dV
hash_index/slots-or-header-are-of-another-moment VV dV nV dV
hash_index/is-off n
hash_index/record-is-missing-inside-a-file Vd dd dd dd
hash_index/record-is-missing-between-files Vdpp ddpp ddpp ddpp
hash_index/record-is-missing-behind-all-files Vd pp pp pp
hash_index/records-are-missing n
hash_index/key-is-missing-at-the-edge-of-a-file Vp
hash_index/key-is-missing-at-the-end V p p p
cursors/group-is-beyond-its-queue hn
cursors/delay-level-is-beyond-its-queue Vn dn dn dn
extension/unit-is-not-whole VV dd nd dd
delayed/cursor-passed-a-message-in-no-topic VVVpVVVp VVppVVpp VVppVVpp VVppVVpp
delayed/message-behind-a-cursor-is-in-no-topic nd nd nn nd
timer_wheel/message-without-its-unit V d d d
timer_wheel/unit-names-a-message-beyond-the-log Vp pp pp pp
timer_wheel/unit-of-a-time-to-come-names-a-message-beyond-the-log h h p h
timer_wheel/slot-is-ahead-of-the-timer-log Vp pp pp pp
timer_wheel/slot-counts-other-units Vppp
half_table/is-of-another-moment VV VV nn nn
half_table/cannot-be-read d
half_table/row-without-its-half VVdd Vddd Vddd Vddd
half_table/undecided-half-behind-its-end d n n p
half_table/undecided-half-without-its-row Vd dd dd Vd
half_table/young-half-without-its-row d
half_table/half-without-its-row-may-be-given-up n
half_table/ends-where-no-half-lies VVdd Vddd Vddd Vddd
key_table/record-behind-its-end dn nn nn nn
key_table/rows-are-gone-with-their-hour n
key_table/record-before-the-first-row dn
key_table/record-without-its-rows Vd Vd Vd dd
key_table/row-without-its-record VVdd Vddd Vddd Vpdp
key_table/ends-where-no-record-lies VVdd Vddd Vddd pppp
timer_table/row-without-its-message VVdd Vddd Vddd Vppp
timer_table/row-of-a-cancelled-timer Vp Vp Vp pp
timer_table/message-without-its-row Vddd
timer_table/message-without-its-row-is-in-the-wheel n
timer_table/has-read-more-messages-than-there-are Vd dd dd dd
timer_table/is-far-behind-the-log dp pp pp pp
tiered/cannot-be-judged dn
tiered/file-is-not-in-the-metadata d
tiered/oldest-file-is-gone V p p p
tiered/oldest-file-is-empty Vp
tiered/no-file-has-its-content d
tiered/several-oldest-files-have-no-content d
tiered/oldest-file-has-no-content nd
tiered/index-file-is-not-whole VVdd Vddd Vddd Vddd
tiered/index-item-has-the-least-hash d
tiered/index-item-leads-nowhere Vd
compaction/file-cannot-be-read d
compaction/was-broken-off d
compaction/topic-was-created-again d
compaction/last-entries-are-not-their-messages VV dV dV dV
compaction/last-file-has-no-entries V p p p
compaction/entries-of-an-earlier-compaction Vd
compaction/position-is-beyond-the-log Vd dd dd dd
compaction/last-messages-are-missing V p p p
compaction/message-is-missing Vd
dledger_index/has-no-file d
dledger_index/last-entries-have-no-units VV dp dp dp
"""
"""Each situation, and its decisions: in the order of `combinations`, the end of the broker first."""


def letters(one: Situation) -> str:
    """The decisions of a situation."""
    found = "".join(LETTERS[one.cell(known).decision] for known in one.combinations())
    each = len(found) // (len(list(GROUPS[0])) if GROUPS[0] in one.groups else 1)
    return " ".join(found[at : at + each] for at in range(0, len(found), each))


def overlapping(of: Situation) -> Iterator[object]:
    """The circumstances in which a situation has two decisions or none, and its cells that none reaches."""
    reached: set[DecisionCell] = set()
    for known in of.combinations():
        mine = [cell for cell in of.cells if cell.covers(known)] or [cell for cell in of.cells if not cell.when]
        reached.update(mine)
        if len(mine) != 1:
            yield known
    yield from set(of.cells) - reached


def test_every_cell_has_its_decision() -> None:
    expected = dict(line.split(None, 1) for line in EXPECTED.strip().splitlines())
    found = {one.name: letters(one) for one in TABLE}
    assert {name: found.get(name) for name in expected} == expected
    assert not found.keys() - expected.keys(), "decide it here, too"


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_every_circumstance_has_one_decision_and_every_cell_is_reached(one: Situation) -> None:
    assert not list(overlapping(one))
    assert all(cell.when for cell in one.cells[:-1]), "only the last one may be about all the others"


def test_an_overlap_a_gap_and_a_cell_that_nothing_reaches_are_caught() -> None:
    twice = situation("a/b", "", "", accuse("stopped"), doubt("", "stopped or killed"), note("", "copied or running"))
    gap = situation("a/b", "", "", accuse("stopped"), doubt("", "killed or copied"))
    unreached = situation("a/b", "", "", accuse("stopped"), note("", "killed or copied or running"), doubt(""))
    assert list(overlapping(twice)) == [KNOWN.STOPPED]
    assert list(overlapping(gap)) == [KNOWN.RUNNING]
    assert list(overlapping(unreached)) == [unreached.cells[2]]
    with pytest.raises(KeyError):
        accuse("stoped")


def test_names_are_unique_and_sources_are_there() -> None:
    assert len({one.name for one in TABLE}) == len(TABLE)
    for one in TABLE:
        file, _, anchor = one.source.partition("#")
        text = (DOCS / file).read_text("utf-8")
        assert f'id="{anchor}"' in text, one


def test_a_situation_has_words_for_the_question_that_its_cells_ask() -> None:
    for one in TABLE:
        asks = bool(KNOWN.ON | KNOWN.OFF in one.groups)
        assert asks == bool(one.on) == bool(one.off), one.name


def test_the_page_is_of_today() -> None:
    """`python -m gapless.traces.sources.rocketmq.blame --write` writes it again."""
    assert command.PAGE.read_text("utf-8") == page.made()


def test_sentences_count() -> None:
    assert queues.WAITS.sentence(queues.COPIED_BEFORE, {"count": 1, "queue": "a/0"}) == (
        "1 message of a/0 waits for its entry: the queue was copied before it"
    )
    assert queues.WAITS.sentence(queues.COPIED_BEFORE, {"count": 2000, "queue": "a/0"}) == (
        "2,000 messages of a/0 wait for their entries: the queue was copied before them"
    )


def test_the_circumstances_of_stores() -> None:
    stopped, killed = (open_store(recording(name)) for name in ("normal", "unclean"))
    copied = open_store(recording("unclean"), copied=True)
    assert circumstances(stopped) == KNOWN.STOPPED | KNOWN.FIRST_LIFE
    assert circumstances(killed) & GROUPS[0] == KNOWN.KILLED
    assert circumstances(copied) & GROUPS[0] == KNOWN.COPIED
    assert circumstances(replace(stopped, live=True, clean=False)) & GROUPS[0] == KNOWN.RUNNING
    assert circumstances(replace(stopped, modern=False)) == KNOWN.STOPPED | KNOWN.LATER_LIFE


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_each_cell_adds_its_sentence(one: Situation) -> None:
    """Also those that no store of a test shows."""
    store = open_store(recording("unclean"))
    for known in one.combinations():
        cell, found = one.cell(known), StoreFindings(as_it_is(store, known), end=0)
        values: dict[str, object] = dict.fromkeys(VALUES, 7)
        assert found.blame(one, known & ~ENDS_AND_LIVES, **values) is cell.decision
        expected = [one.sentence(cell, values)] if cell.decision in (Decision.DOUBT, Decision.NOTE) else []
        assert [*found.inconclusive, *found.notes] == expected
        assert not found.inconclusive or cell.decision is Decision.DOUBT
        assert all(text and "{" not in text for text in expected)
        assert found.judges(one, known & ~ENDS_AND_LIVES, **values) == (cell.decision is Decision.VIOLATION)


def as_it_is(store: StoreDirectory, known: Circumstance) -> StoreDirectory:
    """The store in these circumstances."""
    assert store.checkpoint is not None
    known |= KNOWN.STOPPED if not known & GROUPS[0] else KNOWN(0)
    return replace(
        store,
        live=bool(known & KNOWN.RUNNING),
        copied=bool(known & KNOWN.COPIED),
        clean=bool(known & KNOWN.STOPPED),
        modern=not known & KNOWN.LATER_LIFE,
        checkpoint=replace(store.checkpoint, recovered=0),
    )


def test_a_count_of_zero_adds_no_doubt() -> None:
    found = StoreFindings(open_store(recording("unclean")), end=0)
    assert found.blame(queues.MISSING_BEFORE_OTHERS, count=0, names="") is Decision.DOUBT
    assert not found.inconclusive
    assert found.blame(queues.MISSING_BEFORE_OTHERS, count=1, names="a/0") is Decision.DOUBT
    assert len(found.inconclusive) == 1
    assert re.fullmatch(r"entries are missing before others \(a/0\): legal in .*", found.inconclusive[0])
