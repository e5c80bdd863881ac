"""Parameters of tools as programs really write them, and some that nobody should."""

from __future__ import annotations

from typing import Any


def objects(required: Any = None, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"enum": ["end"]}
    for level in range(depth):
        schema = objects(**{f"level{level}": schema})
    return schema


TEXT = {"type": "string", "maxLength": 12}
WHOLE = {"type": "integer", "minimum": 0, "maximum": 99}

SCHEMAS: dict[str, Any] = {
    "nothing": {},
    "no properties": {"type": "object", "properties": {}},
    "type alone": {"type": "object"},
    "nothing allowed": {"type": "object", "properties": {}, "additionalProperties": False},
    "enum": objects(unit={"enum": ["C", "F"]}, mixed={"enum": ["a", 3, None, True, {"k": [1]}]}),
    "const": objects(kind={"const": 'a "quoted" word'}, number={"const": 7}),
    "optional": objects([], first=TEXT, second=WHOLE),
    "required and optional": objects(["second"], first=TEXT, second=WHOLE, third={"const": 1}),
    "closed": {**objects(a=TEXT, b={"type": "boolean"}), "additionalProperties": False},
    "open": {**objects(a=TEXT), "additionalProperties": {"enum": [1, 2]}, "maxProperties": 3},
    "nested": objects(place=objects(city=TEXT, at=objects(lat={"type": "integer"}, lon=WHOLE))),
    "array": objects(items={"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 3}),
    "array of objects": objects(
        rows={"type": "array", "items": objects(a=WHOLE, b={"enum": ["x"]}), "maxItems": 2}
    ),
    "tuple": objects(
        pair={"type": "array", "prefixItems": [TEXT, WHOLE], "items": False, "minItems": 2}
    ),
    "anyOf": objects(value={"anyOf": [{"enum": ["a", "b"]}, WHOLE, {"type": "null"}]}),
    "anyOf of objects": {"anyOf": [objects(a=WHOLE), objects(b={"type": "boolean"})]},
    "oneOf": objects(value={"oneOf": [{"type": "boolean"}, objects(a=WHOLE)]}),
    "oneOf that overlaps": objects(
        value={"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 3}]}
    ),
    "allOf": {"type": "object", "allOf": [objects(a=WHOLE), objects(b={"enum": ["x", "y"]})]},
    "reference": {
        "$defs": {"Point": {**objects(x=WHOLE, y=WHOLE), "additionalProperties": False}},
        **objects(start={"$ref": "#/$defs/Point"}, end={"$ref": "#/$defs/Point"}),
    },
    "old reference": {
        "definitions": {"Unit": {"enum": ["C", "F"]}},
        **objects(unit={"$ref": "#/definitions/Unit"}),
    },
    "tree": {
        "$defs": {"Node": objects(["value"], value=WHOLE, next={"$ref": "#/$defs/Node"})},
        **objects(root={"$ref": "#/$defs/Node"}),
    },
    "reference as root": {
        "$defs": {"Args": objects(city=TEXT, days=WHOLE)},
        "$ref": "#/$defs/Args",
    },
    "pattern": objects(code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2,4}$"}),
    "pattern inside": objects(code={"type": "string", "pattern": "[0-9]{3}", "maxLength": 8}),
    "formats": objects(
        day={"type": "string", "format": "date"},
        id={"type": "string", "format": "uuid"},
        mail={"type": "string", "format": "email", "maxLength": 40},
    ),
    "unknown format": objects(phone={"type": "string", "format": "phone", "maxLength": 12}),
    "ranges": objects(
        age={"type": "integer", "minimum": 18, "maximum": 21},
        share={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        cold={"type": "integer", "exclusiveMaximum": -3, "minimum": -6},
    ),
    "multiple": objects(minutes={"type": "integer", "multipleOf": 15, "minimum": 0, "maximum": 60}),
    "lengths": objects(word={"type": "string", "minLength": 3, "maxLength": 5}),
    "types": objects(value={"type": ["string", "null"], "maxLength": 6}, flag={"type": "boolean"}),
    "unicode": objects(größe={"enum": ["klein", "groß", "🎉"]}, **{'a "b"\\': WHOLE, "数": WHOLE}),
    "deep": _nested(12),
    "wide": objects(**{f"p{number}": {"type": "boolean"} for number in range(12)}),
    "unlike": objects(value={"enum": ["a", "b"], "not": {"const": "a"}}),
    "unique": objects(
        days={"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "maxItems": 2}
    ),
    "dependent": {
        **objects([], a={"const": 1}, b={"const": 2}),
        "dependentRequired": {"a": ["b"]},
    },
    "conditional": {
        **objects(["kind"], kind={"enum": ["x", "y"]}, extra={"const": 1}),
        "if": {"properties": {"kind": {"const": "x"}}},
        "then": {"required": ["extra"]},
    },
    "undeclared": {"type": "object", "properties": {}, "required": ["zip"], "maxProperties": 1},
}

# No grammar holds a model to all of these: such a call fits, or the request fails.
UNHELD = ("unlike", "unique", "dependent", "conditional", "oneOf that overlaps")

# Of these no call can be made, and the request says so.
BAD_SCHEMAS: dict[str, Any] = {
    "unknown type": objects(a={"type": "no such type"}),
    "unknown reference": objects(a={"$ref": "#/$defs/Missing"}),
    "another document": objects(a={"$ref": "https://example.org/schema.json"}),
    "broken pattern": objects(a={"type": "string", "pattern": "("}),
    "no object": {"type": "string"},
    "a list": [1, 2],
}
