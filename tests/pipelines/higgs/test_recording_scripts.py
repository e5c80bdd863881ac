"""A recording from a stranger has no other file opened in its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipelines.higgs.cloning.recording import ReferenceRefused, read_recording

PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nvoice.wav\n#EXT-X-ENDLIST\n"


@pytest.mark.parametrize("script", ["ffconcat version 1.0\nfile voice.wav\n", PLAYLIST])
def test_a_script_is_no_recording(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sound = 0.3 * np.sin(np.arange(48_000) / 20)
    soundfile.write("voice.wav", sound, 24_000)
    read_recording(Path("voice.wav").read_bytes(), "data")
    with pytest.raises(ReferenceRefused, match="not a sound file"):
        read_recording(script.encode(), "data")
