"""The models: defaults of the contract, merging, routes, secrets that never show."""

import json
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from shared.settings import RouteSettings, Settings, from_mapping, leaves


def account(**keys: Any) -> dict[str, Any]:
    return {"id": "tg", "channel": "telegram", **keys}


def test_r4_read_only_is_off_by_default() -> None:
    settings = from_mapping({})
    assert (settings.read_only, settings.safe_mode, settings.paused) == (False, False, False)


def test_defaults_of_the_contract() -> None:
    settings = from_mapping({"accounts": [account()]})
    pipeline = settings.pipeline
    assert (settings.redis.url, settings.redis.prefix) == ("", "ms:")
    assert (settings.ingest.host, settings.ingest.port, settings.ingest.max_body_bytes) == ("127.0.0.1", 8080, 1048576)
    assert (settings.ingest.max_queue_depth, settings.ingest.max_account_depth) == (100000, 10000)
    assert (settings.ingest.batch_max, settings.ingest.batch_linger_ms) == (64, 5)
    assert (pipeline.order_wait_s, pipeline.lane_max, pipeline.lease_s, pipeline.reconcile_s) == (10, 50, 30, 2)
    assert (pipeline.claim_s, pipeline.partitions, pipeline.drain_s) == (3, 64, 25)
    assert (pipeline.interaction_timeout_s, pipeline.max_takeovers, pipeline.newer_version_s) == (600, 5, 600)
    assert (pipeline.account_concurrency, pipeline.decision_days, pipeline.frozen_days) == (8, 7, 7)
    assert (pipeline.retry.attempts, pipeline.retry.base_s, pipeline.retry.max_s) == (5, 1, 300)
    harness = settings.harness
    assert (harness.kind, harness.timeout_s, harness.idempotent, harness.concurrency) == ("echo", 300, False, 32)
    assert (harness.session_messages, harness.session_tokens, harness.session_idle_s) == (200, 0, 0)
    assert (harness.context_messages, harness.failure_notice, harness.give_up_s) == (20, "auto", 3600)
    assert (harness.breaker.failures, harness.breaker.open_s) == (3, 15)
    assert (settings.judge.kind, settings.judge.timeout_s, settings.judge.context_messages) == ("none", 5, 20)
    index, lookback, media = settings.index, settings.lookback, settings.media
    assert (index.max_entries, index.max_age_days, index.max_chars, index.window_s) == (200, 30, 8000, 15)
    assert (lookback.pages, lookback.page_size, lookback.budget_s, lookback.window_s) == (3, 100, 5, 15)
    assert (media.store, media.max_files, media.max_bytes, media.budget_s) == ("redis", 10, 20971520, 20)
    assert (media.ttl_s, settings.notices.queued, settings.texts) == (3600, "auto", {})
    assert (settings.admin.host, settings.admin.port, settings.metrics.port) == ("127.0.0.1", 8090, 9100)
    assert (settings.log.format, settings.log.level, settings.storage.encryption_key_file) == ("auto", "info", "")
    dead = settings.dead_letters
    assert (dead.max_entries, dead.max_age_days, dead.max_replays, dead.storm_ratio) == (10000, 30, 5, 0.5)
    assert dead.storm_min == 50
    bot = settings.accounts[0]
    assert (bot.direct, bot.groups, bot.direct_per_minute, bot.owner_group_mode) == ("open", "open", 6, "addressed")
    assert (bot.everyone_addresses, bot.answer_bots, bot.bot_turns, bot.stale_after_s) == (True, False, 5, 0)
    assert (bot.session_scope, bot.ack, bot.join_s, bot.language) == ("chat", "typing", 1.5, "auto")
    assert (bot.sender_per_minute, bot.chat_per_minute, bot.account_per_day) == (0, 0, 0)
    assert (bot.quote_policy, bot.verify_source, bot.send_mode, bot.draft_expires_s) == ("recover", False, "auto", 3600)
    assert (bot.timezone, bot.authorised_modes, bot.insecure) == ("Asia/Shanghai", (), False)


def test_g21_default_words_of_the_gate() -> None:
    gate = from_mapping({}).engagement
    assert (gate.engine, gate.probability, gate.active_s, gate.cooldown_s) == (False, 0.05, 180, 1800)
    assert (gate.quiet_start, gate.quiet_end) == (23, 7)
    assert gate.keywords == (
        *("紧急", "救命", "故障", "坏掉", "坏了", "报错", "出错", "崩溃", "求助", "帮帮我"),
        *("help", "urgent", "error", "bug"),
    )
    assert gate.negative_phrases == (
        *("少说点", "少说两句", "别说了", "别再说", "闭嘴", "住口", "安静点", "别吵", "吵死了", "烦死了", "别插嘴"),
        *("没人问你", "shut up", "be quiet", "stop talking"),
    )
    assert gate.piercing_words == ("紧急", "救命", "故障", "崩溃", "求助", "帮帮我")


def test_the_configuration_is_frozen() -> None:
    settings = from_mapping({})
    with pytest.raises(ValidationError):
        settings.paused = True  # type: ignore[misc]


def test_an_account_overrides_the_engagement_table_key_by_key() -> None:
    settings = from_mapping(
        {
            "engagement": {"cooldown_s": 60, "active_s": 90},
            "accounts": [account(engagement={"active_s": 10}), account(id="other")],
        }
    )
    first, second = settings.accounts
    assert (first.engagement.cooldown_s, first.engagement.active_s, first.engagement.probability) == (60, 10, 0.05)
    assert (second.engagement.cooldown_s, second.engagement.active_s) == (60, 90)


