"""The JSON Schema of a spec against the parser: the schema takes what the parser takes, and refuses what the parser
refuses as far as a schema can."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomllib
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

import debora
from conftest import ROOT, binary, program

SPEC_TESTS = ROOT / "tests/fast/spec"
TAPLO = Path(sys.executable).with_name("taplo")

# What a schema cannot say: it sees one value at a time, and knows no sums and no names but its own.
BEYOND = {
    "a name that the file must, or must not, have elsewhere": [
        "two costs with one name",
        "a cost with the reward's name",
        "a safe strategy of an unknown action",
        "a mistyped cost of the safe strategy",
        "means of an unknown action",
        "a world with an unknown cost",
        "an imputed cost nobody knows",
        "a holdback with an action nobody knows",
        "columns of an unknown quantity",
        "columns that name a column twice",
    ],
    "a number that another one limits": [
        "delta too large for profile paper",
        "rho too small for profile paper and the default delta",
        "a range in the wrong order",
        "a threshold outside its range",
        "a safe strategy that is not safe",
        "a mean outside the range",
        "a law with a value outside",
        "an imputed reward outside its range",
        "a gap that has no room",
        "a range by action in profile paper",
    ],
    "a sum, or a length that another list gives": [
        "a safe strategy that does not sum to one",
        "a law that does not sum to one",
        "a law with too few probabilities",
    ],
}


class Case(NamedTuple):
    """A malformed spec of the suite."""

    title: str
    text: str
    overrides: list[tuple[str, str]]


def bases() -> dict[str, str]:
    """The right specs that the suite's cases begin with."""
    source = (SPEC_TESTS / "mod.rs").read_text()
    found = dict(re.findall(r'^const (\w+): &str = r#"(.*?)"#;', source, re.DOTALL | re.MULTILINE))
    assert {"FREE", "SOFT", "HARD"} <= set(found)
    return found


def cases() -> Iterator[Case]:
    """The suite, as ``tests/fast/spec/mod.rs`` reads it; tables are left out."""
    right = bases()
    for case in (SPEC_TESTS / "errors.txt").read_text().split("\n# ")[1:]:
        title, body = case.split("\n", 1)
        lines = body.split(">>>")[0].split("rows.csv\n")[0].splitlines(keepends=True)
        overrides = [line[4:].strip().split("=", 1) for line in lines if line.startswith("set ")]
        text = "".join(line for line in lines if not line.startswith("set "))
        text = text.replace("(free)\n", right["FREE"]).replace("(soft)\n", right["SOFT"])
        yield Case(title, text, [(path, value) for path, value in overrides])


def refusal(text: str, overrides: list[tuple[str, str]] | None = None) -> str | None:
    """What the parser says of a spec that it does not take."""
    try:
        debora.Spec._restore(text, "x.toml", overrides or [])
    except debora.Error as error:
        return str(error).splitlines()[0]
    return None


def document(text: str, overrides: list[tuple[str, str]] | None = None) -> Any:
    """A spec as JSON has it, ``None`` if there is no such document: not TOML, or an override without a place."""
    try:
        root: Any = tomllib.loads(text)
        for path, value in overrides or []:
            put(root, path.split("."), value)
    except (tomllib.TOMLDecodeError, LookupError, TypeError, AttributeError):
        return None
    return finite(root)


def put(node: Any, path: list[str], value: str) -> None:
    for key in path[:-1]:
        node = {each["name"]: each for each in node}[key] if isinstance(node, list) else node.setdefault(key, {})
    try:
        node[path[-1]] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        node[path[-1]] = value


