"""What a machine reports when the implementation does not do what its specs say."""


class Mismatch(Exception):  # noqa: N818 - it names a finding.
    """The implementation differs from its model or its client's oracle, or a consumer would see something wrong."""


def expect(holds: object, otherwise: str) -> None:
    """Raises Mismatch."""
    if not holds:
        raise Mismatch(otherwise)
