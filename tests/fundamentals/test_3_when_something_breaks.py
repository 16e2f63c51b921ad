"""What happens when a worker, the assistant or a platform fails."""

from collections.abc import Callable


def test_p13_a_worker_that_dies_takes_no_message_along(play: Callable[[str], None]) -> None:
    """A wake-up can be lost with the worker that took it; the record stays, and the keeper brings it back to work."""
    play("""
steps:
  - fault: {at: engagement.before_apply}
  - say: {account: bot, chat: "2", sender: "2", text: hello}
    expect: {turns: 0, sent: []}
  - advance: 2m
    expect: {dispositions: {answered: 1}, turns: 1, sent: [hello]}
""")


def test_a_turn_whose_worker_died_is_not_run_again_blindly(play: Callable[[str], None]) -> None:
    """An assistant that does not call itself idempotent may have acted already: its turn is a dead letter, not a second
    run. One that does is asked again, under the same key."""
    play("""
config:
  harness: {idempotent: false}
  accounts: [{id: bot, channel: telegram, self_id: "8001", members: ["2"]}]
steps:
  - fault: {at: dispatch.after_answer}
  - say: {account: bot, chat: "2", sender: "2", text: order a pizza}
    expect: {calls: {harness: 1}, sent: []}
  - advance: 10m
    expect: {dead: {stage: dispatch, reason: effect-unknown}, calls: {harness: 0}, sent: []}
""")


def test_p11_a_send_without_an_answer_is_unknown(play: Callable[[str], None]) -> None:
    """Nobody can tell whether the platform took it. It is never sent again by itself, not even by a replay: only an
    operator can settle it."""
    play("""
platform:
  - {account: bot, call: send, error: timeout, times: 1}
steps:
  - say: {account: bot, chat: "2", sender: "2", text: hello}
    expect: {disposition: dead, dead: {stage: delivery, reason: delivery-unknown}, calls: {send: 1}}
  - replay: {filter: {stage: delivery}}
    at: +1m
    expect: &nothing {turns: 0, sent: [], calls: {harness: 0, send: 0}}
  - redeliver: {step: 1, as: broker}
    at: +1m
    expect: *nothing
""")


def test_p9_retries_end_in_one_dead_letter(play: Callable[[str], None]) -> None:
    """A passing failure is tried again, a bounded number of times; then the message is kept as one dead letter, and the
    next message of the conversation is answered."""
    play("""
config:
  pipeline: {retry: {attempts: 2, base_s: 1, max_s: 60}}
  accounts: [{id: bot, channel: telegram, self_id: "8001", members: ["2"]}]
harness: {replies: [{error: transient}, {error: transient}, done]}
steps:
  - say: {account: bot, chat: "2", sender: "2", text: first}
    expect: {calls: {harness: 1}, sent: []}
  - advance: 5m
    expect: {dead: {stage: dispatch, reason: attempts-exhausted}, calls: {harness: 1}}
  - say: {account: bot, chat: "2", sender: "2", text: second}
    expect: {disposition: answered, sent: [done]}
""")


def test_x7_a_replay_does_nothing_twice(play: Callable[[str], None]) -> None:
    """A dead letter is replayed with the input that was frozen before: the same turn, asked the same. Replayed once
    more, or delivered again by the platform, nothing happens."""
    play("""
harness: {replies: [{error: permanent}, done]}
steps:
  - say: {account: bot, chat: "2", sender: "2", text: hello}
    expect: {disposition: dead, reason: harness-refused, sent: []}
  - replay: {filter: {stage: dispatch}}
    at: +1m
    expect: {turns: 0, calls: {harness: 1, send: 1}, harness_input: {text: hello}, sent: [done]}
  - replay: {filter: {stage: dispatch}}
    at: +1m
    expect: &nothing {turns: 0, sent: [], calls: {harness: 0, send: 0}}
  - redeliver: {step: 1, as: platform}
    at: +1h
    expect: *nothing
""")
