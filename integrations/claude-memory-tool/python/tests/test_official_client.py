"""The official `mcp` client drives the server itself: every tool, over each transport and revision."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import (
    CallToolResult,
    CompleteResult,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from warm_process import HttpServer

TOOLS = {"memory", "remember", "recall", "get", "list", "forget", "export", "stats"}

Opener: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["legacy", "auto", "2026-07-28"])
def opener(request: pytest.FixtureRequest, transport: str, binary: str, data_dir: Path) -> Opener:
    """Opens a client: by a handshake, by asking what the server speaks, or in the current form at once."""
    mode = str(request.param)

    @asynccontextmanager
    async def open_client() -> AsyncIterator[Client]:
        arguments = ["--data-dir", str(data_dir)]
        if transport == "stdio":
            async with Client(StdioServerParameters(command=binary, args=arguments), mode=mode) as client:
                yield client
        else:
            with HttpServer(*arguments) as server:
                async with Client(server.url, mode=mode) as client:
                    yield client

    return open_client


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Call a tool that must succeed; return what it says in structure."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    if tool != "memory":
        assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def run(client: Client, command: str, **fields: Any) -> str:  # noqa: ANN401
    """Run a memory command that must succeed."""
    result = await client.call_tool("memory", {"command": command, **fields})
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    assert result.structured_content["result"] == text_of(result)
    return text_of(result)


async def test_the_client_finds_every_tool_described(opener: Opener) -> None:
    async with opener() as client:
        assert client.server_info is None or client.server_info.name == "warm-mcp"
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == TOOLS
        for tool in listed.tools:
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is not None


async def test_the_client_runs_all_six_memory_commands(opener: Opener) -> None:
    path = "/memories/plan.md"
    async with opener() as client:
        assert path in await run(client, "create", path=path, file_text="one\ntwo\n")
        await run(client, "str_replace", path=path, old_str="two", new_str="zwei")
        await run(client, "insert", path=path, insert_line=0, insert_text="zero")
        view = await run(client, "view", path=path)
        assert [line.split("\t")[1] for line in view.splitlines()[1:]] == ["zero", "one", "zwei"]
        await run(client, "rename", old_path=path, new_path="/memories/old/plan.md")
        assert "/memories/old/plan.md" in await run(client, "view", path="/memories")
        await run(client, "delete", path="/memories/old")
        assert "plan.md" not in await run(client, "view", path="/memories")


async def test_the_client_calls_every_other_tool(opener: Opener) -> None:
    async with opener() as client:
        stored = await ask(
            client, "remember", key="boiler", text="The boiler is serviced in May.", tags=["home"],
            metadata={"floor": 2},
        )  # fmt: skip
        assert stored["key"] == "boiler"
        assert stored["created"] is True
        await ask(client, "remember", text="A note without a name.")
        got = await ask(client, "get", key="boiler")
        assert (got["text"], got["tags"], got["metadata"]) == (
            "The boiler is serviced in May.", ["home"], {"floor": 2},
        )  # fmt: skip
        found = await ask(client, "recall", query="boiler serviced?", filter={"floor": {"gte": 2}})
        assert [hit["key"] for hit in found["results"]] == ["boiler"]
        listed = await ask(client, "list", tag="home", order="recent")
        assert [memory["key"] for memory in listed["memories"]] == ["boiler"]
        exported = await ask(client, "export", format="json")
        assert "boiler" in json.dumps(exported)
        assert (await ask(client, "stats"))["memories"] == 2
        assert (await ask(client, "forget", key="boiler"))["forgotten"] == 1
        assert (await ask(client, "stats"))["memories"] == 1


async def test_a_refusal_is_a_result_with_its_code_and_an_unknown_tool_an_error(opener: Opener) -> None:
    async with opener() as client:
        refused = await client.call_tool("get", {"key": "nothing"})
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["code"] == "not_found"
        assert refused.structured_content["message"] == text_of(refused)
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("recal", {})
        assert (await ask(client, "stats"))["memories"] == 0


async def test_the_client_reads_memories_and_counts_as_resources(opener: Opener) -> None:
    async with opener() as client:
        await ask(client, "remember", key="boiler", text="Serviced in May.")
        await run(client, "create", path="/memories/a b.md", file_text="With a space in its name.\n")
        templates = await client.list_resource_templates()
        assert "warm://memory/{key}" in {template.uri_template for template in templates.resource_templates}
        listed = {resource.uri for resource in (await client.list_resources()).resources}
        assert "warm://stats" in listed
        read = await client.read_resource("warm://memory/boiler")
        assert isinstance(read.contents[0], TextResourceContents)
        assert "Serviced in May." in read.contents[0].text
        files = [uri for uri in listed if uri.startswith("warm://memory/") and uri.endswith("b.md")]
        read = await client.read_resource(files[0])
        assert isinstance(read.contents[0], TextResourceContents)
        assert "With a space in its name." in read.contents[0].text
        read = await client.read_resource("warm://stats")
        assert isinstance(read.contents[0], TextResourceContents)
        assert json.loads(read.contents[0].text)["memories"] == 2
        with pytest.raises(MCPError):
            await client.read_resource("warm://memory/nothing")


async def test_the_client_gets_every_prompt(opener: Opener) -> None:
    async with opener() as client:
        await ask(client, "remember", key="boiler", text="The boiler is serviced in May.")
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert set(prompts) == {"recall-context", "save-memory", "review-memories"}
        for name, prompt in prompts.items():
            assert prompt.description
            needed = {argument.name: "boiler" for argument in prompt.arguments or [] if argument.required}
            got = await client.get_prompt(name, needed)
            assert got.messages
            for message in got.messages:
                assert not isinstance(message.content, TextContent) or message.content.text
        with pytest.raises(MCPError):
            await client.get_prompt("no-such-prompt")


async def test_the_client_completes_keys_and_tags(opener: Opener) -> None:
    async with opener() as client:
        for key in ("boiler", "boots", "car"):
            await ask(client, "remember", key=key, text="x", tags=[f"tag-{key}"])
        reference = ResourceTemplateReference(type="ref/resource", uri="warm://memory/{key}")
        completed = await client.complete(reference, {"name": "key", "value": "bo"})
        assert sorted(completed.completion.values) == ["boiler", "boots"]
        tagged: list[CompleteResult] = []
        for prompt in (await client.list_prompts()).prompts:
            for argument in prompt.arguments or []:
                if argument.name in ("tag", "tags"):
                    about = PromptReference(type="ref/prompt", name=prompt.name)
                    tagged.append(await client.complete(about, {"name": argument.name, "value": "tag-b"}))
        assert tagged, "no prompt takes a tag"
        for answer in tagged:
            assert sorted(answer.completion.values) == ["tag-boiler", "tag-boots"]
