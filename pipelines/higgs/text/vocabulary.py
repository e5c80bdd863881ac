"""The tokens of Higgs TTS that stand for more than text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

TTS = "<|tts|>"
TEXT = "<|text|>"
AUDIO = "<|audio|>"
REF_AUDIO = "<|ref_audio|>"
REF_TEXT = "<|ref_text|>"

NEEDED = (TTS, TEXT, AUDIO, REF_AUDIO, REF_TEXT)  # those that a prompt is made of

_FIRST_ID = 151_643  # of the published tokenizer; all of these follow it without a gap

# What Qwen's own tokenizer has; no prompt uses them.
_QWEN = (
    *(f"<|{name}|>" for name in ("endoftext", "im_start", "im_end")),
    *(f"<|{name}_{side}|>" for name in ("object_ref", "box", "quad") for side in ("start", "end")),
    *(f"<|{name}|>" for name in ("vision_start", "vision_end", "vision_pad")),
    *("<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>"),
    *(f"<|fim_{name}|>" for name in ("prefix", "middle", "suffix", "pad")),
    *("<|repo_name|>", "<|file_sep|>"),
)
_ROLES = (
    *("<|asr|>", "<|streaming_asr|>", TTS, "<|streaming_tts|>", "<|audio_cont_txt|>"),
    *(AUDIO, "<|audio_end|>", TEXT, "<|text_end|>", "<|eoc|>"),
    *("<|user|>", "<|assistant|>", "<|system|>", "<|await_audio|>", REF_AUDIO, REF_TEXT),
)
_EMOTIONS = (
    *("elation", "amusement", "enthusiasm", "determination", "pride", "contentment", "affection"),
    *("relief", "contemplation", "confusion", "surprise", "awe", "longing", "arousal", "anger"),
    *("fear", "disgust", "bitterness", "sadness", "shame", "helplessness"),
)
_STYLES = ("singing", "shouting", "whispering")
_SOUNDS = (
    *("cough", "laughter", "crying", "screaming", "burping", "humming", "sigh", "sniff"),
    "sneeze",
)
_PROSODY = (
    *("speed_very_slow", "speed_slow", "speed_fast", "speed_very_fast"),
    *("pitch_low", "pitch_high", "pause", "long_pause"),
)

# Every token that is added to the text vocabulary, and its id in the published tokenizer.
SPECIAL_IDS: Mapping[str, int] = MappingProxyType(
    {
        token: _FIRST_ID + place
        for place, token in enumerate(
            (
                *_QWEN,
                *_ROLES,
                *(f"<|emotion:{name}|>" for name in _EMOTIONS),
                *("<|env:music|>", "<|env:noise|>"),  # in the vocabulary, without a known use
                *(f"<|style:{name}|>" for name in _STYLES),
                *(f"<|sfx:{name}|>" for name in _SOUNDS),
                *(f"<|prosody:{name}|>" for name in _PROSODY),
                "<|chatml|>",
                *("<|prosody:expressive_high|>", "<|prosody:expressive_low|>"),
            )
        )
    }
)


class Family(Enum):
    EMOTION = "emotion"
    STYLE = "style"
    SFX = "sfx"
    PROSODY = "prosody"


@dataclass(frozen=True, slots=True)
class ControlTag:
    """A token that a writer may put into the text to direct the voice.

    aspect: what of the sentence it sets, such as "emotion" or "speed"; a sentence has one of each.
        Empty for what happens at its own place: a sound or a pause.
    """

    text: str
    family: Family
    name: str
    id: int

    @property
    def is_pause(self) -> bool:
        return self.name in ("pause", "long_pause")

    @property
    def is_sound(self) -> bool:
        return self.family is Family.SFX

    @property
    def aspect(self) -> str:
        if self.is_sound or self.is_pause:
            return ""
        if self.family is Family.PROSODY:
            return self.name.partition("_")[0]
        return self.family.value


def _control_tags() -> dict[str, ControlTag]:
    found: dict[str, ControlTag] = {}
    families = {family.value: family for family in Family}
    for text, token in SPECIAL_IDS.items():
        family, _, name = text.removeprefix("<|").removesuffix("|>").partition(":")
        if name and family in families:
            found[text] = ControlTag(text, families[family], name, token)
    return found


# Those that the model's documentation names; in a text, all others are struck out.
CONTROL_TAGS: Mapping[str, ControlTag] = MappingProxyType(_control_tags())
