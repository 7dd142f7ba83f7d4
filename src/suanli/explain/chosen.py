"""A part of a trace: some of its devices, some of its steps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace

import numpy as np

from suanli.explain.account import total_account
from suanli.nouns.explained import Explained
from suanli.nouns.trace import DeviceWork, Trace


def devices_of(trace: Trace) -> tuple[int, ...]:
    """Numbers of the devices that ran anything."""
    return tuple(int(each) for each in np.unique(trace.work.device))


def only_devices(trace: Trace, devices: Collection[int]) -> Trace:
    """The trace with the work of these devices alone; the host stays whole."""
    chosen = np.isin(trace.work.device, list(devices))
    columns = {each.name: getattr(trace.work, each.name)[chosen] for each in fields(DeviceWork)}
    return replace(trace, work=DeviceWork(**columns))


def only_steps(found: Explained, places: Collection[int]) -> Explained:
    """The answer with the steps at these places, from 1 on each device; its account is theirs together.

    Kernels, communication, devices and levers stay those of the whole window.
    """
    kept, seen = [], dict.fromkeys((step.device for step in found.steps), 0)
    for step in found.steps:
        seen[step.device] += 1
        if seen[step.device] in places:
            kept.append(step)
    entries, peak_s = total_account(tuple(step.account for step in kept))
    return replace(found, steps=tuple(kept), account=entries, peak_s=peak_s)


def most_steps(found: Explained) -> int:
    """Steps of the device that has the most."""
    names = [step.device for step in found.steps]
    return max((names.count(device) for device in set(names)), default=0)
