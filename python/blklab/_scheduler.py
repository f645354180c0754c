# SPDX-License-Identifier: MIT OR Apache-2.0
"""I/O schedulers written in Python: exact, and slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from blklab import _native
from blklab._native import InputError, InvariantError


@dataclass(slots=True, eq=False)
class Request:
    """A request that waits in a scheduler, or is at the device.

    The same object stands for a request from :meth:`Scheduler.insert` to
    :meth:`Scheduler.completed`; merges change it.
    """

    #: Its number, which another request gets when this one is done.
    id: int
    #: First sector of 512 bytes.
    sector: int
    #: Length in sectors.
    sectors: int
    #: read, write, discard or flush.
    op: str
    #: Somebody waits for it: a read, or a write with the sync flag.
    is_sync: bool
    #: Priority as the kernel encodes it: the class in the bits from 13 up, the level below.
    ioprio: int
    #: Number of the task that made it.
    task: int
    #: When it was made, in ns of virtual time.
    start_ns: int

    @property
    def end(self) -> int:
        """The sector behind its last."""
        return self.sector + self.sectors


class Scheduler:
    """An I/O scheduler. Derive from it, and give :func:`blklab.run` the class.

    A scheduler is made for each disk. It must give each request that was inserted to the
    device once: what breaks this raises :class:`InvariantError`, and what a method raises ends
    the run and is raised from it.

    Attributes
    ----------
    name : str
        Its name in experiments; the class's name otherwise.
    tunables : dict
        Name to ``(default, least, greatest, what it does)``, all integers but the last.
    queue : Queue
        ``now_ns``, ``rotational``, ``tunables`` (name to value) and ``wake_in(delay_ns)``.

    Examples
    --------
    >>> import blklab
    >>> class Fifo(blklab.Scheduler):
    ...     def __init__(self, queue):
    ...         super().__init__(queue)
    ...         self.waiting = []
    ...     def insert(self, request, at_head):
    ...         self.waiting.insert(0 if at_head else len(self.waiting), request)
    ...     def dispatch(self):
    ...         return self.waiting.pop(0) if self.waiting else None
    ...     def absorbed(self, request, other):
    ...         self.waiting.remove(other)
    >>> job = {"r": {"rw": "randread", "direct": 1, "size": "16m", "io_size": "64k"}}
    >>> blklab.run(job, sched=Fifo, device="sata-7200-2008").record["scheduler"]
    'Fifo'
    """

    name: ClassVar[str] = ""
    tunables: ClassVar[dict[str, tuple[int, int, int, str]]] = {}

    def __init__(self, queue: _native.Queue) -> None:
        self.queue = queue
        self._requests: dict[int, Request] = {}

    def insert(self, request: Request, at_head: bool) -> None:
        """A request begins to wait; ``at_head`` if it goes before all others."""
        raise NotImplementedError

    def dispatch(self) -> Request | None:
        """The request that goes to the device now, which waits no more; None to let all wait.

        It is asked again when a request is inserted or completed, and after ``wake_in``.
        """
        raise NotImplementedError

    def completed(self, request: Request) -> None:
        """The device is done with a request."""

    def merged(self, request: Request, at_front: bool) -> None:
        """A bio joined a waiting request, which grew at its front or its back."""

    def absorbed(self, request: Request, other: Request) -> None:
        """``other``, which waited, is now a part of ``request`` and must be forgotten."""
        raise NotImplementedError

    def find_front_merge(self, end: int) -> Request | None:
        """A waiting request that begins at the sector ``end``, if any is to grow at its front."""

    def former(self, request: Request) -> Request | None:
        """The waiting request before one in the order of sectors, if they may merge."""

    def latter(self, request: Request) -> Request | None:
        """The waiting request behind one in the order of sectors, if they may merge."""

    # What the native module calls.

    def _insert(self, fields: dict[str, Any], at_head: bool) -> None:
        request = Request(**fields)
        self._requests[request.id] = request
        self.insert(request, at_head)

    def _dispatch(self) -> int | None:
        return self._number(self.dispatch(), "dispatch")

    def _completed(self, fields: dict[str, Any]) -> None:
        # Flushes go to the device without the scheduler.
        request = self._requests.pop(fields["id"], None)
        if request is not None:
            self.completed(request)

    def _update(self, fields: dict[str, Any]) -> Request:
        request = self._requests[fields["id"]]
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def _merged(self, fields: dict[str, Any], at_front: bool) -> None:
        self.merged(self._update(fields), at_front)

    def _absorbed(self, fields: dict[str, Any], other: dict[str, Any], waits: bool) -> None:
        request = self._update(fields)
        if waits:
            self.absorbed(request, self._requests.pop(other["id"]))
        else:
            # It never waited: the request has grown, no more.
            self.merged(request, False)

    def _find_front_merge(self, end: int) -> int | None:
        return self._number(self.find_front_merge(end), "find_front_merge")

    def _former(self, number: int) -> int | None:
        return self._number(self.former(self._requests[number]), "former")

    def _latter(self, number: int) -> int | None:
        return self._number(self.latter(self._requests[number]), "latter")

    def _number(self, request: Request | None, method: str) -> int | None:
        if request is None:
            return None
        if not isinstance(request, Request):
            raise TypeError(f"{method} returned {request!r}: expected a Request or None")
        # Numbers are used again: one that has left may have that of one that waits.
        if self._requests.get(request.id) is not request:
            name = self.name or type(self).__name__
            raise InvariantError(
                f"scheduler {name}: {method} returned request {request.id} at sector "
                f"{request.sector}, which has left already"
            )
        return request.id


#: Classes by the name under which they are registered.
_REGISTERED: dict[str, type[Scheduler]] = {}


def registered(scheduler: type[Scheduler]) -> str:
    """The name under which experiments find a class, which is registered if it is not yet."""
    name = scheduler.name or scheduler.__name__
    if _REGISTERED.get(name) is scheduler:
        return name
    if not name.isprintable() or "," in name or " " in name:
        raise InputError(f"a scheduler cannot be called {name!r}: no spaces or commas")
    summary = (scheduler.__doc__ or "written in Python").strip().splitlines()[0]
    rows = []
    for tunable, row in scheduler.tunables.items():
        default, least, greatest, help_ = row
        rows.append((tunable, default, least, greatest, help_))
    _native.register(name, summary, rows, scheduler)
    _REGISTERED[name] = scheduler
    return name
