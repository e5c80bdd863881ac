"""A voice to speak in, given as a recording or as its codes: what a prompt needs of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.higgs.cloning.cache import CacheLimits, ReferenceCache
from pipelines.higgs.cloning.recording import (
    LARGEST_BYTES,
    LARGEST_MIB,
    LONGEST_MS,
    ReferenceRefused,
    read_recording,
    read_recording_file,
)
from pipelines.higgs.codec.config import CodecConfig
from pipelines.higgs.config import FRAMES_PER_S
from pipelines.higgs.rows import Codes
from pipelines.types import Samples

# Ten seconds of a voice are 1 MB of sound and 8 kB of codes: the codes of many outlast their sound.
SOUND_LIMITS = CacheLimits(items=256, total_bytes=512 * 2**20)
CODE_LIMITS = CacheLimits(items=256, total_bytes=256 * 2**20)
LONGEST_TRANSCRIPT_CHARS = 4_000  # several times what is said in the longest recording
LONGEST_FRAMES = LONGEST_MS * FRAMES_PER_S // 1000


@dataclass(frozen=True, slots=True)
class ReferenceRequest:
    """One of a file's path, its bytes, those as base64 (a data URL too), or codes [frames, books].

    transcript: the words that are spoken in it; they make the voice more like itself.
    """

    path: Path | None = None
    data: bytes | None = None
    base64: str | None = None
    codes: Codes | Sequence[Sequence[int]] | None = None
    transcript: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """codes: int32 [frames, codebooks], not to be written to."""

    codes: Codes
    transcript: str | None


class ReferenceEncoder:
    """Requests to references. Any thread may call it; it works as long as decoding takes.

    encode: float32 [n] at 24 kHz to int32 [frames, codebooks], padding what is too short for it
        (`codec.CodecEncoder.encode`).
    model: names the weights; codes of other weights mean something else.
    """

    def __init__(
        self,
        encode: Callable[[Samples], Codes],
        config: CodecConfig,
        model: str,
        sound_limits: CacheLimits = SOUND_LIMITS,
        code_limits: CacheLimits = CODE_LIMITS,
    ) -> None:
        self._encode = encode
        self._config = config
        self._model = model
        self._sounds = ReferenceCache[Hashable, Samples](sound_limits, lambda sound: sound.nbytes)
        self._codes = ReferenceCache[Hashable, Codes](code_limits, lambda codes: codes.nbytes)

    def refer(self, request: ReferenceRequest) -> Reference:
        """Raises ReferenceRefused, naming the field of the request."""
        given = [
            name
            for name in ("path", "data", "base64", "codes")
            if getattr(request, name) is not None
        ]
        transcript = (request.transcript or "").strip() or None
        if len(transcript or "") > LONGEST_TRANSCRIPT_CHARS:
            raise ReferenceRefused(
                "transcript",
                f"is longer than {LONGEST_TRANSCRIPT_CHARS} characters; write only what is said",
            )
        if not given and transcript:
            raise ReferenceRefused("transcript", "there is no recording that it is of")
        if len(given) != 1:
            raise ReferenceRefused(
                given[1] if given else "path",
                "give one of path, data, base64 and codes"
                + (f", not {' and '.join(given)}" if given else ""),
            )
        if request.codes is not None:
            return Reference(self._checked(request.codes), transcript)
        return Reference(self._codes_of(self._sound(request)), transcript)

    def _sound(self, request: ReferenceRequest) -> Samples:
        if request.path is not None:
            return self._of_path(request.path)
        if request.base64 is not None:
            return self._of_data(_from_base64(request.base64), "base64")
        return self._of_data(request.data or b"", "data")

    def _of_path(self, path: Path) -> Samples:
        """A file that has changed since is read again."""
        try:
            state = path.stat()
        except OSError:
            return read_recording_file(path, "path")  # which says what is wrong with it
        key = (path.resolve(), state.st_mtime_ns, state.st_size)
        return self._sounds.get(key, lambda: _kept(read_recording_file(path, "path")))

    def _of_data(self, data: bytes, field: str) -> Samples:
        key = hashlib.blake2b(data, digest_size=16).digest()
        return self._sounds.get(key, lambda: _kept(read_recording(data, field)))

    def _codes_of(self, sound: Samples) -> Codes:
        key = (self._model, hashlib.blake2b(sound.tobytes(), digest_size=16).digest())
        return self._codes.get(key, lambda: _kept(self._encode(sound)))

    def _checked(self, given: Codes | Sequence[Sequence[int]]) -> Codes:
        books, size = self._config.codebooks, self._config.codebook_size
        try:
            codes = np.asarray(given)
        except ValueError as error:
            raise ReferenceRefused("codes", f"rows of different lengths, not of {books}") from error
        if codes.ndim != 2 or codes.shape[1] != books:
            raise ReferenceRefused("codes", f"{list(codes.shape)}, not [frames, {books}]")
        if not np.issubdtype(codes.dtype, np.integer):
            raise ReferenceRefused("codes", f"{codes.dtype} values, not whole numbers")
        if not 1 <= len(codes) <= LONGEST_FRAMES:
            raise ReferenceRefused(
                "codes",
                f"{len(codes)} frames, not 1 to {LONGEST_FRAMES} ({LONGEST_MS // 1000} s)",
            )
        wrong = np.argwhere((codes < 0) | (codes >= size))
        if len(wrong):
            frame, book = wrong[0]
            raise ReferenceRefused(
                "codes", f"[{frame}][{book}] is {codes[frame, book]}, not 0 to {size - 1}"
            )
        return _kept(codes.astype(np.int32))


def _from_base64(text: str) -> bytes:
    content = text.partition(",")[2] if text.startswith("data:") else text
    if len(content) > LARGEST_BYTES * 4 // 3 + 4:
        raise ReferenceRefused("base64", f"more than {LARGEST_MIB} MiB; cut it to 5 to 15 s")
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ReferenceRefused("base64", f"not base64: {error}") from error


def _kept(array: np.ndarray) -> np.ndarray:
    """Shared by all who ask for it, so that nobody may write to it."""
    array.flags.writeable = False
    return array
