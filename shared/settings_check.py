"""What `millstream check` says about a configuration that parses: faults that only show when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from shared.settings_accounts import AccountSettings
from shared.settings_model import Settings
from shared.settings_tables import HarnessSettings

# Credential that a webhook's authenticity rests on, by channel (channel facts). Each proves who sent the request;
# discord's gateway has no webhook of its own and bridges (weixin desktop, whatsapp web) sign with `secret`.
SIGNATURE: Final[Mapping[str, str]] = {
    "weixin": "secret",
    "feishu": "encrypt_key",
    "dingtalk": "app_secret",
    "wecom": "token",
    "qq": "secret",
    "slack": "signing_secret",
    "telegram": "secret",
    "discord": "secret",
    "whatsapp": "app_secret",
}
_BRIDGE_SIGNATURE: Final = "secret"

# Credential without which nothing can be sent, polled or connected, for channels that have a single one.
SENDING: Final[Mapping[str, str]] = {
    "telegram": "token", "slack": "token", "discord": "token", "weixin": "token", "feishu": "app_secret",
    "qq": "secret",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: `path` as written in the file, what is wrong (`text`) and what to do (`fix`)."""

    severity: Literal["error", "warning"]
    path: str
    text: str
    fix: str


SHORTEST_HOLD_S: Final = 1.5
"""A holder beats every second and gives up after two thirds of the length without a beat."""


def problems(settings: Settings) -> list[Problem]:
    """Everything to be said, in the order of the file. Reaches nothing outside `settings` and names no secret."""
    found = [*_harness("harness", settings.harness)]
    for name, harness in settings.harnesses.items():
        found += _harness(f"harnesses.{name}", harness)
    found += _models(settings)
    found += [
        Problem(
            "error", f"pipeline.{key}", "a holder that renews every second would lose it at once", "set 1.5 or more"
        )
        for key in ("claim_s", "lease_s")
        if getattr(settings.pipeline, key) < SHORTEST_HOLD_S
    ]
    if not settings.accounts:
        found.append(Problem("warning", "accounts", "no account is configured", "add an [[accounts]] table"))
    for number, account in enumerate(settings.accounts):
        found += _account(f"accounts[{number}]", account)
    return found


def _harness(path: str, harness: HarnessSettings) -> Iterator[Problem]:
    if harness.kind == "echo":
        return
    if not harness.url:
        yield Problem("error", f"{path}.url", f"an {harness.kind} harness needs an address", f"set {path}.url")
    if harness.kind == "openai" and not harness.model:
        yield Problem("error", f"{path}.model", "an openai harness needs a model", f"set {path}.model")
    if harness.kind == "http" and not harness.secret.get_secret_value():
        yield Problem("warning", f"{path}.secret", "requests to the harness are not signed", f"set {path}.secret")


def _models(settings: Settings) -> Iterator[Problem]:
    judge, stt = settings.judge, settings.stt
    if judge.kind != "none" and not judge.url:
        yield Problem("error", "judge.url", f"an {judge.kind} judge needs an address", "set judge.url")
    if judge.kind == "openai" and not judge.model:
        yield Problem("error", "judge.model", "an openai judge needs a model", "set judge.model")
    if stt.url and not stt.model:
        yield Problem("error", "stt.model", "speech to text needs a model", "set stt.model")
    if stt.model and not stt.url:
        yield Problem("warning", "stt.url", "speech to text is off without an address", "set stt.url")


def _account(path: str, account: AccountSettings) -> Iterator[Problem]:
    if account.channel == "mock":
        return
    webhook = account.used_transport == "webhook"
    bridge = account.variant in ("desktop", "web")
    signature = _BRIDGE_SIGNATURE if bridge else SIGNATURE[account.channel]
    if webhook and account.channel == "dingtalk" and not account.insecure:
        yield Problem(
            "error", f"{path}.transport", "dingtalk signs the time of a webhook request, but not its body",
            f"take requests from DingTalk's addresses only and set {path}.insecure = true",
        )  # fmt: skip
    elif webhook and not account.credential(signature):
        key = f"{path}.credentials.{signature}"
        if account.insecure:
            yield Problem("warning", key, "anybody who knows the address can post events", f"set {key}")
        else:
            fix = f"set {key}, or {path}.insecure = true if something in front verifies requests"
            yield Problem("error", key, f"the {account.channel} webhook has no signature secret", fix)
    sending = SENDING.get(account.channel)
    used = account.send_mode != "off" or not webhook
    if sending and used and not bridge and not account.credential(sending):
        key = f"{path}.credentials.{sending}"
        yield Problem("error", key, f"{account.channel} can neither send nor connect without it", f"set {key}")
    if account.channel == "wecom" and webhook and not account.credential("encoding_aes_key"):
        key = f"{path}.credentials.encoding_aes_key"
        yield Problem("error", key, "wecom's callbacks are encrypted and cannot be opened", f"set {key}")
    if account.channel == "wecom" and not account.self_name:
        yield Problem(
            "warning", f"{path}.self_name", "the bot's mention stays in the text", f"set {path}.self_name to its name"
        )
    if account.groups == "listed" and not account.listed_groups:
        yield Problem("warning", f"{path}.listed_groups", "no group is listed, so none is served", "list the groups")
    if account.direct == "owners" and not account.owners:
        yield Problem("warning", f"{path}.owners", "only owners may write, and there are none", f"set {path}.owners")
    if account.direct == "members" and not (account.members or account.owners):
        yield Problem("warning", f"{path}.members", "only members may write, and there are none", f"set {path}.members")
