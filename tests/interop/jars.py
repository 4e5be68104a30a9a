"""The Java and the Maven of this machine, and the jars of a broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
OLDEST_JAVA = 17
FETCH_WITHIN = 600  # seconds


class MissingTool(Exception):  # noqa: N818 - it says what happened
    """This machine has not got what a broker needs; the message says what."""


class FetchFailure(Exception):  # noqa: N818 - as above
    """Maven could not bring the jars; the message is its own."""


@dataclass(frozen=True)
class Tools:
    """The two commands."""

    java: str
    maven: str


def find_tools() -> Tools:
    """Raises `Missing`."""
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingTool("Maven is not installed (no `mvn` on the PATH; on Debian: apt install maven)")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise MissingTool(f"Java {OLDEST_JAVA} or later is not installed (no `java` {where})")
    found = _java_version(java)
    if found < OLDEST_JAVA:
        raise MissingTool(f"Java {OLDEST_JAVA} or later is needed, and {java} is {found}")
    return Tools(java, maven)


def _java_version(java: str) -> int:
    """The number of the language: 8 for 1.8, 17 for 17.0.15; 0 if it does not say."""
    shown = subprocess.run(
        [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", shown.stderr)
    return int(version[1]) if version else 0


def fetch(tools: Tools, version: str, build: Path, *, tiered: bool = False) -> Path:
    """The folder with the jars of a broker of this version, which are fetched once. Raises `NotFetched`.

    `tiered`: with the plugin for tiered storage, which there is from 5.0 on.
    """
    jars = build / f"rocketmq-{version}{'-tiered' * tiered}"
    complete, pom = jars / "complete", HERE / "pom.xml"
    if complete.exists() and complete.read_text() == pom.read_text():
        return jars
    shutil.rmtree(jars, ignore_errors=True)
    jars.mkdir(parents=True)
    command = [tools.maven, "--batch-mode", "--quiet", f"--file={pom}", f"-Drocketmq.version={version}"]
    command += ["-Ptiered"] * tiered
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars.absolute()}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_WITHIN)
    except subprocess.TimeoutExpired:
        raise FetchFailure(f"Maven did not bring RocketMQ {version} within {FETCH_WITHIN} s") from None
    if done.returncode or not any(jars.glob("rocketmq-broker-*.jar")):
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line][:3]
        raise FetchFailure("\n".join([f"Maven could not bring RocketMQ {version}:", *errors]))
    complete.write_text(pom.read_text())
    return jars
