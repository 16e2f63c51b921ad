"""The Celery application: queues, settings, the guarded consumer.

Celery distributes wake-ups and nothing more: no results, no events, no remote control, no retries, no acknowledgement.
TERM makes a worker take nothing new and wait for its running tasks without bound, so whoever runs the tasks ends them;
a second TERM, the end of the grace period or a kill loses nothing, since records hold the truth and the keeper wakes
again what was dropped.
"""

import importlib
from collections.abc import Callable
from ssl import CERT_REQUIRED
from typing import Any, Final, Literal, cast

from celery import Celery, signals
from kombu.entity import Queue

from shared.redis.wakeups import queue_name, task_name
from workers.guard import GuardPort
from workers.waker import Waker

Pool = Literal["solo", "threads"]

SOCKET_TIMEOUT_S: Final = 30
CONNECT_TIMEOUT_S: Final = 5
HEALTH_CHECK_S: Final = 10
"""The three are design.md's worker settings (section 3): a half-open connection is noticed within a minute."""


@signals.setup_logging.connect
def _leave_logging_alone(**_: Any) -> None:
    # A receiver of this signal, even an idle one, keeps Celery from touching any logger: logging is ours.
    return None


def make_app(settings_redis_url: str, prefix: str, guard: GuardPort) -> Celery:
    """The application of a worker process.

    `settings_redis_url` is a `redis://` or `rediss://` URL (certificates are verified); `prefix` goes before every key.
    Connects to nothing. Tasks are added with `register`.

    Raises ValueError for any other URL: kombu would choose its own transport for it, without the guard.
    """
    url = settings_redis_url
    if not url.startswith(("redis://", "rediss://")):
        raise ValueError("the workers' server is given as redis:// or rediss://")
    app = Celery("millstream", broker=url, set_as_current=False)
    if url.startswith("rediss://"):
        # kombu knows TLS by the transport's name, and ours is not "rediss".
        app.conf.broker_use_ssl = {"ssl_cert_reqs": CERT_REQUIRED}
    app.conf.update(
        broker_transport="workers.guard:Transport",
        broker_transport_options={
            "guard": guard,
            "global_keyprefix": prefix,
            "ack_emulation": False,
            "priority_steps": [0],
            "socket_timeout": SOCKET_TIMEOUT_S,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_keepalive": True,
            "health_check_interval": HEALTH_CHECK_S,
        },
        broker_connection_timeout=CONNECT_TIMEOUT_S,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        task_ignore_result=True,
        task_send_sent_event=False,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        enable_utc=True,
        timezone="UTC",
        # A queue is created at first use from -Q; on the default exchange it needs no binding key in Redis.
        task_default_exchange="",
        task_queues=[],
    )
    steps: dict[str, set[type]] = cast("Any", app).steps
    steps["consumer"].add(Waker)
    return app


def register(app: Celery, stage: str, run: Callable[[str], None]) -> None:
    """Add a stage: its queue, and the task that calls `run` with the name that a wake-up carries."""
    queues: list[Queue] = app.conf.task_queues
    queues.append(Queue(queue_name(stage), routing_key=queue_name(stage)))

    def task(name: str) -> None:
        run(name)

    app.task(name=task_name(stage), ignore_result=True)(task)


def worker_argv(stage: str, pool: Pool, concurrency: int, node: str) -> list[str]:
    """The arguments of `Celery.worker_main` for one stage.

    `concurrency` counts threads (solo has one whatever it says); `node` names the worker among those of its stage, and
    may hold Celery's `%h` for the host.
    """
    return [
        "--quiet",
        "worker",
        f"--queues={queue_name(stage)}",
        f"--hostname={stage}@{node}",
        f"--pool={pool}",
        f"--concurrency={concurrency}",
        "--loglevel=WARNING",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
    ]


def __getattr__(name: str) -> Any:
    # `celery -A workers.app` looks for `app`. Made only when asked for, so that importing this module reads no
    # configuration and reaches no server; kept, so that it is the same one ever after.
    if name != "app":
        raise AttributeError(name)
    app: Celery = importlib.import_module("workers.process").celery_app()
    globals()["app"] = app
    return app
