"""Memory servers side by side, through the Python MCP client over stdio, in one run.

Each server stores the same short memories in a folder of its own, then answers the same queries and
reads. The servers take turns, a batch each, so that a machine whose speed drifts is unfair to none.
Times are what a client waits, from call to parsed result; `ping` is the floor that the client and the
pipe put under all of them.

    python -m venv bench && bench/bin/pip install mcp
    cargo build --release --bin warm-mcp
    bench/bin/python benches/mcp/compare_stdio.py \
        --peer 'other=/path/to/other-server --data-dir {dir}' \
        --peer 'server-memory=env MEMORY_FILE_PATH={dir}/memory.jsonl mcp-server-memory'

A command may hold `{dir}`, the folder made for that server. How a server is spoken to is found out
from its tools: `remember`, `recall` and `get` with a `key` or an `id`, or the knowledge graph of
`@modelcontextprotocol/server-memory`, whose search is for a substring and so gets one word.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT_BYTES = 110
ROUNDS = 10

NAMES = ["Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark", "Wayne", "Wonka", "Tyrell", "Aperture"]
VERBS = ["prefers", "rejected", "cancelled", "signed", "renewed", "moved", "shipped", "measured", "reviewed"]
THINGS = ["invoices", "email", "follow-ups", "ferries", "harbour", "contracts", "budget", "schema", "deploys"]
WHEN = ["on Monday", "at noon", "before the release", "after the audit", "in the spring", "since last year"]


class UnusableError(Exception):
    """A server gave no answer, or a wrong one: there is nothing to compare."""


@dataclass(frozen=True)
class Note:
    """One memory to store, and a question about it."""

    key: str
    text: str
    query: str
    word: str


def make_notes(count: int, seed: int) -> list[Note]:
    """Return memories of about 110 bytes, the same for the same seed; each has one word of its own."""
    chance = random.Random(seed)  # noqa: S311 - sample data
    notes = []
    for number in range(count):
        name, thing, word = chance.choice(NAMES), chance.choice(THINGS), f"ticket{number:05}"
        text = f"{name} {chance.choice(VERBS)} {thing} {chance.choice(WHEN)}, see {word}"
        while len(text) < TEXT_BYTES - 8:
            text += f" {chance.choice(THINGS)}"
        notes.append(Note(f"note-{number:05}", text, f"{name} {thing} {word}", word))
    return notes


@dataclass(frozen=True)
class Dialect:
    """How one kind of server is asked to store, search and read."""

    store: Callable[[Note], tuple[str, dict[str, Any]]]
    recall: Callable[[Note], tuple[str, dict[str, Any]]]
    get: Callable[[Note], tuple[str, dict[str, Any]]]


def remember_dialect(key: str) -> Dialect:
    """Return the dialect of `remember`, `recall` and `get`, where a memory's name is called `key`."""
    return Dialect(
        store=lambda note: ("remember", {key: note.key, "text": note.text}),
        recall=lambda note: ("recall", {"query": note.query, "k": 5}),
        get=lambda note: ("get", {key: note.key}),
    )


GRAPH = Dialect(
    store=lambda note: (
        "create_entities",
        {"entities": [{"name": note.key, "entityType": "note", "observations": [note.text]}]},
    ),
    recall=lambda note: ("search_nodes", {"query": note.word}),
    get=lambda note: ("open_nodes", {"names": [note.key]}),
)


async def find_dialect(session: ClientSession) -> Dialect:
    """Return the dialect that fits a server's tools."""
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    if {"remember", "recall", "get"} <= set(tools):
        return remember_dialect("key" if "key" in tools["get"].input_schema["properties"] else "id")
    if {"create_entities", "search_nodes", "open_nodes"} <= set(tools):
        return GRAPH
    raise UnusableError(f"no known way to store and search with these tools: {', '.join(sorted(tools))}")


