"""What an operator changes while everything runs: the switches, and who may talk to an account."""

from enum import StrEnum
from typing import Annotated

import typer

from workers.context import Context
from workers.ops.output import MISUSED, fail, say
from workers.ops.session import session, who


class Switch(StrEnum):
    """A switch that refuses sends."""

    READ_ONLY = "read-only"
    SAFE_MODE = "safe-mode"


class Position(StrEnum):
    """Where it stands."""

    ON = "on"
    OFF = "off"


class Change(StrEnum):
    """What happens to a user."""

    ALLOW = "allow"
    BLOCK = "block"
    REMOVE = "remove"


class Standing(StrEnum):
    """What a user is allowed as."""

    OWNER = "owner"
    MEMBER = "member"


def switch(
    name: Annotated[Switch, typer.Argument(help="read-only: real channels do nothing. safe-mode: nothing is sent.")],
    position: Annotated[Position, typer.Argument()],
    apply: Annotated[bool, typer.Option("--apply", help="Off: take effect at once, not at the next restart.")] = False,
) -> None:
    """Turn read-only or safe mode on or off. On acts on the very next message."""
    on = position is Position.ON
    with session() as ctx:
        ctx.switches.write(name.replace("-", "_"), on, who(), ctx.now_ms(), apply=apply)
    say(f"{name} is {position}{_until(on, apply)}")


def _until(on: bool, apply: bool) -> str:
    return "" if on or apply else " for every process that starts from now on; `--apply` frees those that run"


def pause() -> None:
    """Hold every send back; what is to be sent waits until `resume`."""
    with session() as ctx:
        ctx.switches.write("paused", True, who(), ctx.now_ms())
    say("paused: answers wait until `millstream resume`")


def resume() -> None:
    """Let the sends go on that `pause` held back, oldest first."""
    with session() as ctx:
        ctx.switches.write("paused", False, who(), ctx.now_ms())
    say("resumed")


def access(
    change: Annotated[Change, typer.Argument(help="allow, block, or remove from every list.")],
    account: Annotated[str, typer.Argument(help="The account's id.")],
    user: Annotated[str, typer.Argument(help="The user's id on its platform.")],
    standing: Annotated[Standing, typer.Option("--as", help="What `allow` makes of the user.")] = Standing.MEMBER,
) -> None:
    """Change who may talk to an account; it acts on the next message and is audited."""
    if not user.strip():
        fail("the user's id is empty", MISUSED)
    with session() as ctx:
        lists = _lists(ctx, account)
        for name in ("blocked",) if change is Change.ALLOW else ("owners", "members", "blocked"):
            if change is not Change.BLOCK:
                lists[name] = [one for one in lists[name] if one != user]
        target = {Change.ALLOW: f"{standing}s", Change.BLOCK: "blocked", Change.REMOVE: ""}[change]
        if target and user not in lists[target]:
            lists[target].append(user)
        ctx.access.replace(account, **lists)
        ctx.switches.audit("access", change, ctx.now_ms(), who=who(), account=account, user=user, into=target)
    say(f"{user} is {f'now among the {target}' if target else 'in no list any more'} of {account}")


def _lists(ctx: Context, account_id: str) -> dict[str, list[str]]:
    account = ctx.account(account_id)
    if account is None:
        known = ", ".join(one.id for one in ctx.settings.accounts) or "none"
        fail(f"no account {account_id}: there are {known}")
    return {"owners": list(account.owners), "members": list(account.members), "blocked": list(account.blocked)}
