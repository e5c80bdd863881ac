"""Where the C library behind `audio/opus` comes from.

The package opuslib speaks to libopus, which pip cannot install by that name. Two places have it:
the system (Debian: `libopus0`), which is asked first, and the wheel of the package `av`, which
carries a whole libopus of its own beside its modules. opuslib takes what
`ctypes.util.find_library("opus")` names while it is being imported; here that answer is the library
that was found. Nothing is loaded before somebody asks for Opus, and nothing else needs it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOW_TO_INSTALL = (
    "This server cannot speak Opus: install the Python package 'opuslib' and, for its C library, "
    "the system's libopus (Debian: libopus0) or the Python package 'av'."
)

_lock = threading.Lock()  # large client events are read in threads
_loaded: list[Any] = []


class OpusMissing(ImportError):
    """There is no opuslib, or no libopus for it. The message says what to install."""


def load_opuslib() -> Any:
    """The package opuslib, bound to the first libopus that loads. Raises OpusMissing.

    A failure is not remembered: the next call looks again.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_import_opuslib(_first_library()))
        return _loaded[0]


def has_opus() -> bool:
    try:
        load_opuslib()
    except OpusMissing:
        return False
    return True


def _import_opuslib(library: str) -> Any:
    find_library = ctypes.util.find_library
    ctypes.util.find_library = lambda name: library if name == "opus" else find_library(name)
    try:
        with warnings.catch_warnings():
            # It compares numbers by identity, which is harmless for the small ones it has.
            warnings.simplefilter("ignore", SyntaxWarning)
            import opuslib  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise OpusMissing(HOW_TO_INSTALL) from None
    finally:
        ctypes.util.find_library = find_library
    return opuslib


def _first_library() -> str:
    """The name or path of a libopus that loads."""
    for library in (*_of_the_system(), *_of_the_wheel()):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return library
    raise OpusMissing(HOW_TO_INSTALL)


def _of_the_system() -> Iterator[str]:
    if sys.platform == "linux":
        yield "libopus.so.0"  # the search by `find_library` would start a compiler
    elif (name := ctypes.util.find_library("opus")) is not None:
        yield name


def _of_the_wheel() -> Iterator[str]:
    """Libraries beside the modules of `av`, which itself is not imported."""
    spec = importlib.util.find_spec("av")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        package = Path(folder)
        for place in (package.parent / "av.libs", package / ".dylibs"):
            yield from sorted(map(str, place.glob("*opus*")))
