"""What a client log tells of, as columns: messages sent, decisions on halves, back-checks, and requests to resume."""

from __future__ import annotations

from dataclasses import dataclass

from gapless.traces.sources.rocketmq.store.bytes import Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of equal length: one row for each thing of a kind that the log tells of, in its order."""

    line: Ints  # where it stands, from 1

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, eq=False)
class Sends(Rows):
    """What was sent: a row for each message, or one for a whole batch that does not name its messages.

    Native code finds them by their numbers, which `matching_sends` has in this order.

    `position` and `number` are -1 where no answer gave a place. A half is answered with its place in the half topic;
    `topic` and `queue` are those that it is meant for.
    """

    position: Ints
    number: Ints
    count: Ints  # messages in this row
    key: Ints  # digest of the UNIQ_KEY; 0 where the log does not say it
    crc: Ints  # of the body, as the broker keeps it; -1 where the log does not say it
    length: Ints  # bytes of the body; -1 likewise
    topic: Ints  # index in `ClientLog.topics`
    queue: Ints  # -1 where the choice was the broker's, and no answer told it
    half: Ints  # 1 for a half, 0 for a message
    result: Ints  # OK, FAIL, UNKNOWN


@dataclass(frozen=True, eq=False)
class Ends(Rows):
    """What was decided, or left open, about which version of a half."""

    key: Ints
    number: Ints  # in the half topic
    position: Ints
    decision: Ints  # COMMIT, ROLL_BACK, UNDECIDED
    result: Ints  # OK, FAIL, UNKNOWN, NONE
    from_check: Ints  # 1 for the answer to a back-check


@dataclass(frozen=True, eq=False)
class Checks(Rows):
    """Back-checks that came in, and which version of a half each names."""

    key: Ints
    number: Ints
    position: Ints
    times: Ints  # the half's counter; -1 where the log does not say it


@dataclass(frozen=True, eq=False)
class Resumes(Rows):
    """Requests to put a half up for checks again, and the record that each names."""

    position: Ints
    result: Ints
