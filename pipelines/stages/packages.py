"""The optional packages of stages on a GPU: looked for without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from pipelines.types import StageError

_OF_TORCH = ("torch", "transformers", "safetensors", "tokenizers")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "higgs": _OF_TORCH,
    "whisper_torch": _OF_TORCH,
    "sglang": ("sglang", "transformers", "jinja2"),
}


def require_packages(kind: str) -> None:
    """Raises StageError that names the packages which a stage of this kind lacks here."""
    missing = [name for name in NEEDED.get(kind, ()) if find_spec(name) is None]
    if missing:
        raise StageError(
            "packages_missing",
            f"The stage {kind} needs {', '.join(missing)}, which cannot be found here: start by "
            "`make serve CONFIG=...`, or install them with `pip install -e '.[higgs,sglang]'`.",
        )
