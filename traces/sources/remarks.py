"""Remarks of a check: reasons for open questions, and notes, each once."""

from __future__ import annotations


class Remarks:
    """Findings that are no departures, of a source that is checked."""

    inconclusive: list[str]
    notes: list[str]

    def doubt(self, text: str) -> None:
        """Adds a reason for an open question, once."""
        if text not in self.inconclusive:
            self.inconclusive.append(text)

    def note(self, text: str) -> None:
        """Adds a note, once."""
        if text not in self.notes:
            self.notes.append(text)
