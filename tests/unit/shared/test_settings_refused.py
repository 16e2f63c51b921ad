"""What is refused, and in which words."""

from typing import Any

import pytest

from shared.settings import ConfigurationError, from_mapping


def account(**keys: Any) -> dict[str, Any]:
    return {"id": "tg", "channel": "telegram", **keys}


def refused(data: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        from_mapping(data)
    assert str(caught.value) == "\n".join(caught.value.errors)
    # A traceback must not show the pydantic error, which holds the input.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value.errors


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"accounts": [account(owner=["1"])]}, '`accounts[0].owner`: unknown key, did you mean "owners"?'),
        ({"redi": {}}, '`redi`: unknown key, did you mean "redis"?'),
        ({"pipeline": {"retry": {"atempts": 1}}}, '`pipeline.retry.atempts`: unknown key, did you mean "attempts"?'),
        ({"harnesses": {"slow": {"modle": ""}}}, '`harnesses.slow.modle`: unknown key, did you mean "model"?'),
        ({"lane_max": 3}, '`lane_max`: unknown key, did you mean "pipeline.lane_max"?'),
        ({"redis": {"zzzz": 1}}, "`redis.zzzz`: unknown key: known are url, prefix"),
        ({"texts": {"hlep": {"zh": "x"}}}, '`texts.hlep`: unknown text, did you mean "help"?'),
        ({"texts": {"help": {"fr": "x"}}}, "`texts.help.fr`: unknown language: known are zh, en"),
        (
            {"accounts": [account(id="harbour")], "routes": [{"account": ["harbor"]}]},
            '`routes[0].account`: unknown account "harbor", did you mean "harbour"?',
        ),
        (
            {"harnesses": {"research": {}}, "routes": [{"harness": "reserch"}]},
            '`routes[0].harness`: unknown harness "reserch", did you mean "research"?',
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(data: dict[str, Any], line: str) -> None:
    assert refused(data) == [line]


def test_several_faults_are_reported_together() -> None:
    lines = refused({"ingest": {"port": 0, "prot": 1}, "accounts": [account(owner=[]), {"channel": "mock"}]})
    assert [line.partition(":")[0] for line in lines] == [
        "`ingest.port`",
        "`ingest.prot`",
        "`accounts[0].owner`",
        "`accounts[1].id`",
    ]


def test_account_ids_are_unique() -> None:
    (line,) = refused({"accounts": [account(), account(channel="slack")]})
    assert line.startswith('`accounts[1].id`: duplicate id "tg"')


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "a\n", "x" * 65, "中"])
def test_ids_and_harness_names_are_plain(name: str) -> None:
    (line,) = refused({"accounts": [account(id=name)]})
    assert line.startswith("`accounts[0].id`: must begin with a letter or digit")
    assert len(refused({"harnesses": {name: {}}})) == 1


def test_a_plain_id_of_64_characters_is_taken() -> None:
    assert from_mapping({"accounts": [account(id="A9._-" + "x" * 59)]}).accounts[0].id == "A9._-" + "x" * 59


def test_a_harness_cannot_be_named_default() -> None:
    (line,) = refused({"harnesses": {"default": {}}})
    assert "is the name of [harness] itself" in line


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ({"piercing_words": ["紧急", "别的"]}, ["piercing_words", "subset of keywords", "别的"]),
        ({"piercing_words": ["bug"]}, ["piercing_words", "must not contain bug"]),
        ({"piercing_words": ["Bug"]}, ["piercing_words", "must not contain bug"]),
        ({"keywords": ["紧急"], "piercing_words": ["紧急"]}, ["piercing_words", "strict subset"]),
    ],
)
def test_piercing_words_are_a_strict_subset_of_the_keywords_without_bug(gate: dict[str, Any], words: list[str]) -> None:
    for data, path in (
        ({"engagement": gate}, "`engagement.piercing_words`"),
        ({"accounts": [account(engagement=gate)]}, "`accounts[0].engagement.piercing_words`"),
        ({"accounts": [account()], "routes": [{"engagement": gate}]}, "`routes[0].engagement.piercing_words`"),
    ):
        (line,) = refused(data)
        assert line.startswith(path)
        assert all(word in line for word in words)


def test_piercing_words_are_judged_with_the_keywords_of_the_merged_table() -> None:
    settings = from_mapping(
        {
            "engagement": {"keywords": ["紧急", "着火", "bug"], "piercing_words": ["紧急"]},
            "accounts": [account(engagement={"piercing_words": ["着火"]})],
        }
    )
    assert settings.accounts[0].engagement.piercing_words == ("着火",)


