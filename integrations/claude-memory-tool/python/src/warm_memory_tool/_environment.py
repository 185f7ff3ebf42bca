"""Which of this process's environment variables a server gets to see."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mcp.client.stdio import get_default_environment

_PREFIXES = ("WARM_", "XDG_", "LC_")
_NAMES = frozenset({"LANG", "LANGUAGE", "RUST_BACKTRACE", "RUST_LOG", "TEMP", "TMP", "TMPDIR", "TZ"})
_PASSPHRASE_OPTION = "--passphrase-env"  # noqa: S105 - the name of an option
_PASSPHRASE_VARIABLE = "WARM_MCP_PASSPHRASE_ENV"  # noqa: S105 - the name of a variable


def server_environment(extra: Mapping[str, str] | None, args: Sequence[str]) -> dict[str, str]:
    """Return the environment to start a server in.

    It holds what finds a home, a locale and a configuration, everything that starts with `WARM_`,
    and the variable that holds the passphrase if `args` or the environment name one; `extra` goes
    on top. Other variables stay here, so that a server never sees the keys of other services.
    """
    inherited = {
        name: value for name, value in os.environ.items() if name in _NAMES or name.startswith(_PREFIXES)
    }
    environment = {**get_default_environment(), **inherited, **(extra or {})}
    passphrase = _passphrase_variable(args) or environment.get(_PASSPHRASE_VARIABLE)
    if passphrase and passphrase in os.environ:
        environment.setdefault(passphrase, os.environ[passphrase])
    return environment


def _passphrase_variable(args: Sequence[str]) -> str | None:
    for index, arg in enumerate(args):
        if arg == _PASSPHRASE_OPTION:
            return args[index + 1] if index + 1 < len(args) else None
        if arg.startswith(f"{_PASSPHRASE_OPTION}="):
            return arg.partition("=")[2]
    return None
