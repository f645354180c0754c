# SPDX-License-Identifier: MIT OR Apache-2.0
"""What there is to choose from, as ``blklab list`` has it.

Each function gives a list of dictionaries with ``name``, ``summary`` and, where there are any,
``details`` (pairs of texts) and ``params`` (dictionaries with ``name``, ``default``, ``range``,
``help``).

>>> import blklab
>>> [s["name"] for s in blklab.list.schedulers(kernel="7.3")][:4]
['none', 'mq-deadline', 'kyber', 'bfq']
"""

from __future__ import annotations

from typing import Any

from blklab import _native

Entry = dict[str, Any]


def schedulers(kernel: str | None = None) -> list[Entry]:
    """I/O schedulers, of all kernels or of one."""
    return _native.entries("schedulers", kernel)


def tunables(kernel: str | None = None) -> list[Entry]:
    """Settings and tunables, of all kernels or of one."""
    return _native.entries("tunables", kernel)


def devices() -> list[Entry]:
    """Modelled devices with their parameters."""
    return _native.entries("devices")


def kernels() -> list[Entry]:
    """Releases and distributions that are known, and how well."""
    return _native.entries("kernels")


def changes(kernel: str | None = None) -> list[Entry]:
    """What each release changed in the block layer."""
    return _native.entries("changes", kernel)


def targets() -> list[Entry]:
    """What runs experiments."""
    return _native.entries("targets")


def patches(kernel: str | None = None) -> list[Entry]:
    """Historical patches."""
    return _native.entries("patches", kernel)


def scenarios() -> list[Entry]:
    """Built-in workloads."""
    return _native.entries("scenarios")


def filesystems() -> list[Entry]:
    """Filesystems with their options."""
    return _native.entries("filesystems")


def dm() -> list[Entry]:
    """Kinds of device mapper."""
    return _native.entries("dm")


def formats() -> list[Entry]:
    """Formats of traces that are read."""
    return _native.entries("formats")


def findings() -> list[Entry]:
    """What ``why`` can find."""
    return _native.entries("findings")


def metrics() -> list[Entry]:
    """Every number that is made of a run: ``column``, ``unit``, ``better`` (lower, higher, or
    empty), ``title``, ``of`` (what it is made of)."""
    names = ("column", "unit", "better", "title", "of")
    return [dict(zip(names, row, strict=True)) for row in _native.metrics()]
