"""The command line of tbd-sim, called in this process."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

#: Flags that are given once for each value.
_REPEATED = {"set", "changes", "where"}


class TbdSimError(ValueError):
    """What tbd-sim wrote to standard error: what is wrong, where, and what was expected."""


def _module() -> Any:
    """The compiled module. Capturing does not need it, and works from the source tree as well."""
    try:
        from . import _core
    except ImportError as error:
        raise ImportError("tbdsim._core is not built: pip install . in the repository") from error
    return _core


def data_dir() -> str:
    """The folder that holds the catalogue: TBDSIM_DATA_DIR, else the package's own, else the source tree's."""
    named = os.environ.get("TBDSIM_DATA_DIR")
    if named:
        return named
    own = Path(__file__).parent / "data"
    return str(own) if own.is_dir() else _module().source_data_dir


def run(*arguments: str) -> str:
    """Standard output of ``tbd-sim ARGUMENTS...``.

    Raises TbdSimError where the program would exit with an error, KeyboardInterrupt after Ctrl-C.
    """
    code, out, err = _module().run([str(argument) for argument in arguments], data_dir())
    if code == 130:
        raise KeyboardInterrupt
    if code != 0:
        raise TbdSimError(err.strip().removeprefix("tbd-sim: ").removeprefix("error: "))
    return out


def run_program(*arguments: str) -> int:
    """The exit code of ``tbd-sim ARGUMENTS...``, which writes to this process's standard output and error as it goes."""
    os.environ["TBDSIM_DATA_DIR"] = data_dir()
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _module().main([str(argument) for argument in arguments])
    finally:
        signal.signal(signal.SIGINT, before)


def run_json(*arguments: str) -> dict[str, Any]:
    """The JSON document that ``tbd-sim ARGUMENTS... --format json`` prints."""
    return json.loads(run(*arguments, "--format", "json"))


def text_of(value: Any) -> str:
    """A value as the command line takes it: a sequence with commas between its items, a path that has commas in quotes.
    A size such as ``600x800`` is text already."""
    if isinstance(value, (list, tuple, range)):
        return ",".join(text_of(each) for each in value)
    text = str(value)
    return f'"{text}"' if "," in text and os.path.exists(text) else text


def options(**values: Any) -> list[str]:
    """Flags of the command line: ``batch=32, seq_len=None, set=["a=1", "b=2"]`` -> ``--batch 32 --set a=1 --set b=2``.

    None and False are left out, True is a flag without a value.
    """
    flags: list[str] = []
    for name, value in values.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
        elif name.rstrip("_") in _REPEATED:
            each = [value] if isinstance(value, str) else value
            for one in each:
                flags += [flag, str(one)]
        else:
            flags += [flag, text_of(value)]
    return flags
