"""What a recall finds: typed for programs, in words for a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

RECALL_TOOL_NAME = "memory_recall"

RECALL_TOOL_DESCRIPTION = (
    "Search the memory directory. Returns the memory files that are most relevant to a query in plain "
    "language, best first, each with its path, a relevance score, the lines that match best and an "
    "excerpt. Use it to find what was remembered when you do not know which file holds it; then view "
    "the file for the whole text."
)


@dataclass(frozen=True)
class RecallHit:
    """One memory file that a recall found."""

    key: str
    """The file's path."""
    score: float
    """What results are ordered by; comparable only within one recall."""
    excerpt: str
    """From the passage that matches best, around the words of the query."""
    lines: tuple[int, int]
    """First and last line of that passage, counted from 1."""
    version: str
    """The version that was searched; it changes on every write."""
    updated_at: str
    """When the file was last written: RFC 3339, UTC."""
    lexical_score: float | None = None
    """The part of the score that words give."""
    semantic_score: float | None = None
    """The part of the score that meaning gives; None when recall is lexical."""
    title: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The file's path: another name for `key`."""
        return self.key


@dataclass(frozen=True)
class RecallResults(Sequence[RecallHit]):
    """The answer to a recall: a sequence of hits, best first, and how they were found."""

    hits: tuple[RecallHit, ...]
    mode: str
    """How the server searched: `lexical`, `hybrid` or `semantic`."""
    total: int
    """How many files matched."""
    truncated: bool
    """Whether some that matched are not among the hits."""

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        """Return one hit, or several as a tuple."""
        return self.hits[index]

    def __len__(self) -> int:
        """Return how many hits there are."""
        return len(self.hits)

    def __iter__(self) -> Iterator[RecallHit]:
        """Go through the hits, best first."""
        return iter(self.hits)


def parse_recall(content: Mapping[str, Any]) -> RecallResults:
    """Read the structured content of the server's `recall`.

    Raises:
        KeyError, TypeError, ValueError: It does not have the promised shape.
    """
    hits = tuple(_parse_hit(hit) for hit in content["results"])
    return RecallResults(
        hits=hits,
        mode=content["mode"],
        total=content["total"],
        truncated=content["truncated"],
    )


def _parse_hit(hit: Mapping[str, Any]) -> RecallHit:
    first, last = hit["lines"]
    return RecallHit(
        key=hit["key"],
        score=hit["score"],
        excerpt=hit["excerpt"],
        lines=(first, last),
        version=hit["version"],
        updated_at=hit["updated_at"],
        lexical_score=hit.get("lexical_score"),
        semantic_score=hit.get("semantic_score"),
        title=hit.get("title"),
        tags=tuple(hit.get("tags", ())),
    )


def recall_text(query: str, results: RecallResults) -> str:
    """Say in words what was found, for a model to read."""
    if not results.hits:
        return (
            f"No memory file matches: {query}\n"
            "Try other words, or view /memories to see which files there are."
        )
    shown = f"{len(results)} of {results.total}" if results.truncated else f"{len(results)}"
    noun = "file" if results.total == 1 else "files"
    head = f"Found {shown} matching memory {noun}, most relevant first:"
    return "\n\n".join([head, *(_hit_text(rank, hit) for rank, hit in enumerate(results, start=1))])


def _hit_text(rank: int, hit: RecallHit) -> str:
    first, last = hit.lines
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    title = f" {hit.title}" if hit.title else ""
    excerpt = "\n".join(f"   {line}" for line in hit.excerpt.split("\n"))
    return f"{rank}. {hit.key}{title} (score {hit.score:.3f}, {lines})\n{excerpt}"
