"""What happened to one message, stage by stage, without its text."""

from dataclasses import asdict
from typing import Annotated

import typer

from workers.context import Context
from workers.ops import history
from workers.ops.history import Story
from workers.ops.output import dump, fail, say, table, when
from workers.ops.session import session


def trace(
    message: Annotated[
        str, typer.Argument(help="An envelope id, a stable key (CHAT:MESSAGE), or the platform's message id.")
    ],
    account: Annotated[str, typer.Option(help="Only this account's message.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what became of a message: outcome, reason, time, attempt and configuration version of every stage."""
    with session() as ctx:
        stories = _stories(ctx, message, account)
    if not stories:
        fail(
            f"nothing is kept of {message}: give an envelope id, CHAT:MESSAGE, or the platform's message id; what ended"
            " in silence is kept for an hour"
        )
    if as_json:
        dump([asdict(story) for story in stories])
        return
    for number, story in enumerate(stories):
        if number:
            say("")
        _print(story)


def _stories(ctx: Context, message: str, account: str) -> list[Story]:
    accounts = [one.id for one in ctx.settings.accounts]
    if account and account not in accounts:
        fail(f"no account {account}: there are {', '.join(accounts) or 'none'}")
    wanted = [account] if account else accounts
    story = history.by_id(ctx, message)
    if story is not None and (not account or story.account == account):
        return [story]
    found = [story for name in wanted for story in history.by_key(ctx, name, message)]
    return found or history.by_message_id(ctx, wanted, message)


def _print(story: Story) -> None:
    end = f"{story.disposition} ({story.reason})" if story.place == "ended" else f"now in {story.place}"
    say(f"{story.id}  {story.account}  received {when(story.received_at) or 'long ago'}  {end}", "bold")
    if story.takeovers:
        say(f"workers died on it {story.takeovers} times")
    told = {"stage", "outcome", "reason", "at", "attempt", "version"}
    table(
        ("stage", "outcome", "reason", "at", "try", "configuration", "evidence"),
        [
            (
                row["stage"], row["outcome"], row["reason"], when(row["at"]), row.get("attempt", 0), row["version"],
                " ".join(f"{name}={value}" for name, value in row.items() if name not in told),
            )
            for row in story.decisions
        ],
    )  # fmt: skip
    if story.parts:
        say("parts sent: " + ", ".join(f"{int(number) + 1} {state}" for number, state in story.parts.items()))
