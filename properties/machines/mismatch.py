"""The error of a machine when the implementation does not do what its specs say."""


class Mismatch(Exception):  # noqa: N818 - it names a finding.
    """The implementation differs from its model or oracle, or a consumer would see an error."""


def expect(holds: object, otherwise: str) -> None:
    """Raises Mismatch."""
    if not holds:
        raise Mismatch(otherwise)
