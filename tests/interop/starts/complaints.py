"""The exceptions and warnings that a broker logged while it started, without its usual noise."""

from __future__ import annotations

import re
from pathlib import Path

PARTS = 5  # exceptions and lines that are kept
LONGEST = 200  # letters of one
NOISE = re.compile(
    r"ClosedChannel|RemotingConnect|refresh metadata|NoRouteInfo|SLF4J|RemotingTooMuch|UnknownHost|logback|HAService"
    r"|BUG.read|printMasterAndSlave|transferService|MessageStoreState transition|unflushed|shutdown abnormally"
    r"|deleteUnnecessary|persist|hardware address|illegal magic code 0x0|Offset not matched"
)
THROWN = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"]*\" )?((?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error)(?:: .*)?)$"
)
CONSEQUENCE = re.compile(r"NullPointerException.*(shutdown\(\)|getMessageStoreConfig\(\))")
"""Thrown while a broker ends that could not start."""
WARNED = re.compile(
    r"\b(?:WARN|ERROR)\b.*(?:fail|not match|rror|xception|illegal|manually|mismatch|wrong)", re.IGNORECASE
)


def complaints(home: Path) -> str:
    """The first exceptions of the logs below `home`, then lines of warnings; at most `PARTS`."""
    thrown: list[str] = []
    warned: list[str] = []
    later: list[str] = []
    logs = sorted(home.rglob("*.log"), key=lambda file: file.stat().st_mtime)
    for log in [*logs, home / "output.txt"]:
        for line in log.read_text(errors="replace").splitlines():
            if NOISE.search(line):
                continue
            if match := THROWN.match(line):
                (later if CONSEQUENCE.search(line) else thrown).append(match[1])
            elif WARNED.search(line):
                warned.append(re.sub(r"^\S+ \S+ (WARN|ERROR) .*? - ", "", line))
    parts = [cleaned(line, home) for line in dict.fromkeys([*thrown[:3], *warned[:4], *later[:1]])]
    return " | ".join(parts[:PARTS])


def cleaned(line: str, home: Path) -> str:
    """One line without paths of this machine, and without letters that cannot be printed."""
    text = re.sub(r"[^ -~]+", " ", line.replace(str(home), ""))
    return re.sub(r"\s+", " ", text)[:LONGEST].strip()
