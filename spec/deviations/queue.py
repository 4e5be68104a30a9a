"""RocketMQ's deviations from the design of a queue."""

from gapless.spec import queue
from gapless.spec.language import Deviation, Number, Position, accepts, applies, implies, replace, require
from gapless.spec.queue import BLANK_SLOT, State


def append_to_a_queue_made_anew(s: State, number: Number, count: int, position: Position, size: int, tag: int) -> State:
    """The topic was deleted and created again: its numbers start at 0, and its old entries are gone."""
    require(number == 0, "queue-made-anew-begins-at-number-0",
        because="a queue made again begins at number 0", otherwise="messages are lost")
    applies(0 < s.end)
    fresh = replace(
        s,
        first=number,
        indexed=number,
        end=number,
        blank=number,
        positions=s.positions.cleared(),
        sizes=s.sizes.cleared(),
        tags=s.tags.cleared(),
        entry_positions=s.entry_positions.cleared(),
        entry_sizes=s.entry_sizes.cleared(),
        entry_tags=s.entry_tags.cleared(),
    )
    return queue.append(fresh, number, count, position, size, tag)


def pass_a_blank_slot(s: State, number: Number, position: Position, size: int, tag: int) -> State:
    """The queue was created again and its numbers continued: a blank fills each slot before its first entry."""
    require(s.indexed == s.first, "no-entry-was-written-before-the-blank",
        because="no entry was written before the blank", otherwise="an entry that consumers need is lost")
    require(number == s.indexed, "no-slot-before-it-is-missing",
        because="no slot before it is missing", otherwise="a message is never received")
    applies(number < s.end)
    require(position == 0 and size == BLANK_SLOT and tag == 0, "slot-holds-a-blank",
        because="the slot holds a blank", otherwise="an entry is lost")
    return replace(s, first=Number(number + 1), indexed=Number(number + 1), blank=Number(number + 1))


def a_blank_slot_takes_no_entry_away(before: State, after: State) -> bool:
    """Otherwise an entry that consumers need is lost."""
    more = before.blank < after.blank and 0 < after.blank
    return implies(more, before.first == before.indexed and after.first == before.first + 1)


def a_topic_may_be_made_anew(s: State, position: Position, size: int, tag: int) -> bool:
    """Otherwise a store in which a topic was deleted is called broken."""
    return implies(0 < s.end, accepts(append_to_a_queue_made_anew, s, Number(0), 1, position, size, tag))


def _blank_passed(s: State, position: Position, size: int, tag: int) -> State:
    return pass_a_blank_slot(s, s.indexed, position, size, tag)


def a_blank_is_known_by_its_size(s: State, position: Position, size: int, tag: int) -> bool:
    """Otherwise an entry that consumers need is taken for a blank, or a blank for a wrong entry."""
    due = s.first == s.indexed and s.indexed < s.end
    blank = position == 0 and size == BLANK_SLOT and tag == 0
    return implies(due, accepts(_blank_passed, s, position, size, tag) == blank)


def _stopped_behind_a_blank(s: State, upto: Position) -> State:
    return queue.settle(_blank_passed(s, Position(0), BLANK_SLOT, 0), upto)


def blanks_alone_are_no_queue(s: State, upto: Position) -> bool:
    """Otherwise the entries of a whole queue are lost, unnoticed."""
    return implies(s.indexed + 1 == s.end, not accepts(_stopped_behind_a_blank, s, upto))


DEVIATIONS = (
    Deviation(append_to_a_queue_made_anew, queue.append, frozenset({"rocketmq"}),
        "docs/rocketmq.md#cl3: a topic deleted and created again, and clean-expired-queue, start at 0 again"),
    Deviation(pass_a_blank_slot, queue.index, frozenset({"rocketmq"}),
        "docs/rocketmq.md#pre-blank: ConsumeQueue.fillPreBlank, after a topic was deleted under traffic"),
)
STEP_PROPERTIES = (a_blank_slot_takes_no_entry_away,)
GIVEN_UP = (
    queue.a_queue_of_a_whole_log_begins_at_number_0,
    queue.a_message_keeps_its_place,
    queue.what_left_the_queue_stays_away,
    queue.what_leaves_the_queue_has_left_the_log,
)
ENABLED = (a_topic_may_be_made_anew, a_blank_is_known_by_its_size, blanks_alone_are_no_queue)
