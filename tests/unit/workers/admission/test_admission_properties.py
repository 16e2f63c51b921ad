"""What holds for every batch: folding equals deciding one by one, claims are never lost, a quote changes nothing."""

from admission_world import QUOTE, Stored, account, item
from hypothesis import given
from hypothesis import strategies as st

from shared.message import lane_of
from workers.admission.commands import LaneView
from workers.admission.policy import Item, World, after, decide, fold

TEXTS = st.sampled_from(["在吗", "/stop", "/new", "/help", "/status@relay_bot", "/unknown", "救命", "少说点", " "])
STATES = st.sampled_from(["ready", "running", "waiting", "answered", "sending"])


@st.composite
def batches(draw: st.DrawFn) -> list[Item]:
    """Few ids, so that duplicates, conflicts and runs of bots happen often; tickets and envelopes are distinct."""
    made: list[Item] = []
    for number in range(draw(st.integers(1, 12))):
        keys = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True))
        made.append(
            item(
                number,
                keys=tuple(keys),
                chat_id=draw(st.sampled_from(["-100", "-200"])),
                sender_id=draw(st.sampled_from(["1", "2", "3", "66", "9"])),
                text=draw(TEXTS),
                mentions_bot=draw(st.booleans()),
                sender_is_bot=draw(st.booleans()),
                action=draw(st.sampled_from(["process", "process", "process", "edit"])),
            )
        )
    return made


@st.composite
def stores(draw: st.DrawFn) -> Stored:
    stored = Stored()
    for chat in ("-100", "-200"):
        if draw(st.booleans()):
            view = LaneView("t1", draw(STATES), draw(st.sampled_from(["3", "9"])), waiting=1)
            stored.lanes[lane_of("tg", chat, None, None)] = view
    return stored


@given(batches(), stores(), st.booleans(), st.booleans())
def test_folding_a_batch_equals_deciding_one_by_one(
    batch: list[Item], stored: Stored, answer_bots: bool, read_only: bool
) -> None:
    settings = account(answer_bots=answer_bots, bot_turns=2, blocked=["66"])
    folded, end = fold(batch, stored.world(settings, read_only))
    for one, expected in zip(batch, folded, strict=True):
        decision = decide(one, stored.world(settings, read_only))
        assert decision == expected
        stored.apply(one, decision)
    assert dict(end.claims) == stored.claims
    assert dict(end.bot_runs) == stored.runs


@given(batches())
def test_after_never_loses_or_changes_a_claim(batch: list[Item]) -> None:
    world = World(account(answer_bots=True, bot_turns=2))
    for one in batch:
        then = after(world, one, decide(one, world))
        assert world.claims.items() <= then.claims.items()
        world = then


@given(batches())
def test_a_key_starts_at_most_one_turn(batch: list[Item]) -> None:
    decisions, _ = fold(batch, World(account(answer_bots=True, bot_turns=99)))
    on = [one for one, decision in zip(batch, decisions, strict=True) if hasattr(decision.outcome, "stage")]
    keys = [key for one in on for key in one.envelope.message.keys]
    assert len(keys) == len(set(keys))


@given(batches(), stores())
def test_a_quote_changes_no_decision(batch: list[Item], stored: Stored) -> None:
    """But for a message that has nothing else to read (C-18)."""
    settings = account(answer_bots=True, bot_turns=2, blocked=["66"])
    plain = [one for one in batch if one.envelope.message.text.strip()]
    quoting = [
        Item(
            one.envelope.model_copy(
                update={"message": one.envelope.message.model_copy(update={"reply_to": QUOTE})},
            ),
            one.ticket,
            one.lane,
        )
        for one in plain
    ]
    assert fold(plain, stored.world(settings, False)) == fold(quoting, stored.world(settings, False))
