"""Each fault in a store's transactions is found in its place, and a lookalike is left alone.

Each fault is first shown to the plain judge of `transactions.py`: otherwise the checker might be asked for the
impossible.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from gapless import Finding, Report, check
from gapless.traces.rules import rules
from gapless.traces.sources.rocketmq.explanations.finding import SENTENCES
from tests.support.night import by_day
from tests.support.rocketmq.damage import LEGAL_WITH_FILES, Pick, Place, name_of
from tests.support.rocketmq.recordings import WITH_CLIENTS, copy_of
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import log_files, read_log
from tests.support.rocketmq.transaction_broker import VERSIONS, TransactionBroker
from tests.support.rocketmq.transaction_damage import (
    BATCH_FAULTS,
    CLIENT_FAULTS,
    CLIENT_LOG,
    FAULTS,
    LEGAL,
    LEGAL_WITH_CLIENTS,
    LIMIT_FAULTS,
    OP_FAULTS,
    OPEN_FAULTS,
    ROOT_FAULTS,
    STORE_FAULTS,
    Change,
    Fault,
    Span,
    TransactionBench,
    TransactionFault,
    all_parked_too_early,
    ops_beyond_their_limit,
)
from tests.support.rocketmq.transactions import (
    Departure,
    client_log,
    counter_of,
    cursors,
    departures,
    finals,
    halves,
    key_of,
    ops,
    parked,
)

PLACES: tuple[Place, ...] = ("first", "any", "last")
ANY: tuple[Place, ...] = ("any",)
LONGEST_STORY = 25  # lines
PROMISES = (  # rules of queues that only a client log exercises
    "queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said",
    "queue/message-that-was-acknowledged-is-what-its-producer-sent",
    "queue/client-sent-the-message",
)

# Recordings whose client log is at hand, too.


def those_heard(*recordings: str) -> list[str]:
    """Return these recordings with a client log at hand."""
    return [name for name in recordings if name in WITH_CLIENTS]


# Every fault at every place of a life of our own, by its version and seed, and somewhere in what brokers wrote.
STORE_CASES = (
    *product(STORE_FAULTS + LIMIT_FAULTS + BATCH_FAULTS + OPEN_FAULTS + ROOT_FAULTS, ("5.5.0 1",), PLACES),
    *product(STORE_FAULTS + LIMIT_FAULTS + BATCH_FAULTS + OPEN_FAULTS + ROOT_FAULTS, ("5.3.3 3",), ANY),
    *product(STORE_FAULTS + LIMIT_FAULTS + OPEN_FAULTS + ROOT_FAULTS, ("4.9.7 3",), ANY),
    *product(STORE_FAULTS + LIMIT_FAULTS + BATCH_FAULTS + ROOT_FAULTS, ("odd_clients", "pop_retry"), ANY),
    *product(STORE_FAULTS, ("midlife",), ANY),
    *product(OP_FAULTS, ("v4",), ANY),
    *product(BATCH_FAULTS + ROOT_FAULTS, ("lmq",), PLACES),
)
CLIENT_CASES = (
    *product(CLIENT_FAULTS, ("5.5.0 1",), PLACES),
    *product(CLIENT_FAULTS, ("5.3.3 3", "4.9.7 3"), ANY),
    *product(CLIENT_FAULTS, those_heard("odd_clients", "midlife", "kill9"), ANY),
)
LEGAL_CASES = (
    *product(LEGAL, ("5.5.0 1", "4.9.7 3", "odd_clients", "lmq", "midlife"), (False,)),
    *product(LEGAL + LEGAL_WITH_CLIENTS, ("5.5.0 1", "5.3.3 3"), (True,)),
    *product(LEGAL + LEGAL_WITH_CLIENTS, those_heard("odd_clients", "lmq"), (True,)),
    *product(LEGAL_WITH_FILES, ("midlife",), (False,)),
)


# What is planted


@pytest.mark.parametrize(("fault", "store", "place"), by_day(STORE_CASES, 1 / 12), ids=name_of)
def test_a_fault_is_planted_where_it_says(fault: Fault, store: str, place: Place, tmp_path: Path) -> None:
    copy = copy_of(store, tmp_path, client=False)
    assert_planted(fault, copy, Pick(place, f"{fault.__name__} in {store}"))


@pytest.mark.parametrize(("fault", "store", "place"), by_day(CLIENT_CASES, 1 / 8), ids=name_of)
def test_a_fault_of_what_was_promised_is_planted_where_it_says(
    fault: Fault, store: str, place: Place, tmp_path: Path
) -> None:
    copy = copy_of(store, tmp_path, client=True)
    assert_planted(fault, copy, Pick(place, f"{fault.__name__} in {store}"))


def assert_planted(fault: Fault, store: Path, pick: Pick) -> None:
    """It breaks its rule where it says, and no rule of logs and queues: transactions alone tell of it."""
    whole = departures(store)
    records, before = read_log(store), bytes_at(store)
    planted = fault(store, pick)
    found = departures(store)
    assert not whole, "it would be found without the fault"
    assert bytes_at(store) != before
    assert len(read_log(store)) == len(records)
    assert planted.about
    assert [departure for departure in found if departure.rule == planted.rule and lies_in(departure, planted, store)]
    assert not [finding for finding in check([store], ignore=PROMISES).violations if finding.spec in {"log", "queue"}]


def lies_in(departure: Departure, planted: TransactionFault, store: Path) -> bool:
    """True if the plain judge's place is one of those of the fault."""
    here = span_of(departure, store)
    return any(span.file == here.file and 0 <= here.offset - span.offset < span.length for span in planted.places)


