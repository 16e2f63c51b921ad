"""What holds for every batch of engagement."""

from engagement_world import START_MS, Stored, account, item
from hypothesis import given
from hypothesis import strategies as st

from shared.message import ReplyReference
from workers.engagement.policy import Decision, Item, World, decide, fold

TEXTS = st.sampled_from(["在吗", "少说点", "救命", "有个 bug", "少说点 救命", "Shut up", "阿青在不在"])
QUOTES = st.sampled_from(["少说点", "救命", "阿青", "bug", "/stop"])
SETTINGS = account(
    owner_name="阿青",
    direct_per_minute=2,
    owner_group_mode="all",
    owner_min_interval_s=20,
    engagement={"cooldown_s": 60},
)


@st.composite
def batches(draw: st.DrawFn, own_senders: bool = False) -> list[Item]:
    """Messages of a few chats and senders at rising times; with `own_senders` no sender writes in two chats."""
    made: list[Item] = []
    at_s = 0.0
    for number in range(draw(st.integers(1, 25))):
        at_s += draw(st.sampled_from([0, 1, 10, 59, 60]))
        chat = draw(st.sampled_from(["-100", "-200", "7"]))
        sender = draw(st.sampled_from(["1", "2", "3", "4"]))
        made.append(
            item(
                number,
                at_s,
                settings=SETTINGS,
                chat_id=chat,
                chat_type="private" if chat == "7" else "group",
                sender_id=f"{chat}/{sender}" if own_senders else sender,
                text=draw(TEXTS),
                mentions_bot=draw(st.booleans()),
                mentions_all=draw(st.booleans()),
            )
        )
    return made


def worlds() -> st.SearchStrategy[World]:
    return st.builds(
        World,
        lane_max=st.integers(1, 4),
        judge=st.booleans(),
        cooldowns=st.dictionaries(st.sampled_from(["-100", "-200"]), st.integers(START_MS, START_MS + 90_000)),
        busy_guests=st.dictionaries(st.sampled_from(["3", "4"]), st.just("before")),
    )


@given(batches(), worlds())
def test_folding_a_batch_equals_deciding_one_by_one(batch: list[Item], world: World) -> None:
    folded, end = fold(batch, world)
    stored = Stored.of(world)
    for one, expected in zip(batch, folded, strict=True):
        decision = decide(one, stored.world())
        assert decision == expected
        stored.apply(one, decision)
    assert stored.world() == end


@given(batches(), worlds(), QUOTES)
def test_g67_a_quote_changes_no_decision(batch: list[Item], world: World, content: str) -> None:
    quote = ReplyReference(message_id="5", author_id="8001", content=content)
    quoting = [
        Item(
            one.envelope.model_copy(update={"message": one.envelope.message.model_copy(update={"reply_to": quote})}),
            one.ticket,
            one.lane,
            one.role,
            one.account,
        )
        for one in batch
    ]
    assert fold(batch, world) == fold(quoting, world)


@given(batches(own_senders=True), st.randoms(use_true_random=False))
def test_g40_chats_are_gated_independently(batch: list[Item], random: object) -> None:
    """Any interleaving of the chats that keeps each chat's order decides the same."""
    by_chat: dict[str, list[Item]] = {}
    for one in batch:
        by_chat.setdefault(one.envelope.message.chat_id, []).append(one)
    mixed: list[Item] = []
    left = {chat: list(items) for chat, items in by_chat.items()}
    while left:
        chat = random.choice(sorted(left))  # type: ignore[attr-defined]
        mixed.append(left[chat].pop(0))
        if not left[chat]:
            del left[chat]
    assert _by_id(mixed) == _by_id(batch)


@given(batches(), worlds())
def test_every_message_ends_registered_or_makes_a_turn_or_asks(batch: list[Item], world: World) -> None:
    """Nothing is ever dropped silently."""
    for one, decision in zip(batch, fold(batch, world)[0], strict=True):
        rows = [intent for intent in decision.intents if type(intent).__name__ == "Register"]
        ended = hasattr(decision.outcome, "disposition")
        assert len(rows) == int(ended), one


def _by_id(batch: list[Item]) -> dict[str, Decision]:
    decisions, _ = fold(batch, World(lane_max=3))
    return {one.envelope.id: decision for one, decision in zip(batch, decisions, strict=True)}
