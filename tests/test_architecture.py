"""The shape of the code: which package may import which, how long a file may be, what it is called.

The rules stand as data; every test names the file and the line that breaks one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 400  # what can still be read in one sitting
FORBIDDEN_NAMES = ("utils", "util", "manager", "helper", "helpers", "base")

# Doors stand on the runtime and may see what it stands on, but for audio and the stages.
BELOW_DOORS = {"realtime.runtime", "realtime.protocol", "realtime.session", "realtime.access"}

BELOW_CASCADE = {
    "pipelines.stages",
    "pipelines.text",
    "pipelines.runtime",
    "pipelines.ports",
    "pipelines.types",
}

# What a part may import beside itself, of this project. A part is a package or a module.
ALLOWED: dict[str, set[str]] = {
    "realtime.session": set(),
    "realtime.protocol": {"realtime.session"},
    "realtime.audio": set(),
    "realtime.observe": {"realtime.session"},
    "realtime.access": set(),
    "realtime.voices": {"realtime.audio", "pipelines.types"},
    "realtime.runtime": {
        "realtime.protocol",
        "realtime.session",
        "realtime.audio",
        "realtime.observe",
        "realtime.access",
        "pipelines.ports",
        "pipelines.types",
    },
    "realtime.transports": BELOW_DOORS | {"realtime.http.answers"},
    "realtime.http": BELOW_DOORS
    | {
        "realtime.audio",
        "realtime.observe",
        "realtime.voices",
        "pipelines.ports",
        "pipelines.types",
    },
    "realtime.stage_settings": set(),
    "realtime.settings": {"realtime.access", "realtime.stage_settings"},
    "realtime.settings_file": {"realtime.settings", "realtime.stage_settings"},
    # The wiring, alone in knowing both packages; `stages` makes one of the configured models.
    "realtime.app": {"realtime", "pipelines"},
    "realtime.stages": {
        "realtime.settings",
        "realtime.stage_settings",
        "realtime.stage_checks",
        "pipelines",
    },
    "realtime.stage_checks": {"realtime.stage_settings", "pipelines"},
    "realtime.session_defaults": {"realtime.settings", "realtime.session"},
    # Programs: what concerns the server goes through the wiring; the model store has its own door.
    "realtime.commands.models": {
        "realtime.commands",
        "realtime.settings",
        "realtime.stage_settings",
        "pipelines.weights",
    },
    "realtime.commands": {"realtime", "pipelines.ports", "pipelines.types"},
    "realtime.cli": {"realtime"},
    "pipelines.ports": {"pipelines.types"},
    "pipelines.types": set(),
    "pipelines.placement": {"pipelines.types"},
    "pipelines.cascade": {"pipelines.reply", "pipelines.spoken_text", *BELOW_CASCADE},
    "pipelines.reply": {
        "pipelines.courtesy",
        "pipelines.recital",
        "pipelines.speech",
        "pipelines.voicing",
        *BELOW_CASCADE,
    },
    "pipelines.spoken_text": {
        "pipelines.speech",
        "pipelines.voicing",
        *(BELOW_CASCADE - {"pipelines.stages"}),
    },
    "pipelines.speech": BELOW_CASCADE - {"pipelines.stages"},
    "pipelines.recital": {"pipelines.types"},
    "pipelines.courtesy": BELOW_CASCADE - {"pipelines.stages"},
    "pipelines.voicing": BELOW_CASCADE - {"pipelines.stages"},
    "pipelines.stages": {
        "pipelines.runtime",
        "pipelines.placement",
        "pipelines.higgs",
        "pipelines.text",
        "pipelines.weights",
        "pipelines.ports",
        "pipelines.types",
    },
    **{
        f"pipelines.{part}": {"pipelines.ports", "pipelines.types"}
        for part in ("runtime", "higgs", "text", "weights", "fakes")
    },
}
# A fake cascade is the real one over fake stages.
ALLOWED["pipelines.fakes"] |= {"pipelines.cascade", "pipelines.reply", "pipelines.runtime"}

# Parts whose imports from outside the project are limited to the standard library and these.
OUTSIDE: dict[str, set[str]] = {
    "realtime.session": set(),
    "realtime.protocol": {"pydantic", "pydantic_core", "numpy", "opuslib"},
    "pipelines.types": {"numpy"},
    "pipelines.ports": set(),
}


def _modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part_of(module: str) -> str | None:
    """The part with rules that a module belongs to; None for the packages' own roots."""
    return next((part for part in ALLOWED if _lies_in(module, part)), None)


