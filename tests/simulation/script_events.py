"""What a script call came to, as single events: one call may end something and begin the next thing in one step."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shared.redis.scripts import pairs


class Event(NamedTuple):
    """One thing that a script did. `switches`: as the caller was told them with it, None where it was not."""

    script: str
    argument: Mapping[str, Any]
    answer: Any
    switches: Mapping[str, str] | None = None


def events_of(script: str, argument: Mapping[str, Any], answer: Any) -> list[Event]:
    """Move, claim, take, start, intent and the rest, each with its own answer."""
    match script:
        case "claim" | "take":
            return [_given(script, argument, answer)]
        case "start":
            return [_given(script, {**argument, **argument["turn"]}, answer)]
        case "send" if answer[0] == "yes":
            return [Event("intent", {**argument, "id": argument["out"]}, "yes", _dict(argument["switches"]))]
        case "move":
            return _moved(argument, answer)
        case _:
            return [Event(script, argument, answer)]


def _moved(argument: Mapping[str, Any], answer: Any) -> list[Event]:
    verdicts, following = answer
    wanted = argument.get("next")
    single = bool(wanted) and "part" not in wanted
    events = [Event("move", {**argument, "release": argument["release"] or single}, verdicts)]
    if not wanted or not following:
        return events
    if "part" not in wanted:
        script = "start" if wanted["stage"] == "dispatch" else "take"
        return [*events, _given(script, {**argument, **wanted}, following)]
    if following[0] == "ok" and following[1] == wanted["part"]:
        return [*events, _given("claim", {**argument, **wanted}, following)]
    # The partition was empty, and perhaps another one was taken instead.
    events.append(Event("claim", {**argument, **wanted}, ["empty"]))
    if following[0] == "ok":
        events.append(_given("claim", {**argument, **wanted, "token": wanted["after"]}, following))
    return events


def _given(script: str, argument: Mapping[str, Any], answer: Any) -> Event:
    if answer[0] != "ok":
        return Event(script, argument, answer)
    if script == "claim":
        return Event(script, {**argument, "part": answer[1]}, ["ok", *answer[4::2]], _dict(answer[2]))
    if script == "take":
        return Event(script, {**argument, "id": answer[1]}, answer[:2])
    harness = pairs(answer[4])["harness"]
    return Event(script, {**argument, "harness": harness}, answer[:4], _dict(answer[7]))


def _dict(flat: list[str]) -> dict[str, str]:
    return dict(sorted(pairs(flat).items()))
