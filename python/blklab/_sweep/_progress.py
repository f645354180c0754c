# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a terminal shows of something that takes long; a pipe gets nothing."""

from __future__ import annotations

import sys
import time


class Progress:
    """One line on a terminal, written anew as things go on.

    Parameters
    ----------
    total : int
        How many there are.
    unit : str
        What they are.
    shown : bool, optional
        Whether to show it; where standard error is a terminal otherwise.
    """

    def __init__(self, total: int, unit: str, shown: bool | None = None) -> None:
        self.total = total
        self.unit = unit
        self.done = 0
        self.failed = 0
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._began = time.monotonic()
        self._last = 0.0

    def add(self, done: int, failed: int) -> None:
        """So many more have come to an end."""
        self.done += done
        self.failed += failed
        now = time.monotonic()
        if self._shown and now - self._last >= 0.2:
            self._last = now
            sys.stderr.write(f"\r\x1b[K{self.line(now - self._began)}")
            sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """The line after so many seconds."""
        ended = self.done + self.failed
        parts = [f"{ended} of {self.total} {self.unit}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if ended and seconds > 0:
            parts.append(f"{ended / seconds:.3g} a second")
            left = seconds / ended * (self.total - ended)
            parts.append(f"{clock(left)} left")
        return ", ".join(parts)

    def close(self) -> None:
        """Leaves the line to others."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def clock(seconds: float) -> str:
    """A time as ``h:mm:ss`` or ``m:ss``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
