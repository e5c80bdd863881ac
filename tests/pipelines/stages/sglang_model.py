"""A tokenizer and a chat template as Qwen's, and an engine with the manners of the real one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
STEP_S = 0.0005  # of the stand-in: an abort has to come between two steps

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call as <tool_call>
{"name": <name>, "arguments": <object>}
</tool_call><|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role == 'assistant' and message.tool_calls %}<|im_start|>assistant
{{ message.content }}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif message.role != 'system' or not loop.first %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"""

PLAIN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def write_model(folder: Path, template: str | None = TEMPLATE, words: int = 0) -> Path:
    """A checkpoint without weights: one token per byte, and one per mark.

    words: tokens that no text becomes, and that random weights may write: w0, w1, ...
    """
    pieces = [*ALPHABET, *(f"Ġw{number}" for number in range(words))]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in SPECIAL])
    core.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    folder.mkdir(parents=True, exist_ok=True)
    core.save(str(folder / "tokenizer.json"))
    about: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
    }
    if template is not None:
        about["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    ends = [core.token_to_id("<|im_end|>"), core.token_to_id("<|endoftext|>")]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    config = {"model_type": "qwen3", "vocab_size": core.get_vocab_size(), "eos_token_id": ends}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


Script = Callable[[list[int], dict[str, Any]], Sequence[int] | None]


class FakeEngine:
    """What the writer uses of `sglang.Engine` 0.5: ids are told from the first one on each time,
    in one growing list; an abort takes every request whose id begins like the given one.

    script: the ids that a prompt is answered with; None: one x after another, until an abort.
    """

    def __init__(
        self, script: Script, *, context_tokens: int = 4096, knows_schemas: bool = True
    ) -> None:
        self.script = script
        self.context_tokens = context_tokens
        self.knows_schemas = knows_schemas
        self.calls: list[dict[str, Any]] = []
        self.aborted: list[str] = []
        self.steps: dict[str, int] = {}
        self.is_shut_down = False
        self.refusal: dict[str, Any] | None = None
        self.failure: Exception | None = None
        self.gate = threading.Event()  # before which no request becomes known
        self.gate.set()
        self.missed: list[str] = []  # aborts of requests that were not known
        self._states: dict[str, bool] = {}  # whether it is to end, for each running request
        self.tokenizer_manager = SimpleNamespace(abort_request=self._abort)

    @property
    def running(self) -> int:
        return len(self._states)

    async def async_generate(
        self,
        prompt: str | None = None,
        sampling_params: dict[str, Any] | None = None,
        input_ids: list[int] | None = None,
        stream: bool = False,
        rid: str | None = None,
        priority: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        assert prompt is None and stream and rid and input_ids and sampling_params is not None
        self.calls.append({"ids": input_ids, "priority": priority, "rid": rid, **sampling_params})
        return self._generate(rid, input_ids, sampling_params)

    def shutdown(self) -> None:
        self.is_shut_down = True

    async def _generate(
        self, rid: str, prompt: list[int], sampling: dict[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        limit = sampling["max_new_tokens"]
        if len(prompt) + limit > self.context_tokens or len(prompt) >= self.context_tokens:
            raise ValueError(
                f"Requested token count exceeds the model's maximum context length of "
                f"{self.context_tokens} tokens."
            )
        if self.failure is not None:
            raise self.failure
        while not self.gate.is_set():
            await asyncio.sleep(STEP_S)
        self._states[rid] = False
        written: list[int] = []
        try:
            await asyncio.sleep(STEP_S)
            refusal = self.refusal
            if "json_schema" in sampling and not self.knows_schemas:
                refusal = {"message": "Failed to compile json grammar", "status_code": 400}
            if refusal is not None:
                yield self._chunk(written, prompt, {"type": "abort", **refusal})
                return
            answer = self.script(prompt, sampling)
            number = 0
            while True:
                end: dict[str, Any] | None = None
                if self._states[rid]:
                    end = {"type": "abort", "message": "Aborted", "status_code": None}
                elif answer is None:
                    written.append(ALPHABET.index("x"))
                elif number < len(answer):
                    written.append(answer[number])
                    number += 1
                if end is None and written[-1:] and written[-1] in sampling["stop_token_ids"]:
                    end = {"type": "stop", "matched": written[-1]}
                elif end is None and len(written) >= limit:
                    end = {"type": "length", "length": limit}
                self.steps[rid] = len(written)
                yield self._chunk(written if end is None else written.copy(), prompt, end)
                if end is not None:
                    return
                await asyncio.sleep(STEP_S)
        finally:
            del self._states[rid]

    def _chunk(
        self, written: list[int], prompt: list[int], end: dict[str, Any] | None
    ) -> dict[str, Any]:
        meta = {
            "prompt_tokens": len(prompt),
            "cached_tokens": len(prompt) // 2,
            "completion_tokens": len(written),
            "finish_reason": end,
        }
        return {"output_ids": written, "meta_info": meta}

    def _abort(self, rid: str = "", abort_all: bool = False) -> None:
        if rid not in self._states:
            self.missed.append(rid)
            return
        self.aborted.append(rid)
        for other in self._states:
            if other.startswith(rid):
                self._states[other] = True
