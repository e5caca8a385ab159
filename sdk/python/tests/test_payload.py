"""Typed payloads: their schemas, and their values from JSON."""

from __future__ import annotations

import enum
import json
import unittest
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict

from holdfast import Job, handler
from holdfast._json import encode
from holdfast._payload import Payload


class Ink(enum.Enum):
    BLACK = "black"
    BLUE = "blue"


@dataclass
class Letter:
    to: Annotated[str, {"minLength": 1, "description": "Who gets it"}]
    copies: int = 1
    ink: Ink = Ink.BLACK


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


class Options(TypedDict):
    width: float
    title: NotRequired[str]


@dataclass
class Everything:
    id: uuid.UUID
    at: datetime
    on: date
    how: Literal["fast", 2]
    options: Options
    maybe: Optional[int] = None
    sizes: tuple[float, ...] = ()
    prices: dict[str, float] = field(default_factory=dict)
    anything: Any = None


@dataclass
class Nothing:
    n: int = 0


class SchemaTest(unittest.TestCase):
    def schema(self, kind):
        return Payload(kind).schema

    def test_of_a_dataclass(self):
        self.assertEqual(
            {
                "type": "object",
                "properties": {
                    "to": {"type": "string", "minLength": 1, "description": "Who gets it"},
                    "copies": {"type": "integer"},
                    "ink": {"enum": ["black", "blue"]},
                },
                "required": ["to"],
            },
            self.schema(Letter),
        )

    def test_of_a_typed_dict(self):
        self.assertEqual(
            {
                "type": "object",
                "properties": {"width": {"type": "number"}, "title": {"type": "string"}},
                "required": ["width"],
            },
            self.schema(Options),
        )

    def test_of_a_type_that_contains_itself(self):
        schema = self.schema(Tree)
        self.assertEqual("#/$defs/Tree", schema["$ref"])
        self.assertEqual({"$ref": "#/$defs/Tree"}, schema["$defs"]["Tree"]["properties"]["children"]["items"])

    def test_of_types_within_types(self):
        schema = self.schema(Everything)
        self.assertEqual({"$ref": "#/$defs/Options"}, schema["properties"]["options"])
        self.assertEqual(["Options"], list(schema["$defs"]))
        self.assertEqual({"anyOf": [{"type": "integer"}, {"type": "null"}]}, schema["properties"]["maybe"])
        self.assertEqual({}, schema["properties"]["anything"])
        json.dumps(schema)

    def test_an_absent_payload_is_null(self):
        self.assertEqual(["object", "null"], self.schema(Nothing)["type"])
        self.assertEqual(Nothing(), Payload(Nothing).convert(None))

    def test_of_types_that_json_does_not_have(self):
        for kind in (bytes, set, dict[int, str], Job):
            with self.subTest(kind), self.assertRaises(TypeError):
                self.schema(kind)

    def test_new_types_are_what_they_are_made_from(self):
        self.assertEqual({"type": "string"}, self.schema(NewType("Name", str)))


class ConvertTest(unittest.TestCase):
    def test_dataclasses(self):
        letter = Payload(Letter).convert({"to": "me", "ink": "blue", "more": 1})
        self.assertEqual(Letter("me", 1, Ink.BLUE), letter)

    def test_types_within_types(self):
        value = {
            "id": "0af76519-16cd-43dd-8448-eb211c80319c",
            "at": "2026-07-01T12:00:00Z",
            "on": "2026-07-01",
            "how": 2,
            "options": {"width": 1, "more": True},
            "sizes": [1, 2.5],
        }
        made = Payload(Everything).convert(value)
        self.assertEqual(datetime(2026, 7, 1, 12, tzinfo=timezone.utc), made.at)
        self.assertEqual({"width": 1.0, "more": True}, made.options, "a TypedDict keeps what it does not know")
        self.assertEqual((1.0, 2.5), made.sizes)
        self.assertEqual(made, Payload(Everything).convert(json.loads(encode(made))))

    def test_trees(self):
        tree = Payload(Tree).convert({"name": "a", "children": [{"name": "b"}]})
        self.assertEqual(Tree("a", [Tree("b")]), tree)

    def test_whole_numbers_are_integers(self):
        self.assertEqual(2, Payload(Letter).convert({"to": "me", "copies": 2.0}).copies)

    def test_errors_say_where(self):
        for words, value in {
            "to is missing": {},
            "[] is not an object": [],
            "copies: true is not an integer": {"to": "me", "copies": True},
            "to: null is not text": {"to": None},
            'ink: "red" is not one of "black", "blue"': {"to": "me", "ink": "red"},
        }.items():
            with self.subTest(words), self.assertRaises(ValueError) as raised:
                Payload(Letter).convert(value)
            self.assertEqual(words, str(raised.exception))
        with self.assertRaises(ValueError) as raised:
            Payload(Tree).convert({"name": "a", "children": [{"name": 1}]})
        self.assertEqual("children: [0]: name: 1 is not text", str(raised.exception))


class HandlerTest(unittest.TestCase):
    def test_the_annotation_says_the_type(self):
        @handler("PRINT")
        def print_letter(job: Job[Letter]):
            return {"to": job.payload.to}

        self.assertEqual(["to"], print_letter.schema["required"])
        self.assertEqual({"to": "me"}, print_letter(Job(Letter("me"))))

    def test_a_schema_of_your_own_wins(self):
        @handler("PRINT", schema={"type": "object"})
        def print_letter(job: Job[Letter]):
            pass

        self.assertEqual({"type": "object"}, print_letter.schema)
        self.assertEqual(Letter("me"), print_letter.convert({"to": "me"}))

    def test_without_an_annotation_the_payload_is_plain_json(self):
        @handler("PRINT")
        def plain(job):
            pass

        @handler("PRINT")
        def anything(job: Job[Any]):
            pass

        @handler("PRINT")
        async def bare(job: Job) -> None:
            pass

        for each in (plain, anything, bare):
            self.assertIsNone(each.schema)
            self.assertIsNone(each.convert)

    def test_methods_and_callable_objects(self):
        class Printer:
            def __call__(self, job: Job[Letter]):
                pass

            def print(self, job: Job[Tree]):
                pass

        self.assertEqual(["to"], handler("PRINT")(Printer()).schema["required"])
        self.assertIn("$ref", handler("PRINT")(Printer().print).schema)

    def test_a_type_that_cannot_be_found_is_refused(self):
        @dataclass
        class Local:
            n: int

        with self.assertRaisesRegex(TypeError, "job type 'PRINT': the type Job.Local. is unknown"):

            @handler("PRINT")
            def hidden(job: Job[Local]):
                pass

    def test_results_may_be_dataclasses(self):
        self.assertEqual(b'{"to":"me","copies":1,"ink":"blue"}', encode(Letter("me", ink=Ink.BLUE)))


class PydanticTest(unittest.TestCase):
    def test_models_describe_themselves(self):
        try:
            from pydantic import BaseModel
        except ImportError:
            self.skipTest("pydantic is not installed")

        class Page(BaseModel):
            number: int

        class Book(BaseModel):
            pages: list[Page]

        payload = Payload(Optional[Book])
        self.assertIn("Page", payload.schema["$defs"])
        self.assertEqual(3, payload.convert({"pages": [{"number": 3}]}).pages[0].number)
        with self.assertRaises(ValueError):
            Payload(Book).convert({"pages": 1})
        self.assertEqual(b'{"number":1}', encode(Page(number=1)))


if __name__ == "__main__":
    unittest.main()