def span_of(departure: Departure, store: Path) -> Span:
    """Return the place of a departure of the plain judge: in the log, or in the cursors."""
    bench = TransactionBench(store, Pick("any", ""))
    return bench.cursor_span if departure.position < 0 else bench.span_at(departure.position)


def bytes_at(store: Path) -> list[bytes]:
    """All that a fault may change."""
    files = [*log_files(store), *sorted((store / "config").iterdir()), store.parent / "broker.conf"]
    return [file.read_bytes() for file in (*files, store.parent / CLIENT_LOG) if file.exists()]


def test_every_fault_is_tried() -> None:
    assert {case[0] for case in (*STORE_CASES, *CLIENT_CASES)} == set(FAULTS)


# What is found


@pytest.mark.parametrize(("fault", "store", "place"), by_day(STORE_CASES), ids=name_of)
def test_a_fault_is_found_where_it_lies(fault: Fault, store: str, place: Place, tmp_path: Path) -> None:
    copy = copy_of(store, tmp_path, client=False)
    assert_found(fault, copy, Pick(place, f"{fault.__name__} in {store}"))


@pytest.mark.parametrize(("fault", "store", "place"), by_day(CLIENT_CASES), ids=name_of)
def test_a_broken_promise_is_found_where_it_lies(fault: Fault, store: str, place: Place, tmp_path: Path) -> None:
    copy = copy_of(store, tmp_path, client=True)
    assert_found(fault, copy, Pick(place, f"{fault.__name__} in {store}"))


def test_every_sentence_is_about_a_need_that_there_is() -> None:
    assert SENTENCES.keys() <= {rule.id for rule in rules()}


def assert_found(fault: Fault, store: Path, pick: Pick) -> None:
    """Assert that a finding names the fault's place, and that the plain judge confirms all others."""
    planted = fault(store, pick)
    report = check([store])
    assert (report.verdict, report.exit_code) == ("departs", 1), planted
    violations = report.violations
    assert [finding for finding in violations if names(finding, planted)], f"{planted}, but found {places(violations)}"
    echoes = replace(planted, places=tuple(span_of(departure, store) for departure in departures(store)))
    strange = [finding for finding in violations if not names(finding, planted) and not names(finding, echoes)]
    assert not strange, f"{planted}, but also {places(strange)}"
    for finding in violations:
        assert 0 < len(finding.story) <= LONGEST_STORY
        assert finding.message
        assert finding.needs


@pytest.mark.parametrize(
    ("fault", "anomaly"),
    [
        (all_parked_too_early, "park_before_the_limit_of_today"),
        (ops_beyond_their_limit, "write_to_another_size"),
    ],
    ids=name_of,
)
def test_a_limit_of_today_accuses_no_earlier_life(fault: Fault, anomaly: str, tmp_path: Path) -> None:
    """Brokers were started on this store twice; and a broker that writes its settings back changed one of them."""
    copy = copy_of("midlife", tmp_path, client=False)
    fault(copy, Pick("any", "today"))
    report = check([copy])
    assert (report.verdict, anomaly in report.anomalies) == ("conforms", True)
    once = copy_of("odd_clients", tmp_path / "once", client=False)
    fault(once, Pick("any", "today"))
    assert check([once]).verdict == "departs"
    with (once.parent / "broker.conf").open("a") as settings:
        settings.write("rocketmqHome=/opt/rocketmq\n")
    report = check([once])
    assert (report.verdict, anomaly in report.anomalies) == ("conforms", True)


@pytest.mark.parametrize("place", PLACES)
def test_after_a_crash_a_cursor_that_is_ahead_is_left_open(place: Place, tmp_path: Path) -> None:
    """A copy of a running broker looks the same if its cursors were copied after its log."""
    for fault in OPEN_FAULTS:
        copy = copy_of("unclean", tmp_path / fault.__name__, client=False)
        fault(copy, Pick(place, f"{fault.__name__} in unclean"))
        report = check([copy])
        assert (report.verdict, report.exit_code) == ("inconclusive", 3)
        assert "undecided halves lie below the half cursor" in report.sources[0].reasons[0]