def test_a_key_written_with_its_default_overrides_too() -> None:
    settings = from_mapping({"engagement": {"active_s": 90}, "accounts": [account(engagement={"active_s": 180})]})
    assert settings.accounts[0].engagement.active_s == 180


def test_a_route_overrides_the_accounts_engagement_key_by_key() -> None:
    settings = from_mapping(
        {
            "accounts": [account(engagement={"active_s": 10, "cooldown_s": 20})],
            "routes": [{"chat": "-100", "engagement": {"active_s": 7}}],
        }
    )
    route = settings.route("tg", "-100", None, "group", "guest")
    merged = settings.engagement_for(settings.accounts[0], route)
    assert (merged.active_s, merged.cooldown_s) == (7, 20)


def test_accounts_are_found_by_id_and_know_all_their_own_ids() -> None:
    settings = from_mapping({"accounts": [account(self_id="8001", self_ids=["8002", "8001"])]})
    found = settings.account("tg")
    assert found is not None
    assert found.all_self_ids == frozenset({"8001", "8002"})
    assert settings.account("nobody") is None
    assert from_mapping({"accounts": [account()]}).accounts[0].all_self_ids == frozenset()


@pytest.mark.parametrize(
    ("keys", "transport"),
    [
        ({"channel": "telegram"}, "webhook"),
        ({"channel": "telegram", "transport": "poll"}, "poll"),
        ({"channel": "weixin"}, "poll"),
        ({"channel": "weixin", "variant": "desktop"}, "webhook"),
        ({"channel": "discord"}, "socket"),
        ({"channel": "slack"}, "webhook"),
        ({"channel": "mock"}, "webhook"),
    ],
)
def test_an_empty_transport_is_what_the_channel_has(keys: dict[str, str], transport: str) -> None:
    assert from_mapping({"accounts": [{"id": "a", **keys}]}).accounts[0].used_transport == transport


def test_harnesses_by_name() -> None:
    settings = from_mapping({"harness": {"timeout_s": 9}, "harnesses": {"slow": {"timeout_s": 600}}})
    assert settings.harness_named("") == settings.harness_named("default") == settings.harness
    assert settings.harness_named("slow").timeout_s == 600
    with pytest.raises(KeyError):
        settings.harness_named("nobody")


def test_the_first_matching_route_decides() -> None:
    settings = from_mapping(
        {
            "accounts": [account(), account(id="other")],
            "harnesses": {"slow": {}},
            "routes": [
                {"account": "other", "model": "never"},
                {"account": ["tg"], "chat": ["-1", "-2"], "role": ["owner", "member"], "harness": "slow"},
                {"chat": "-2", "thread": "7", "model": "threaded"},
                {"chat_type": "private", "system": "quiet"},
            ],
        }
    )
    assert settings.route("tg", "-2", None, "group", "owner").harness == "slow"
    assert settings.route("tg", "-2", "7", "group", "guest").model == "threaded"
    assert settings.route("tg", "5", None, "private", "guest").system == "quiet"
    assert settings.route("tg", "-9", None, "group", "owner") == RouteSettings()


def test_without_a_role_routes_that_match_on_role_are_passed_over() -> None:
    settings = from_mapping(
        {"accounts": [account()], "routes": [{"role": "owner", "model": "m"}, {"session_scope": "sender"}]}
    )
    assert settings.route("tg", "-1", None, "group", None).session_scope == "sender"


SECRETS: dict[str, Any] = {
    "redis": {"url": "redis://user:s3cret-redis@cache.example:6379/0"},
    "harness": {"api_key": "s3cret-key", "secret": "s3cret-hmac", "url": "https://u:s3cret-url@h.example/v1"},
    "harnesses": {"slow": {"api_key": "s3cret-slow"}},
    "judge": {"api_key": "s3cret-judge"},
    "stt": {"api_key": "s3cret-stt"},
    "admin": {"viewer_token": "s3cret-viewer", "operator_token": "s3cret-operator"},
    "accounts": [account(credentials={"token": "s3cret-token"})],
}


def test_secrets_never_show() -> None:
    settings = from_mapping(SECRETS)
    shown = [repr(settings), str(settings), f"{settings.redis}", settings.model_dump_json(), repr(settings.accounts)]
    shown += [repr(settings.redis), repr(settings.harness), json.dumps(settings.model_dump(mode="json"))]
    assert [text for text in shown if "s3cret" in text] == []
    dumped = settings.model_dump(mode="json")
    assert dumped["accounts"][0]["credentials"] == {"token": "**********"}
    assert dumped["harness"]["api_key"] == "**********"
    assert dumped["redis"]["url"] == "redis://**********@cache.example:6379/0"


def test_secrets_are_there_for_who_asks() -> None:
    settings = from_mapping(SECRETS)
    assert settings.harness.api_key.get_secret_value() == "s3cret-key"
    assert settings.accounts[0].credential("token") == "s3cret-token"
    assert settings.accounts[0].credential("secret") == ""
    assert settings.redis.url == "redis://user:s3cret-redis@cache.example:6379/0"


def test_every_key_that_sounds_like_a_secret_is_one() -> None:
    settings = from_mapping({"accounts": [account()], "harnesses": {"slow": {}}})
    tables = [settings.harness, settings.harnesses["slow"], settings.judge, settings.stt, settings.admin]
    for table in tables:
        for name in type(table).model_fields:
            if name.endswith(("api_key", "secret", "_token")):
                assert isinstance(getattr(table, name), SecretStr), name


def test_leaves_name_nested_keys() -> None:
    paths = set(leaves(Settings))
    assert {"paused", "pipeline.retry.attempts", "accounts[].id", "harnesses.NAME.breaker.open_s", "texts"} <= paths
    assert "pipeline" not in paths
