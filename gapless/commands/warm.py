"""`gapless warm`."""

from __future__ import annotations

from gapless.commands.terminal import printing


def warm() -> None:
    """Compile every kernel now: no check, and no store, has to do it later. Some minutes, once on a machine.

    Checks compile on their own what pays; small ones never wait for it.
    """
    from time import perf_counter

    from gapless.impl import warm as of_impl
    from gapless.traces import warm as of_traces

    began = perf_counter()
    of_traces.main()
    of_impl.main()
    with printing(0):
        print(f"every kernel is compiled ({perf_counter() - began:.0f} s)")
