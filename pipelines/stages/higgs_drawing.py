"""How a request wants its sound drawn, as far as the model can."""

from __future__ import annotations

import hashlib
import math

from pipelines.higgs.rows import Sampling
from pipelines.types import Drawing, StageError

HIGHEST_TEMPERATURE = 2.0  # beyond, codes are drawn almost evenly, and nothing is speech
NO_TOP_K = 0
LARGEST_SEED = 2**63 - 1  # what fits a message, and any client's integer
SEED_BITS = 31  # of a row's seed


def check_drawing(drawing: Drawing) -> None:
    """Raises StageError `drawing_refused`; its message begins with the field at fault."""
    temperature, top_p, top_k = drawing.temperature, drawing.top_p, drawing.top_k
    if temperature is not None and not 0 <= temperature <= HIGHEST_TEMPERATURE:
        raise _refused(
            "temperature",
            temperature,
            f"a number from 0, which always takes the likeliest, to {HIGHEST_TEMPERATURE:g}",
        )
    if top_p is not None and not 0 < top_p <= 1:
        raise _refused("top_p", top_p, "a number above 0 and at most 1")
    if top_k is not None and top_k < -1:
        raise _refused("top_k", top_k, "a whole number from 1, or 0 or -1 for no limit")
    if drawing.seed is not None and not 0 <= drawing.seed <= LARGEST_SEED:
        raise _refused("seed", drawing.seed, f"a whole number from 0 to {LARGEST_SEED}")
    if drawing.most_frames is not None and drawing.most_frames < 1:
        raise _refused("most_frames", drawing.most_frames, "1 or more")
    if drawing.first_frames is not None and drawing.first_frames < 0:
        raise _refused("first_frames", drawing.first_frames, "0 or more")


def sampling_of(drawing: Drawing, usual: Sampling, codebook_size: int) -> Sampling:
    """usual: what holds where the request says nothing."""
    top_k = usual.top_k if drawing.top_k is None else drawing.top_k
    return Sampling(
        usual.temperature if drawing.temperature is None else drawing.temperature,
        usual.top_p if drawing.top_p is None else drawing.top_p,
        # No limit either way; a larger number would not fit a row.
        NO_TOP_K if top_k < 1 or top_k >= codebook_size else top_k,
    )


def row_seed(seed: int) -> int:
    """A seed of 63 bits as one of 31 that depends on all of them; small ones stay as they are."""
    most = (1 << SEED_BITS) - 1
    if seed <= most:
        return seed
    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=4).digest()
    return int.from_bytes(digest, "little") & most


def _refused(field: str, value: float, wanted: str) -> StageError:
    shown = f"{value:g}" if isinstance(value, float) and not math.isfinite(value) else f"{value}"
    return StageError("drawing_refused", f"{field}: {shown} is out of range; send {wanted}.")
