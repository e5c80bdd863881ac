"""The thread that hosts the engine: how it starts, fails, ends, and dies; and its arguments."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipelines.runtime.handover import hand_over
from pipelines.stages import llm_sglang
from pipelines.stages.llm_sglang import SGLangWriter
from pipelines.stages.llm_sglang_arguments import (
    MOST_STATIC_SHARE,
    RESERVED_MIB,
    SGLangOptions,
    can_compile_kernels,
    card_memory_mib,
    engine_arguments,
    known_arguments,
)
from pipelines.stages.llm_sglang_engine import ENGINE_DIED, EngineFailed, EngineThread
from pipelines.types import StageError
from tests.pipelines.stages.sglang_model import ALPHABET, FakeEngine, write_model
from tests.pipelines.waiting import check, until

X = ALPHABET.index("x")
SAMPLING: dict[str, Any] = {"max_new_tokens": 5, "stop_token_ids": [0]}
OPTIONS = SGLangOptions(Path("model"), 0.25, running=24, graph_batch=16)
# Of 0.5.16, and of a release that had another name for one and no word for others.
KNOWN = {
    "attention_backend",
    "sampling_backend",
    "cuda_graph_max_bs_decode",
    "enable_priority_scheduling",
    "schedule_low_priority_values_first",
}


def test_the_engine_lives_in_a_thread_of_its_own() -> None:
    made_in: list[threading.Thread] = []

    def make() -> FakeEngine:
        made_in.append(threading.current_thread())
        return FakeEngine(lambda ids, sampling: [X] * 5)

    async def main() -> None:
        thread = EngineThread(make)
        await thread.start()
        assert made_in[0] is not threading.current_thread()
        generation = thread.begin([1, 2], SAMPLING)
        pieces = [piece async for piece in generation]
        assert [number for piece in pieces for number in piece.ids] == [X] * 5, "no id comes twice"
        assert [piece.end for piece in pieces][-1] == "length"
        await generation.ended()
        await thread.close()
        assert not made_in[0].is_alive()
        late = thread.begin([1], SAMPLING)
        with pytest.raises(EngineFailed):
            await anext(late)

    check(main)


def test_what_goes_wrong_while_it_is_made_passes_through() -> None:
    def make() -> FakeEngine:
        raise RuntimeError("Rank 0 scheduler died during initialization")

    async def main() -> None:
        thread = EngineThread(make)
        with pytest.raises(RuntimeError, match="scheduler died"):
            await thread.start()
        await thread.close()

    check(main)


def test_all_ids_have_one_length() -> None:
    async def main() -> None:
        thread = EngineThread(lambda: FakeEngine(lambda ids, sampling: [X]))
        await thread.start()
        lengths = {len(thread.begin([1], SAMPLING).rid) for _ in range(20)}
        assert len(lengths) == 1
        await thread.close()

    check(main)


def test_a_request_that_comes_while_it_stops_is_ended() -> None:
    async def main() -> None:
        thread = EngineThread(lambda: FakeEngine(lambda ids, sampling: None))
        await thread.start()
        assert thread._loop is not None
        gate = threading.Event()
        hand_over(thread._loop, gate.wait)  # so that both lie in one pass of the engine's loop
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(thread.close())
            await asyncio.sleep(0)
            generation = thread.begin([1], SAMPLING)
            gate.set()
            with pytest.raises(EngineFailed, match="stopped"):
                await anext(generation)
            await generation.ended()

    check(main)


def test_a_missing_package_is_named_with_its_cure(tmp_path: Path) -> None:
    write_model(tmp_path)

    def make(_options: SGLangOptions) -> Any:
        raise ModuleNotFoundError("No module named 'sglang'")

    async def main() -> None:
        writer = SGLangWriter(SGLangOptions(tmp_path, 0.3), make_engine=make)
        with pytest.raises(StageError, match=r"pip install -e '\.\[sglang\]'"):
            await writer.start(lambda line: None)
        await writer.close()

    check(main)


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from pipelines.stages.llm_sglang_engine import EngineThread
from tests.pipelines.stages.sglang_model import FakeEngine

def make():
    if "early" in sys.argv:
        os.kill(os.getpid(), signal.SIGQUIT)  # as the engine's watchdog does
        raise RuntimeError("scheduler died")
    return FakeEngine(lambda ids, sampling: None, context_tokens=10**10)

async def main():
    thread = EngineThread(make)
    try:
        await thread.start()
    except RuntimeError as error:
        await asyncio.sleep(0)
        print(error, flush=True)
        return
    generation = thread.begin([1], {"max_new_tokens": 10**9, "stop_token_ids": []})
    await anext(generation)
    os.kill(os.getpid(), signal.SIGQUIT)
    async for _ in generation:
        pass

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("argument", "status", "told"), [("late", ENGINE_DIED, ""), ("early", 0, "scheduler died")]
)
def test_a_process_whose_engine_dies_ends_unless_it_can_still_say_why(
    argument: str, status: int, told: str
) -> None:
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", DIES, argument],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout.strip()) == (status, told), ended.stderr


# ---- arguments -----------------------------------------------------------------------------------


def test_arguments_have_the_names_that_the_release_knows() -> None:
    arguments = engine_arguments(OPTIONS, KNOWN, None)
    assert arguments["cuda_graph_max_bs_decode"] == 16
    assert arguments["mem_fraction_static"] == 0.25
    assert arguments["skip_tokenizer_init"] is False
    assert "attention_backend" not in arguments, "the engine knows what this card likes"
    older = engine_arguments(OPTIONS, {"cuda_graph_max_bs"}, None)
    assert older["cuda_graph_max_bs"] == 16 and "enable_priority_scheduling" not in older


def test_the_names_of_a_release_are_read_from_it() -> None:
    @dataclass
    class Older:
        model_path: str
        cuda_graph_max_bs: int | None = None

    class Fields:
        model_path: str

    class Newer(Fields):
        cuda_graph_max_bs_decode: int | None

    assert known_arguments(Older) >= {"model_path", "cuda_graph_max_bs"}
    assert known_arguments(Newer) >= {"model_path", "cuda_graph_max_bs_decode"}


def test_a_share_is_one_of_the_whole_card_whoever_else_is_there() -> None:
    total_mib, free_mib = 80_000, 50_000
    share = engine_arguments(OPTIONS, KNOWN, (total_mib, free_mib))["mem_fraction_static"]
    assert share * free_mib == pytest.approx(0.25 * total_mib - RESERVED_MIB, abs=10)


@pytest.mark.parametrize(
    ("memory_mib", "what"), [((10_000, 9_000), "larger share"), ((80_000, 9_000), "are free")]
)
def test_a_share_that_cannot_be_had_is_refused(memory_mib: tuple[int, int], what: str) -> None:
    with pytest.raises(StageError, match=what):
        engine_arguments(OPTIONS, KNOWN, memory_mib)


def test_a_share_that_is_free_is_had_however_large() -> None:
    options = replace(OPTIONS, memory_share=0.99)
    arguments = engine_arguments(options, KNOWN, (140_000, 139_500))
    assert arguments["mem_fraction_static"] == MOST_STATIC_SHARE


def test_without_a_compiler_nothing_is_compiled_unless_the_settings_say_so() -> None:
    arguments = engine_arguments(OPTIONS, KNOWN, None, can_compile=False)
    assert (arguments["attention_backend"], arguments["sampling_backend"]) == ("triton", "pytorch")
    told = replace(OPTIONS, attention="fa3", sampling="flashinfer")
    arguments = engine_arguments(told, KNOWN, None, can_compile=False)
    assert (arguments["attention_backend"], arguments["sampling_backend"]) == ("fa3", "flashinfer")


@pytest.mark.parametrize("missing", ["nvcc", "ninja", "c++", None])
def test_a_compiler_that_is_missing_is_named(
    missing: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    monkeypatch.delenv("CXX", raising=False)
    for name, folder in (("nvcc", "cuda/bin"), ("ninja", ""), ("c++", "")):
        if name != missing:
            (tmp_path / folder / name).touch(0o755)
    assert can_compile_kernels() is (missing is None)
    assert [f"need {missing}," in record.getMessage() for record in caplog.records] == (
        [] if missing is None else [True]
    )


def test_the_engine_is_made_with_what_this_machine_can_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ServerArgs:
        def __init__(self, attention_backend: str, sampling_backend: str) -> None: ...

    sglang, server_args = ModuleType("sglang"), ModuleType("sglang.srt.server_args")
    monkeypatch.setattr(sglang, "Engine", dict, raising=False)
    monkeypatch.setattr(server_args, "ServerArgs", ServerArgs, raising=False)
    monkeypatch.setitem(sys.modules, "sglang", sglang)
    monkeypatch.setitem(sys.modules, "sglang.srt.server_args", server_args)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    made = llm_sglang._make_engine(OPTIONS)
    assert (made["attention_backend"], made["sampling_backend"]) == ("triton", "pytorch")


def test_the_card_is_asked_by_the_number_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(card: str) -> str:
        asked.append(card)
        return "81559, 80000\n"

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert card_memory_mib(1, ask) == (81559, 80000)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert card_memory_mib(1, ask) == (81559, 80000)
    assert asked == ["5", "1"]
    assert card_memory_mib(0, lambda card: None) is None
    assert card_memory_mib(0, lambda card: "[N/A], [N/A]") is None


def test_an_abort_is_nothing_to_what_has_ended() -> None:
    async def main() -> None:
        engine = FakeEngine(lambda ids, sampling: [X, 0])
        thread = EngineThread(lambda: engine)
        await thread.start()
        generation = thread.begin([1], SAMPLING)
        pieces = [piece async for piece in generation]
        assert pieces[-1].end == "stop"
        generation.abort()
        generation.abort()
        await until(lambda: engine.running == 0)
        assert engine.aborted == engine.missed == []
        await asyncio.wait_for(thread.close(), 10)

    check(main)
