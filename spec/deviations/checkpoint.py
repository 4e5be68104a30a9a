"""What RocketMQ does with its cursors that the design forbids."""

from gapless.spec import checkpoint
from gapless.spec.checkpoint import State
from gapless.spec.language import Deviation, Number, applies, replace


def consume_an_op_that_is_still_needed(s: State, number: Number) -> State:
    """An immune half takes its op with it, whatever other halves the op names; so does a round that was cut short."""
    applies(s.half_cursor < s.reaches[number])
    return checkpoint.consume_op(replace(s, reaches=s.reaches.set(number, s.half_cursor)), number)


DEVIATIONS = (
    Deviation(consume_an_op_that_is_still_needed, checkpoint.consume_op, frozenset({"rocketmq"}),
        "docs/rocketmq-transactions.md#n16, #aborted-round; apache/rocketmq#7240, apache/rocketmq#9500"),
)
GIVEN_UP = (checkpoint.an_op_is_needed_until_its_halves_are_passed,)
