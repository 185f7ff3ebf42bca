"""Random command sequences, on the SDK's own filesystem tool and on ours: the same answers.

Where the two are meant to differ, `DIFFERENCES` says so and why, and one function for each turns the
SDK's answer into the one that is right for us. Anything else that differs is a fault.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from conftest import Connect
from listing import human_size
from warm_memory_tool import WarmMemoryToolSync

STEPS = 300

DIFFERENCES = {
    "header": "the directory header also names node_modules, as the documentation has it",
    "sizes": "a directory is as large as the files below it; the SDK shows what its entry takes on the disk",
    "last line": "a trailing newline adds no empty line to a view; the SDK shows one",
    "empty directories": "directories exist only while they hold a file; the SDK keeps empty ones",
    "empty old_str": "replacing nothing is refused with a message of our own; the SDK finds it everywhere",
    "path rules": "hidden, empty, dot and percent-encoded segments, backslashes, control characters and "
    "names that only begin like /memories are refused; the SDK accepts them or folds them away",
    "view range": "a range that is not two numbers, or that ends before -1, is refused; the SDK ignores the "
    "first and counts the second from the end",
    "os errors": "a path under a file, and a directory moved into itself, are tool errors with a message of "
    "our own; the SDK lets the operating system's error through",
}

SEGMENTS = ["a", "b", "a.txt", "a-b", "é", "a..b", "Z"]
ODD_PATHS = [
    "/memoriesX",
    "/memories_backup/f.txt",
    "/memories/",
    "/memories//a",
    "/memories/./a",
    "/memories/.a",
    "/memories/a/",
    "/memories/%2e%2e/a",
    "/memories/a\\b",
    "/memories/a\tb",
    "/memories/a/../b",
]
LEGAL = re.compile(r"/memories(/(?!\.)[^/\\%\x00-\x1f]+)*")
REFUSED_BY_BOTH = [
    "/",
    "",
    "/etc/passwd",
    "memories/a",
    "/memories/..",
    "/memories/../x",
    "/memories/a/../../x",
]
WORDS = ["a", "aa", "b", "\n", "a\n", "x\r\n", "é", "🚀", ""]


@dataclass
class Outcome:
    """What a command came to: its result, or the kind and message of its error."""

    text: str
    error: type[Exception] | None = None


def outcome(run: Callable[[dict[str, Any]], object], command: dict[str, Any]) -> Outcome:
    """Run a command, whatever comes of it."""
    try:
        return Outcome(str(run(command)))
    except ToolError as error:
        return Outcome(str(error), ToolError)
    except OSError as error:
        return Outcome(str(error), OSError)


@dataclass
class Reference:
    """The SDK's tool on a temporary directory, with our differences applied."""

    folder: Path
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tool = BetaLocalFilesystemMemoryTool(str(self.folder))
        self.root = self.folder / "memories"

    def run(self, command: dict[str, Any]) -> Outcome:
        """Return what our tool has to answer; `OSError` stands for a tool error with our own message."""
        if any(map(only_we_refuse, paths_of(command))):
            self.used.add("path rules")
            return Outcome("", OSError)
        if command.get("old_str") == "" and self.local(command["path"]).is_file():
            self.used.add("empty old_str")
            return Outcome("", OSError)
        given = outcome(self.tool.call, command)
        if self.local(command.get("path", "")).is_file() and not is_range(command.get("view_range", [1, -1])):
            self.used.add("view range")
            return Outcome("", OSError)
        self.prune()
        if given.error is OSError:
            self.used.add("os errors")
        elif given.error is None and command["command"] == "view":
            path = self.local(command["path"])
            given.text = (
                self.directory_view(given.text) if path.is_dir() else self.file_view(given.text, path)
            )
        return given

    def local(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def prune(self) -> None:
        """Remove directories that hold no file, the root apart."""
        for folder, _, _ in os.walk(self.root, topdown=False):
            if Path(folder) != self.root and not os.listdir(folder):
                self.used.add("empty directories")
                os.rmdir(folder)

    def directory_view(self, text: str) -> str:
        header, *entries = text.split("\n")
        self.used |= {"header", "sizes"}
        header = header.replace("excluding hidden items:", "excluding hidden items and node_modules:")
        return "\n".join([header, *(self.entry(entry) for entry in entries)])

    def entry(self, entry: str) -> str:
        _, path = entry.split("\t")
        local = self.local(path)
        files = [local] if local.is_file() else [file for file in local.rglob("*") if file.is_file()]
        return f"{human_size(sum(file.stat().st_size for file in files))}\t{path}"

    def file_view(self, text: str, path: Path) -> str:
        content = path.read_bytes().decode()
        phantom = f"{content.count(chr(10)) + 1:6}\t"
        if (content == "" or content.endswith("\n")) and text.endswith(f"\n{phantom}"):
            self.used.add("last line")
            without = text[: -len(phantom)]
            return without if without.endswith(":\n") else without[:-1]
        return text

    def files(self) -> dict[str, str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {f"/{path.relative_to(self.folder)}": path.read_bytes().decode() for path in found}


def paths_of(command: dict[str, Any]) -> list[str]:
    return [command[name] for name in ("path", "old_path", "new_path") if name in command]


def is_range(view_range: list[int]) -> bool:
    """Return whether a view takes this range."""
    return len(view_range) == 2 and view_range[1] >= -1


def only_we_refuse(path: str) -> bool:
    """Return whether a path breaks one of our rules, and none of the SDK's."""
    stays = os.path.normpath(path).startswith("/memories")
    return path.startswith("/memories") and stays and not LEGAL.fullmatch(path)


def random_path(chance: random.Random) -> str:
    roll = chance.random()
    if roll < 0.03:
        return chance.choice(ODD_PATHS)
    if roll < 0.06:
        return chance.choice(REFUSED_BY_BOTH)
    if roll < 0.10:
        return "/memories"
    return "/memories/" + "/".join(
        chance.choice(SEGMENTS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 4]))
    )


