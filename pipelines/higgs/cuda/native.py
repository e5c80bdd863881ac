"""The project's own kernels: built once from native/*.cu by the machine's nvcc, called by ctypes.

The library is kept in the user's cache under a name that says what it was built from, so a changed
source or compiler makes a new one and processes that start together cannot spoil each other's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

_SOURCES = Path(__file__).parent / "native"
_ENTRY = _SOURCES / "layers.cu"
_TIMEOUT_S = 300.0  # it takes about 10 s

# The warpgroup's product is of this one alone: H100, H200, GH200.
_CAPABILITY = (9, 0)
_ARCHITECTURE = "90a"


class NativeBuildError(RuntimeError):
    """The kernels cannot be built or do not run on this device; the message says why."""


class Target(ctypes.Structure):
    """`product::Target`; what its fields mean stands there."""

    _fields_ = [
        ("squares", ctypes.c_void_p),
        ("part_count", ctypes.c_int),
        ("inverse_hidden", ctypes.c_float),
        ("epsilon", ctypes.c_float),
        ("rows", ctypes.c_int),
        ("columns", ctypes.c_int),
        ("out", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("next_norm", ctypes.c_void_p),
        ("scaled", ctypes.c_void_p),
        ("next_squares", ctypes.c_void_p),
        ("packed", ctypes.c_void_p),
        ("packed_width", ctypes.c_int),
        ("query_heads", ctypes.c_int),
        ("key_heads", ctypes.c_int),
        ("positions", ctypes.c_int),
        ("query_norm", ctypes.c_void_p),
        ("key_norm", ctypes.c_void_p),
        ("cos", ctypes.c_void_p),
        ("sin", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
    ]


class Task(ctypes.Structure):
    """`attention::Task`."""

    _fields_ = [
        ("queries", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("attended", ctypes.c_void_p),
        ("packed", ctypes.c_void_p),
        ("packed_width", ctypes.c_int),
        ("query_heads", ctypes.c_int),
        ("key_heads", ctypes.c_int),
        ("positions", ctypes.c_int),
        ("scale", ctypes.c_float),
    ]


class DrawTask(ctypes.Structure):
    """`drawing::Task`."""

    _fields_ = [
        ("logits", ctypes.c_void_p),
        ("packed", ctypes.c_void_p),
        ("drawn", ctypes.c_void_p),
        ("last_drawn", ctypes.c_void_p),
        ("packed_width", ctypes.c_int),
        ("codebooks", ctypes.c_int),
        ("size", ctypes.c_int),
        ("begin_code", ctypes.c_int),
    ]


def load_library(device: torch.device) -> ctypes.CDLL:
    """The library for `device`, built if there is none yet. Raises NativeBuildError."""
    capability = torch.cuda.get_device_capability(device)
    if capability != _CAPABILITY:
        raise NativeBuildError(f"they are not made for compute capability {capability}")
    path = _built(_compiler())
    try:
        library = _typed(ctypes.CDLL(str(path)))
    except OSError as error:
        raise NativeBuildError(f"{path} cannot be loaded: {error}") from error
    # A toolkit that is newer than the driver builds what the driver then refuses to run.
    if error := library.parley_try():
        raise NativeBuildError(f"{path} does not run with this driver: CUDA error {error}")
    return library


def check(error: int, what: str) -> None:
    """Raises RuntimeError if a door of the library returned `error`."""
    if error:
        raise RuntimeError(f"{what}: the kernel was not launched: CUDA error {error}")


def _typed(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.parley_try.argtypes = []
    library.parley_multiply.argtypes = [
        number,
        pointer,
        pointer,
        ctypes.POINTER(Target),
        number,
        number,
        number,
        number,
        pointer,
    ]
    library.parley_attend.argtypes = [ctypes.POINTER(Task), number, number, number, pointer]
    library.parley_draw.argtypes = [ctypes.POINTER(DrawTask), number, pointer]
    library.parley_scale.argtypes = [pointer, pointer, pointer, pointer, number, number, pointer]
    return library


def _compiler() -> str:
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    found = shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")
    if found is None:
        raise NativeBuildError("there is no nvcc on PATH, in CUDA_HOME or in /usr/local/cuda")
    return found


def _built(compiler: str) -> Path:
    try:
        library = _folder() / f"higgs-{_fingerprint(compiler)}.so"
        if not library.exists():
            _build(compiler, library)
    except NativeBuildError:
        raise
    except (OSError, RuntimeError) as error:  # the latter of a user without a home
        raise NativeBuildError(
            f"the cache of built kernels cannot be written ({error}): set XDG_CACHE_HOME to a "
            "folder that can"
        ) from error
    return library


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "parley" / "kernels"


def _fingerprint(compiler: str) -> str:
    digest = hashlib.sha256(_ARCHITECTURE.encode())
    digest.update(_run([compiler, "--version"]).encode())
    for source in sorted(_SOURCES.glob("*.cu*")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _build(compiler: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        _run(
            [
                compiler,
                "-std=c++17",
                "-O3",
                "--shared",
                "-Xcompiler=-fPIC",
                f"-gencode=arch=compute_{_ARCHITECTURE},code=sm_{_ARCHITECTURE}",
                "-o",
                str(made),
                str(_ENTRY),
            ]
        )
        made.replace(library)  # whoever else builds it makes the same


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NativeBuildError(f"{command[0]} did not run: {error}") from error
    if done.returncode:
        raise NativeBuildError(f"{command[0]} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout
