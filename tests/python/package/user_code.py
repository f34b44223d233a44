"""A program of a user, which test_typing checks with mypy, strict; pyright, strict, has nothing to say about it either. It is not run."""
import datetime
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import h5bridge
from h5bridge import batch, live, shard


def mean(path: str) -> npt.NDArray[np.float64]:
    with h5bridge.open_table(path) as table:
        view: h5bridge.Table = table.where("ANTENNA1 == 0")[0:10]
        column: h5bridge.Column = view["DATA"]
        measure: h5bridge.Measure | None = column.measure
        row: dict[str, object] = dict(table[3])
        names: list[str] = [name for name, one in table.items() if one.unit == "s"]
        rows: int = view.nrows + len(view.subtables["ANTENNA"])
        chosen: h5bridge.Table = table[np.array([1, 2])].columns(*names).rows([0])
        when: npt.NDArray[np.datetime64] = table["TIME"].datetime()
        total = sum(len(block) for _, block in column.iter_chunks())
        h5bridge.to_hdf5(view, "part.h5", columns=None, lock_timeout=None)
        missing: h5bridge.Column | None = table.get("NOPE")
        files: list[str] = [file.path for file in h5bridge.ls(path).files]
        print(measure, row, rows, chosen, when, total, missing, files, datetime.date.today())
        return np.asarray(column, dtype=np.float64)


def convert(path: str) -> int:
    def report(done: int, total: int, table: str, part: str) -> None:
        print(f"{done / total:.0%} {table}/{part}")

    summary: h5bridge.Summary = h5bridge.to_hdf5(path, "my.h5", rows=(0, 10), progress=report)
    comparison: h5bridge.Comparison = h5bridge.verify(path, summary.out).check()
    managers = {name: column.manager for name, column in h5bridge.info(path).tables["."].columns.items()}
    frame: h5bridge.Frame = h5bridge.frame(path, "spectrum", chan=(0, 3), corr=["XX", "YY"])
    try:
        h5bridge.to_ms("my.h5", "my.ms")
    except h5bridge.ExistsError as error:
        print(error.code, error.filename, managers, frame.x["label"])
    return summary.rows if comparison else 0


def steps(paths: Iterator[str]) -> str | None:
    pairs: list[tuple[str, str]] = [(path, path + ".h5") for path in paths]
    planned: batch.Planned = batch.plan(pairs, "all.ndjson", options=["--restorable"])
    ran: batch.Ran = batch.run(planned.out, "ledger", shard=(0, 2), stop_after="3h", progress=True)
    errors: list[str] = [failure.error for failure in batch.status("all.ndjson", "ledger").failed]
    plan: shard.Planned = shard.plan("huge.ms", "huge.h5", work_bytes="1G", columns=["DATA"])
    left: int = shard.work(plan.out, threads=2).left
    with h5bridge.serve("my.h5", "live.h5", port=8080) as pages:
        url: str = pages.url
    print(ran.states["done"], errors, left, url)
    return shard.commit("huge.h5").ranges if left == 0 else None


def append(values: npt.NDArray[np.complex64]) -> None:
    main = live.Table({"TIME": live.Column("f8", unit="s"), "DATA": live.Column("c8", cell=values.shape)})
    with live.Writer("live.h5", {"MAIN": main}, every=None) as writer:
        writer.append("MAIN", TIME=[5e9], DATA=values[np.newaxis])
        writer.commit()
    rates: list[object] = [look["rows_per_second"] for look in h5bridge.watch("live.h5", count=2)]
    print(rates)
