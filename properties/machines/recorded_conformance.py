"""What a run recorded, through the checker: a run that came out right must have done what the specs allow, too.

The machines hold a store against its specs while it runs, by looking into it. A recording is what the store tells of
itself, replayed by the compiled kernels with no look at the store at all: each would notice where the other is blind.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from gapless.impl.recorder.recorder import Recorder
from gapless.traces.check import check
from gapless.traces.events import schema

CONFORMS = "conforms"
NOTHING = "nothing told"
"""What may come of a recording: it conforms; or no store was ever open, and there is nothing to conform."""


class Unlawful(Exception):  # noqa: N818 - it names a finding.
    """What a store recorded is nothing that the specs allow."""


def lawful(recorder: Recorder) -> Counter[str]:
    """What came of a recording, and how many `events` it has.

    Raises Unlawful, with the checker's story; RecordingFailed where the recorder could not read what it was to tell of.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.parquet"
        events = schema.write(path, recorder.batches())
        if not events:
            return Counter([NOTHING])
        report = check(path, profile="strict", engine="local", jobs=1)
    if report.verdict != CONFORMS:
        reasons = [reason for source in report.sources for reason in source.reasons]
        stories = [
            "\n".join(line for line in finding.story if not line.startswith("Again: "))  # the file is gone by then
            for finding in report.findings
            if finding.severity == "violation"
        ]
        raise Unlawful("\n\n".join([f"the recording {report.verdict}", *reasons, *stories]))
    return Counter({CONFORMS: 1, "events": events})
