# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is chosen on top of an experiment: keywords, as the native module takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blklab._native import InputError
from blklab._scheduler import Scheduler, registered

#: A value, or several to compare.
Values = Any


class Stack(dict[str, Any]):
    """The keywords of one call, ready for the native module."""


#: Keywords that are short for a setting.
_SETTINGS = {"fs": "filesystem", "dm": "dm", "memory": "memory", "target": "target"}


def stack(
    *,
    kernel: Values = None,
    sched: Values = None,
    device: Values = None,
    md: Values = None,
    dm: Values = None,
    fs: Values = None,
    memory: Values = None,
    target: Values = None,
    patch: Values = None,
    set: Mapping[str, Values] | None = None,  # noqa: A002 -- the command's name
    section: Values = None,
    seed: int | None = None,
    repeat: int = 1,
    repeat_exact: bool = False,
) -> Stack:
    """The stack of these keywords; None leaves what the experiment says."""
    settings: list[tuple[str, list[str]]] = []
    for keyword, value in {"fs": fs, "dm": dm, "memory": memory, "target": target}.items():
        if value is not None:
            texts = [_filesystem(v) if keyword == "fs" else str(v) for v in _several(value)]
            settings.append((_SETTINGS[keyword], texts))
    for key, value in (set or {}).items():
        settings.append((key, [_text(v) for v in _several(value)]))
    if repeat < 1:
        raise InputError(f"repeat={repeat}: at least 1 run")
    return Stack(
        kernel=[str(v) for v in _several(kernel)],
        sched=[_scheduler(v) for v in _several(sched)],
        device=[_device(v) for v in _devices(device)],
        md=[None if v is None else str(v) for v in _several(md)],
        patch=[_patch(v) for v in _several(patch)],
        settings=settings,
        section=[str(v) for v in _several(section)],
        seed=seed,
        repeat=repeat,
        repeat_exact=repeat_exact,
    )


def check_single(chosen: Stack) -> None:
    """Refuses several values of anything: they make a matrix."""
    lists = {key: chosen[key] for key in ("kernel", "sched", "device", "md", "patch")}
    lists.update(dict(chosen["settings"]))
    for key, values in lists.items():
        if len(values) > 1:
            raise InputError(f"{key} has {len(values)} values: blklab.matrix runs all of them")


def _several(value: Values) -> Iterable[Any]:
    if value is None:
        return []
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def _scheduler(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Scheduler):
        return registered(value)
    return str(value)


def _devices(value: Values) -> Iterable[Any]:
    # A pair of a name and parameters is one device.
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        return [value]
    return _several(value)


def _device(value: Any) -> tuple[str, list[tuple[str, str]]]:
    if isinstance(value, tuple):
        name, params = value
        return (str(name), [(str(k), _text(v)) for k, v in params.items()])
    name, *params = os.fspath(value).split(",")
    pairs = [param.partition("=") for param in params]
    for key, sign, _ in pairs:
        if not sign:
            raise InputError(
                f"device={value}: '{key}' is no parameter; write NAME,key=value, or a list of names"
            )
    return (name.strip(), [(key.strip(), text.strip()) for key, _, text in pairs])


def _filesystem(value: Any) -> str:
    # As the command takes it (ext4,data=journal), or as the setting does (ext4:data=journal).
    return str(value).replace(",", ":")


def _patch(value: Any) -> list[str]:
    if isinstance(value, str):
        return [] if value == "none" else value.split("+")
    names: Sequence[str] = value
    return [str(name) for name in names]
