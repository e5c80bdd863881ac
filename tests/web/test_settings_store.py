"""The page's settings: what is kept, what is refused, and what a session is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.page_scripts import defaults, run

# As much of a window as the store uses.
BROWSER = """
  const kept = new Map(stored === null ? [] : [['parley.settings', stored]]);
  const refuse = () => { if (isBlocked) throw new Error('blocked'); };
  const browser = Object.assign(new EventTarget(), {
    localStorage: {
      getItem: (name) => { refuse(); return kept.get(name) ?? null; },
      setItem: (name, text) => { refuse(); kept.set(name, text); },
    },
    location: { origin: 'https://a.example', protocol: 'https:', host: 'a.example',
                pathname: '/', search: '?x=1', hash },
    history: { state: null, replaceState: (state, title, address) => {
      browser.address = address;
      browser.location.hash = address.includes('#') ? address.slice(address.indexOf('#')) : '';
    } },
    address: null,
  });
  const store = new SettingsStore(browser);
"""


def use(
    body: str, stored: str | None = None, hash_: str = "", is_blocked: bool = False, **given: Any
) -> Any:
    """What `body` returns, which has `store`, `browser` and `kept`, the storage."""
    given |= {"stored": stored, "hash": hash_, "isBlocked": is_blocked}
    return run("settings-store.js", "SettingsStore", BROWSER + body, **given)


def test_a_key_in_a_link_that_can_be_none_is_told_and_not_taken() -> None:
    words = "store.addEventListener('linkfault', () => { told += 1; }); let told = 0;"
    again = """
      browser.location.hash = '#key=%C3%BC';
      browser.dispatchEvent(new Event('hashchange'));
      const second = store.linkFault;
      browser.location.hash = '#key=good';
      browser.dispatchEvent(new Event('hashchange'));
      return [first, second, told, store.linkFault, store.values.key];
    """
    first, second, told, last, key = use(
        f"const first = store.linkFault; {words} {again}",
        stored=json.dumps({"key": "kept"}),
        hash_="#key=a%20b",
    )
    assert first == second and first.startswith("The key in the link is not valid")
    assert (told, last, key) == (1, None, "good")
    assert use("return store.linkFault;", hash_="#settings=%%%") is None


def test_a_first_visit_asks_for_nothing_of_its_own() -> None:
    assert use("return store.values;") == defaults()
    assert use("return store.parleyOptions();") == {
        "url": "wss://a.example/v1/realtime",
        "key": None,
        "session": {},
        "microphone": True,
        "codec": "auto",
        "leadMs": None,
    }


def test_what_is_set_is_told_kept_and_found_again() -> None:
    told, kept = use(
        """
        const told = [];
        store.addEventListener('change', ({ detail }) => told.push(detail.names));
        store.set({ voice: 'joe', turnDetection: { type: 'server_vad' } });
        store.set({ turnDetection: { threshold: 0.7 }, codec: 'pcm' });
        store.set({ voice: 'joe' });
        return [told, kept.get('parley.settings')];
        """
    )
    assert told == [["voice", "turnDetection.type"], ["turnDetection.threshold", "codec"]]
    found = use("return store.values;", stored=kept)
    assert found["turnDetection"]["type"] == "server_vad"
    assert (found["turnDetection"]["threshold"], found["codec"]) == (0.7, "pcm")


@pytest.mark.parametrize(
    "stored",
    ["", "{", "null", "[]", '"x"', "7", '{"voice": 3, "turnDetection": 1, "leadMs": -5}'],
)
def test_garbage_in_the_storage_changes_nothing(stored: str) -> None:
    assert use("return store.values;", stored=stored) == defaults()


def test_what_is_wrong_is_not_taken() -> None:
    body = "store.set(patch); return [store.values, kept.size];"
    patch = {"key": "two words", "language": "x", "turnDetection": {"type": "none"}, "leadMs": 0}
    assert use(body, patch=patch) == [defaults(), 0]


def test_a_browser_that_keeps_nothing_still_has_settings() -> None:
    body = "store.set({ voice: 'joe' }); return store.values.voice;"
    assert use(body, is_blocked=True) == "joe"


def test_the_key_of_the_address_is_kept_and_leaves_the_address_bar() -> None:
    body = (
        "return [store.values.key, browser.address, JSON.parse(kept.get('parley.settings')).key];"
    )
    assert use(body, hash_="#key=a+key&other=1") == ["a+key", "/?x=1#other=1", "a+key"]


def test_a_key_that_no_browser_could_show_is_not_taken() -> None:
    body = "return [store.values.key, browser.address];"
    stored = json.dumps({"key": "the-old-one"})
    assert use(body, stored=stored, hash_="#key=two%20words") == ["the-old-one", "/?x=1"]


def test_a_link_brings_all_settings_but_key_and_microphone() -> None:
    link = use(
        """
        store.set({ voice: 'joe', language: 'de', key: 'the-senders-key' });
        return store.link();
        """
    )
    assert link.startswith("https://a.example/#settings=")
    stored = json.dumps({"key": "my-key", "microphoneId": "mine", "codec": "pcm", "voice": "amy"})
    body = "return [store.values, browser.address, store.cameFromLink];"
    expected = {
        **defaults(),
        "voice": "joe",
        "language": "de",
        "key": "my-key",
        "microphoneId": "mine",
    }
    assert use(body, stored=stored, hash_=link[link.index("#") :]) == [expected, "/?x=1", True]


def test_a_link_counts_where_the_page_is_open_already() -> None:
    link = use("store.set({ voice: 'joe' }); return store.link();")
    body = """
        browser.location.hash = fragment;
        browser.dispatchEvent(new Event('hashchange'));
        return [store.values.voice, browser.location.hash];
        """
    assert use(body, fragment=link[link.index("#") :]) == ["joe", ""]


def test_a_broken_link_changes_nothing() -> None:
    stored = json.dumps({"voice": "joe"})
    body = "return [store.values.voice, browser.address, store.cameFromLink];"
    assert use(body, stored=stored, hash_="#settings=@@@") == ["joe", "/?x=1", False]


def test_a_session_is_asked_for_what_was_chosen_and_no_more() -> None:
    options = use(
        "store.set(patch); return store.parleyOptions();",
        patch={
            "voice": "joe",
            "instructions": " Be brief. ",
            "turnDetection": {"type": "server_vad", "silence_duration_ms": 0, "eagerness": "low"},
            "model": "a model",
            "language": "de",
            "key": "my-key",
            "microphoneId": "mine",
            "leadMs": 240,
        },
    )
    assert options == {
        "url": "wss://a.example/v1/realtime?model=a+model",
        "key": "my-key",
        "session": {
            "instructions": "Be brief.",
            "audio": {
                "input": {
                    "turn_detection": {"type": "server_vad", "silence_duration_ms": 0},
                    "transcription": {"model": "whisper-1", "language": "de"},
                },
                "output": {"voice": "joe"},
            },
        },
        "microphone": {"deviceId": "mine"},
        "codec": "auto",
        "leadMs": 240,
    }


@pytest.mark.parametrize(
    ("before", "after", "session", "later"),
    [
        ({}, {}, None, []),
        ({}, {"instructions": "Hm."}, {"instructions": "Hm."}, []),
        ({"instructions": "Hm."}, {}, None, ["instructions"]),
        ({}, {"voice": "joe"}, None, ["voice"]),
        (
            {},
            {"language": "de", "leadMs": 80},
            {"audio": {"input": {"transcription": {"model": "whisper-1", "language": "de"}}}},
            ["leadMs"],
        ),
        (
            {"language": "de"},
            {},
            {"audio": {"input": {"transcription": {"model": "whisper-1"}}}},
            [],
        ),
        (
            {},
            {"turnDetection": {"type": "semantic_vad", "eagerness": "high"}},
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}}},
            [],
        ),
        (
            {"turnDetection": {"type": "server_vad"}},
            {},
            None,
            ["turnDetection.type"],
        ),
    ],
)
def test_a_running_conversation_is_told_what_it_can_take(
    before: dict[str, Any], after: dict[str, Any], session: object, later: list[str]
) -> None:
    body = """
        const full = (given) => ({ ...initial, ...given,
          turnDetection: { ...initial.turnDetection, ...given.turnDetection } });
        return changeOf(full(before), full(after));
        """
    told = run(
        "settings-session.js", "changeOf", body, initial=defaults(), before=before, after=after
    )
    assert told == {"session": session, "later": later}
