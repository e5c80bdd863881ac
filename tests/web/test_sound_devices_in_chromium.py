"""Microphones refused, changed and lost, and sound held back, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.web.sound_page import LAB, chromium, launched, opened, run, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as page:
        yield page


def test_a_chosen_microphone_that_is_gone_is_replaced_and_said(page: Page) -> None:
    used = run(
        page,
        """const noted = await lab.open({ microphone: { deviceId: 'gone' }, codec: 'pcm' });
        const { microphone } = noted.sound;
        await lab.until(() => noted.packets.length >= 5);
        await noted.sound.close();
        return { ...noted, microphone };""",
    )
    assert used["problems"] == ["microphone_missing"]
    assert used["microphone"]["label"]


def test_the_microphone_can_be_changed_and_dropped(page: Page) -> None:
    used = run(
        page,
        """const { Microphone } = await import('/client/sound/microphone.js');
        const noted = await lab.open({ codec: 'pcm' });
        const devices = await Microphone.list();
        const { deviceId } = devices.at(-1);
        await noted.sound.useMicrophone({ deviceId });
        const chosen = noted.sound.microphone;
        const before = noted.packets.length;
        await lab.until(() => noted.packets.length > before + 5);
        await noted.sound.useMicrophone(false);
        const dropped = noted.sound.microphone;
        const states = lab.streams.map((stream) => stream.getTracks()[0].readyState);
        await noted.sound.close();
        return { deviceId, chosen, dropped, states };""",
    )
    assert used["chosen"]["deviceId"] == used["deviceId"]
    assert used["dropped"] is None
    assert used["states"] == ["ended", "ended"]


def test_another_microphone_takes_over_from_one_that_is_unplugged(page: Page) -> None:
    used = run(
        page,
        """const noted = await lab.open({ codec: 'pcm' });
        lab.streams[0].getTracks()[0].dispatchEvent(new Event('ended'));
        await lab.until(() => noted.changes.length === 1);
        const before = noted.packets.length;
        await lab.until(() => noted.packets.length > before + 5);
        await noted.sound.close();
        return noted;""",
    )
    assert used["losses"] == []
    assert used["changes"][0]["label"]


def test_a_lost_microphone_comes_back_with_its_plug(page: Page) -> None:
    used = run(
        page,
        """const noted = await lab.open({ codec: 'pcm' });
        const change = lab.changeConstraints;
        lab.changeConstraints = () => { throw new DOMException('none', 'NotFoundError'); };
        lab.streams[0].getTracks()[0].dispatchEvent(new Event('ended'));
        await lab.until(() => noted.losses.length === 1);
        const without = noted.sound.microphone;
        lab.changeConstraints = change;
        navigator.mediaDevices.dispatchEvent(new Event('devicechange'));
        await lab.until(() => noted.changes.length === 1);
        await noted.sound.close();
        return { ...noted, without };""",
    )
    assert used["losses"] == ["microphone_missing"]
    assert used["without"] is None


def test_an_interrupted_context_goes_on(page: Page) -> None:
    states = run(
        page,
        """const noted = await lab.open({ codec: 'pcm' });
        const [context] = lab.contexts;
        await context.suspend();
        await lab.until(() => context.state === 'running');
        const before = noted.packets.length;
        await lab.until(() => noted.packets.length > before + 5);
        await noted.sound.close();
        return [context.state, ...lab.streams.map((stream) => stream.getTracks()[0].readyState)];
        """,
    )
    assert states == ["closed", "ended"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("NotAllowedError", "microphone_denied"),
        ("NotFoundError", "microphone_missing"),
        ("NotReadableError", "microphone_busy"),
        ("TypeError", "microphone_failed"),
    ],
)
def test_why_there_is_no_microphone_has_a_code(page: Page, error: str, code: str) -> None:
    said = run(
        page,
        """lab.changeConstraints = () => { throw new DOMException('no', error); };
        const code = await lab.refusal({});
        return [code, lab.contexts.map(({ state }) => state)];""",
        error=error,
    )
    assert said == [code, ["closed"]]


def test_a_denied_microphone_is_said(browser: Browser, address: str) -> None:
    with opened(browser, address, may_listen=False) as page:
        assert run(page, "return lab.refusal({});") == "microphone_denied"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{ microphone: false }", "sound_blocked"),
        ("{ microphone: true }", "heard through an element"),  # who may listen may be heard
    ],
)
def test_sound_that_waits_for_a_gesture_is_said(
    browser: Browser, address: str, options: str, said: str
) -> None:
    wants = "--autoplay-policy=document-user-activation-required"  # Playwright's browser does not
    with launched(browser.browser_type, wants) as strict:
        context = strict.new_context(permissions=["microphone"])
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.add_init_script(path=LAB)
        # What a test evaluates counts as a gesture: so the page tries, and tells, by itself.
        page.add_init_script(f"""
            let way = 'heard';
            const play = HTMLMediaElement.prototype.play;
            HTMLMediaElement.prototype.play = async function () {{
              await play.call(this);
              way = 'heard through an element';
            }};
            setTimeout(async () => console.info((await lab.refusal({options})) ?? way));""")
        with page.expect_console_message():
            page.goto(address)
        assert complaints == [said]
        context.close()


def test_sound_is_heard_where_media_elements_are_refused(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        played = run(
            page,
            """HTMLMediaElement.prototype.play = () => Promise.reject(new DOMException('no'));
            const packets = await lab.tone('pcm', 20);
            const noted = await lab.open({ microphone: false, codec: 'pcm' });
            for (const packet of packets) noted.sound.play('a', packet);
            noted.sound.finish('a');
            await lab.until(() => lab.isOver(noted, 'a'));
            await noted.sound.close();
            return noted.reports.at(-1).playedMs;""",
        )
        assert played == pytest.approx(400, abs=1)
