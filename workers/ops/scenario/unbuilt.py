"""What a scenario may ask for and Millstream does not do yet: such a scenario fails and says so, it never passes.

A feature that is built loses its lines here and nowhere else.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from workers.ops.scenario.model import Approve, Burst, Http, Reject, Say, Scenario, Send

COMMANDS = frozenset({"/batch", "/send", "/cancel", "/steer", "/wake", "/whoami"})


def unbuilt(scenario: Scenario, built_channels: Set[str]) -> list[str]:
    """One sentence for each thing that the scenario uses and that is not built; empty: it can be run."""
    channels = {account["channel"] for account in _accounts(scenario)} - built_channels
    found = [f"not built yet: the channel {channel}" for channel in sorted(channels)]
    return found + [f"not built yet: {what}" for what, uses in _FEATURES.items() if uses(scenario)]


def _accounts(scenario: Scenario) -> list[Mapping[str, Any]]:
    return scenario.config.get("accounts", [])


def _settings(scenario: Scenario) -> Iterator[Mapping[str, Any]]:
    """The tables in which an account's keys can stand."""
    yield scenario.config
    yield from _accounts(scenario)
    yield from scenario.config.get("routes", ())


def _says(scenario: Scenario) -> Iterator[Say]:
    for step in scenario.steps:
        if isinstance(step.action, Say):
            yield step.action
        elif isinstance(step.action, Burst):
            yield from step.action.says


def _acts(*kinds: type) -> Callable[[Scenario], bool]:
    return lambda scenario: any(isinstance(step.action, kinds) for step in scenario.steps)


def _commands(scenario: Scenario) -> bool:
    words = (said.text.split(maxsplit=1) for said in _says(scenario))
    return any(word and word[0].split("@")[0] in COMMANDS for word in words)


_FEATURES: Mapping[str, Callable[[Scenario], bool]] = {
    "proactive messages (send)": _acts(Send),
    "drafts (send_mode confirm, approve, reject)": lambda scenario: (
        _acts(Approve, Reject)(scenario) or any(table.get("send_mode") == "confirm" for table in _settings(scenario))
    ),
    "the admin API (http)": _acts(Http),
    "the judge": lambda scenario: scenario.verdicts is not None,
    "the engagement engine": lambda scenario: any(
        table.get("engagement", {}).get("engine") for table in _settings(scenario)
    ),
    "questions and approvals of the harness": lambda scenario: any(
        reply.question is not None for reply in scenario.harness.replies
    ),
    "the commands /batch /send /cancel /steer /wake /whoami": _commands,
    "recognised text (ocr)": lambda scenario: any(said.ocr is not None for said in _says(scenario)),
    "joining (join_s above 0)": lambda scenario: any(table.get("join_s", 0) > 0 for table in _settings(scenario)),
}
