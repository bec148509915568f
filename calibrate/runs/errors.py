"""Why a configuration gives no measurement without anything being broken."""


class CannotRun(Exception):
    """It cannot run here, and running it again would not change that."""


class OutOfTime(Exception):
    """The time box ends before it would; a later call can measure it."""
