"""Streams and events of `torch.cuda` where there is no GPU: a capture has one stream, in the order of the program."""

from __future__ import annotations

from typing import Any

import torch


class OneStream:
    """Stands for every stream; waiting for it on the GPU costs nothing, on the host it is `torch.cuda.synchronize`."""

    device = torch.device("meta")
    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def record_event(self, event: Any = None) -> Any:
        return event or NoEvent()

    def query(self) -> bool:
        return True

    def wait_stream(self, _: Any) -> None:
        """Waits on the GPU for what one stream has in order already."""

    def wait_event(self, _: Any) -> None:
        """The same for an event."""

    def __enter__(self) -> OneStream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class NoEvent:
    """Stands for every event."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, _: Any = None) -> None:
        """Marks nothing: operators are in order."""

    def wait(self, _: Any = None) -> None:
        """Waits on the GPU."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def elapsed_time(self, _: Any) -> float:
        """Milliseconds between two events: nothing runs, so 1 stands for them."""
        return 1.0


#: What replaces attributes of `torch.cuda`.
STREAMS: dict[str, Any] = {
    "Stream": OneStream,
    "Event": NoEvent,
    "stream": lambda stream: stream or OneStream(),
    "current_stream": OneStream,
    "default_stream": OneStream,
    "set_stream": lambda _: None,
}
