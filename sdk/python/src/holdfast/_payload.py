"""Typed payloads: their JSON Schema, and the conversion from JSON."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import types
import typing
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Callable, Literal, NotRequired, Required, Union

from ._job import Job

Convert = Callable[[Any], Any]
"""Converts decoded JSON to a value of a type. It raises ValueError if the JSON does not
fit the type."""


class Payload:
    """The payload of a handler, by the annotation of its first parameter: `Job[Letter]`."""

    def __init__(self, kind: Any) -> None:
        found = _Types()
        self.convert, schema = found.root(kind)
        definitions = {"$defs": found.definitions} if found.definitions else {}
        self.schema: dict[str, Any] = {**schema, **definitions}
        """The JSON Schema of the type. It allows members that the type does not
        have, so clients may be ahead of handlers."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Payload | None:
        """The payload of a function; None if the annotation does not give a type."""
        kind = _annotation(function)
        if kind is None or kind is Any or isinstance(kind, typing.TypeVar):
            return None
        return cls(kind)


def _annotation(function: Callable[..., Any]) -> Any:
    """The type in the brackets of Job[…]; None for none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    annotation = parameters[0].annotation if parameters else None
    if isinstance(annotation, str):
        called = inspect.unwrap(function)
        if not hasattr(called, "__globals__"):
            called = getattr(type(called), "__call__", called)
        try:
            annotation = eval(annotation, getattr(called, "__globals__", {}))
        except NameError as error:
            if "[" not in annotation:
                return None
            raise TypeError(f"the type {annotation} is unknown: {error}; define it at the top of its module") from None
    if typing.get_origin(annotation) is not Job:
        return None
    return typing.get_args(annotation)[0]


class _Types:
    """The types of one payload."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self._objects: dict[Any, tuple[str, Convert]] = {}

    def root(self, kind: Any) -> tuple[Convert, dict[str, Any]]:
        """Like of, for the whole payload. A missing payload is null, so null fits an
        object without required members."""
        convert, schema = self.of(kind)
        if list(schema) != ["$ref"]:
            return convert, schema
        name = schema["$ref"].removeprefix("#/$defs/")
        whole = self.definitions[name]
        if not _refers(self.definitions, schema):
            del self.definitions[name]
            schema = whole
        if "required" in whole:
            return convert, schema
        nullable: dict[str, Any] = {"anyOf": [schema, {"type": "null"}]}
        if schema is whole:
            nullable = {**schema, "type": ["object", "null"]}
        return lambda value: convert({} if value is None else value), nullable

    def of(self, kind: Any) -> tuple[Convert, dict[str, Any]]:
        """The conversion to the type, and its schema."""
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin is None and kind in _PLAIN:
            return _PLAIN[kind]
        if origin is Annotated:
            convert, schema = self.of(args[0])
            for more in args[1:]:
                if isinstance(more, Mapping):
                    schema = {**schema, **more}
            return convert, schema
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin is Literal:
            return _one_of(list(args), {value: value for value in args}), {"enum": list(args)}
        if origin in (list, Sequence) or kind is list:
            return self._list(list, args[0] if args else Any)
        if origin is tuple and len(args) == 2 and args[1] is ...:
            return self._list(tuple, args[0])
        if origin in (dict, Mapping) or kind is dict:
            return self._dict(args)
        if isinstance(kind, typing.NewType):
            return self.of(kind.__supertype__)
        if isinstance(kind, type):
            if issubclass(kind, enum.Enum):
                values = {member.value: member for member in kind}
                return _one_of(list(values), values), {"enum": list(values)}
            if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
                return self._object(kind)
            model: Any = kind
            if hasattr(model, "model_json_schema"):  # pydantic's
                schema = model.model_json_schema()
                self.definitions.update(schema.pop("$defs", {}))
                return model.model_validate, schema
        raise TypeError(f"the payload's type {kind!r} has no JSON Schema; use dataclasses, TypedDicts and what JSON has")

    def _union(self, args: tuple[Any, ...]) -> tuple[Convert, dict[str, Any]]:
        members = [self.of(arg) for arg in args]

        def convert(value: Any) -> Any:
            problems = []
            for member, _ in members:
                try:
                    return member(value)
                except ValueError as error:
                    problems.append(str(error))
            raise ValueError(", or ".join(problems))

        return convert, {"anyOf": [schema for _, schema in members]}

    def _list(self, make: Callable[[list[Any]], Any], kind: Any) -> tuple[Convert, dict[str, Any]]:
        convert, schema = self.of(kind)

        def convert_all(value: Any) -> Any:
            if not isinstance(value, list):
                raise ValueError(f"{_brief(value)} is not an array")
            return make([_at(f"[{index}]", convert, item) for index, item in enumerate(value)])

        return convert_all, {"type": "array", "items": schema} if schema else {"type": "array"}

    def _dict(self, args: tuple[Any, ...]) -> tuple[Convert, dict[str, Any]]:
        key, kind = args or (str, Any)
        if key is not str:
            raise TypeError(f"the names of a JSON object are text, not {key!r}")
        convert, schema = self.of(kind)

        def convert_all(value: Any) -> Any:
            if not isinstance(value, dict):
                raise ValueError(f"{_brief(value)} is not an object")
            return {name: _at(f".{name}", convert, item) for name, item in value.items()}

        return convert_all, {"type": "object", "additionalProperties": schema} if schema else {"type": "object"}

    def _object(self, kind: Any) -> tuple[Convert, dict[str, Any]]:
        """A dataclass or a TypedDict. It becomes a definition, because it may contain itself."""
        if kind not in self._objects:
            name = kind.__name__
            while name in self.definitions:  # two classes of one name
                name += "_"
            members: dict[str, tuple[Convert, bool]] = {}
            make = kind if dataclasses.is_dataclass(kind) else dict
            self._objects[kind] = name, lambda value: _object(value, members, make)
            self.definitions[name] = {}
            properties = {}
            for member, hint, required in _members(kind):
                convert, properties[member] = self.of(hint)
                members[member] = convert, required
            schema: dict[str, Any] = {"type": "object", "properties": properties}
            if needed := [member for member, (_, required) in members.items() if required]:
                schema["required"] = needed
            self.definitions[name] = schema
        name, convert = self._objects[kind]
        return convert, {"$ref": f"#/$defs/{name}"}


