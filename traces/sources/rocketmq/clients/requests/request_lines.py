"""The line of a client log: the fields of each request, and the sentence for a line that lacks one."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from gapless.traces.suggestions import did_you_mean, one_of
from gapless.traces.validation import refused, value

RESUME = 323  # the admin request that puts a half up for checks again

OPS = ("send", "half", "batch", "end", "check", "admin", "topic", "pull", "note")
SEND, HALF, BATCH, END, CHECK, ADMIN = range(6)
RESULTS = ("ok", "fail", "unknown", "none")
OK, FAIL, UNKNOWN, NONE = range(4)
DECISIONS = ("commit", "rollback", "unknown")
COMMIT, ROLL_BACK, UNDECIDED = range(3)


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("it is empty, expected a name")
    return text


Place = Annotated[int, Field(ge=0, lt=2**62)]
Small = Annotated[int, Field(ge=0, lt=2**31)]
Answer = Literal["ok", "fail", "unknown"]
Times = Annotated[str, Field(pattern="^[0-9]{1,18}$")]


class Line(BaseModel):
    """One line. Fields beyond those of its `op` are for people, and not read: clocks, clients, remarks."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


class SentRequest(Line):
    """The common fields of every send, of one message or of many."""

    topic: Annotated[str, AfterValidator(_not_empty)] = Field(description="where consumers are to find it")
    queue: Annotated[int, Field(ge=-1, lt=2**31)] = Field(description="-1: the broker chose it, and no answer named it")
    result: Answer = Field(description="unknown: no answer came, either may be true")
    number: Place | None = Field(default=None, alias="qoff", description="the number that the answer gave")

    @model_validator(mode="after")
    def _a_place_has_a_queue(self) -> Self:
        if self.result == "ok" and self.number is not None and self.queue < 0:
            raise ValueError(f"queue is {self.queue}, expected the one that the answer named")
        return self


class SendRequest(SentRequest):
    """A message, or a half: a message that is invisible until it is committed."""

    op: Literal["send", "half"]
    key: str | None = Field(default=None, alias="uniq", description="property UNIQ_KEY, which makes messages different")
    position: Place | None = Field(default=None, alias="phys", description="the position that the answer gave")
    length: Small | None = Field(default=None, alias="len", description="bytes of the body")
    crc: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(default=None, description="CRC-32 of the body")


class BatchRequest(SentRequest):
    """Several messages in one request; `qoff` is the number of the first."""

    op: Literal["batch"]
    count: Annotated[int, Field(ge=1, lt=2**31)] = Field(alias="n", description="messages")
    keys: list[str | None] | None = Field(default=None, alias="uniqs", description="property UNIQ_KEY of each")
    positions: list[Place] | None = Field(default=None, alias="phys", description="the position of each, as answered")

    @model_validator(mode="after")
    def _each_message_is_named(self) -> Self:
        for name, values in (("uniqs", self.keys), ("phys", self.positions)):
            if values is not None and len(values) != self.count:
                raise ValueError(f"{name} has length {len(values)}, expected {self.count}, one for each message")
        return self


class EndRequest(Line):
    """END_TRANSACTION: the decision about a half, by one of its versions."""

    op: Literal["end"]
    key: str | None = Field(default=None, alias="uniq")
    number: Place = Field(alias="half", description="the number of this version in the half topic")
    position: Place = Field(alias="phys", description="its position")
    decision: Literal["commit", "rollback", "unknown"]
    result: Literal["ok", "fail", "unknown", "none"] = Field(description="none: undecided, which is never answered")
    from_check: bool = Field(default=False, description="whether a back-check had asked")

    @model_validator(mode="after")
    def _a_decision_is_answered(self) -> Self:
        if self.result == "none" and self.decision != "unknown":
            raise ValueError(f"result is none, expected ok, fail or unknown for a {self.decision}, oneway ones unknown")
        return self


class CheckRequest(Line):
    """A back-check: the broker asks what has become of a half."""

    op: Literal["check"]
    key: str | None = Field(default=None, alias="uniq")
    number: Place = Field(alias="half")
    position: Place = Field(alias="phys")
    times: Times | None = Field(
        default=None, description="property TRANSACTION_CHECK_TIMES, a text like all properties"
    )


class AdminRequest(Line):
    """An administrator's request. Only one kind matters here: to put a half up for checks again."""

    op: Literal["admin"]
    request: int | None = Field(default=None, description="the request code")
    result: Any = None
    ext: Any = Field(default=None, description="its fields; of 323, `msgId` ends in the position in 16 hex digits")

    @model_validator(mode="after")
    def _a_resumed_half_has_a_place(self) -> Self:
        if self.request == RESUME:
            if self.result not in RESULTS[:NONE]:
                raise ValueError(f"result is {str(self.result)[:40]!r}, expected ok, fail or unknown")
            if resumed(self.message_id) is None:
                raise ValueError("ext.msgId of request 323 is expected to end in a position, 16 hexadecimal digits")
        return self

    @property
    def message_id(self) -> Any:
        """The message id in the request."""
        return self.ext.get("msgId") if isinstance(self.ext, dict) else None


class OtherRequest(Line):
    """A line for human readers; its content is not used."""

    op: Literal["topic", "pull", "note"]


Request = SendRequest | BatchRequest | EndRequest | CheckRequest | AdminRequest | OtherRequest
LINE: TypeAdapter[Request] = TypeAdapter(
    Annotated[Request, Field(discriminator="op")], config=ConfigDict(defer_build=True)
)


MESSAGE_ID = re.compile("[0-9A-Fa-f]{16,}")


def resumed(message_id: object) -> int | None:
    """The position in which the id of a stored message ends."""
    if not isinstance(message_id, str) or not MESSAGE_ID.fullmatch(message_id):
        return None
    position = int(message_id[-16:], 16)
    return position if position < 2**62 else None


def first_error(error: ValidationError, given: Any) -> str:
    """The first thing that is wrong, in a sentence."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    if not isinstance(given, dict):
        return "expected one request as an object"
    if "expected_tags" in context or "discriminator" in context:
        op = value(given["op"]) if "op" in given else "missing"
        return f"op is {op}, expected {one_of(OPS)}{did_you_mean(str(given.get('op', '')), OPS)}"
    return refused(error, skip=1)
