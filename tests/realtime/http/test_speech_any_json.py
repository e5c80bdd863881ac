"""Whatever JSON comes, the speech routes answer with speech or with what is wrong with it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.http.speech.schema import BatchBody, BatchItem, SpeechBody, body_of
from tests.realtime.http.speech_server import (
    BATCH,
    FILE,
    PATH,
    URL,
    House,
    SpeechServer,
    make_cascade,
    on_routes,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["Good day.", "tone", "alloy", "wav", "opus", "sse", "QUJD", URL, FILE]),
    st.sampled_from([0, 1, 0.5, 2, 1e9, True]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["data", "audio_url", "text", "id", "x"]), inner),
    ),
    max_leaves=5,
)
FIELDS = st.dictionaries(st.sampled_from(sorted(BatchItem.model_fields)), VALUES, max_size=4)
SPEECHES = st.one_of(FIELDS, FIELDS.map(lambda fields: {"input": "Good day."} | fields))
BATCHES = st.builds(
    lambda fields, items: fields | {"items": items}, FIELDS, st.lists(VALUES | FIELDS)
)


@settings(max_examples=25, deadline=None)
@given(st.lists(SPEECHES, min_size=5, max_size=20), st.lists(BATCHES, max_size=3))
def test_no_body_is_a_fault_of_the_servers(
    speeches: list[dict[str, Any]], batches: list[dict[str, Any]]
) -> None:
    async def ask(server: SpeechServer) -> None:
        asked = [(PATH, body) for body in speeches] + [(BATCH, body) for body in batches]
        for path, body in asked:
            answer = await server.client.post(path, json=body)
            assert answer.status_code in (200, 400), (body, answer.text)
            if answer.status_code == 400:
                error = answer.json()["error"]
                assert error["param"] is not None or error["code"] == "invalid_json", (body, error)
            assert '"speech_failed"' not in answer.text, body

    on_routes(ask, House(make_cascade()))


def test_what_the_routes_say_of_their_bodies_stands_by_itself() -> None:
    for model in (SpeechBody, BatchBody):
        described = body_of(model)["requestBody"]["content"]["application/json"]["schema"]
        assert "$ref" not in str(described)
        assert set(described["properties"]) == set(model.model_fields)
    app = House(make_cascade()).app()
    paths = app.openapi()["paths"]
    for path, required in ((PATH, ["input"]), (BATCH, ["items"])):
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["required"] == required
        assert paths[path]["post"]["description"]
