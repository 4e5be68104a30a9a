"""RocketMQ's deviations from the design of the half table."""

from gapless.spec import half_table
from gapless.spec.half_table import State
from gapless.spec.language import Deviation, accepts, applies, implies, replace

ROCKETMQ = frozenset({"rocketmq"})


def find_row_written_again(s: State, size: int, checks: int, limit: int, owned: bool, within: bool) -> State:
    """A check had read the row before the op deleted it, and wrote it again with the check counted."""
    applies(0 < s.decisions and 0 < checks)
    undecided = replace(s, decisions=0)
    return replace(half_table.find_row(undecided, size, checks, limit, owned, within), decisions=s.decisions)


def give_up(s: State, spent: bool) -> State:
    """After its last check the broker deletes a half's row, and sets nothing aside: no record tells of it."""
    applies(spent and 0 <= s.position and s.decisions == 0)
    return s


def a_check_may_write_the_row_of_a_decided_half(s: State, checks: int) -> bool:
    """Otherwise a broker's race is called damage, or a row is excused that no check wrote."""
    taken = accepts(find_row_written_again, s, s.size, checks, 0, True, True)  # noqa: FBT003 - an event's flags
    return taken == (0 <= s.position and s.rows == 0 and 0 < s.decisions and 0 < checks)


def _written_again(s: State, checks: int) -> State:
    again = find_row_written_again(s, s.size, checks, 0, True, True)  # noqa: FBT003 - an event's flags
    return half_table.miss_row(again, False)  # noqa: FBT003 - as above


def a_half_whose_row_was_written_again_stays_decided(s: State, checks: int) -> bool:
    """Otherwise its op counts for nothing."""
    there = 0 <= s.position and s.rows == 0 and 0 < s.decisions and 0 < checks
    return implies(there, accepts(_written_again, s, checks))


def a_half_may_be_given_up_once_its_checks_are_spent(s: State, spent: bool) -> bool:
    """Otherwise a half whose row was lost is excused."""
    return accepts(give_up, s, spent) == (spent and 0 <= s.position and s.decisions == 0)


DEVIATIONS = (
    Deviation(find_row_written_again, half_table.find_row, ROCKETMQ,
        "docs/rocketmq-transactions.md#half-table: updateRecordsForTrans writes what an op has deleted since"),
    Deviation(give_up, half_table.miss_row, ROCKETMQ,
        "docs/rocketmq-transactions.md#half-table: checkTransRecordsStatus deletes after transactionCheckMax checks"),
)
ENABLED = (
    a_check_may_write_the_row_of_a_decided_half, a_half_whose_row_was_written_again_stays_decided,
    a_half_may_be_given_up_once_its_checks_are_spent,
)
