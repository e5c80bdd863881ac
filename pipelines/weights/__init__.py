"""Model files: which there are, where they come from, and whether they are whole."""

from pipelines.weights.fetching import FetchFailed, fetch, fetch_files
from pipelines.weights.local_store import (
    FileState,
    ModelCorrupt,
    ModelMissing,
    Row,
    WeightsError,
    resolve,
    resolve_folder,
    status,
    store,
    verify,
)

__all__ = [
    "FetchFailed",
    "FileState",
    "ModelCorrupt",
    "ModelMissing",
    "Row",
    "WeightsError",
    "fetch",
    "fetch_files",
    "resolve",
    "resolve_folder",
    "status",
    "store",
    "verify",
]
