"""Formulas and pieces of code that stand inside a sentence, in words."""

from __future__ import annotations

import re

_COMMANDS = {
    "times": " times ",
    "cdot": " times ",
    "div": " divided by ",
    "pm": " plus or minus ",
    "leq": " less than or equal to ",
    "le": " less than or equal to ",
    "geq": " greater than or equal to ",
    "ge": " greater than or equal to ",
    "neq": " not equal to ",
    "ne": " not equal to ",
    "approx": " approximately ",
    "equiv": " equivalent to ",
    "infty": " infinity ",
    "sum": " the sum of ",
    "prod": " the product of ",
    "int": " the integral of ",
    "to": " to ",
    "rightarrow": " to ",
    "in": " in ",
    "partial": " partial ",
    "nabla": " nabla ",
    "circ": " degrees ",
    "ldots": " and so on ",
    "dots": " and so on ",
    "cdots": " and so on ",
    "implies": " implies ",
    "Rightarrow": " implies ",
}
# Of layout alone, or around text that follows in braces.
_SILENT = {
    "left",
    "right",
    "text",
    "mathrm",
    "mathbf",
    "mathbb",
    "mathcal",
    "mathit",
    "operatorname",
}
_SILENT |= {"displaystyle", "quad", "qquad", "big", "Big", "begin", "end", "label", "boxed"}
_FRAC = re.compile(r"\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_PRODUCT = re.compile(r"(?<=\d)(?=[A-Za-z])")
_ROOT = re.compile(r"\\sqrt\s*(?:\[(\w+)\])?\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?")
_POWER = re.compile(r"\^\s*(?:\{([^{}]*)\}|(-?\w))")
_INDEX = re.compile(r"_\s*(?:\{([^{}]*)\}|(\w))")
_SIGNS = {
    "<=": " less than or equal to ",
    ">=": " greater than or equal to ",
    "!=": " not equal to ",
    "==": " equals ",
    "=": " equals ",
    "+": " plus ",
    "<": " less than ",
    ">": " greater than ",
    "*": " times ",
    "/": " over ",
}
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_MINUS = re.compile(r"[-−](?=\s|\w|\\)")
_CODE_SIGNS = {
    "==": " equals ",
    "!=": " not equal to ",
    "<=": " less than or equal to ",
    ">=": " greater than or equal to ",
    "=>": " ",
    "->": " ",
    "=": " equals ",
    " + ": " plus ",
    " < ": " less than ",
    " > ": " greater than ",
    "/": " slash ",
    "_": " ",
    "&&": " and ",
    "||": " or ",
}
_CODE_SIGN = re.compile("|".join(map(re.escape, _CODE_SIGNS)))
_CODE_DOT = re.compile(r"(?<!\d)(?<!\.)\.(?=[^\W\d])|\.(?=[^\W\d_])")
_CODE_MARK = re.compile(r"[^\w\s.,:'+#%$€£@-]|(?<!\w)-+(?=[A-Za-z])|[.:,](?=\s|$)")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def say_formula(source: str) -> str:
    """LaTeX, without its delimiters; numbers stay digits."""
    text = source
    while (changed := _FRAC.sub(r" \1 over \2 ", text)) != text:
        text = changed
    text = _PRODUCT.sub(" ", text)
    text = _ROOT.sub(_say_root, text)
    text = _POWER.sub(_say_power, text)
    text = _INDEX.sub(lambda found: f" sub {found[1] or found[2]} ", text)
    text = _COMMAND.sub(_say_command, text)
    text = _SIGN.sub(lambda found: _SIGNS[found[0]], text)
    text = _MINUS.sub(" minus ", text)
    text = re.sub(r"[\\{}$&~|^_\[\]]+", " ", text)
    return " ".join(text.split())


def say_code(source: str) -> str:
    """The words of a piece of code; numbers stay digits."""
    if "://" in source:
        return source  # an address is read as one
    text = _CODE_DOT.sub(" dot ", source)
    text = _CODE_SIGN.sub(lambda found: _CODE_SIGNS[found[0]], text)
    text = _CODE_MARK.sub(" ", text)
    return " ".join(_HUMP.sub(" ", text).split())


def _say_root(found: re.Match[str]) -> str:
    if found[1] in (None, "2"):
        return f" the square root of {found[2]} "
    return (
        f" the cube root of {found[2]} "
        if found[1] == "3"
        else f" the {found[1]}th root of {found[2]} "
    )


def _say_power(found: re.Match[str]) -> str:
    exponent = (found[1] or found[2] or "").strip()
    if exponent in (r"\circ", "°"):
        return " degrees "
    return {"2": " squared ", "3": " cubed ", "": " "}.get(
        exponent, f" to the power of {exponent} "
    )


def _say_command(found: re.Match[str]) -> str:
    if found[1] in _SILENT:
        return " "
    return _COMMANDS.get(found[1], f" {found[1]} ")
