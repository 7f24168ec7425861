"""The commands of README.md: writes them down to be run, and judges what came of it.

Usage: readme.py write README ROOT
       readme.py judge README ROOT FORBIDDEN...   no output may contain a FORBIDDEN path
       readme.py namespaces                       gives new ones a loopback and a host name
"""

import fcntl
import re
import socket
import struct
import sys
from pathlib import Path

# Commands that don't end with 0 for a newcomer, and why. An ID is a session that has
# exited. What is not listed ends with 0.
STATUSES = {
    "whosup why --pid 4711": 4,  # there is no such process
    "whosup check ID": 1,
    "whosup pid ID": 1,
    "whosup attach ID": 1,
    "whosup attach --waiting": 2,  # the demo's terminals are not in a pane
    "whosup send ID TEXT --enter --wait": 1,
    "whosup stop ID": 1,
    "whosup resume ID": 2,  # no agent is installed
    "whosup wait ID --until waiting": 2,  # nothing happens in the demo
    "whosup top": 2,  # there is no terminal
    "whosup notify": 2,  # there is no desktop
    "whosup run -- aider": 127,  # it is not installed
    "whosup conformance -- ./my-driver": 2,  # nobody has written it
    "whosup watch": 124,  # runs until it is ended
    "whosup watch --ndjson": 124,
    "whosup serve --open": 124,
}
ENDED = 124
SECONDS = 60
# Long enough for the first output of what runs until it is ended.
SECONDS_OF_ENDLESS = 5
# What the commands that write may leave in the home.
MAY_BE_WRITTEN = (".local/state/whosup", ".config/systemd/user", "pages")


def commands(readme):
    """What the README shows: commands at a prompt, and commands in the text."""
    shown = re.findall(r"^\$ (whosup.*)$", readme, re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL)
    named = [" ".join(code.split()) for code in re.findall(r"`(whosup(?:\s[^`]*)?)`", text)]
    return list(dict.fromkeys(shown + named))


def runnable(command, example):
    """Fills in what the README leaves open. Sessions are there only in the demo."""
    if re.search(r"\bID\b|--waiting", command):
        command = command.replace("whosup ", "whosup demo -- ", 1)
    filled = {"ID": example, "SHELL": "bash", "DIR": "pages", "TEXT": "hello", "COMMAND": "list"}
    return re.sub(r"\b(ID|SHELL|DIR|TEXT|COMMAND)\b", lambda found: filled[found[0]], command)


def example_of(readme):
    found = re.search(r"^\$ whosup demo -- why (\S+)$", readme, re.MULTILINE)
    if found is None:
        sys.exit("README.md shows no session of the demo")
    return found[1]


def write(readme, root):
    for number, command in enumerate(commands(readme)):
        endless = STATUSES.get(command) == ENDED
        seconds = SECONDS_OF_ENDLESS if endless else SECONDS
        line = f"{seconds} {runnable(command, example_of(readme))}\n"
        (root / "commands" / f"{number:03}").write_text(line)


def wrong_with(command, out, forbidden):
    status = int(out.with_suffix(".status").read_text())
    printed = out.with_suffix(".stdout").read_text() + out.with_suffix(".stderr").read_text()
    right = STATUSES.get(command, 0)
    if status != right:
        yield f"ended with {status} and not with {right}: {printed}"
    if not printed:
        yield "printed nothing"
    for path in forbidden:
        if path != "/" and path in printed:
            yield f"printed {path}: {printed}"
    if "panicked" in printed:
        yield f"panicked: {printed}"


def judge(readme, root, forbidden):
    wrong = []
    found = commands(readme)
    for number, command in enumerate(found):
        out = root / "out" / f"{number:03}"
        wrong += [f"{command}: {what}" for what in wrong_with(command, out, forbidden)]
    wrong += [f"README.md has no command `{name}` any more" for name in STATUSES.keys() - set(found)]
    home = root / "home/newcomer"
    written = [path.relative_to(home) for path in home.rglob("*") if not path.is_dir()]
    wrong += [
        f"the home has a file more: {path}"
        for path in written
        if not str(path).startswith(MAY_BE_WRITTEN)
    ]
    print("\n".join(wrong) or f"{len(found)} commands of README.md do what they promise")
    return bool(wrong)


def namespaces():
    socket.sethostname("newcomer")
    request, flags_up = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP: netdevice(7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, request, struct.pack("16sh22x", b"lo", flags_up))


def main():
    what, *rest = sys.argv[1:]
    if what == "namespaces":
        return namespaces()
    readme, root = Path(rest[0]).read_text(), Path(rest[1])
    if what == "write":
        return write(readme, root)
    return judge(readme, root, [str(root), *rest[2:]])


sys.exit(main())
