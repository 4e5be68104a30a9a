"""`gapless record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gapless.commands.terminal import failed, printing, telling

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A new directory, or an empty one.", show_default=False)
]
MessagesOption = Annotated[int, typer.Option(metavar="N", min=0, help="Messages to send.")]
TopicsOption = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Topics to send to.")]
QueuesOption = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Queues of each topic.")]
SizesOption = Annotated[str, typer.Option(metavar="FROM..TO", help="Bytes of a body: from..to, or one number.")]
RateOption = Annotated[
    float | None,
    typer.Option(metavar="N", min=0.001, help="Messages a second; default: as fast as it goes.", show_default=False),
]
BatchOption = Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Messages in one append.")]
FlushOption = Annotated[Literal["async", "sync"], typer.Option(help="sync: a message is taken when it is on disk.")]
WorkersOption = Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Threads that build the queues.")]
OverlapOption = Annotated[bool, typer.Option("--overlap/--alone", help="Whether several workers may be at one queue.")]
FaultsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FAULT",
        help="What goes wrong, several with commas: crash, torn, eio, enospc, slow-worker, failing-worker.",
        show_default=False,
    ),
]
TransactionsOption = Annotated[
    bool,
    typer.Option(
        "--transactions",
        help="Half of the messages are halves of transactions: committed, rolled back, or left to be asked about.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same seed gives the same store.")]
FormOption = Annotated[Literal["parquet", "ndjson"], typer.Option("--format", help="Of the traces.")]


def record(
    folder: FolderArgument,
    messages: MessagesOption = 100_000,
    topics: TopicsOption = 2,
    queues: QueuesOption = 4,
    sizes: SizesOption = "100..2000",
    rate: RateOption = None,
    batch: BatchOption = 1,
    flush: FlushOption = "async",
    workers: WorkersOption = 2,
    overlap: OverlapOption = True,  # noqa: FBT002 - a flag is what it is
    faults: FaultsOption = None,
    transactions: TransactionsOption = False,  # noqa: FBT002 - a flag is what it is
    seed: SeedOption = 0,
    form: FormOption = "parquet",
) -> None:
    """Run our own store on a workload, with faults if you like, and leave in DIR the store and its traces.

    DIR/store is a store directory, DIR/traces has every step that it took, DIR/client.ndjson the answers to producers.
    With transactions, DIR/broker.conf has the limits, which no file of a store has. `gapless check DIR` finds all.
    Faults of the disk are those of a simulated one, whose content is then written to DIR/store.
    """
    from gapless.impl.records.errors import StoreError
    from gapless.impl.workloads.workload import Workload
    from gapless.runs import recording

    try:
        shortest, longest = recording.sizes(sizes)
        options = recording.RunOptions(
            Workload(messages, topics, queues, shortest, longest, rate, seed, transactions),
            together=batch,
            synchronous=flush == "sync",
            workers=workers,
            overlap=overlap,
            faults=recording.faults(faults or ()),
            form=form,
        )
        with telling():
            done = recording.run(folder, options)
    except (recording.NoRun, StoreError) as error:
        raise failed(str(error)) from None
    except OSError as error:
        raise failed(f"{error.filename or folder}: {error.strerror or error}") from None
    with printing(done.code):
        print("\n".join(done.lines))
    raise typer.Exit(done.code)