def _lies_in(module: str, part: str) -> bool:
    return module == part or module.startswith(part + ".")


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of each import, wherever it stands; a name imported from a package counts
    as a module when it is one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for name in names:
                    inner = f"{module}.{name.name}"
                    yield node.lineno, inner if _is_module(inner) else module
            case ast.ImportFrom():
                yield node.lineno, "a relative import"
            case _:
                pass


def _is_module(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _broken_edges(path: Path, module: str) -> list[str]:
    part = _part_of(module)
    broken: list[str] = []
    for line, imported in _imports(path):
        place = f"{path.relative_to(ROOT)}:{line}: {module} imports {imported}"
        package = imported.split(".")[0]
        if package in ("realtime", "pipelines"):
            allowed = set() if part is None else ALLOWED[part] | {part}
            if not any(_lies_in(imported, other) for other in allowed):
                broken.append(place)
        elif imported == "a relative import" or (
            part in OUTSIDE
            and package not in sys.stdlib_module_names
            and package not in OUTSIDE[part]
        ):
            broken.append(place)
    return broken


def test_imports_go_one_way() -> None:
    broken = [
        edge
        for path in _modules("realtime", "pipelines")
        for edge in _broken_edges(path, _dotted(path))
    ]
    assert not broken, "\n".join(["these imports go the wrong way:", *broken])


def test_every_module_belongs_to_a_part() -> None:
    roots = {"realtime", "pipelines"}
    strays = [
        module
        for module in map(_dotted, _modules("realtime", "pipelines"))
        if module not in roots and _part_of(module) is None
    ]
    assert strays == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("realtime.session.machine", "import numpy"),
        ("realtime.session.machine", "from realtime.protocol import decode"),
        ("realtime.session.machine", "def late():\n    import asyncio, realtime.app"),
        ("realtime.protocol.decode", "from realtime import runtime"),
        ("realtime.runtime.driver", "from pipelines.cascade import CascadePipeline"),
        ("realtime.commands.talk", "from pipelines.weights import fetch"),
        ("realtime.http.health", "from realtime.app import create_app"),
        ("pipelines.stages.tts_piper", "import realtime.session.events"),
        ("pipelines.stages.tts_piper", "from pipelines.cascade import Pipeline"),
        ("pipelines.text.chunker", "from . import spoken"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    """The walker itself: each of these edges must be reported."""
    path = ROOT / "tests" / "_never_written.py"

    class Source(type(path)):
        def read_text(self, *_args: object, **_kwargs: object) -> str:
            return source

    assert len(_broken_edges(Source(path), module)) == 1


def test_no_file_is_longer_than_can_be_read() -> None:
    files = [
        *_modules("realtime", "pipelines", "tests", "benchmarks"),
        *(ROOT / "web").rglob("*.js"),
        *(ROOT / "web").rglob("*.css"),
    ]
    counts = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in files
    }
    assert len(counts) > 50
    assert {name: count for name, count in counts.items() if count > MAX_LINES} == {}


def test_names_say_what_a_module_holds() -> None:
    vague = [
        str(path.relative_to(ROOT))
        for path in _modules("realtime", "pipelines", "benchmarks")
        if any(part.removesuffix(".py") in FORBIDDEN_NAMES for part in path.relative_to(ROOT).parts)
        or path.name.startswith("base_")
        or path.stem.endswith(("_utils", "_manager", "_helper", "_helpers"))
    ]
    assert vague == []


def test_the_project_speaks_of_itself_alone() -> None:
    """Nothing names the machine that it was written on, or a package index."""
    forbidden = ("/work" + "/", "/tmp" + "/w/", "pypi" + ".org", "python" + "hosted.org")
    files = [
        path
        for folder in ("realtime", "pipelines", "configs", "web", "benchmarks", ".ci", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".js", ".css", ".html", ".yaml", ".txt", ".md", ""}
    ]
    files += [ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")]
    named = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in files
        if path.is_file()
        for word in forbidden
        if word in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert named == []
