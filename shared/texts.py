"""Fixed texts: what Millstream itself says, by name and language. Pure.

`[texts]` overrides any of them: `texts.help.en = "…"`. A `{placeholder}` is filled where the table names it; other
braces stand for themselves, and a value is never read as a template.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

LANGUAGES: Final = ("zh", "en")

TextName = Literal[
    "approval_hint",
    "bad_command",
    "batch_cancelled",
    "batch_empty",
    "batch_full",
    "batch_no_quote",
    "batch_none",
    "batch_not_collected",
    "batch_started",
    "denied",
    "draft_approved",
    "draft_closed",
    "draft_pending",
    "draft_rejected",
    "failure",
    "flow_busy",
    "flow_limit",
    "help",
    "interaction_done",
    "interaction_timeout",
    "lane_full",
    "new_refused",
    "new_session",
    "question_hint",
    "queued",
    "quoted_text_unavailable",
    "status",
    "steer_done",
    "steer_none",
    "stop_done",
    "stop_none",
    "stop_too_late",
    "unsupported_part",
    "wake_done",
    "wake_none",
    "whoami",
]

# The sentence of behaviour.md section 3 (policy evidence_only): exact, and the default in every language.
_UNREADABLE_QUOTE = "无法读取被引用文字，请复制原文后再提问。"

TEXTS: Final[Mapping[TextName, Mapping[str, str]]] = {
    "approval_hint": {
        "zh": "回复“批准”或“拒绝”。",
        "en": "Answer yes or no.",
    },
    "bad_command": {
        "zh": "{command} 的用法不对。发送 /help 查看用法。",
        "en": "{command} was not understood. Send /help for its use.",
    },
    "batch_cancelled": {
        "zh": "已放弃收集的 {count} 条消息。",
        "en": "Dropped the {count} collected messages.",
    },
    "batch_empty": {
        "zh": "还没有收集到消息。",
        "en": "Nothing has been collected yet.",
    },
    "batch_full": {
        "zh": "已收集 {count} 条，达到上限。发送 /send 提交，或 /cancel 放弃。",
        "en": "{count} messages are collected, which is the limit. /send submits them, /cancel drops them.",
    },
    "batch_no_quote": {
        "zh": "带引用的消息不能开始收集，请直接发送 /batch。",
        "en": "A message that quotes cannot start collecting. Send /batch by itself.",
    },
    "batch_none": {
        "zh": "现在没有在收集。发送 /batch 开始。",
        "en": "Nothing is being collected. /batch starts it.",
    },
    "batch_not_collected": {
        "zh": "图片、文件或引用消息不能收集，这条没有计入。",
        "en": "Images, files and quotes (图片、文件或引用消息) cannot be collected; this one was left out.",
    },
    "batch_started": {
        "zh": "开始收集，最多 {limit} 条文字消息。/send 提交，/cancel 放弃。",
        "en": "Collecting up to {limit} text messages. /send submits them, /cancel drops them.",
    },
    "denied": {
        "zh": "你没有权限使用这个命令。",
        "en": "You may not use this command.",
    },
    "draft_approved": {
        "zh": "草稿 {id} 已批准。",
        "en": "Draft {id} is approved.",
    },
    "draft_closed": {
        "zh": "草稿 {id} 已处理或已过期，没有发送。",
        "en": "Draft {id} is already settled or has expired; nothing was sent.",
    },
    "draft_pending": {
        "zh": "草稿 {id} 等待批准：\n{text}",
        "en": "Draft {id} waits for approval:\n{text}",
    },
    "draft_rejected": {
        "zh": "草稿 {id} 已拒绝。",
        "en": "Draft {id} is rejected.",
    },
    "failure": {
        "zh": "抱歉，这条消息处理失败了，请稍后再试。",
        "en": "Sorry, this message could not be answered. Please try again later.",
    },
    "flow_busy": {
        "zh": "上一条还在处理，请等回复后再发。",
        "en": "Your last message is still being answered. Please wait for it.",
    },
    "flow_limit": {
        "zh": "消息太多了，请稍后再发。",
        "en": "That is too many messages for now. Please try again later.",
    },
    "help": {
        "zh": "可用命令：\n/help 显示这份说明\n/new 开始新会话\n/status 查看当前状态\n/stop 停止正在进行的回答",
        "en": "Commands:\n"
        "/help shows this list\n"
        "/new starts a new session\n"
        "/status shows what is going on\n"
        "/stop stops the running answer",
    },
    "interaction_done": {
        "zh": "收到。",
        "en": "Noted.",
    },
    "interaction_timeout": {
        "zh": "等待回答超时，这次提问已取消。",
        "en": "No answer came in time; the question is cancelled.",
    },
    "lane_full": {
        "zh": "排队的消息太多，这条没有处理，请稍后再发。",
        "en": "Too many messages are waiting here; this one was not taken. Please send it again later.",
    },
    "new_refused": {
        "zh": "现在有回答正在进行或有问题等待回答，不能开始新会话。可以先发送 /stop。",
        "en": "An answer is running or a question is open, so no new session was started. /stop ends it.",
    },
    "new_session": {
        "zh": "已开始新会话。",
        "en": "A new session has begun.",
    },
    "question_hint": {
        "zh": "回复选项的编号或文字，多个用逗号分开，也可以直接写。",
        "en": "Answer with an option's number or label, several with commas, or in your own words.",
    },
    "queued": {
        "zh": "前面还有消息在处理，已排队。",
        "en": "Earlier messages are still being answered; yours is queued.",
    },
    "quoted_text_unavailable": {
        "zh": _UNREADABLE_QUOTE,
        "en": _UNREADABLE_QUOTE,
    },
    "status": {
        "zh": "状态：{state}；等待：{waiting}",
        "en": "State: {state}; waiting: {waiting}",
    },
    "steer_done": {
        "zh": "已补充给正在进行的回答。",
        "en": "Added to the running answer.",
    },
    "steer_none": {
        "zh": "现在没有正在进行的回答可以补充。",
        "en": "No answer is running that could take it.",
    },
    "stop_done": {
        "zh": "已停止。",
        "en": "Stopped.",
    },
    "stop_none": {
        "zh": "现在没有正在进行的回答。",
        "en": "No answer is running.",
    },
    "stop_too_late": {
        "zh": "回答已经完成，来不及停止了。",
        "en": "The answer is already complete; it is too late to stop it.",
    },
    "unsupported_part": {
        "zh": "[{kind}: {name}]",
        "en": "[{kind}: {name}]",
    },
    "wake_done": {
        "zh": "冷静期已结束。",
        "en": "The cooldown is over.",
    },
    "wake_none": {
        "zh": "这个群不在冷静期。",
        "en": "This group is not cooling down.",
    },
    "whoami": {
        "zh": "渠道：{channel}\n账号：{account}\n会话：{chat}\n你的编号：{user}\n身份：{role}",
        "en": "Channel: {channel}\nAccount: {account}\nChat: {chat}\nYour id: {user}\nRole: {role}",
    },
}

NAMES: Final = frozenset(TEXTS)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

# CJK code points: radicals, kana and bopomofo are not counted as Chinese by themselves; ideographs are, with their
# extensions A to J and the compatibility blocks (Unicode 16 block names).
_CJK = re.compile("[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


def chosen_language(language: str, message_text: str) -> Literal["zh", "en"]:
    """`zh` or `en`; `auto` is zh when the message holds any CJK ideograph, else en."""
    if language == "auto":
        return "zh" if _CJK.search(message_text) else "en"
    return "zh" if language == "zh" else "en"


def text(
    name: TextName,
    language: str,
    message_text: str,
    overrides: Mapping[str, Mapping[str, str]],
    /,
    **values: str | int,
) -> str:
    """The fixed text `name` in the account's `language` (auto, zh or en).

    `message_text` decides when the language is auto. `overrides` is `[texts]`. `values` fill the placeholders; one
    without a value stays as it is written, so that a text never fails. Raises KeyError for an unknown name.
    """
    spoken = chosen_language(language, message_text)
    template = overrides.get(name, {}).get(spoken)
    if template is None:
        template = TEXTS[name][spoken]
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)
