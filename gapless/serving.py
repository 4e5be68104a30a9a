"""`gapless serve`: a coordinator that runs until it is interrupted."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gapless.impl.coordinator.bounded_log import LOGGER
from gapless.impl.coordinator.connections.access import permitted
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.records.errors import Refused


class Place(NamedTuple):
    """A place where clients connect, and what is asked of them there."""

    host: str
    port: int
    secret: bytes | None
    tls: ssl.SSLContext | None


def tls_context(certificate: Path | None, key: Path | None, authorities: Path | None) -> ssl.SSLContext | None:
    """The server's side of TLS, if there is a certificate. `authorities`: of clients' own. Raises Refused."""
    if certificate is None:
        for option, given in (("--tls-key", key), ("--tls-ca", authorities)):
            if given is not None:
                raise Refused(f"{option} {given}: there is no TLS without --tls-cert")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (ssl.SSLError, ValueError):
        raise Refused(
            f"--tls-cert {certificate}: no certificate with its key (PEM, without a password)"
            + (f" in {key}" if key else "; --tls-key names the key's own file")
        ) from None
    if authorities is not None:
        try:
            context.load_verify_locations(authorities)
        except (ssl.SSLError, ValueError):
            raise Refused(f"--tls-ca {authorities}: no certificates (PEM)") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def run_coordinator(
    folder: Path, settings: CoordinatorSettings, place: Place, record: Path | None, *, verbose: bool
) -> None:
    """Run it. Raises StoreError, OSError: it cannot be opened, cannot listen there, or its disk failed."""
    permitted(place.host, place.port, guarded=bool(place.secret or place.tls))  # before a folder is made
    tape = StepTape(record.resolve().parent) if record else None
    try:
        with _logging(verbose):
            asyncio.run(_serve(folder, settings, place, tape))
    finally:
        if tape is not None and record is not None:
            tape.write(record)


@contextmanager
def _logging(verbose: bool) -> Iterator[None]:  # noqa: FBT001 - a flag is what it is
    """Log to standard error, for as long as the coordinator runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO if verbose else logging.WARNING)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.propagate = True


async def _serve(folder: Path, settings: CoordinatorSettings, place: Place, tape: StepTape | None) -> None:
    loop, interrupted = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, interrupted.set)
    observer = tape.coordinator() if tape is not None else None
    async with await Coordinator.open(folder, settings, observer=observer) as coordinator:

        def report(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            coordinator.log.alert("error", "%s", context["message"], error=context.get("exception"))

        loop.set_exception_handler(report)  # asyncio's own has a traceback for each
        address, number = await coordinator.listen(place.host, place.port, secret=place.secret, tls=place.tls)
        sys.stdout.write(f"{address}:{number}\n")
        sys.stdout.flush()
        stop = asyncio.ensure_future(interrupted.wait())
        await asyncio.wait([stop, coordinator.failed], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if coordinator.failed.done():
            raise coordinator.failed.result()
