"""Fields of the records of the cluster's metadata, as versions with tags have them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TypeVar

Value = TypeVar("Value")


class OutOfBounds(Exception):  # noqa: N818 - it says what is wrong, as others
    """A field reaches beyond the record."""


class FieldReader:
    """Reads one field after the other. Each verb raises OutOfBounds."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def taken(self, count: int) -> bytes:
        """The next bytes."""
        if not 0 <= count <= len(self._data) - self._at:
            raise OutOfBounds
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, width: int) -> int:
        """A signed number of so many bytes."""
        return int.from_bytes(self.taken(width), "big", signed=True)

    def varint(self) -> int:
        """An unsigned number of at most five bytes."""
        found = 0
        for shift in range(0, 35, 7):
            byte = self.taken(1)[0]
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise OutOfBounds

    def text(self) -> str | None:
        """A text whose length is one less than the number before it; None for null."""
        length = self.varint()
        return self.taken(length - 1).decode(errors="replace") if length else None

    def identity(self) -> str:
        """A UUID, as Kafka prints it."""
        return base64.urlsafe_b64encode(self.taken(16)).decode().rstrip("=")

    def several(self, one: Callable[[FieldReader], Value]) -> list[Value]:
        """The elements of an array; none for null. An element has at least one byte."""
        count = self.varint() - 1
        if count > len(self._data) - self._at:
            raise OutOfBounds
        return [one(self) for _ in range(count)]

    def tags(self) -> Iterator[tuple[int, FieldReader]]:
        """The fields with numbers, at the end of a record."""
        for _ in range(self.varint()):
            tag = self.varint()
            yield tag, FieldReader(self.taken(self.varint()))


def int32(fields: FieldReader) -> int:
    """A number of four bytes."""
    return fields.number(4)
