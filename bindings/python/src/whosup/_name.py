"""Ids and names that may become part of a path."""

import re
import unicodedata

from ._error import SidecarError

ID_BYTES_MAX = 128
_AGENT = re.compile(r"[a-z][a-z0-9-]{0,63}")
_SEPARATORS = frozenset("/\\")
_REFUSED_BY_WINDOWS = frozenset('<>:"|?*')
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
# Characters that are not seen, and letters that are invisible.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def checked_session(text: str) -> str:
    """Returns ``text`` if it can be a session's id."""
    reason = _why_no_session(text)
    if reason is not None:
        raise SidecarError(
            f"cannot announce a session: a session id must not {reason}", "bad_argument"
        )
    return text


def _why_no_session(text: str) -> "str | None":
    if not isinstance(text, str) or not text:
        return "be empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "have half a character"
    if size > ID_BYTES_MAX:
        return f"be longer than {ID_BYTES_MAX} bytes, this one has {size}"
    for character in text:
        if character in _SEPARATORS:
            return f"contain `{character}`, which separates the parts of a path"
        if character in _REFUSED_BY_WINDOWS:
            return f"contain `{character}`, which Windows refuses in file names"
        if unicodedata.category(character) == "Cc":
            return "contain a control character"
    if _INVISIBLE.search(text):
        return "contain a character that can't be seen"
    if not text.strip("."):
        return "be made of dots alone"
    if text != text.strip():
        return "begin or end with a space"
    if text.endswith("."):
        return "end with a dot, which Windows drops"
    if text.startswith("-"):
        return "begin with a hyphen, as options do"
    if _DEVICE.fullmatch(text.split(".")[0].rstrip()):
        return "be the name of a Windows device"
    return None


def checked_agent(text: str) -> str:
    """Returns ``text`` if it can be an agent's name."""
    if not isinstance(text, str) or not _AGENT.fullmatch(text) or text == "schema":
        raise SidecarError(
            "cannot announce an agent: its name must have lower-case letters, digits and "
            f"hyphens, a letter first, and must not be `schema`: {text!r}",
            "bad_argument",
        )
    return text
