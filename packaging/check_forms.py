"""Checks that workflows and issue forms are what GitHub expects, as far as that is documented."""

import sys
from pathlib import Path

import yaml

TYPES = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
# What a report can be worked on with.
DOCTOR = "whosup doctor --json --redact"


def wrong_in_workflow(document):
    # YAML 1.1 reads the key `on` as true.
    for key in ("name", True, "jobs", "permissions"):
        if key not in document:
            yield f"`{'on' if key is True else key}` is missing"
    for name, job in document.get("jobs", {}).items():
        if "timeout-minutes" not in job:
            yield f"job `{name}` has no time limit"
        for step in job.get("steps", []):
            if len({"uses", "run"} & step.keys()) != 1:
                yield f"job `{name}` has a step without exactly one of `uses` and `run`"


def wrong_in_form(document):
    for key in ("name", "description", "body"):
        if not document.get(key):
            yield f"`{key}` is missing"
    ids = []
    for field in document.get("body", []):
        if field.get("type") not in TYPES:
            yield f"there is no type of field `{field.get('type')}`"
        elif field["type"] != "markdown":
            ids.append(field.get("id"))
            if not field.get("attributes", {}).get("label"):
                yield f"field `{field.get('id')}` has no label"
        if field.get("type") == "dropdown" and not field["attributes"].get("options"):
            yield f"field `{field.get('id')}` has no options"
    if len(set(ids)) != len(ids) or None in ids:
        yield "each field needs an id of its own"
    if DOCTOR not in str(document):
        yield f"it doesn't ask for `{DOCTOR}`"


def main():
    wrong = []
    kinds = (
        (".github/workflows", wrong_in_workflow),
        (".github/ISSUE_TEMPLATE", wrong_in_form),
    )
    for folder, find in kinds:
        files = [path for path in sorted(Path(folder).glob("*.yml")) if path.name != "config.yml"]
        if not files:
            wrong.append(f"{folder}: there is nothing")
        for path in files:
            wrong += [f"{path}: {what}" for what in find(yaml.safe_load(path.read_text()))]
            print(f"{path}: looked at")
    yaml.safe_load(Path(".github/ISSUE_TEMPLATE/config.yml").read_text())
    sys.exit("\n".join(wrong) or 0)


main()