def test_no_piercing_words_at_all_are_fine() -> None:
    assert from_mapping({"engagement": {"piercing_words": []}}).engagement.piercing_words == ()


def test_a_route_that_sets_session_scope_may_not_match_on_role() -> None:
    (line,) = refused({"routes": [{"role": "owner", "session_scope": "sender"}]})
    assert "may not match on role" in line


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"ingest": {"port": 0}}, "ingest.port"),
        ({"ingest": {"port": 65536}}, "ingest.port"),
        ({"admin": {"port": -1}}, "admin.port"),
        ({"pipeline": {"partitions": 0}}, "pipeline.partitions"),
        ({"pipeline": {"order_wait_s": -1}}, "pipeline.order_wait_s"),
        ({"pipeline": {"lease_s": 0}}, "pipeline.lease_s"),
        ({"pipeline": {"claim_s": float("inf")}}, "pipeline.claim_s"),
        ({"pipeline": {"order_wait_s": float("nan")}}, "pipeline.order_wait_s"),
        ({"pipeline": {"lane_max": 0}}, "pipeline.lane_max"),
        ({"pipeline": {"retry": {"attempts": 0}}}, "pipeline.retry.attempts"),
        ({"engagement": {"probability": 1.01}}, "engagement.probability"),
        ({"engagement": {"probability": -0.1}}, "engagement.probability"),
        ({"engagement": {"quiet_start": 24}}, "engagement.quiet_start"),
        ({"engagement": {"quiet_end": -1}}, "engagement.quiet_end"),
        ({"engagement": {"keywords": [" "]}}, "engagement.keywords[0]"),
        ({"harness": {"kind": "magic"}}, "harness.kind"),
        ({"harness": {"timeout_s": -1}}, "harness.timeout_s"),
        ({"harness": {"concurrency": 0}}, "harness.concurrency"),
        ({"dead_letters": {"storm_ratio": 2}}, "dead_letters.storm_ratio"),
        ({"log": {"level": "loud"}}, "log.level"),
        ({"accounts": [account(timezone="Mars/Olympus")]}, "accounts[0].timezone"),
        ({"accounts": [account(timezone="../etc/passwd")]}, "accounts[0].timezone"),
        ({"accounts": [account(timezone="Asia")]}, "accounts[0].timezone"),
        ({"accounts": [account(channel="icq")]}, "accounts[0].channel"),
        ({"accounts": [account(join_s=-1)]}, "accounts[0].join_s"),
        ({"accounts": [account(transport="socket")]}, "accounts[0].transport"),
        ({"accounts": [account(channel="slack", transport="poll")]}, "accounts[0].transport"),
        ({"accounts": [account(channel="slack", variant="cloud")]}, "accounts[0].variant"),
        ({"accounts": [account(channel="whatsapp", variant="ilink")]}, "accounts[0].variant"),
        ({"accounts": [account(authorised_modes=["everything"])]}, "accounts[0].authorised_modes[0]"),
        ({"routes": [{"chat": []}]}, "routes[0].chat"),
        ({"routes": [{"role": "king"}]}, "routes[0].role[0]"),
    ],
)
def test_values_out_of_range_are_refused_with_their_path(data: dict[str, Any], path: str) -> None:
    (line,) = refused(data)
    assert line.startswith(f"`{path}`: ")


def test_a_refused_value_is_never_repeated() -> None:
    lines = refused(
        {
            "harness": {"api_key": ["s3cret-a"], "url": 7},
            "accounts": [account(credentials={"token": ["s3cret-b"]}, id="s3cret c")],
        }
    )
    assert len(lines) == 4
    assert "s3cret" not in "\n".join(lines)


def test_a_number_where_text_belongs_says_to_quote_it() -> None:
    assert refused({"accounts": [account(self_id=8001)]}) == ["`accounts[0].self_id`: must be text: write it in quotes"]
    assert refused({"accounts": [account(credentials={"agent_id": 1000002})]}) == [
        "`accounts[0].credentials.agent_id`: must be text: write it in quotes"
    ]


def test_every_transport_and_variant_of_the_scenario_schema_has_a_channel() -> None:
    for keys in (
        {"channel": "weixin", "transport": "poll", "variant": "ilink"},
        {"channel": "weixin", "variant": "desktop"},
        {"channel": "whatsapp", "variant": "cloud"},
        {"channel": "whatsapp", "variant": "web"},
        {"channel": "slack", "transport": "socket"},
        {"channel": "discord", "transport": "socket"},
        {"channel": "telegram", "transport": "webhook", "variant": "webhook"},
    ):
        assert from_mapping({"accounts": [{"id": "a", **keys}]}).accounts[0].channel == keys["channel"]