def finite(value: Any) -> Any:
    """JSON has no infinities: they are null, as taplo has them."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads(program("schema"))


@pytest.fixture(scope="module")
def validator(schema: Any) -> Any:
    return Draft7Validator(schema)


def every_kind() -> list[str]:
    """Right specs with every key between them, short enough to try all that is near."""
    right = bases()
    cost = "cost.price = [0, 0.75]\n"
    law = "{ values = [0, 0.5], probabilities = [0.25, 0.75] }"
    worlds = [
        "kind = 'bernoulli'\nreward = [0.25, 1]\n" + cost,
        "kind = 'beta'\nreward = { a = 0.25, b = 1 }\nconcentration = 10\nkey = 7\n" + cost,
        f"kind = 'discrete'\nreward = [{law}, {law}]\ncost.price = {{ a = {law}, b = {law} }}\n",
        "kind = 'table'\nfile = 'rows.csv'\ncolumns = { reward = 'clicks' }\n",
        "kind = 'random'\nlaw = 'stairs'\ngap = 0.1\nworlds = 3\nindex = 2\n",
        "kind = 'random'\nlaw = 'uniform'\n",
    ]
    margins = right["HARD"].replace("cost = { wait = 0.25, price = 0.0025 }", "margin = { wait = 0.1, price = 1e-3 }")
    return [
        right["FREE"] + "profile = 'paper'\n",
        right["HARD"],
        margins.replace(
            "threshold = 0.5", "threshold = 0.5\nrange = { small = [0, 0.5], medium = [0, 1], large = [0.25, 1] }"
        ),
        right["SOFT"].replace("rho", "caution = 0.25\nexplore = 0.5\nrho", 1),
        *(f"{right['SOFT']}[world]\n{world}" for world in worlds),
    ]


def right_specs() -> list[str]:
    """All that the parser is known to take."""
    files = [*sorted((ROOT / "examples").glob("*.toml")), ROOT / "app/src/commands/template.toml"]
    free = bases()["FREE"]
    odd = 'name = ""\nkey = 340282366920938463463374607431768211455\ncost = []\n'
    waits = [f"{free}[service]\noutcome_wait = '{wait}'\n" for wait in ("36500d", "007h", "1m", "3153600000s")]
    many = free.replace('["a", "b"]', "1048576.0")
    return [*(file.read_text() for file in files), *every_kind(), odd + free, many, *waits]


def test_it_is_a_schema_that_explains_every_key(schema: Any) -> None:
    Draft7Validator.check_schema(schema)

    def explained(section: Any) -> int:
        keys = section.get("properties", {})
        for name, key in keys.items():
            assert key["description"].endswith("."), name
        within = [key.get("items", key) for key in keys.values()]
        return len(keys) + sum(explained(key) for key in within)

    assert explained(schema) > 35


def test_what_the_parser_refuses_the_schema_refuses_as_far_as_it_can(validator: Any) -> None:
    passed = set()
    judged = 0
    for case in cases():
        spec = document(case.text, case.overrides)
        why = refusal(case.text, case.overrides)
        if spec is None:
            assert why, case.title
        elif why is None:
            # What is wrong is not in the spec: a table's rows, or that there is nothing to simulate.
            assert validator.is_valid(spec), case.title
        else:
            judged += 1
            if validator.is_valid(spec):
                passed.add(case.title)
    assert judged > 100
    assert passed == {title for titles in BEYOND.values() for title in titles}


def test_what_the_parser_takes_the_schema_takes(validator: Any) -> None:
    for text in right_specs():
        assert refusal(text) is None, text
        validator.validate(document(text))


# What a hand might put where it does not belong.
TOKENS = [
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "1e-320",
    "-0.0",
    "0.5",
    "1",
    "2",
    "2.5",
    "1e8",
    "0x10",
    "64",
    "65",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "''",
    "'a'",
    "'b'",
    "'paper'",
    "'tight'",
    "'hard'",
    "'free'",
    "'clip'",
    "'7d'",
    "'0m'",
    "'00112233445566778899aabbccddeeFF'",
    "true",
    "1979-05-27",
    "[]",
    "{}",
    "[0,1]",
    "[0,0.5,1]",
    "'sparse'",
    "[1,2]",
    "[0.25,0.75]",
    "{a=1}",
    "{a=0.5,b=0.5}",
    "{price=0.25}",
]


# One that nobody knows, and those of the kinds of world.
KEYS = [
    "colour = 1",
    "reward = [0.5, 0.5]",
    "cost.price = [0.5, 0.5]",
    "concentration = 10",
    "file = 'rows.csv'",
    "columns = {}",
    "law = 'uniform'",
    "gap = 0.1",
    "worlds = 2",
    "index = 2",
]


def neighbours(text: str, known: set[str]) -> Iterator[str]:
    """A spec without each of its lines, with a key too many after it, and with each of its values replaced. Lines that
    are known stood in a spec before, and were spoiled there."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line in known:
            continue
        known.add(line)
        around = "".join(lines[:number]), "".join(lines[number + 1 :])
        values = [*re.finditer(r"(?<== )[^#\n]*[^#\s]", line), *re.finditer(r"[\w.'\"-]+(?=[,\]} ])", line)]
        spoiled = [line[: value.start()] + token + line[value.end() :] for value in values for token in TOKENS]
        for instead in ["", *(f"{line}{key}\n" for key in KEYS), *spoiled]:
            yield instead.join(around)


# How the parser's messages tell what is beyond a schema, as above; the last is a key beyond 128 bits.
BEYOND_WORDS = re.compile(
    r"unknown (action|cost|column) |has no (action|cost) |twice|entries for|sum to"
    r"|(outside|in|below) its range|needs more room|increasing order|profile paper needs|margin .* is not above"
    r"|key is \d\.\d+e\d\d;"
)


def test_spoiled_specs_are_judged_alike(validator: Any) -> None:
    taken = refused = 0
    known: set[str] = set()
    for text in (each for spec in every_kind() for each in neighbours(spec, known)):
        spec, why = document(text), refusal(text)
        if spec is None:
            continue
        if why is None:
            taken += 1
            assert validator.is_valid(spec), text
        elif not BEYOND_WORDS.search(why):
            refused += 1
            assert not validator.is_valid(spec), f"{why}\n{text}"
    assert taken > 300
    assert refused > 4_000


def test_taplo_judges_as_the_schema_says(validator: Any, tmp_path: Path) -> None:
    """The language server that editors use has a validator of its own."""
    (tmp_path / "schema.json").write_text(program("schema"))
    texts = [*right_specs(), *(case.text for case in cases() if not case.overrides)]
    wrong = set()
    for number, text in enumerate(texts):
        spec = document(text)
        if spec is not None:
            (tmp_path / f"{number}.toml").write_text(f"#:schema ./schema.json\n{text}")
            wrong |= set() if validator.is_valid(spec) else {number}
    done = subprocess.run([TAPLO, "check", "--colors=never"], cwd=tmp_path, capture_output=True, text=True, check=False)
    # Where it points, not its log, whose last lines are lost at times.
    found = re.findall(r"┌─ .*?(\d+)\.toml:", done.stderr)
    assert {int(number) for number in found} == wrong
    assert len(wrong) > 70


def test_taplo_finds_the_schema_that_init_writes(tmp_path: Path) -> None:
    subprocess.run([binary(), "init"], cwd=tmp_path, check=True, capture_output=True)
    check = [str(TAPLO), "check", "--colors=never", "debora.toml"]
    subprocess.run(check, cwd=tmp_path, check=True, capture_output=True)
    spec = tmp_path / "debora.toml"
    spec.write_text(spec.read_text().replace('"soft"', '"sofd"'))
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert '"sofd" is not one of ["free","soft","hard"]' in done.stderr
