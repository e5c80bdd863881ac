"""What the members of the family differ in, as values: what drives them asks for these alone.

Both members are fed rows (`rows.Row`) and draw rows; a decoder (`ports.Decoder`) hides which
layers a row goes through. What remains is written here, so that no shared code asks which one runs:

* where speech ends: `StopRule`;
* what is written around it: its `script.Script`;
* what a caller may ask of it: `Abilities`, with `refusal.check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.higgs.config import ARCHITECTURE, AudioConfig, HiggsConfigError
from pipelines.higgs.rows import Sampling
from pipelines.higgs.text.vocabulary import CONTROL_TAGS


@dataclass(frozen=True, slots=True)
class StopRule:
    """Where a chunk's speech ends, read from the rows that it drew.

    watched: in how many codebooks, from the first on, the end code ends the speech.
    deaf_rows: how many rows from the first on in which it does not.
    """

    codebooks: int
    end_code: int
    watched: int
    deaf_rows: int

    def frame_count(self, row: int, codes: Sequence[int]) -> int | None:
        """How many frames the speech has, if this is the row that says so.

        row: its number in the chunk, from 0. A frame's codes lie on a diagonal of the rows, so an
        end code in codebook k of row r stands in frame r - k, the first that is none.
        """
        if row < self.deaf_rows:
            return None
        for codebook in range(min(self.watched, row + 1)):
            if codes[codebook] == self.end_code:
                return row - codebook
        return None

    def row_count(self, frames: int) -> int:
        """How many rows hold all codes of so many frames: the later codebooks lag behind."""
        return frames + self.codebooks - 1


@dataclass(frozen=True, slots=True)
class Repetition:
    """Repetition-aware sampling: a code that was drawn too often of late is drawn again.

    If `limit` or more of the codebook's last `window_rows` codes equal the drawn one, it is drawn
    anew from the plain softmax of the logits: no temperature, no top-k, no top-p. (Chen et al.
    2024, "VALL-E 2", in the form of the published generation code.)
    """

    window_rows: int = 7
    limit: int = 2


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a caller may ask of a member.

    controls: the control tags that it obeys. speed: whether some of them set the speed of speech.
    scene: whether a description of the scene or of the manner of speaking reaches the model.
    appends: whether text may be appended behind speech, in whole chunks. bare_reference: whether a
    reference works without its transcript.
    """

    controls: frozenset[str] = frozenset()
    speeds: bool = False
    speed: bool = False
    scene: bool = False
    appends: bool = True
    bare_reference: bool = True


@dataclass(frozen=True, slots=True)
class Member:
    """One model of the family.

    name: as settings and errors call it. architectures: what `config.json` may call it.
    watched, deaf_rows: as in StopRule; deaf_rows None: as many as there are codebooks.
    clips_strays: what a begin or end code within a whole frame becomes before the codec: the last
        of its codes, or else the first.
    row_limit: rows of a chunk after which it is ended, whatever the model says.
    """

    name: str
    architectures: tuple[str, ...]
    watched: int
    deaf_rows: int | None
    clips_strays: bool
    row_limit: int
    sampling: Sampling
    repetition: Repetition | None
    abilities: Abilities

    def stop_rule(self, audio: AudioConfig) -> StopRule:
        return StopRule(
            codebooks=audio.codebooks,
            end_code=audio.end_code,
            watched=min(self.watched, audio.codebooks),
            deaf_rows=audio.codebooks if self.deaf_rows is None else self.deaf_rows,
        )

    def stray_code(self, audio: AudioConfig) -> int:
        """See `clips_strays`."""
        return audio.begin_code - 1 if self.clips_strays else 0


V3 = Member(
    name="higgs-v3",
    architectures=(ARCHITECTURE,),
    watched=1,
    # An end code drawn while the codebooks set in is a code like any other.
    deaf_rows=None,
    clips_strays=False,
    row_limit=2048,  # 82 s
    sampling=Sampling(temperature=0.8, top_p=0.8, top_k=30),
    repetition=None,
    abilities=Abilities(controls=frozenset(CONTROL_TAGS), speed=True),
)

V2 = Member(
    name="higgs-v2",
    # The published checkpoint, and what transformers makes of it.
    architectures=("HiggsAudioModel", "HiggsAudioV2ForConditionalGeneration"),
    watched=8,
    deaf_rows=0,
    clips_strays=True,
    row_limit=2048,
    # The authors' own setting for text that is spoken in chunks; they use up to 1.0 for single
    # pieces, where variety costs less.
    sampling=Sampling(temperature=0.3, top_p=0.95, top_k=50),
    repetition=Repetition(),
    # References are turns of the conversation, and a turn of speech answers a turn of text.
    abilities=Abilities(scene=True, bare_reference=False),
)

MEMBERS = (V3, V2)


def member_of(content: Mapping[str, Any]) -> Member:
    """The member whose checkpoint has this `config.json`. Raises HiggsConfigError."""
    architectures = content.get("architectures") or []
    for member in MEMBERS:
        if isinstance(architectures, list) and set(architectures) & set(member.architectures):
            return member
    known = ", ".join(name for member in MEMBERS for name in member.architectures)
    raise HiggsConfigError(f"architectures is {architectures!r}; those that can be run: {known}")
