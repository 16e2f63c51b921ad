"""From `[harness]` or `[harnesses.NAME]` to a harness. Adding a kind is adding its file and a line here."""

from typing import TYPE_CHECKING, Final, assert_never, get_args

from shared.settings import HarnessSettings

if TYPE_CHECKING:
    from shared.harness.port import Harness
    from shared.sessions import Sessions

NAMES: Final[tuple[str, ...]] = get_args(HarnessSettings.model_fields["kind"].annotation)
"""The kinds that a configuration may name."""


def build(name: str, settings: HarnessSettings, sessions: "Sessions") -> "Harness":
    """The harness that the configuration calls `name`.

    Raises `shared.errors.Refused`, naming `name`, when the settings cannot work or a package is not installed. A
    backend is imported only when it is used, so that nobody pays for a client that is not.
    """
    match settings.kind:
        case "echo":
            from shared.harness.echo import Echo

            return Echo()
        case "openai":
            from shared.harness.openai import OpenAI

            return OpenAI(name, settings, sessions)
        case "http":
            from shared.harness.http import Http

            return Http(name, settings, sessions.clock)
        case _ as never:
            assert_never(never)
