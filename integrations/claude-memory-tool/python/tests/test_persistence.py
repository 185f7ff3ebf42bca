"""What outlives a server: memories, in any folder, with the identity in any line ending."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from pathlib import Path

import pytest

from conftest import Connect
from listing import EMPTY, listing, numbered
from warm_memory_tool import WarmConnectionError, WarmMemoryToolSync
from warm_process import RawServer


def identity_of(store: Path) -> Path:
    """Return the identity file that the first start made."""
    return store / "identity.txt"


def test_a_restart_keeps_every_file(connect: Connect) -> None:
    first = connect()
    first.call({"command": "create", "path": "/memories/a/kept.md", "file_text": "one\ntwo\n"})
    first.call({"command": "create", "path": "/memories/gone.md", "file_text": "x"})
    first.call({"command": "str_replace", "path": "/memories/a/kept.md", "old_str": "one", "new_str": "1"})
    first.call({"command": "delete", "path": "/memories/gone.md"})
    first.close()
    second = connect()
    assert second.call({"command": "view", "path": "/memories/a/kept.md"}) == numbered(
        "/memories/a/kept.md", "1", "two"
    )
    assert second.call({"command": "view", "path": "/memories"}) == listing(
        "/memories", (6, "/memories"), (6, "/memories/a/"), (6, "/memories/a/kept.md")
    )
    assert [hit.path for hit in second.recall("two")] == ["/memories/a/kept.md"]


def test_two_stores_know_nothing_of_each_other(connect: Connect, tmp_path: Path) -> None:
    one, other = connect(), connect(at=tmp_path / "other")
    one.call({"command": "create", "path": "/memories/f", "file_text": "secret plan"})
    assert other.call({"command": "view", "path": "/memories"}) == EMPTY
    assert len(other.recall("secret plan")) == 0


def test_no_text_or_name_is_readable_on_disk_and_no_one_else_may_look(
    connect: Connect, data_dir: Path
) -> None:
    memory = connect()
    memory.call({"command": "create", "path": "/memories/plainname.md", "file_text": "plaintextword " * 50})
    memory.recall("plaintextword")
    memory.close()
    files = [path for path in data_dir.rglob("*") if path.is_file()]
    assert files
    for path in files:
        held = path.read_bytes()
        assert b"plaintextword" not in held, path
        assert b"plainname" not in held, path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for path in [data_dir, *(path for path in data_dir.rglob("*") if path.is_dir())]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


@pytest.mark.parametrize("folder", ["with space", "日本語", "🚀 memo ries", "d" * 100 + "/" + "e" * 100])
def test_a_data_folder_of_any_name_works_across_a_restart(
    connect: Connect, tmp_path: Path, folder: str
) -> None:
    store = tmp_path / folder / "store"
    path = "/memories/" + "日本/" * 2 + "p" * 120 + "/" + "q" * (200 - 145)
    assert len(path.encode()) == 200
    first = connect(at=store)
    first.call({"command": "create", "path": path, "file_text": "the ferry leaves at noon"})
    assert [hit.path for hit in first.recall("ferry")] == [path]
    first.close()
    second = connect(at=store)
    assert second.call({"command": "view", "path": path}) == numbered(path, "the ferry leaves at noon")
    assert [hit.path for hit in second.recall("ferry")] == [path]


def test_the_first_start_says_once_where_the_identity_is(data_dir: Path) -> None:
    said = []
    for _ in range(2):
        server = RawServer(data_dir)
        server.initialize()
        assert server.stop() == 0
        said.append(server.last_words())
    assert str(identity_of(data_dir)) in said[0]
    assert str(identity_of(data_dir)) not in said[1]


@pytest.mark.parametrize(
    "save",
    [
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
        lambda text: text.rstrip("\r\n"),
    ],
    ids=["LF", "CRLF", "no final newline"],
)
def test_an_identity_file_saved_by_any_editor_opens_the_store(connect: Connect, data_dir: Path, save) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    first = connect()
    first.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    first.close()
    identity = identity_of(data_dir)
    identity.write_bytes(save(identity.read_bytes().decode()).encode())
    second = connect()
    assert second.call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


def refusal(connect: Connect) -> str:
    """Start a server that must refuse to, and return what it says."""
    with pytest.raises(WarmConnectionError) as caught:
        connect(start_timeout=30)
    return str(caught.value)


def filled_store(connect: Connect) -> None:
    first = connect()
    first.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    first.close()


def test_a_wrong_identity_is_called_wrong(connect: Connect, data_dir: Path, tmp_path: Path) -> None:
    filled_store(connect)
    connect(at=tmp_path / "other").close()
    kept = identity_of(data_dir).read_bytes()
    shutil.copyfile(identity_of(tmp_path / "other"), identity_of(data_dir))
    said = refusal(connect)
    assert "wrong" in said.lower() or "another" in said.lower() or "does not open" in said.lower()
    assert "malformed" not in said
    identity_of(data_dir).write_bytes(kept)
    assert connect().call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


def test_a_truncated_identity_is_called_malformed(connect: Connect, data_dir: Path) -> None:
    filled_store(connect)
    identity = identity_of(data_dir)
    kept = identity.read_bytes()
    identity.write_bytes(kept[: len(kept) - 20])
    assert "malformed" in refusal(connect)
    identity.write_bytes(kept)
    assert connect().call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


def test_a_missing_identity_is_named_and_none_is_made_in_its_place(connect: Connect, data_dir: Path) -> None:
    filled_store(connect)
    identity = identity_of(data_dir)
    kept = identity.read_bytes()
    identity.unlink()
    assert str(identity) in refusal(connect)
    assert not identity.exists()
    identity.write_bytes(kept)
    assert connect().call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


def test_an_identity_file_elsewhere_opens_the_store(connect: Connect, data_dir: Path, tmp_path: Path) -> None:
    filled_store(connect)
    elsewhere = tmp_path / "key.txt"
    identity_of(data_dir).rename(elsewhere)
    memory: WarmMemoryToolSync = connect("--identity", str(elsewhere))
    assert memory.call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")
    assert not os.path.lexists(identity_of(data_dir))


def test_a_passphrase_seals_the_store_and_a_wrong_one_does_not_open_it(connect: Connect) -> None:
    option = ("--passphrase-env", "MEMORY_PASSPHRASE")
    first = connect(*option, env={"MEMORY_PASSPHRASE": "correct horse battery"})
    first.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    first.close()
    with pytest.raises(WarmConnectionError, match=r"(?i)passphrase"):
        connect(*option, env={"MEMORY_PASSPHRASE": "wrong"}, start_timeout=60)
    again = connect(*option, env={"MEMORY_PASSPHRASE": "correct horse battery"})
    assert again.call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


def test_a_passphrase_variable_of_this_process_reaches_the_server(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_PASSPHRASE", "correct horse battery")
    memory = connect("--passphrase-env=MEMORY_PASSPHRASE")
    memory.call({"command": "create", "path": "/memories/f", "file_text": "x"})
    assert memory.call({"command": "view", "path": "/memories/f"}) == numbered("/memories/f", "x")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_first_start_that_is_ended_half_way_leaves_a_folder_that_the_next_start_opens(
    tmp_path: Path, end: signal.Signals
) -> None:
    for number in range(60):
        store = tmp_path / str(number)
        first = RawServer(store)
        time.sleep(number * 0.001)
        first.process.send_signal(end)
        first.stop()
        with RawServer(store) as second:
            second.memory("create", path="/memories/f", file_text="x")
            assert second.memory("view", path="/memories/f") == numbered("/memories/f", "x")


def test_first_starts_at_once_agree_on_one_identity(data_dir: Path) -> None:
    servers = [RawServer(data_dir) for _ in range(6)]
    served = 0
    for number, server in enumerate(servers):
        try:
            server.initialize()
            server.memory("create", path=f"/memories/{number}", file_text="x")
            served += 1
        except (AssertionError, BrokenPipeError):
            assert str(data_dir) in server.last_words()
    for server in servers:
        server.stop()
    assert served >= 1
    with RawServer(data_dir) as again:
        assert again.ask("stats", {})["memories"] == served
