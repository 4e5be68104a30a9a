"""The base of all that a report is made of."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Frozen, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
