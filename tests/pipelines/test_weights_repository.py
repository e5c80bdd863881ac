"""Models of a hub: whole or not, fetched, checked, gone on with; and what is said without a hub."""

from __future__ import annotations

import hashlib
import json
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.weights import FetchFailed, fetch_repository, resolve_model
from pipelines.weights.local_store import ModelCorrupt, ModelMissing, WeightsError
from pipelines.weights.repository import (
    INDEX,
    LISTING,
    SINGLE,
    Repository,
    cure_of_folder,
    problem_of,
    repository_of,
    weight_bytes,
)

NAME = "maker/small-model"
REPOSITORY = Repository(NAME, size_bytes=2_500_000_000)
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
CONTENTS = {
    "config.json": b'{"model_type": "toy"}',
    INDEX: json.dumps({"weight_map": {"a": SHARDS[0], "b": SHARDS[1], "c": SHARDS[1]}}).encode(),
    SHARDS[0]: b"first shard" * 50,
    SHARDS[1]: b"second shard" * 70,
    "tokenizer.json": b"{}",
}
OTHERS = {"README.md": b"#", "model.bin": b"other", "onnx/model.safetensors": b"deeper"}


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "store"))
    return tmp_path / "store"


def put(folder: Path, contents: dict[str, bytes] = CONTENTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


class Hub(types.ModuleType):
    """Stands in for the optional package: it gives what it holds, and may break off once."""

    def __init__(self) -> None:
        super().__init__("huggingface_hub")
        self.contents = {**CONTENTS, **OTHERS}
        self.fetched: list[str] = []
        self.breaks_at: str | None = None
        self.spoils: str | None = None
        self.failure: Exception | None = None
        self.revisions: list[str] = []
        self.HfApi = lambda: self

    def model_info(self, name: str, *, revision: str, files_metadata: bool) -> Any:
        assert files_metadata
        if self.failure is not None:
            raise self.failure
        assert (name, revision) == (NAME, "main")
        siblings = [
            SimpleNamespace(rfilename=path, size=len(content), lfs=self._lfs(path, content))
            for path, content in self.contents.items()
        ]
        return SimpleNamespace(sha="c0ffee", siblings=siblings)

    def _lfs(self, path: str, content: bytes) -> Any:
        sha256 = hashlib.sha256(content).hexdigest()
        match path:
            case name if name == SHARDS[0]:
                return {"sha256": sha256, "size": len(content)}
            case name if name == SHARDS[1]:
                return SimpleNamespace(sha256=sha256)
            case _:
                return None

    def hf_hub_download(self, repo_id: str, filename: str, revision: str, local_dir: str) -> str:
        assert repo_id == NAME
        self.revisions.append(revision)
        unfinished = Path(local_dir) / ".cache" / "huggingface" / f"{filename}.incomplete"
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        if self.breaks_at == filename:
            self.breaks_at = None
            unfinished.write_bytes(self.contents[filename][:7])
            raise ConnectionError("the line broke\nand more")
        self.fetched.append(filename)
        content = self.contents[filename]
        if self.spoils == filename:
            content = content[::-1]
        path = Path(local_dir) / filename
        path.write_bytes(content)
        unfinished.unlink(missing_ok=True)
        return str(path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.delitem(sys.modules, "huggingface_hub.utils", raising=False)
    return hub


def ignore(line: str) -> None:
    """Progress that nobody reads."""


# ---- what is there -------------------------------------------------------------------------------


def test_a_path_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_model(str(put(tmp_path / "mine"))) == tmp_path / "mine"
    assert repository_of(NAME) == Repository(NAME)
    monkeypatch.chdir(tmp_path)
    put(Path("maker") / "small-model")
    assert repository_of(NAME) is None
    assert resolve_model(NAME) == Path(NAME)


@pytest.mark.parametrize("model", ["/none/such", "./a/b", "~/models/none-such", "a/b/c", "a"])
def test_what_is_no_name_is_a_path(model: str) -> None:
    assert repository_of(model) is None
    with pytest.raises(ModelMissing, match="no model folder at .*: correct the path"):
        resolve_model(model)


def test_a_model_put_by_hand_is_found(models: Path) -> None:
    put(models / "maker" / "small-model")
    assert resolve_model(NAME) == models / "maker" / "small-model"


def test_a_single_file_is_a_whole_model(tmp_path: Path) -> None:
    contents = {"config.json": b"{}", SINGLE: b"weights", "tokenizer.json": b"{}"}
    folder = put(tmp_path / "one", contents)
    assert problem_of(folder) is None
    (folder / SINGLE).write_bytes(b"")
    assert problem_of(folder) == f"{SINGLE} is empty"
    assert problem_of(folder, weights=False) is None


def test_weights_in_another_precision_are_not_counted(tmp_path: Path) -> None:
    other = {"model.fp32-00001-of-00001.safetensors": b"twice as much" * 500}
    folder = put(tmp_path / "two", CONTENTS | other)
    assert weight_bytes(str(folder)) == sum(len(CONTENTS[name]) for name in SHARDS)
    (folder / INDEX).unlink()
    assert weight_bytes(str(folder)) == 0
    put(folder, {SINGLE: b"weights"})
    assert weight_bytes(str(folder)) == len(b"weights")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"config.json": None}, "config.json is missing"),
        ({SHARDS[1]: None}, f"{SHARDS[1]} missing or empty, named by {INDEX}"),
        ({SHARDS[0]: b"", SHARDS[1]: None}, f"{SHARDS[0]}, {SHARDS[1]} missing or empty"),
        ({"tokenizer.json": None}, "it has neither tokenizer.json nor vocab.json"),
        ({"tokenizer.json": b""}, "it has neither tokenizer.json nor vocab.json, or an empty"),
        ({INDEX: None}, f"it has neither {SINGLE} nor {INDEX}"),
        ({INDEX: b"{"}, f"{INDEX} cannot be read"),
        ({INDEX: b"[]"}, f"{INDEX} cannot be read \\(no weight_map\\)"),
        ({INDEX: b'{"weight_map": {"a": "../../x"}}'}, "names a file outside its folder"),
    ],
)
def test_a_model_that_is_not_whole_says_what_it_lacks(
    models: Path, change: dict[str, bytes | None], problem: str
) -> None:
    left = {
        name: content for name, content in {**CONTENTS, **change}.items() if content is not None
    }
    put(models / "maker" / "small-model", left)
    with pytest.raises(ModelCorrupt, match=problem) as caught:
        resolve_model(NAME)
    assert "parley models fetch --config CONFIG" in str(caught.value)


