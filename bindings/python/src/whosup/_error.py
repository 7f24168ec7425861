"""What goes wrong with a sidecar, or with a question about sessions."""


class SidecarError(Exception):
    """The sidecar is not as it should be; nothing else is wrong."""


class ReadError(Exception):
    """A question about sessions can't be answered, and why."""
