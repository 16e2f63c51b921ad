"""Who is answered, and what keeps the bot silent."""

from collections.abc import Callable

import pytest

from shared.settings import ConfigurationError, from_mapping


def test_in_a_group_nobody_who_did_not_ask_is_answered(play: Callable[[str], None]) -> None:
    """Not addressed, no keyword: no answer and no call of any model. The words are kept as context for later turns."""
    play("""
steps:
  - say: {account: bot, chat: "-100", sender: "3", name: Mila, text: nice weather}
    expect:
      disposition: silenced
      reason: no_signal
      calls: {harness: 0, judge: 0, send: 0}
      registered: [{text: nice weather, label: Mila}]
  - say: {account: bot, chat: "-100", sender: "3", text: "is it?", mentions_bot: true}
    at: +1s
    expect: {disposition: answered, reason: rule.addressed, harness_input: {context: [{text: nice weather}]}}
""")


def test_a_group_that_says_be_quiet_gets_quiet(play: Callable[[str], None]) -> None:
    """ "Be quiet" silences the bot in that group for half an hour, even when it is addressed; an urgent word still gets
    through, and private chats notice nothing."""
    play("""
steps:
  - say: {account: bot, chat: "-100", sender: "3", text: be quiet}
    expect: {disposition: silenced, reason: cooldown.entered, gate: {state: cooldown}}
  - say: {account: bot, chat: "-100", sender: "4", text: "are you there?", mentions_bot: true}
    at: +10m
    expect: {disposition: silenced, reason: cooldown.active, sent: []}
  - say: {account: bot, chat: "-100", sender: "4", text: 救命}
    expect: {disposition: answered, reason: cooldown.pierced}
  - say: {account: bot, chat: "4", sender: "4", text: hello}
    expect: {disposition: answered}
  - say: {account: bot, chat: "-100", sender: "4", text: "and now?", mentions_bot: true}
    at: +20m
    expect: {disposition: answered, reason: rule.addressed}
""")


def test_r1_read_only_touches_nothing(play: Callable[[str], None]) -> None:
    """Switched to read-only, a message is skipped before anything is asked, stored or sent, and stays skipped."""
    play("""
steps:
  - set: {read_only: true}
  - say: {account: bot, chat: "2", sender: "2", text: hello}
    expect:
      disposition: skipped
      reason: read-only-mode
      registered: 0
      calls: {harness: 0, judge: 0, lookup: 0, history: 0, send: 0}
      audit: [{type: skip, reason: read-only-mode}]
      log_lacks: [hello]
  - set: {read_only: false}
  - restart: all
  - redeliver: {step: 2, as: platform}
    expect: {disposition: duplicate, sent: []}
""")


def test_a_pause_is_a_wait(play: Callable[[str], None]) -> None:
    """While sending is paused answers wait; resumed, each is sent, once."""
    play("""
steps:
  - set: {paused: true}
  - say: {account: bot, chat: "2", sender: "2", text: hello}
    expect: {turns: 1, sent: [], calls: {send: 0}}
  - advance: 1h
    expect: {sent: [], dispositions: {dead: 0, answered: 0}}
  - set: {paused: false}
    expect: {sent: [hello], dispositions: {answered: 1}}
""")


def test_stop_ends_the_running_turn_and_no_other(play: Callable[[str], None]) -> None:
    """`/stop` cancels the conversation's running turn; what waits behind it is answered."""
    play("""
harness: {replies: [{delay: 10m}, done]}
steps:
  - say: {account: bot, chat: "2", sender: "2", text: count all the stars}
    expect: {turns: 1, sent: []}
  - say: {account: bot, chat: "2", sender: "2", text: then this}
    at: +1s
    expect: {turns: 0, sent: []}
  - say: {account: bot, chat: "2", sender: "2", text: /stop}
    at: +1s
    expect: {disposition: command}
  - advance: 30s
  - redeliver: {step: 1, as: broker}
    expect: {disposition: cancelled, reason: stop, calls: {harness: 0}}
  - redeliver: {step: 2, as: broker}
    expect: {disposition: answered, calls: {harness: 0, send: 0}}
""")


def test_a_misspelt_setting_is_refused_by_name() -> None:
    """A configuration is never half understood: an unknown key is refused, with the nearest one that there is."""
    with pytest.raises(ConfigurationError, match=r'ownres.*did you mean "owners"\?'):
        from_mapping({"accounts": [{"id": "bot", "channel": "telegram", "ownres": ["1"]}]})
