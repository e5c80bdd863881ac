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
from pipelines.weights.repository import (
    Repository,
    cure_of_folder,
    folder_of,
    repository_of,
    resolve_model,
    weight_bytes,
)
from pipelines.weights.repository_fetching import fetch_repository

__all__ = [
    "FetchFailed",
    "FileState",
    "ModelCorrupt",
    "ModelMissing",
    "Repository",
    "Row",
    "WeightsError",
    "cure_of_folder",
    "fetch",
    "fetch_files",
    "fetch_repository",
    "folder_of",
    "repository_of",
    "resolve",
    "resolve_folder",
    "resolve_model",
    "status",
    "store",
    "verify",
    "weight_bytes",
]
