# SPDX-License-Identifier: MIT OR Apache-2.0
"""What one pastes: a rule of udev, a file of sysctl, a drop-in of a systemd unit.

The words are those of ``blklab recommend``. Sources: udev(7), sysctl.d(5),
systemd.resource-control(5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blklab import list as lists
from blklab._sweep._factors import shown

_LIMITS = {
    "rbps": "IOReadBandwidthMax",
    "wbps": "IOWriteBandwidthMax",
    "riops": "IOReadIOPSMax",
    "wiops": "IOWriteIOPSMax",
}


def paste(values: Mapping[str, Any], kernel: str | None, disk: str, evidence: Sequence[str]) -> str:
    """What to paste for settings.

    Parameters
    ----------
    values : mapping
        What is set, by key.
    kernel : str, optional
        For which kernel: some files have moved.
    disk : str
        Its name: ``sda``.
    evidence : sequence of str
        What speaks for it, as comments of each block.
    """
    homes = _homes()
    attributes, sysctls, rest = [], [], []
    groups: dict[str, list[str]] = {}
    for key, value in values.items():
        text = shown(value)
        if key == "sched":
            attributes.append(f'ATTR{{queue/scheduler}}="{text}"')
        elif key.startswith("cgroup."):
            group, file = _group_of(key)
            if group == "/":
                rest.append(
                    f"# once after boot; MAJ:MIN is what lsblk says of {disk}\n"
                    f"echo 'MAJ:MIN {text}' > /sys/fs/cgroup/{file}"
                )
            else:
                groups.setdefault(group, []).extend(_unit_lines(group, file, text, disk))
        elif homes.get(key) == "machine":
            sysctls.append(f"vm.{key} = {text}")
        elif homes.get(key) == "queue" or (key == "async_depth" and _is_from_7(kernel)):
            attributes.append(f'ATTR{{queue/{key}}}="{text}"')
        elif homes.get(key) == "scheduler":
            attributes.append(f'ATTR{{queue/iosched/{key}}}="{text}"')
        else:
            rest.append(f"{key}: set it to {text}")
    why = "".join(f"# {line}\n" for line in evidence)
    blocks = []
    if attributes:
        rule = f'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{disk}"'
        lines = ", \\\n  ".join([rule, *attributes])
        blocks.append(f"# /etc/udev/rules.d/60-io.rules; then udevadm trigger\n{why}{lines}")
    if sysctls:
        lines = "\n".join(sysctls)
        blocks.append(f"# /etc/sysctl.d/60-io.conf; then sysctl --system\n{why}{lines}")
    for group, unit in groups.items():
        name = group.rpartition("/")[2]
        head = f"# systemctl edit UNIT-OF-{name}; it has a group of its own then\n"
        section = "[Service]\n" if any(not line.startswith("echo") for line in unit) else ""
        blocks.append(f"{head}{why}{section}" + "\n".join(unit))
    blocks += [why + each for each in rest]
    return "\n\n".join(blocks)


def _homes() -> dict[str, str]:
    """Whose a setting is: of the queue, the machine, a scheduler."""
    found: dict[str, str] = {}
    for entry in lists.tunables():
        owner, _, key = entry["name"].partition("/")
        home = owner if owner in ("queue", "machine", "cgroup", "experiment") else "scheduler"
        found.setdefault(key, home)
    return found


def _is_from_7(kernel: str | None) -> bool:
    first = (kernel or "7.3").split(".")[0]
    return first.isdigit() and int(first) >= 7


def _group_of(key: str) -> tuple[str, str]:
    """Group and file of ``cgroup.GROUP.FILE``: files begin with their controller."""
    inner = key.removeprefix("cgroup.")
    for controller in (".io.", ".blkio."):
        group, found, file = inner.partition(controller)
        if found:
            return group, found[1:] + file
    group, _, file = inner.partition(".")
    return group, file


def _unit_lines(group: str, file: str, text: str, disk: str) -> list[str]:
    """What systemd calls a file of a group; what it has no word for is said as it is."""
    if file == "io.max":
        words = [word.partition("=") for word in text.split()]
        if all(key in _LIMITS for key, _, _ in words):
            return [f"{_LIMITS[key]}=/dev/{disk} {number}" for key, _, number in words]
    if file == "io.latency" and text.startswith("target="):
        return [f"IODeviceLatencyTargetSec=/dev/{disk} {text.removeprefix('target=')}us"]
    if file == "io.weight":
        return [f"IOWeight={text}"]
    name = group.rpartition("/")[2]
    return [f"echo {text} > /sys/fs/cgroup/system.slice/UNIT-OF-{name}/{file}"]
