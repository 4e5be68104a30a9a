"""What RocketMQ does with its ops that the design forbids."""

from gapless.spec import op_batch
from gapless.spec.language import Deviation, Number, applies, replace
from gapless.spec.op_batch import State

ROCKETMQ = frozenset({"rocketmq"})


def enqueue_again(s: State, number: Number, length: int, known: bool) -> State:
    """Every decision that is accepted has its entry: a repeated one names the half again."""
    applies(0 < s.named[number])
    after = op_batch.enqueue(replace(s, named=s.named.set(number, 0)), number, length, known)
    return replace(after, named=s.named.set(number, s.named[number] + 1))


def write_one_alone(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """A broker older than the batches writes one op for each half, and no comma in it."""
    applies(not listed)
    applies(count == 1)
    return op_batch.write(s, count, size, last, legible, True)  # noqa: FBT003


def wait_for_another_interval(s: State, time: int) -> State:
    """An entry that comes right after a tick misses the next one too."""
    applies(0 < s.interval and 0 < s.count)
    applies(s.interval < time - s.since)
    return op_batch.tick(replace(s, since=s.since + s.interval), time)


def stop_with_entries_waiting(s: State) -> State:
    """What is younger than the interval is lost even in an orderly stop."""
    applies(0 < s.count)
    return op_batch.crash(s)


DEVIATIONS = (
    Deviation(enqueue_again, op_batch.enqueue, ROCKETMQ, "docs/rocketmq-transactions.md#n5: ops repeat a half"),
    Deviation(write_one_alone, op_batch.write, ROCKETMQ,
        "docs/rocketmq-transactions.md#ops: brokers up to 5.0 write one op for each half"),
    Deviation(wait_for_another_interval, op_batch.tick, ROCKETMQ,
        "docs/rocketmq-transactions.md#op-interval: up to twice the interval; apache/rocketmq#10199"),
    Deviation(stop_with_entries_waiting, op_batch.stop, ROCKETMQ,
        "docs/rocketmq-transactions.md#op-stop: what is younger than the interval is lost in a stop"),
)
GIVEN_UP = (op_batch.a_half_is_named_once,)
