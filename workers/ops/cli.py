"""`millstream`: every command in one list; what each does is in `commands/`."""

import os
import signal
import threading
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from redis import exceptions as redis_errors
from typer.core import TyperGroup

from shared.errors import MillstreamError
from shared.logging import places
from shared.redis.embedded import EmbeddedError
from shared.settings import CONFIG_FILE, ConfigurationError
from workers.ops import session
from workers.ops.commands import bench, config, dead, run, scenario, setup, status, switch, trace
from workers.ops.output import FAILED, MISUSED, Failed, complain

TIED_GRACE_S: Final = 10.0
"""What a process may still take once the one that started it is gone; records and leases cover the rest."""


class _Group(TyperGroup):
    """Ends a command that fails with one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises nothing but typer's own exceptions."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            explained = _explained(error)
            if explained is None:
                raise
            code, text = explained
            complain(text)
            raise typer.Exit(code) from None


def _explained(error: Exception) -> tuple[int, str] | None:
    """Exit code and text of an error; None for what typer handles itself."""
    match error:
        case Failed():
            return error.code, str(error)
        case ConfigurationError():
            return MISUSED, f"the configuration is refused:\n{error}"
        case MillstreamError() | EmbeddedError():
            return FAILED, str(error)
        case redis_errors.AuthenticationError() | redis_errors.NoPermissionError():
            return FAILED, "Redis refuses the user or password in redis.url: correct it"
        case redis_errors.ConnectionError() | redis_errors.TimeoutError() | ConnectionError():
            return FAILED, "Redis does not answer at redis.url: start it or correct the address; see `millstream check`"
        case redis_errors.RedisError():
            return FAILED, f"Redis refused a command ({type(error).__name__}); see `millstream check`"
        case OSError() if not isinstance(error, BrokenPipeError):
            return FAILED, f"{error.filename or 'the system'}: {error.strerror or type(error).__name__}"
        case _ if type(error).__module__.split(".")[0] in ("typer", "click"):
            return None
        case BrokenPipeError():
            return None
        case _:
            where = " < ".join(places(error.__traceback__)[:-4:-1])
            return FAILED, f"a fault of Millstream, please report it: {type(error).__name__} at {where}"


app = typer.Typer(
    name="millstream",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Carries messages from messengers to your assistant and its answers back: once, in order, when it should.",
)


@app.callback()
def options(
    config: Annotated[
        Path | None,
        typer.Option(envvar=CONFIG_FILE, help="The configuration file; default: ./millstream.toml if it is there."),
    ] = None,
    tied: Annotated[bool, typer.Option(hidden=True, help="End when standard input closes.")] = False,
) -> None:
    """What every command takes."""
    session.config_path.set(config)
    if tied:
        threading.Thread(target=_end_with_starter, name="tied", daemon=True).start()


def _end_with_starter() -> None:
    """Wait until whoever started this process is gone, however it ended, then end as on TERM."""
    os.read(0, 1)
    timer = threading.Timer(TIED_GRACE_S, os._exit, (FAILED,))
    timer.daemon = True
    timer.start()
    os.kill(os.getpid(), signal.SIGTERM)


app.command("up")(run.up)
app.command("ingest")(run.ingest)
app.command("worker")(run.worker)
app.command("keeper")(run.keeper)
app.command("demo")(run.demo)
app.command("init")(setup.init)
app.command("check")(setup.check)
app.command("status")(status.status)
app.command("trace")(trace.trace)
app.command("replay")(run.replay)
app.command("scenario")(scenario.scenario)
app.command("bench")(bench.bench)
app.add_typer(config.app, name="config")
app.add_typer(dead.app, name="dead")
app.command("switch")(switch.switch)
app.command("pause")(switch.pause)
app.command("resume")(switch.resume)
app.command("access")(switch.access)


def main() -> None:
    """The entry point of the command `millstream`."""
    app()


if __name__ == "__main__":
    main()