def test_what_is_missing_says_what_to_fetch_where_to_put_it_and_what_then(models: Path) -> None:
    with pytest.raises(ModelMissing) as caught:
        resolve_model("bosonai/higgs-audio-v3-tts-4b")
    said = str(caught.value)
    for part in (
        "bosonai/higgs-audio-v3-tts-4b",
        "9.3 GB",
        INDEX,
        str(models / "bosonai" / "higgs-audio-v3-tts-4b"),
        "`parley models fetch --config CONFIG`",
        "`parley check CONFIG`",
    ):
        assert part in said


# ---- fetching ------------------------------------------------------------------------------------


def test_what_a_model_needs_is_fetched_and_told(hub: Hub, models: Path) -> None:
    lines: list[str] = []
    folder = fetch_repository(REPOSITORY, lines.append)
    assert folder == models / "maker" / "small-model" == resolve_model(NAME)
    assert sorted(hub.fetched) == sorted(CONTENTS), "and nothing else"
    assert hub.fetched[0] == "tokenizer.json" and hub.fetched[-1] == SHARDS[1], "large ones last"
    assert set(hub.revisions) == {"c0ffee"}, "all of one commit"
    assert lines[-1] == f"{NAME}: 5 files in {folder}"
    assert any(f"{NAME}/{SHARDS[1]}: 0 of 0 MB done" in line for line in lines)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*CONTENTS, LISTING])


