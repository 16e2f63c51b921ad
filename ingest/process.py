"""The edge as a process: webhooks, and beside them the connectors of the accounts that poll."""

import asyncio
import random
import threading
from collections.abc import Callable

import httpx
from redis import exceptions as redis_errors

from ingest.app import make_app
from ingest.connectors.supervisor import Connector, Supervisor
from ingest.connectors.telegram import Ports, TelegramPoll
from ingest.leases import RedisCursors, RedisLease
from ingest.publisher import Publisher
from ingest.server import serve
from shared import metrics
from shared.channels import BUILT, channel
from shared.channels.http import HttpApi, new_client
from shared.process import Process, build, follow
from shared.settings import AccountSettings, Settings


def run_ingest(settings: Settings, listening: Callable[[int], None] | None = None) -> int:
    """Be the edge until TERM or INT; returns the exit code. `listening` is called with the port once it is open.

    Raises what `shared.process.build` raises, and OSError when the port is taken.
    """
    process = build(settings)
    metrics.start(["ingest"], BUILT, ("default", *settings.harnesses))
    stop = threading.Event()
    process.beats.start()
    threading.Thread(target=follow, args=(process, stop), name="follow", daemon=True).start()
    try:
        asyncio.run(_serve(process, settings, listening))
    finally:
        stop.set()
        process.beats.stop()
    return 0


async def _serve(process: Process, settings: Settings, listening: Callable[[int], None] | None) -> None:
    config, clock = process.config, process.clock

    def settings_now() -> Settings:
        return config.settings

    async def ready() -> bool:
        try:
            return bool(await asyncio.to_thread(process.client.ping))
        except redis_errors.RedisError:
            return False

    publisher = Publisher(process.client, process.scripts, settings_now, clock.now_ms, process.partitions)
    app = make_app(settings_now, publisher, clock, alive=lambda: True, ready=ready)
    async with new_client() as client:
        connectors = Supervisor(settings_now, lambda account: _connector(account, process, publisher, client), clock)
        await serve(app, settings.ingest, beside=[connectors.run], listening=listening)


def _connector(
    account: AccountSettings, process: Process, publisher: Publisher, client: httpx.AsyncClient
) -> Connector | None:
    """The connector of an account, or None where its channel has none for its transport yet."""
    if (account.channel, account.used_transport) != ("telegram", "poll"):
        return None

    def account_now() -> AccountSettings | None:
        found = process.config.settings.account(account.id)
        wanted = found is not None and (found.channel, found.used_transport) == ("telegram", "poll")
        return found if wanted else None

    return TelegramPoll(
        account.id,
        Ports(
            account_now=account_now,
            channel=channel("telegram"),
            api=HttpApi(account.id, "telegram", metrics.request_hook("telegram"), client),
            publisher=publisher,
            lease=RedisLease(process, account.id),
            cursors=RedisCursors(process, account.id),
            clock=process.clock,
            policy=process.config.settings.pipeline.retry,
            rng=random.Random(),  # noqa: S311 - jitter only
        ),
    )