@dataclass
class Server:
    """A server under measurement, and what was measured."""

    name: str
    command: str
    folder: Path
    times: dict[str, list[float]] = field(default_factory=dict)
    start_ms: list[float] = field(default_factory=list)
    rss_start_mb: float = 0.0
    rss_full_mb: float = 0.0
    store_bytes: int = 0

    def parameters(self) -> StdioServerParameters:
        """Return how to start it."""
        command, *args = shlex.split(self.command.replace("{dir}", shlex.quote(str(self.folder))))
        return StdioServerParameters(command=command, args=args, env=dict(os.environ))


@dataclass
class Running:
    """A started server."""

    server: Server
    session: ClientSession
    dialect: Dialect
    pid: int

    async def timed(self, what: str, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Await `work` and note how long it took."""
        begin = time.perf_counter()
        result = await work()
        self.server.times.setdefault(what, []).append((time.perf_counter() - begin) * 1000)
        return result

    async def call(self, what: str, note: Note) -> None:
        """Store, recall or get one note; end the run if the answer is wrong."""
        tool, arguments = getattr(self.dialect, what)(note)
        result = await self.timed(what, lambda: self.session.call_tool(tool, arguments))
        text = text_of(result)
        if result.is_error or (what != "store" and note.word not in text):
            raise UnusableError(f"{self.server.name}: {tool} answered {text[:300]!r} about {note.text!r}")


@asynccontextmanager
async def running(server: Server, log: TextIO) -> Any:  # noqa: ANN401
    """Start a server; note how long it takes until it is initialized."""
    before = children()
    begin = time.perf_counter()
    async with (
        stdio_client(server.parameters(), errlog=log) as (reader, writer),
        ClientSession(reader, writer) as session,
    ):
        await session.initialize()
        server.start_ms.append((time.perf_counter() - begin) * 1000)
        (pid,) = children() - before
        yield Running(server, session, await find_dialect(session), pid)


def text_of(result: CallToolResult) -> str:
    """Return a result's text."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def children(pid: int | None = None) -> set[int]:
    """Return the child processes of a process, this one by default."""
    return {
        int(child)
        for tasks in Path(f"/proc/{pid or 'self'}/task").glob("*/children")
        for child in tasks.read_text().split()
    }


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process and all below it."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return own / 1024 + sum(map(rss_mb, children(pid)))


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def batches(notes: list[Note]) -> Iterator[list[Note]]:
    """Cut notes into as many batches as there are rounds."""
    size = -(-len(notes) // ROUNDS)
    for first in range(0, len(notes), size):
        yield notes[first : first + size]


async def measure(servers: list[Server], notes: list[Note], queries: int, starts: int, log: TextIO) -> None:
    """Take all measurements, the servers taking turns."""
    for _ in range(starts + 1):
        for server in servers:
            async with running(server, log):
                pass
    for server in servers:
        del server.start_ms[0]  # the first start makes the store and its keys

    asked = random.Random(len(notes)).choices(notes, k=queries)  # noqa: S311 - sample data
    async with AsyncExitStack() as stack:
        started = [await stack.enter_async_context(running(server, log)) for server in servers]
        for one in started:
            one.server.rss_start_mb = rss_mb(one.pid)
        for what, subjects in (("ping", asked), ("store", notes), ("recall", asked), ("get", asked)):
            for turn, batch in enumerate(batches(subjects)):
                order = started if turn % 2 == 0 else started[::-1]
                for one in order:
                    for note in batch:
                        if what == "ping":
                            await one.timed("ping", one.session.send_ping)
                        else:
                            await one.call(what, note)
        for one in started:
            one.server.rss_full_mb = rss_mb(one.pid)
    for server in servers:
        server.store_bytes = folder_bytes(server.folder)


def percentile(values: list[float], share: float) -> float:
    """Return the value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(servers: list[Server], text_bytes: int) -> list[dict[str, Any]]:
    """Return the figures of each server."""
    rows = []
    for server in servers:
        row: dict[str, Any] = {"name": server.name, "command": server.command}
        for what in ("store", "recall", "get", "ping"):
            row[f"{what}_p50_ms"] = round(statistics.median(server.times[what]), 3)
            row[f"{what}_p95_ms"] = round(percentile(server.times[what], 0.95), 3)
        row["start_p50_ms"] = round(statistics.median(server.start_ms), 1)
        row["rss_empty_mb"] = round(server.rss_start_mb, 1)
        row["rss_full_mb"] = round(server.rss_full_mb, 1)
        row["store_bytes"] = server.store_bytes
        row["store_over_text"] = round(server.store_bytes / text_bytes, 2)
        rows.append(row)
    return rows


COLUMNS = {
    "server": "{name}",
    "store p50/p95 ms": "{store_p50_ms:.2f} / {store_p95_ms:.2f}",
    "recall k=5 ms": "{recall_p50_ms:.2f} / {recall_p95_ms:.2f}",
    "get ms": "{get_p50_ms:.2f} / {get_p95_ms:.2f}",
    "ping ms": "{ping_p50_ms:.2f} / {ping_p95_ms:.2f}",
    "start ms": "{start_p50_ms:.0f}",
    "RSS MB empty/full": "{rss_empty_mb:.0f} / {rss_full_mb:.0f}",
    "disk / text": "{store_over_text:.1f} x",
}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as a table."""
    cells = [list(COLUMNS), *([cell.format(**row) for cell in COLUMNS.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    ]
    return "\n".join([lines[0], "-|-".join("-" * width for width in widths), *lines[1:]])


def default_command() -> str:
    """Return the command of this repository's own server."""
    binary = os.environ.get("WARM_MCP_BIN") or REPOSITORY / "target/release/warm-mcp"
    return f"{shlex.quote(str(binary))} --data-dir {{dir}}"


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default=default_command(), help="our server (default: %(default)s)")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=COMMAND", help="another server; may be repeated"
    )
    parser.add_argument("--memories", type=int, default=1000, help="how many to store (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=500, help="recalls and reads (default: %(default)s)")
    parser.add_argument("--starts", type=int, default=10, help="starts to time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample data (default: %(default)s)")
    parser.add_argument("--dir", type=Path, help="where the stores go (default: a temporary folder)")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where servers' stderr goes")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    args = parser.parse_args()
    args.peers = [peer.partition("=") for peer in args.peer]
    if wrong := [name for name, equals, command in args.peers if not (name and equals and command)]:
        parser.error(f"--peer takes NAME=COMMAND, not {wrong[0]!r}")
    return args


def innermost(error: BaseException) -> BaseException:
    """Return the error inside the groups that task groups wrap it in."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return error


def main() -> None:
    """Measure and print."""
    args = parse_args()
    notes = make_notes(args.memories, args.seed)
    text_bytes = sum(len(note.text.encode()) for note in notes)
    commands = [("warm-mcp", args.server), *((name, command) for name, _, command in args.peers)]
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="compare-") as base, args.log.open("w") as log:
        servers = [
            Server(name, command, Path(base) / f"{number}") for number, (name, command) in enumerate(commands)
        ]
        for server in servers:
            server.folder.mkdir(mode=0o700)
        try:
            asyncio.run(measure(servers, notes, args.queries, args.starts, log))
        except Exception as error:
            if isinstance(found := innermost(error), UnusableError):
                raise SystemExit(str(found)) from None
            raise
    rows = report(servers, text_bytes)
    setting = {
        "memories": len(notes),
        "text_bytes": text_bytes,
        "mean_text_bytes": round(text_bytes / len(notes), 1),
        "queries": args.queries,
        "starts": args.starts,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }
    if args.json:
        json.dump({"setting": setting, "servers": rows}, sys.stdout, indent=2)
        print()
        return
    print(f"{len(notes)} memories of {setting['mean_text_bytes']} bytes on average, {args.queries} queries")
    print(table(rows))


if __name__ == "__main__":
    main()
