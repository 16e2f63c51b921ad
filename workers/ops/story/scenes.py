"""The demo's scenes: saved events, what must come of each, and how they are posted as the platforms would."""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import httpx

from workers.context import Context
from workers.deadletters import store
from workers.ops import history
from workers.ops.session import invoke
from workers.ops.story.platforms import Platforms

TELEGRAM_SECRET: Final = "demo_secret-of-the-webhook"  # noqa: S105 - of the demo alone, on loopback
SLACK_SECRET: Final = "demo-signing-secret"  # noqa: S105 - of the demo alone, on loopback
REFUSED_ONCE: Final = "book a table for two"


@dataclass(slots=True)
class Scene:
    """One thing that happens, and what must come of it.

    expect: disposition and reason. replayed: the same after a replay. reply: what the bot's answer must hold; empty:
    there must be none. answered_at: the message that the platform shows as answered, where it is not the one that was
    asked (a thread's root). tells: what it means, for the table.
    """

    who: str
    where: str
    says: str
    account: str
    key: str
    event: dict[str, Any]
    expect: list[str]
    tells: str
    quotes: str = ""
    answered_at: str = ""
    reply: str = ""
    replayed: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    poison: bool = False

    def seen(self, platforms: Platforms) -> list[str]:
        """What the platform took in answer."""
        return platforms.replies_to(self.answered_at or self.key)


def scenes() -> list[Scene]:
    """The story, in order."""
    text = resources.files("workers.ops.story").joinpath("events.json").read_text(encoding="utf-8")
    return [Scene(**scene) for scene in json.loads(text)]


def play(scene: Scene, hooks: str, ctx: Context) -> int:
    """Let a scene happen: post its event to the account's webhook, signed as the platform signs, or put the foreign
    task into the queue. Returns the HTTP status, 200 for the task."""
    body = json.dumps(scene.event, ensure_ascii=False).encode()
    if scene.poison:
        ctx.client.lpush(ctx.keys.wake("admission"), body)
        return 200
    headers = {"content-type": "application/json", **scene.headers}
    if scene.account == "telegram":
        headers["x-telegram-bot-api-secret-token"] = TELEGRAM_SECRET
    else:
        stamp = str(ctx.now_ms() // 1000)
        digest = hmac.new(SLACK_SECRET.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        headers |= {"x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={digest}"}
    return httpx.post(f"{hooks}/hooks/{scene.account}", content=body, headers=headers, trust_env=False).status_code


def ending(scene: Scene, ctx: Context) -> list[str]:
    """Disposition and reason of a scene as of now; empty while it goes on."""
    if scene.poison:
        return ["dead", "poison"] if store.find(ctx, stage=store.RAW) else []
    ended = [[one.disposition, one.reason] for one in history.by_key(ctx, scene.account, scene.key) if one.disposition]
    if scene.expect[0] == "duplicate":
        return next((one for one in ended if one[0] == "duplicate"), [])
    return next((one for one in ended if one[0] != "duplicate"), [])


def replay(scene: Scene, ctx: Context) -> tuple[int, str]:
    """Put a dead scene back to work, as an operator does: `millstream dead replay ID`."""
    dead = [one for one in history.by_key(ctx, scene.account, scene.key) if one.disposition == "dead"]
    return invoke(["dead", "replay", dead[0].id]) if dead else (1, "no dead letter")


def reply_fits(scene: Scene, platforms: Platforms) -> Callable[[], bool]:
    """Whether the platform has seen what it should: one answer that holds `reply`, or none."""

    def fits() -> bool:
        if scene.expect[0] == "duplicate" or scene.poison:
            return True  # one key, one answer: told by the scene before
        seen = scene.seen(platforms)
        return len(seen) == 1 and scene.reply in seen[0] if scene.reply else seen == []

    return fits
