"""The strings of a directory view, as the tests expect them."""

from __future__ import annotations

EMPTY = (
    "Here're the files and directories up to 2 levels deep in /memories, "
    "excluding hidden items and node_modules:\n0B\t/memories"
)


def human_size(count: int) -> str:
    """Return a size as listings show it."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:g}{unit}" if size == int(size) else f"{size:.1f}{unit}"


def listing(path: str, *entries: tuple[int, str]) -> str:
    """Return the view of a directory: each entry is a size in bytes and a path, the directory first."""
    head = (
        f"Here're the files and directories up to 2 levels deep in {path}, "
        "excluding hidden items and node_modules:"
    )
    return "\n".join([head, *(f"{human_size(size)}\t{entry}" for size, entry in entries)])


def numbered(path: str, *lines: str, first: int = 1) -> str:
    """Return the view of a file's lines."""
    body = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))
    return f"Here's the content of {path} with line numbers:\n{body}"


def snippet(*lines: str, first: int = 1) -> str:
    """Return the answer to an edit that shows these lines."""
    body = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))
    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return f"{head}\n{body}"