@pytest.mark.parametrize("is_split", [True, False])
def test_weights_in_another_precision_are_not_fetched(hub: Hub, is_split: bool) -> None:
    hub.contents["model.fp32-00001-of-00001.safetensors"] = b"twice as much"
    if not is_split:
        for name in (INDEX, *SHARDS):
            del hub.contents[name]
        hub.contents[SINGLE] = b"weights"
    fetch_repository(REPOSITORY, ignore)
    weights = {name for name in hub.fetched if name.endswith(".safetensors")}
    assert weights == (set(SHARDS) if is_split else {SINGLE})


def test_an_interrupted_fetch_goes_on(hub: Hub) -> None:
    hub.breaks_at = SHARDS[1]
    with pytest.raises(FetchFailed, match=r"the line broke\. What has arrived is kept: try again"):
        fetch_repository(REPOSITORY, ignore)
    kept = REPOSITORY.folder / ".cache" / "huggingface" / f"{SHARDS[1]}.incomplete"
    assert kept.is_file(), "the package goes on from here"
    with pytest.raises(WeightsError):
        resolve_model(NAME)
    hub.fetched.clear()
    fetch_repository(REPOSITORY, ignore)
    assert hub.fetched == [SHARDS[1]]
    assert not kept.exists()


@pytest.mark.parametrize("name", SHARDS)
def test_a_damaged_download_is_refused_and_not_kept(hub: Hub, name: str) -> None:
    hub.spoils = name
    with pytest.raises(FetchFailed, match=f"{name} of {NAME} is damaged .* try again"):
        fetch_repository(REPOSITORY, ignore)
    assert not (REPOSITORY.folder / name).exists()
    hub.spoils = None
    fetch_repository(REPOSITORY, ignore)


def test_a_file_that_was_cut_or_changed_later_is_seen_and_fetched_again(hub: Hub) -> None:
    folder = fetch_repository(REPOSITORY, ignore)
    (folder / "tokenizer.json").write_bytes(b"")
    with pytest.raises(ModelCorrupt, match="tokenizer.json has 0 bytes instead of 2"):
        resolve_model(NAME)
    (folder / SHARDS[0]).write_bytes(CONTENTS[SHARDS[0]][::-1])
    hub.fetched.clear()
    fetch_repository(REPOSITORY, ignore)
    assert sorted(hub.fetched) == sorted(["tokenizer.json", SHARDS[0]])
    (folder / SHARDS[0]).write_bytes(CONTENTS[SHARDS[0]][::-1])
    assert problem_of(folder) is None, "a start does not read gigabytes"
    assert "is damaged" in (problem_of(folder, hashes=True) or "")


def test_a_repository_that_is_no_model_is_refused(hub: Hub) -> None:
    hub.contents = {"config.json": b"{}"}
    with pytest.raises(FetchFailed, match="no whole model"):
        fetch_repository(REPOSITORY, ignore)
    hub.contents = dict(OTHERS)
    with pytest.raises(FetchFailed, match="has no files of a model"):
        fetch_repository(REPOSITORY, ignore)


def test_a_hub_that_does_not_answer_leaves_another_way(hub: Hub, models: Path) -> None:
    hub.failure = ConnectionError("no route\nto anything")
    with pytest.raises(FetchFailed) as caught:
        fetch_repository(REPOSITORY, ignore)
    assert "cannot be read from the model hub: no route. Try" in str(caught.value)
    assert str(models / "maker" / "small-model") in str(caught.value)
    assert not (models / "maker").exists()


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FetchFailed, match="`pip install huggingface_hub`.*2.5 GB"):
        fetch_repository(REPOSITORY, ignore)


def test_a_store_that_cannot_be_written_is_named(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARLEY_MODELS", str(tmp_path / "file" / "store"))
    with pytest.raises(FetchFailed, match="set PARLEY_MODELS"):
        fetch_repository(REPOSITORY, ignore)


def test_a_folder_of_the_users_own_is_not_fetched_anew(models: Path, tmp_path: Path) -> None:
    own = cure_of_folder(tmp_path / "own", "stages.speaker.model")
    assert own == "correct stages.speaker.model, or put a whole checkpoint there"
    folder = models / "maker" / "voice"
    assert cure_of_folder(folder, "stages.speaker.model") == (
        f"delete {folder} and run `parley models fetch --config CONFIG`, or correct "
        "stages.speaker.model"
    )