def random_text(chance: random.Random, longest: int) -> str:
    return "".join(chance.choice(WORDS) for _ in range(chance.randint(0, longest)))


def random_command(chance: random.Random, files: dict[str, str]) -> dict[str, Any]:
    """Return a command, more often than not about a file that exists."""
    known = sorted(files)

    def path() -> str:
        if known and chance.random() < 0.7:
            given = chance.choice(known)
            return given if chance.random() < 0.85 else given.rpartition("/")[0]
        return random_path(chance)

    name = chance.choice(
        ["view", "view", "create", "create", "str_replace", "str_replace", "insert", "delete", "rename"]
    )
    if name == "view":
        command: dict[str, Any] = {"command": name, "path": path()}
        if chance.random() < 0.4:
            command["view_range"] = [chance.randint(-1, 8), chance.choice([-1, chance.randint(-2, 9)])]
            if chance.random() < 0.05:
                command["view_range"].append(3)
        return command
    if name == "create":
        new = random_path(chance) if chance.random() < 0.8 else f"{path()}/{chance.choice(SEGMENTS)}"
        return {"command": name, "path": new, "file_text": random_text(chance, 14)}
    if name == "str_replace":
        target = path()
        text = files.get(target, "")
        start = chance.randint(0, len(text))
        old = text[start : start + chance.randint(1, 4)] if chance.random() < 0.8 else random_text(chance, 2)
        return {"command": name, "path": target, "old_str": old, "new_str": random_text(chance, 4)}
    if name == "insert":
        return {
            "command": name,
            "path": path(),
            "insert_line": chance.randint(-1, 7),
            "insert_text": random_text(chance, 4),
        }
    if name == "delete":
        return {"command": name, "path": path()}
    new = chance.choice(
        [random_path(chance), random_path(chance), path(), f"{path()}/{chance.choice(SEGMENTS)}"]
    )
    return {"command": name, "old_path": path(), "new_path": new}


def files_of(memory: WarmMemoryToolSync, paths: set[str]) -> dict[str, str]:
    """Return our files: all that the directories name, with their lines."""
    found: set[str] = set()
    folders = ["/memories"]
    while folders:
        folder = folders.pop()
        for line in memory.call({"command": "view", "path": folder}).split("\n")[2:]:
            entry = line.split("\t")[1]
            if not entry.endswith("/"):
                found.add(entry)
            elif entry.count("/") - folder.count("/") == 3:
                folders.append(entry.rstrip("/"))
    assert found == paths
    return {path: memory.call({"command": "view", "path": path}) for path in found}


@pytest.mark.parametrize("seed", range(6))
def test_random_commands_come_to_the_same_as_on_the_sdks_filesystem_tool(
    connect: Connect, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    reference = Reference(tmp_path / "reference")
    memory = connect()
    history: list[dict[str, Any]] = []
    for _ in range(STEPS):
        command = random_command(chance, reference.files())
        history.append(command)
        expected = reference.run(command)
        ours = outcome(memory.call, command)
        recent = "\n".join(map(repr, history[-12:]))
        if expected.error is OSError:
            assert ours.error is ToolError, f"{recent}\nours: {ours}\nexpected a tool error"
            assert ours.text
        else:
            assert ours == expected, recent
    shown = files_of(memory, set(reference.files()))
    for path, view in shown.items():
        assert view == reference.run({"command": "view", "path": path}).text
    memory.close()
    again = connect()
    assert files_of(again, set(reference.files())) == shown


def test_every_documented_difference_is_met_and_none_other_is_listed(tmp_path: Path) -> None:
    used: set[str] = set()
    for seed in range(6):
        chance = random.Random(seed)
        reference = Reference(tmp_path / str(seed))
        for _ in range(STEPS):
            reference.run(random_command(chance, reference.files()))
        used |= reference.used
    assert used == set(DIFFERENCES)
