"""The configuration that `millstream init` writes: short, commented, with a mock account so that it runs at once."""

from typing import Final, Literal

Profile = Literal["team", "companion", "blank"]

_HEAD: Final = """\
# Millstream's configuration. `millstream check` validates it and says what to fix.
# Every key and its default: millstream.example.toml. Durations are seconds.
# Keep secrets out of this file: write "file:/path/to/secret", or set an environment variable such as
# MILLSTREAM_HARNESS__API_KEY.

[redis]
url = ""                      # redis://host:6379/0; empty: start the embedded server

[harness]
kind = "echo"                 # repeats what it is told; then openai (url, model, api_key) or http (url, secret)
"""

_REAL: Final = """
# A real channel beside it:
# [[accounts]]
# id = "telegram"
# channel = "telegram"
# transport = "poll"            # needs no public address
# credentials = { token = "file:/path/to/token" }
# owners = ["your user id"]
"""

_ACCOUNTS: Final[dict[Profile, str]] = {
    "team": """
# For a team: answers in groups when it is addressed, in threads, one session for each chat.
[[accounts]]
id = "demo"                   # the webhook is /hooks/demo
channel = "mock"              # a channel without a platform, to try things out
join_s = 0                    # every message is a turn of its own
owners = ["owner"]            # may do everything
members = []                  # may use the assistant freely
direct = "members"            # private chats: members and owners only
groups = "open"               # or "listed" with listed_groups = [...]
answer_bots = false           # other bots are ignored
""",
    "companion": """
# For a companion: talks with its owner, and answers in groups when it is addressed.
[engagement]
cooldown_s = 1800             # silence after "be quiet"

[[accounts]]
id = "demo"                   # the webhook is /hooks/demo
channel = "mock"              # a channel without a platform, to try things out
join_s = 0                    # every message is a turn of its own
owners = ["owner"]            # may do everything
direct = "owners"             # private chats: the owner only
owner_group_mode = "addressed" # "all": answers everything that the owner says in groups
timezone = "Asia/Shanghai"    # of the quiet hours
""",
    "blank": """
[[accounts]]
id = "demo"                   # the webhook is /hooks/demo
channel = "mock"              # a channel without a platform, to try things out
join_s = 0                    # every message is a turn of its own
""",
}


def starter(profile: Profile) -> str:
    """The text of a new `millstream.toml` for `profile`. It parses and has no problem that `check` calls an error."""
    return f"{_HEAD}{_ACCOUNTS[profile]}{_REAL}"
