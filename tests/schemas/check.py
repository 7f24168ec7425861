"""Validates documents with the package `jsonschema`. `run` says what it is given."""

import json
import os
import subprocess
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).resolve().parent.parent.parent / "schema"
COMMON = "common.v1.schema.json"
# A session of the demo that lives and has a transcript.
SESSION = "4f1c0a52"
ERRORS_SHOWN_MAX = 5

# The output, what of it is not asked for, and the command that prints it.
OUTPUTS = [
    ("list", (), ["list", "--json"]),
    ("list", (), ["list", "--all", "--json"]),
    ("status", (), ["status", "--json"]),
    ("orphans", (), ["orphans", "--json"]),
    ("agents", (), ["agents", "--json"]),
    ("show", ("messages",), ["show", SESSION, "--json"]),
    ("show", (), ["show", SESSION, "--tail", "3", "--json"]),
    ("check", (), ["check", SESSION, "--json"]),
    ("pid", (), ["pid", SESSION, "--json"]),
    ("sweep", (), ["sweep", "--dry-run", "--json"]),
    ("hooks-status", (), ["hooks", "status", "--json"]),
    ("doctor", (), ["doctor", "--dry-run", "--json"]),
    ("doctor", (), ["doctor", "--dry-run", "--redact", "--json"]),
    ("why", (), ["why", SESSION, "--json"]),
    ("why-pid", (), ["why", "--pid", "1", "--json"]),
    ("usage", ("session", "project", "agent", "model", "branch"), ["usage", "--since", "2000-01-01T00:00:00Z", "--json"]),
    ("usage", ("session", "project", "agent", "branch"), ["usage", "--by", "day,model", "--since", "2000-01-01T00:00:00Z", "--json"]),
]
LINES = ["list", "--all", "--ndjson"]
# A correct writer, and checks that it passes and that need nothing.
WRITER = SCHEMAS.parent / "conformance" / "mutants" / "writer.py"
CONFORMANCE = ["conformance", "--json", "--only", "name", "--only", "same", "--"]


def read(path):
    return json.loads(path.read_text("utf-8"))


def registry():
    """Every schema by its `$id`, as a reader of another project has them."""
    schemas = [read(path) for path in sorted(SCHEMAS.glob("*.schema.json"))]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)


def is_bytes_of_text(name, properties):
    return name.endswith("_bytes") and name.removesuffix("_bytes") in properties


def closed(schema, definitions):
    """The strict copy of a part of a schema; see the README beside the schemas."""
    if isinstance(schema, list):
        return [closed(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    for part in schema.pop("allOf", []):
        other = definitions[part["$ref"].removeprefix("#/$defs/")]
        schema["properties"] = {**other["properties"], **schema["properties"]}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["required"] = [name for name in properties if not is_bytes_of_text(name, properties)]
        schema["additionalProperties"] = False
    return {name: closed(field, definitions) for name, field in schema.items()}


def strict(output, absent):
    """The schema of an output with all that it refers to, closed for other fields."""
    text = (SCHEMAS / f"{output}.v1.schema.json").read_text("utf-8").replace(COMMON, "")
    definitions = read(SCHEMAS / COMMON)["$defs"]
    schema = {**json.loads(text), "$defs": definitions}
    # One that allows several shapes has no fields of its own.
    fields = schema.get("properties", {})
    for name in absent:
        # What rows are not about is absent in them.
        del (fields if name in fields else fields["rows"]["items"]["properties"])[name]
    return closed(schema, definitions)


def watched(whosup, environment):
    """What a watcher prints in an empty home while a configuration that is none comes."""
    with subprocess.Popen([whosup, "watch"], env=environment, stdout=subprocess.PIPE, encoding="utf-8") as watcher:
        lines = [json.loads(watcher.stdout.readline())]
        broken = Path(environment["HOME"], ".config", "whosup", "config.toml")
        broken.parent.mkdir(parents=True, exist_ok=True)
        broken.write_text("x")
        while lines[-1]["kind"] != "problems":
            lines.append(json.loads(watcher.stdout.readline()))
        broken.unlink()
        watcher.kill()
    assert lines[0]["kind"] == "snapshot"
    return lines


class Checks:
    def __init__(self):
        self.registry = registry()
        self.validators = {}
        self.checked = 0
        self.failures = []

    def validators_of(self, output, absent):
        key = (output, absent)
        if key not in self.validators:
            schema = read(SCHEMAS / f"{output}.v1.schema.json")
            self.validators[key] = [
                Draft202012Validator(schema, registry=self.registry),
                Draft202012Validator(strict(output, absent)),
            ]
        return self.validators[key]

    def check(self, output, absent, document, what):
        self.checked += 1
        for validator in self.validators_of(output, absent):
            errors = list(validator.iter_errors(document))[:ERRORS_SHOWN_MAX]
            self.failures += [f"{what}: {error.json_path}: {error.message}" for error in errors]

    def check_that_it_can_fail(self, document):
        """A field too many and one too few are noticed by the strict copy, and by it alone."""
        is_open, is_strict = self.validators_of("list", ())
        more = {**document, "mood": "fine"}
        less = {name: field for name, field in document.items() if name != "problems"}
        kinds = [is_open.is_valid(more), is_strict.is_valid(more), is_open.is_valid(less), is_strict.is_valid(less)]
        if kinds != [True, False, False, False]:
            self.failures.append(f"a field too many or too few is not noticed: {kinds}")


def conformance(whosup, environment):
    command = [whosup, *CONFORMANCE, sys.executable, str(WRITER)]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    document = json.loads(done.stdout)
    assert [checked["result"] for checked in document["checks"]] == ["passed", "passed"], done.stdout
    return document


def main(whosup, answers, home):
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": home, "TMPDIR": home}

    def demo(arguments):
        done = subprocess.run([whosup, "demo", "--", *arguments], env=environment, capture_output=True, encoding="utf-8")
        if not done.stdout:
            sys.exit(f"error: `whosup demo -- {' '.join(arguments)}` printed nothing but {done.stderr}")
        return done.stdout

    checks = Checks()
    for output, absent, arguments in OUTPUTS:
        document = json.loads(demo(arguments))
        checks.check(output, absent, document, "whosup " + " ".join(arguments))
        if output == "list":
            assert document["sessions"] and document["problems"] and document["unattributed"]
            checks.check_that_it_can_fail(document)
    lines = [json.loads(line) for line in demo(LINES).splitlines()]
    assert {line["kind"] for line in lines} == {"snapshot", "session", "unattributed", "problem"}
    for line in lines:
        checks.check("list-line", (), line, "whosup " + " ".join(LINES))
    checks.check("conformance", (), conformance(whosup, environment), "whosup " + " ".join(CONFORMANCE))
    for line in watched(whosup, environment):
        checks.check("watch", (), line, "whosup watch")
    fixtures = sorted(Path(answers).glob("*.json"))
    assert len(fixtures) > 100, f"only {len(fixtures)} answers of fixtures"
    for path in fixtures:
        checks.check("list", (), read(path), path.stem)
    for failure in checks.failures:
        print(failure)
    print(f"{checks.checked} documents, {len(checks.failures)} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
