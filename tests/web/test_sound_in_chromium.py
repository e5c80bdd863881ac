"""The client's sound in a real browser, against tones: no server, no models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from playwright.sync_api import Browser, Page

from tests.web.sound_page import chromium, opened, run, served

pytestmark = pytest.mark.browser

Samples = npt.NDArray[np.float64]

RATE_HZ = 24_000
MS = 24  # samples in one
TONE_HZ = 440
OWN_STEP = 0.5 * 2 * np.pi * TONE_HZ / RATE_HZ  # of the tone, at its steepest
SPOKEN_HZ = 1000  # into the microphone
RAW = """lab.changeConstraints = ({ audio }) => ({ audio: {
    ...audio, echoCancellation: false, noiseSuppression: false, autoGainControl: false } });"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Its microphone hears a tone."""
    tone = 0.4 * np.sin(2 * np.pi * SPOKEN_HZ * np.arange(48_000 * 10) / 48_000)
    path = tmp_path_factory.mktemp("microphone") / "tone.wav"
    soundfile.write(path, tone, 48_000, subtype="PCM_16")
    with chromium(f"--use-file-for-fake-audio-capture={path}") as launched:
        yield launched


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as page:
        yield page


def joined(recorded: list[dict[str, Any]], channel: str) -> Samples:
    """What was recorded, on its time line, from its first sample on."""
    blocks = [block for block in recorded if block["channel"] == channel]
    start = blocks[0]["atSample"]
    end = max(block["atSample"] + len(block["samples"]) for block in blocks)
    whole = np.zeros(end - start)
    for block in blocks:
        at = block["atSample"] - start
        whole[at : at + len(block["samples"])] += block["samples"]
    return whole


def noise_db(samples: Samples, tone_hz: float, rate_hz: int) -> float:
    """What is not the tone, against it."""
    angle = 2 * np.pi * tone_hz * np.arange(len(samples)) / rate_hz
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    tone = waves @ np.linalg.lstsq(waves, samples, rcond=None)[0]
    return float(10 * np.log10(np.mean((samples - tone) ** 2) / np.mean(tone**2)))


def largest_step(samples: Samples) -> float:
    return float(np.abs(np.diff(samples, prepend=0, append=0)).max())


def largest_inner_step(samples: Samples) -> float:
    """Of what goes on beyond both its ends."""
    return float(np.abs(np.diff(samples)).max())


def sound_spans(samples: Samples) -> list[tuple[int, int]]:
    """Where there is sound: stretches with no silence above 4 ms in them."""
    at = np.flatnonzero(np.abs(samples) > 1e-4)
    cuts = np.flatnonzero(np.diff(at) > 4 * MS)
    return [
        (int(a), int(b)) for a, b in zip([at[0], *at[cuts + 1]], [*at[cuts], at[-1]], strict=True)
    ]


