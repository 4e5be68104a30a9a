"""`gapless warm`."""

from __future__ import annotations

from gapless.commands.terminal import printing


def warm() -> None:
    """Compile all native code now: no check, and no store, does it later. Less than a minute, once on a machine.

    Checks compile on their own what pays; small ones never wait for it.
    """
    from time import perf_counter

    from gapless import compiling
    from gapless.native.objects.cache import shown_folder

    began = perf_counter()
    count = compiling.load_all()
    with printing(0):
        print(f"{count} functions are compiled, and kept in {shown_folder()} ({perf_counter() - began:.0f} s)")
