"""What is wrong with a configuration, in words that say what to do. A value is never repeated: it may be a secret."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ValidationError

_FEW = 12  # known names are listed in full up to this many


class ConfigurationError(ValueError):
    """The configuration is refused. `errors` holds one line for each fault; `str` is those lines."""

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(self.errors))


def nearest(name: str, known: Iterable[str]) -> str:
    """`, did you mean "x"?` with the nearest of `known`; else the names if they are few, else what to do."""
    names = list(known)
    by_lower = {item.lower(): item for item in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    if close:
        return f', did you mean "{by_lower[close[0]]}"?'
    if 0 < len(names) <= _FEW:
        return f": known are {', '.join(names)}"
    return ": remove it"


def inner(annotation: object) -> object:
    """The model, dict or tuple inside an annotation, without Optional and Annotated."""
    if typing.get_origin(annotation) is typing.Annotated:
        return inner(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [item for item in typing.get_args(annotation) if item is not type(None)]
        return inner(members[0])
    return annotation


def is_model(annotation: object) -> typing.TypeGuard[type[BaseModel]]:
    """True for a table's class (a generic alias is no class)."""
    return isinstance(annotation, type) and typing.get_origin(annotation) is None and issubclass(annotation, BaseModel)


def _element(annotation: object) -> object:
    """What a dict or a tuple holds."""
    arguments = typing.get_args(annotation)
    if not arguments:
        return None
    return inner(arguments[-1] if typing.get_origin(annotation) is dict else arguments[0])


def _at(model: type[BaseModel], location: Sequence[int | str]) -> object:
    current: object = model
    for part in location:
        if is_model(current):
            field = current.model_fields.get(str(part))
            current = inner(field.annotation) if field else None
        else:
            current = _element(current)
    return current


def leaves(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every key of `model` that is no table, as a path: `pipeline.retry.attempts`, `accounts[].id`, `texts`.

    The name of a harness stands as NAME.
    """
    for name, field in model.model_fields.items():
        here = f"{path}.{name}" if path else name
        kind = inner(field.annotation)
        element = _element(kind)
        if is_model(kind):
            yield from leaves(kind, here)
        elif is_model(element):
            yield from leaves(element, f"{here}.NAME" if typing.get_origin(kind) is dict else f"{here}[]")
        else:
            yield here


def written(location: Sequence[int | str]) -> str:
    """A pydantic location as it would be written: `accounts[0].owners`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if text else part
    return text


def _unknown(model: type[BaseModel], location: Sequence[int | str]) -> str:
    name = str(location[-1])
    table = _at(model, location[:-1])
    known = list(table.model_fields) if is_model(table) else []
    if not difflib.get_close_matches(name.lower(), known, n=1):
        elsewhere = [path for path in leaves(model) if path.rpartition(".")[2] == name]
        if elsewhere:
            return f'unknown key, did you mean "{elsewhere[0]}"?'
    return f"unknown key{nearest(name, known)}"


def explained(error: ValidationError, model: type[BaseModel], cross_check: str) -> list[str]:
    """One line for each fault of `error`; a fault of type `cross_check` brings its own lines."""
    lines: list[str] = []
    for item in error.errors(include_url=False, include_input=False):
        location, kind, message = item["loc"], item["type"], item["msg"]
        if kind == cross_check:
            lines += message.splitlines()
            continue
        if kind == "extra_forbidden":
            text = _unknown(model, location)
        elif kind == "missing":
            text = "is required: set it"
        elif kind == "string_pattern_mismatch":
            text = "must begin with a letter or digit and hold at most 64 letters, digits, dots, underscores, hyphens"
        elif kind == "string_type":
            text = "must be text: write it in quotes"
        elif kind == "too_short":
            text = "must have at least one entry: remove the key to leave it open"
        elif kind == "value_error":
            text = message.removeprefix("Value error, ")
            key, colon, rest = text.partition(": ")
            table = _at(model, location)
            if colon and is_model(table) and key in table.model_fields:  # a table's own check names the key it means
                location, text = (*location, key), rest
        else:
            text = message[:1].lower() + message[1:]
            text = text.replace("input should be", "must be")
        lines.append(f"`{written(location)}`: {text}")
    return list(dict.fromkeys(lines))
