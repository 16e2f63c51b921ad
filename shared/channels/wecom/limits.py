"""What WeCom allows an AI bot, and what its error numbers mean. "Doc" is developer.work.weixin.qq.com/document/path."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=20_480,  # markdown.content (doc 101138)
    unit="utf8",
    per_chat=(30, 60.0),  # in one conversation (channel facts, WeCom, "Limits")
    per_account=(1000, 60.0),  # none is documented: so many only bound a bot that is in very many conversations
    dedupe_s=86_400,  # tries end after some 15 s; the day is what behaviour.md, section 1, keeps for most channels
    reply_window_s=3600,  # a response_url lives one hour (doc 101138)
    replies=1,  # and is taken once (doc 101138)
)

WINDOW_MS: Final = 300_000
"""A request's signed time stamp may be this far from now. WeCom names no window; five minutes are what the other
platforms with signed times use (channel facts, section 0), and every retry is signed anew."""

TENCENT: Final = (".qq.com",)
"""Ends of the hosts that a response_url may have; WeCom's own is qyapi.weixin.qq.com (doc 101138)."""

MEDIA_BUCKET: Final = "ww-aibot-img-1258476243.cos."
MEDIA_CLOUD: Final = ".myqcloud.com"
"""The bucket that holds what was sent to bots, in whatever region (doc 100719, every media example). Anybody may rent
another bucket under that cloud, so its whole name counts."""

PLACEHOLDER: Final = "该消息类型暂不能展示"
"""What WeCom writes for a quoted message that it cannot show, in brackets (channel facts, WeCom, "Quote")."""

RATE_CODES: Final = frozenset({45009, 45033})
"""Too many calls, too many at once (WeCom's list of global error codes, doc 90313)."""

UNSURE_CODES: Final = frozenset({-1})
"""The system is busy (doc 90313): whether the call took effect is not said."""
