"""What the judge is asked, and what it says. No model is built in yet: an absent judge is a failed one."""

from workers.context import Context


def verdict(ctx: Context) -> dict[str, bool]:
    """The verdict as it is written to the record. `failed`: no judge, an error, or too slow."""
    ctx.probe.point("judge")
    return {"failed": True}
