"""The Celery application's settings: each is there for a failure that was measured (design.md, section 3)."""

import pytest
from kombu.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.redis.wakeups import queue_name
from tests.contracts.celery_support import server
from workers.app import make_app, register, worker_argv
from workers.guard import Channel, Transport


class _Kept:
    def __init__(self) -> None:
        self.kept: list[tuple[bytes, str, str]] = []

    def hot(self) -> bool:
        return False

    def poison(self, raw: bytes, queue: str, reason: str) -> None:
        self.kept.append((raw, queue, reason))


def test_the_settings_of_a_worker() -> None:
    conf = make_app("redis://127.0.0.1:1/0", "ms:", _Kept()).conf
    assert conf.accept_content == ["json"]
    assert (conf.task_serializer, conf.result_serializer) == ("json", "json")
    assert (conf.worker_prefetch_multiplier, conf.worker_disable_prefetch) == (1, True)
    assert (conf.task_ignore_result, conf.task_acks_late) == (True, False)
    assert (conf.worker_send_task_events, conf.task_send_sent_event) == (False, False)
    assert conf.broker_connection_retry_on_startup is True
    assert conf.broker_connection_max_retries is None
    assert conf.broker_channel_error_retry is True
    assert conf.worker_hijack_root_logger is False
    options = conf.broker_transport_options
    assert {key: value for key, value in options.items() if key != "guard"} == {
        "global_keyprefix": "ms:",
        "ack_emulation": False,
        "priority_steps": [0],
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }


def test_the_transport_is_the_guarded_one_and_certificates_are_verified() -> None:
    for url, tls in (("redis://:pw@127.0.0.1:1/0", False), ("rediss://:pw@127.0.0.1:1/0", True)):
        connection: Connection = make_app(url, "ms:", _Kept()).connection()
        assert connection.get_transport_cls() is Transport
        assert bool(connection.ssl) is tls
        if tls:
            assert connection.ssl["ssl_cert_reqs"].name == "CERT_REQUIRED"
        assert "pw" not in connection.as_uri()


@pytest.mark.parametrize("url", ["sentinel://h:1", "redis+socket:///x", "unix:///x", "amqp://h", "memory://", ""])
def test_an_address_that_would_go_around_the_guard_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="redis://"):
        make_app(url, "ms:", _Kept())


def test_a_registered_stage_has_its_queue_and_its_task() -> None:
    app = make_app("redis://127.0.0.1:1/0", "ms:", _Kept())
    ran: list[str] = []
    register(app, "judge", ran.append)
    register(app, "quotes", ran.append)
    assert set(app.amqp.queues) == {"wake.judge", "wake.quotes"}
    assert app.amqp.queues["wake.judge"].exchange.name == ""
    assert {name for name in app.tasks if not name.startswith("celery.")} == {"judge.run", "quotes.run"}
    app.tasks["judge.run"]("01J")
    assert ran == ["01J"]


def test_the_command_line_of_a_stage() -> None:
    argv = worker_argv("dispatch", "threads", 8, "%h")
    assert {"--queues=wake.dispatch", "--hostname=dispatch@%h", "--pool=threads", "--concurrency=8"} <= set(argv)
    assert {"--without-gossip", "--without-mingle"} <= set(argv)


def test_a_channel_that_was_closed_says_so_as_a_lost_connection(tmp_path: object) -> None:
    with server(tmp_path) as broker:  # type: ignore[arg-type]
        connection = make_app(broker.url, "ms:", _Kept()).connection()
        channel = connection.channel()
        assert isinstance(channel, Channel)
        channel.queue_declare(queue_name("judge"))
        connection.close()
        with pytest.raises(RedisConnectionError):
            channel._connparams()