def names(finding: Finding, planted: TransactionFault) -> bool:
    """True if a finding points to one of the places of a fault; in files other than the log, to any place."""
    file, offset = finding.where.file, finding.where.offset
    by_name = {Path(span.file).name for span in planted.places if not span.file.startswith("commitlog/")}
    within = [span for span in planted.places if span.file == file and 0 <= offset - span.offset < span.length]
    return bool(within) or Path(file).name in by_name


def places(findings: list[Finding]) -> list[tuple[str, str, int]]:
    return [(finding.rule, finding.where.file, finding.where.offset) for finding in findings]


# What is legal


@pytest.mark.parametrize(("change", "store", "client"), by_day(LEGAL_CASES, 1 / 4), ids=name_of)
def test_what_is_legal_is_not_accused(change: Change, store: str, client: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    copy = copy_of(store, tmp_path, client=client)
    change(copy, Pick("any", f"{change.__name__} in {store}"))
    assert departures(copy) == []
    assert_not_accused(check([copy]))


@pytest.mark.parametrize("store", WITH_CLIENTS)
def test_a_recording_keeps_what_its_clients_were_promised(store: str, tmp_path: Path) -> None:
    copy = copy_of(store, tmp_path, client=True)
    assert client_log(copy)
    assert departures(copy) == []
    assert_not_accused(check([copy]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", VERSIONS)
def test_a_busy_life_conforms(version: str, seed: int, tmp_path: Path) -> None:
    """Decided twice, sent again, resumed, immune, parked and committed after all: all of it is lawful."""
    copy = copy_of(f"{version} {seed}", tmp_path, client=True)
    assert departures(copy) == []
    assert_not_accused(check([copy]))


def test_a_branch_may_outlive_its_root(tmp_path: Path) -> None:
    """After a crash the same half was put back again; then it expired, and both of its renewals did not."""
    broker = TransactionBroker(builder=StoreBuilder(log_file_size=1024))
    root = broker.prepare(body=bytes(300))
    for _ in range(2):
        broker.wait(2000)
        broker.check()
        broker.crash()
    for half in broker.halves:
        broker.roll_back(half)
    broker.stop()
    broker.expire(1)
    copy = broker.write(tmp_path)
    assert [counter_of(version) for version in halves(copy)] == [1, 1, 2]
    assert root not in halves(copy)
    assert departures(copy) == []
    assert_not_accused(check([copy]))


def test_what_was_sent_again_may_outlive_what_was_sent_first(tmp_path: Path) -> None:
    """Two transactions with one key: of the first only the parked copy is left, of the other a half as well."""
    broker = TransactionBroker(check_max=1, builder=StoreBuilder(log_file_size=1024))
    first = broker.prepare(body=bytes(300), answer="unknown")
    broker.wait(3000)
    second = broker.prepare(body=bytes(300), key=key_of(first))
    for _ in range(3):
        broker.wait(2000)
        broker.check()
    broker.stop()
    broker.expire(3)
    copy = broker.write(tmp_path)
    assert [half.born_time for half in halves(copy)] == [second.born_time]
    assert [rest.born_time for rest in parked(copy)] == [first.born_time, second.born_time]
    assert departures(copy) == []
    assert_not_accused(check([copy]))


def test_cursors_may_outlive_all_halves(tmp_path: Path) -> None:
    broker = TransactionBroker(builder=StoreBuilder(log_file_size=1024))
    for number in range(10):
        broker.roll_back(broker.prepare("orders", number % 3))
    broker.stop()
    for _ in range(20):
        broker.send("orders", body=bytes(100))
    broker.wait(2000)
    broker.stop()
    broker.expire(100)
    copy = broker.write(tmp_path)
    assert cursors(copy) == (10, 1)
    assert not halves(copy)
    assert not ops(copy)
    assert departures(copy) == []
    assert_not_accused(check([copy]))


def test_finals_and_ops_may_outlive_their_halves(tmp_path: Path) -> None:
    broker = TransactionBroker(builder=StoreBuilder(log_file_size=1024))
    prepared = [broker.prepare() for _ in range(10)]
    broker.wait(2000)
    for half in prepared:
        broker.commit(half)
    broker.stop()
    broker.expire(5)
    copy = broker.write(tmp_path)
    assert not halves(copy)
    assert len(finals(copy)) > 5
    assert [op.numbers for op in ops(copy)] == [tuple(range(10))]
    assert departures(copy) == []
    assert_not_accused(check([copy]))


def assert_not_accused(report: Report) -> None:
    """Nothing departs, and all that was there could be judged."""
    assert not report.violations, report.model_dump_json(indent=1)[:4000]
    assert (report.verdict, report.exit_code) == ("conforms", 0), report.model_dump_json(indent=1)[:4000]


# Where it comes from
