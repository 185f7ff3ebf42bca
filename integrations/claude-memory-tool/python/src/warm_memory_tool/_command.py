"""From the SDK's typed commands to the arguments of the server's `memory` tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

from anthropic.types.beta import BetaMemoryTool20250818Command

from ._errors import WarmToolError

_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "view": ("path", "view_range"),
        "create": ("path", "file_text"),
        "str_replace": ("path", "old_str", "new_str"),
        "insert": ("path", "insert_line", "insert_text"),
        "delete": ("path",),
        "rename": ("old_path", "new_path"),
    }
)


def command_arguments(command: BetaMemoryTool20250818Command) -> dict[str, Any]:
    """Return the documented fields that `command` carries, and no others.

    A field that is missing or null is left out: what is required, and what type it must have, is for
    the server to say.
    """
    given = {name: getattr(command, name, None) for name in _FIELDS[command.command]}
    return {"command": command.command} | {name: value for name, value in given.items() if value is not None}


def checked_input(input: object) -> Mapping[str, object]:
    """Return `input` if it names one of the six commands.

    Raises:
        WarmToolError: It does not; the message lists the commands.
    """
    if not _is_object(input):
        raise WarmToolError("The memory tool takes an object with a `command`", code="invalid_argument")
    command = input.get("command")
    if not isinstance(command, str) or command not in _FIELDS:
        raise WarmToolError(
            f"Unknown memory command: {command}. It must be one of {', '.join(_FIELDS)}",
            code="invalid_argument",
        )
    return input


def refuse_unencodable(arguments: Mapping[str, object]) -> None:
    """Refuse text that no message can carry.

    A model can escape half of a surrogate pair in JSON. Python keeps such a string, but UTF-8 has no
    bytes for it.

    Raises:
        WarmToolError: Some text in `arguments` holds one; the message names the field.
    """
    for field, text in _strings(arguments):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise WarmToolError(
                f"Invalid `{field}`: it holds an unpaired surrogate at character {error.start}; "
                "send the whole character instead",
                code="invalid_argument",
            ) from None


def _strings(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for field, value in arguments.items():
        if isinstance(value, str):
            yield field, value


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)
