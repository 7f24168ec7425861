"""What came out: a table of agents and checks, and the same as JSON."""

import json
import time
from dataclasses import asdict, dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Result:
    """The outcome of one check of one agent."""

    agent: str
    check: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0
    # A fault of the suite (the agent could not be brought there) is a failure too, and counted apart here.
    fault_of: str = ""


@dataclass
class Run:
    """What one run of the suite found."""

    is_newest: bool
    versions: dict
    # What is to be said of the versions.
    notes: list
    # The checks that expect `undecided`, with the reason: agent -> pairs.
    undecided: dict
    results: list


def table(results, agents, checks):
    """Returns the table as text: a row for each check, a column for each agent."""
    cells = {(one.check, one.agent): one.outcome for one in results}
    first = max(map(len, checks), default=5)
    lines = [" ".join(["check".ljust(first), *(name.ljust(max(12, len(name))) for name in agents)]).rstrip()]
    for check in checks:
        row = [cells.get((check, name), "-").ljust(max(12, len(name))) for name in agents]
        lines.append(" ".join([check.ljust(first), *row]).rstrip())
    return "\n".join(lines)


def reasons(results):
    """Returns a line for each check that did not pass; one line where an agent has one reason for several."""
    checks = {}
    for one in results:
        if one.outcome != PASSED:
            whose = f" ({one.fault_of})" if one.fault_of else ""
            checks.setdefault((one.outcome + whose, one.agent, one.reason), []).append(one.check)
    lines = []
    for (outcome, agent, reason), names in checks.items():
        which = names[0] if len(names) == 1 else f"({len(names)} checks)"
        lines.append(f"{outcome}: {agent} {which}: {reason}")
    return "\n".join(lines)


def closing_line(results):
    """Returns `N passed, N failed, N skipped`."""
    count = {outcome: sum(one.outcome == outcome for one in results) for outcome in (PASSED, FAILED, SKIPPED)}
    return ", ".join(f"{number} {outcome}" for outcome, number in count.items())


def write(path, run):
    """Writes the results of a run as JSON."""
    with open(path, "w") as file:
        json.dump({"taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **asdict(run)}, file, indent=1)
        file.write("\n")
