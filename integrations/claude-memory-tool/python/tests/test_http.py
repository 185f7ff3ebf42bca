"""What is particular to a server that runs already and is reached over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warm_memory_tool import WarmConnectionError, WarmMemoryTool, WarmMemoryToolSync
from warm_process import HttpServer

TOKEN = "a-token-of-more-than-sixteen-letters"  # noqa: S105 - of this test alone
VIEW = {"command": "view", "path": "/memories"}


@pytest.fixture
def guarded(data_dir: Path) -> Iterator[HttpServer]:
    with HttpServer("--data-dir", str(data_dir), env={"WARM_MCP_TOKEN": TOKEN}) as server:
        yield server


def test_the_token_is_given_or_taken_from_the_environment(
    guarded: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WarmMemoryToolSync.connect(url=guarded.url, token=TOKEN) as memory:
        assert memory.call(VIEW)
    monkeypatch.setenv("WARM_MCP_TOKEN", TOKEN)
    with WarmMemoryToolSync.connect(url=guarded.url) as memory:
        assert memory.call(VIEW)


@pytest.mark.parametrize("token", [None, "", "another-token-of-enough-letters"])
def test_without_the_token_the_error_says_what_to_do_and_does_not_repeat_it(
    guarded: HttpServer, token: str | None
) -> None:
    with pytest.raises(WarmConnectionError) as caught:
        WarmMemoryToolSync.connect(url=guarded.url, token=token)
    assert str(caught.value) == (
        f"The server at {guarded.url} refused access (HTTP 401). Pass the token that it was started with as "
        "`token`, or set WARM_MCP_TOKEN."
    )


def test_a_path_that_is_not_the_servers_is_named(guarded: HttpServer) -> None:
    elsewhere = guarded.url.replace("/mcp", "/other")
    with pytest.raises(WarmConnectionError, match=r"/other does not know .* nothing at this path\. Check"):
        WarmMemoryToolSync.connect(url=elsewhere, token=TOKEN)


def test_where_nothing_listens_the_error_names_the_address() -> None:
    with pytest.raises(WarmConnectionError, match=r"127\.0\.0\.1:9/mcp"):
        WarmMemoryToolSync.connect(url="http://127.0.0.1:9/mcp", start_timeout=10)


async def test_several_tools_share_one_server_and_one_that_is_closed_leaves_it_running(
    data_dir: Path,
) -> None:
    with HttpServer("--data-dir", str(data_dir)) as server:
        async with (
            WarmMemoryTool.connect(url=server.url) as one,
            WarmMemoryTool.connect(url=server.url) as other,
        ):
            await one.call({"command": "create", "path": "/memories/a.md", "file_text": "x"})
            await one.aclose()
            assert "a.md" in await other.call(VIEW)
        assert server.process.poll() is None


def test_a_server_that_goes_away_is_named_at_the_next_call(data_dir: Path) -> None:
    server = HttpServer("--data-dir", str(data_dir))
    with server, WarmMemoryToolSync.connect(url=server.url) as memory:
        memory.call({"command": "create", "path": "/memories/a.md", "file_text": "x"})
        server.process.kill()
        server.process.wait()
        with pytest.raises(Exception, match=r"Warm|reach|connect|closed") as caught:
            memory.call(VIEW)
        assert caught.type.__name__ in ("WarmConnectionError", "WarmToolError")


def test_a_restart_keeps_every_file_and_the_old_session_is_named_as_unknown(data_dir: Path) -> None:
    with HttpServer("--data-dir", str(data_dir)) as server:
        before = WarmMemoryToolSync.connect(url=server.url)
        before.call({"command": "create", "path": "/memories/a.md", "file_text": "x"})
    with (
        before,
        HttpServer("--data-dir", str(data_dir), bind=server.url.split("/")[2]) as again,
        WarmMemoryToolSync.connect(url=again.url) as after,
    ):
        assert after.call(VIEW | {"path": "/memories/a.md"}).endswith("1\tx")
        with pytest.raises(WarmConnectionError, match=r"does not know this session.*connect again"):
            before.call(VIEW)


@pytest.mark.parametrize(
    "options",
    [
        {"token": TOKEN},
        {"url": "http://127.0.0.1:1/mcp", "command": "warm-mcp"},
        {"url": "x", "args": ["-v"]},
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="url"):
        WarmMemoryToolSync.connect(**options)  # type: ignore[arg-type]
