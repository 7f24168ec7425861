"""What goes wrong with a sidecar."""


class SidecarError(Exception):
    """The sidecar is not as it should be; nothing else is wrong."""
