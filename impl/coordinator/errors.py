"""Errors between a coordinator and its clients, in addition to those of any store."""

from __future__ import annotations

from gapless.impl.records.errors import Refused, StoreError


class UnknownTransaction(Refused):
    """There is no such transaction, or none any more whose outcome is known."""


class OutcomeConflict(Refused):
    """The transaction ends otherwise, or is about to."""


class ForeignTransaction(Refused):
    """Another client began the transaction: its token is needed to change or to end it."""


class WrongSecret(StoreError):  # noqa: N818 - as above.
    """One side of a connection does not know the secret that the other one asks for."""


class LogFull(StoreError):  # noqa: N818 - as above.
    """The coordinator's log has no room: nothing was changed, and the same may be tried again."""


class TimedOut(StoreError):  # noqa: N818 - as above.
    """No answer came in time. The request may have been done, or may be done yet."""
