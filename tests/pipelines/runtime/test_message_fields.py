"""Annotations that are spelt in several ways."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from typing_extensions import TypeAliasType

from pipelines.runtime.message_fields import fits

Scalar = TypeVar("Scalar", bound=np.generic)
# As NumPy's NDArray is where Python has the `type` statement.
NAMED = TypeAliasType("NAMED", np.ndarray[Any, np.dtype[Scalar]], type_params=(Scalar,))


def test_a_named_type_is_what_it_stands_for() -> None:
    fit = fits(NAMED[np.float32])
    assert fit(np.zeros(3, np.float32))
    assert not fit(np.zeros(3, np.float64)), "another dtype"
    assert not fit(np.zeros((3, 1), np.float32)), "two dimensions"
