"""Harnesses: what answers a turn. `port` is the contract, every other file a backend or a part of one."""

from shared.harness.factory import NAMES, build

__all__ = ["NAMES", "build"]
