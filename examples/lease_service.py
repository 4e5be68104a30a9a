"""A service that gives leases with fencing tokens; its spec is lease.py (docs/own-system.md)."""


class Refused(Exception):  # noqa: N818 - it names an outcome
    """The request is refused, and nothing has changed."""


class LeaseService:
    """The service and the storage that it protects, as a program would have them."""

    refused = (Refused,)

    def __init__(self) -> None:
        self.holder: int | None = None
        self.newest = 0
        self.given: dict[int, int] = {}
        self.written = 0

    def grant(self, worker: int, token: int) -> None:
        """Give the lease to a worker."""
        if self.holder is not None or token != self.newest + 1:
            raise Refused(f"the lease is taken, or its token is not {self.newest + 1}")
        self.holder, self.newest = worker, token
        self.given[worker] = token

    def expire(self) -> None:
        """Its time is over."""
        self.holder = None

    def write(self, worker: int, token: int) -> None:
        """The storage takes a write."""
        if token <= 0 or self.given.get(worker, 0) != token:
            raise Refused("the token was not given to the worker")
        if token < self.written:
            raise Refused("a newer lease has written")
        self.written = token

    def as_spec(self) -> dict[str, int | dict[int, int]]:
        """Its state in the words of the spec: every field of State."""
        return {"taken": self.holder is not None, "last": self.newest, "tokens": self.given, "seen": self.written}