def test_the_microphone_comes_whole(page: Page) -> None:
    run(page, RAW)
    heard = run(
        page,
        """const noted = await lab.open({ codec: 'pcm' });
        await lab.until(() => noted.packets.length >= 100);
        const { microphone, inputFormat } = noted.sound;
        await noted.sound.close();
        const decoded = await lab.decode('pcm', noted.packets);
        return { ...noted, microphone, inputFormat, decoded };
        """,
    )
    assert heard["inputFormat"] == {"type": "audio/pcm", "rate": RATE_HZ}
    assert heard["microphone"]["settings"]["echoCancellation"] is False  # as it is, not as asked
    starts = np.diff([block["atSample"] for block in heard["recorded"]])
    assert set(starts) == {480}
    recorded = joined(heard["recorded"], "input")
    assert largest_inner_step(recorded) < 1.05 * 0.4 * 2 * np.pi * SPOKEN_HZ / RATE_HZ
    # Within one run of the file; its beginning is wherever the device starts it.
    assert noise_db(recorded[RATE_HZ // 2 : RATE_HZ], SPOKEN_HZ, RATE_HZ) < -80
    decoded = np.array(heard["decoded"]["samples"])
    assert noise_db(decoded[RATE_HZ // 2 : RATE_HZ], SPOKEN_HZ, RATE_HZ) < -80


def test_the_microphone_comes_through_opus(page: Page) -> None:
    run(page, RAW)
    heard = run(
        page,
        """const noted = await lab.open({ codec: 'auto' });
        await lab.until(() => noted.packets.length >= 100);
        const { codec, inputFormat } = noted.sound;
        await noted.sound.close();
        return { ...noted, codec, inputFormat, decoded: await lab.decode('opus', noted.packets) };
        """,
    )
    assert heard["codec"] == "opus"
    assert heard["inputFormat"] == {"type": "audio/opus", "rate": RATE_HZ}
    rate_hz = heard["decoded"]["rateHz"]
    decoded = np.array(heard["decoded"]["samples"])
    assert len(decoded) / rate_hz == pytest.approx(len(heard["packets"]) * 0.02)
    assert noise_db(decoded[rate_hz // 2 : rate_hz], SPOKEN_HZ, rate_hz) < -15


def test_muted_is_silence_without_a_step_and_time_goes_on(page: Page) -> None:
    run(page, RAW)
    heard = run(
        page,
        """const noted = await lab.open({ codec: 'pcm' });
        const more = async (count) => {
          const wanted = noted.packets.length + count;
          await lab.until(() => noted.packets.length >= wanted);
        };
        await more(30);
        noted.sound.mute();
        await more(5);
        noted.sound.levels();
        const mutedFrom = noted.packets.length;
        await more(20);
        const mutedTo = noted.packets.length;
        const { input } = noted.sound.levels();
        noted.sound.unmute();
        await more(20);
        await noted.sound.close();
        return { ...noted, mutedFrom, mutedTo, input };
        """,
    )
    recorded = joined(heard["recorded"], "input")
    assert not recorded[heard["mutedFrom"] * 480 : heard["mutedTo"] * 480].any()
    assert heard["input"] == 0
    assert np.abs(recorded[-480:]).max() > 0.3
    assert largest_inner_step(recorded) < 1.05 * 0.4 * 2 * np.pi * SPOKEN_HZ / RATE_HZ


_PLAY = """
const packets = await lab.tone(codec, 50);
const noted = await lab.open({ microphone: false, codec });
"""


def test_what_is_played_is_what_came(page: Page) -> None:
    played = run(
        page,
        _PLAY
        + """for (const packet of packets) noted.sound.play('a', packet);
        noted.sound.finish('a');
        await lab.until(() => lab.isOver(noted, 'a'));
        await lab.wait(200);
        await noted.sound.close();
        return noted;""",
        codec="pcm",
    )
    heard = joined(played["recorded"], "output")
    assert sound_spans(heard)[0][1] == pytest.approx(1000 * MS, abs=2 * MS)
    assert len(sound_spans(heard)) == 1
    assert largest_step(heard) < 1.01 * OWN_STEP
    assert noise_db(heard[20 * MS : 980 * MS], TONE_HZ, RATE_HZ) < -80
    assert played["reports"][-1]["playedMs"] == pytest.approx(1000, abs=1)
    told = [report["playedMs"] for report in played["reports"]]
    assert told == sorted(told)
    assert len(told) >= 15
    assert played["packets"] == []


def test_sound_that_comes_late_is_all_there(page: Page) -> None:
    played = run(
        page,
        _PLAY
        + """for (const packet of packets.slice(0, 20)) noted.sound.play('a', packet);
        await lab.until(() => noted.reports.some(({ isPlaying }) => isPlaying));
        await lab.until(() => !noted.reports.at(-1).isPlaying);
        for (const packet of packets.slice(20)) noted.sound.play('a', packet);
        noted.sound.finish('a');
        await lab.until(() => noted.reports.at(-1).playedMs >= 999);
        await lab.wait(200);
        await noted.sound.close();
        return noted;""",
        codec="pcm",
    )
    heard = joined(played["recorded"], "output")
    spans = sound_spans(heard)
    lengths = [end - start for start, end in spans]
    assert lengths == [pytest.approx(400 * MS, abs=2 * MS), pytest.approx(600 * MS, abs=2 * MS)]
    assert largest_step(heard) < 1.01 * OWN_STEP
    assert played["reports"][-1]["starvations"] == 1
    assert played["reports"][-1]["targetMs"] == 60


def test_what_is_said_fits_through_a_line_of_64_kilobits(page: Page) -> None:
    """Opus in base64 in JSON in a frame of a WebSocket, whose header has 8 bytes."""
    packets = run(page, "return lab.tone('opus', 250);")[50:]
    frame = len('{"type":"input_audio_buffer.append","audio":""}') + 8
    bits_per_s = sum(frame + len(packet) for packet in packets) * 8 / (len(packets) * 0.02)
    assert 40_000 < bits_per_s < 62_000


def test_opus_makes_no_step_of_its_own(page: Page) -> None:
    played = run(
        page,
        _PLAY
        + """for (const id of ['a', 'b']) {
          for (const packet of packets) noted.sound.play(id, packet);
          noted.sound.finish(id);
        }
        await lab.until(() => lab.isOver(noted, 'b'));
        await lab.wait(200);
        await noted.sound.close();
        return { ...noted, decoded: await lab.decode('opus', packets) };""",
        codec="opus",
    )
    assert played["decoded"]["rateHz"] in (24_000, 48_000)
    decoded = np.array(played["decoded"]["samples"])[:: played["decoded"]["rateHz"] // RATE_HZ]
    heard = joined(played["recorded"], "output")
    assert len(heard) == pytest.approx(2000 * MS, abs=10 * MS)
    assert largest_step(heard) < 1.02 * largest_step(decoded[: 990 * MS])
    assert [start["itemId"] for start in played["starts"]] == ["a", "b"]
    apart_ms = played["starts"][1]["atMs"] - played["starts"][0]["atMs"]
    assert apart_ms == pytest.approx(1000, abs=20)


@pytest.mark.parametrize("codec", ["pcm", "opus"])
def test_a_clear_fades_at_once_and_knows_what_was_heard(page: Page, codec: str) -> None:
    played = run(
        page,
        _PLAY
        + """for (const packet of packets) noted.sound.play('a', packet);
        await lab.until(() => noted.starts.length === 1);
        await lab.wait(noted.starts[0].atMs + 300 - performance.now());
        const askedMs = performance.now();
        const cleared = await noted.sound.clear();
        const tookMs = performance.now() - askedMs;
        noted.sound.play('a', packets[0]); // was on its way: not to be heard
        noted.sound.finish('a');
        await lab.wait(300);
        const again = await noted.sound.clear();
        await noted.sound.close();
        return { ...noted, cleared, tookMs, again, heardMs: askedMs - noted.starts[0].atMs };""",
        codec=codec,
    )
    assert played["cleared"]["itemId"] == "a"
    assert played["cleared"]["playedMs"] == pytest.approx(played["heardMs"], abs=20)
    assert played["reports"][-1]["playedMs"] == played["cleared"]["playedMs"]
    assert played["reports"][-1]["isPlaying"] is False
    assert played["again"] is None
    heard = joined(played["recorded"], "output")
    [(_, end)] = sound_spans(heard)
    assert largest_step(heard) < 1.25 * OWN_STEP  # Opus overshoots where the tone begins
    # Full until 5 ms before the end: the crest of a wave is never further than 1.2 ms away.
    assert np.abs(heard[end - 9 * MS : end - 4 * MS]).max() > 0.4
    assert end < (300 + 100 + played["tookMs"]) * MS


def test_a_clear_before_any_sound_drops_what_is_in_decoding(page: Page) -> None:
    played = run(
        page,
        _PLAY
        + """for (const packet of packets) noted.sound.play('a', packet);
        const clearing = noted.sound.clear();
        for (const packet of packets.slice(0, 20)) noted.sound.play('b', packet);
        noted.sound.finish('b');
        const cleared = await clearing;
        await lab.until(() => lab.isOver(noted, 'b'));
        await lab.wait(200);
        await noted.sound.close();
        return { ...noted, cleared };""",
        codec="opus",
    )
    assert played["cleared"] == {"itemId": "a", "playedMs": 0}
    assert [start["itemId"] for start in played["starts"]] == ["b"]
    assert len(joined(played["recorded"], "output")) == pytest.approx(400 * MS, abs=10 * MS)