def _members(kind: Any) -> list[tuple[str, Any, bool]]:
    """The members of a dataclass or a TypedDict: name, type, whether it is required."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        return [
            (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(kind)
            if field.init
        ]
    members = []
    for name, hint in hints.items():
        required = name in kind.__required_keys__
        if typing.get_origin(hint) in (Required, NotRequired):
            required = typing.get_origin(hint) is Required
            hint = typing.get_args(hint)[0]
        members.append((name, hint, required))
    return members


def _object(value: Any, members: dict[str, tuple[Convert, bool]], make: Callable[..., Any]) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{_brief(value)} is not an object")
    given = dict(value) if make is dict else {}
    for name, (convert, required) in members.items():
        if name in value:
            given[name] = _at(f".{name}", convert, value[name])
        elif required:
            raise ValueError(f"{name} is missing")
    return make(**given)


def _at(where: str, convert: Convert, value: Any) -> Any:
    """Converts a part of a value. If it does not fit, the error says where it is."""
    try:
        return convert(value)
    except ValueError as error:
        raise ValueError(f"{where.lstrip('.')}: {error}") from None


def _refers(definitions: dict[str, Any], to: dict[str, Any]) -> bool:
    def within(part: Any) -> bool:
        if isinstance(part, dict):
            return part == to or any(within(value) for value in part.values())
        return isinstance(part, list) and any(within(item) for item in part)

    return within(definitions)


def _is(kind: type | tuple[type, ...], what: str) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise ValueError(f"{_brief(value)} is not {what}")
        return value

    return convert


def _integer(value: Any) -> int:
    # JSON Schema takes 2.0 for an integer.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise ValueError(f"{_brief(value)} is not an integer")
    return int(value)


def _null(value: Any) -> None:
    if value is not None:
        raise ValueError(f"{_brief(value)} is not null")


def _one_of(values: list[Any], members: dict[Any, Any]) -> Convert:
    def convert(value: Any) -> Any:
        for one in values:
            if one == value and type(one) is type(value):
                return members[one]
        raise ValueError(f"{_brief(value)} is not one of {', '.join(map(_brief, values))}")

    return convert


def _parsed(parse: Callable[[str], Any], what: str) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return parse(_text(value))
        except ValueError:
            raise ValueError(f"{_brief(value)} is not {what}") from None

    return convert


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


_text = _is(str, "text")

_PLAIN: dict[Any, tuple[Convert, dict[str, Any]]] = {
    Any: (lambda value: value, {}),
    object: (lambda value: value, {}),
    str: (_text, {"type": "string"}),
    bool: (_is(bool, "true or false"), {"type": "boolean"}),
    int: (_integer, {"type": "integer"}),
    float: (lambda value: float(_is((int, float), "a number")(value)), {"type": "number"}),
    None: (_null, {"type": "null"}),
    type(None): (_null, {"type": "null"}),
    datetime: (_parsed(datetime.fromisoformat, "a time"), {"type": "string", "format": "date-time"}),
    date: (_parsed(date.fromisoformat, "a date"), {"type": "string", "format": "date"}),
    uuid.UUID: (_parsed(uuid.UUID, "a UUID"), {"type": "string", "format": "uuid"}),
}
