"""What DingTalk can be asked: an access token, and the bytes of a file. There is no call for a message or the robot."""

from shared.channels.addresses import is_stand_in, is_tls_on, parts_of
from shared.channels.dingtalk.limits import API_URL, FILE_HOSTS, RATE_WORDS, TOKEN_WORDS
from shared.channels.outcomes import header, raise_for_status, retry_after_s
from shared.channels.port import Json, PlatformApi, PlatformResponse
from shared.channels.reading import int_of, map_of, text_of
from shared.channels.tokens import TOKENS
from shared.errors import Malformed, Refused, Transient
from shared.message import Attachment
from shared.settings import AccountSettings


def method_url(account: AccountSettings, path: str) -> str:
    """The address of a robot API method; `credentials.api_url` overrides the public one."""
    return f"{(account.credential('api_url') or API_URL).rstrip('/')}{path}"


async def authorised(account: AccountSettings, api: PlatformApi) -> dict[str, str]:
    """The header with an access token, bought where none is at hand: never log it.

    Raises Transient, Refused (a wrong key or secret, or none) or EffectUnknown.
    """

    async def login() -> tuple[str, float]:
        key, secret = account.credential("app_key"), account.credential("app_secret")
        if not key or not secret:
            raise Refused("the account has no credentials.app_key or no credentials.app_secret")
        url = method_url(account, "/v1.0/oauth2/accessToken")
        response = await api.request("login", "POST", url, json={"appKey": key, "appSecret": secret})
        if is_too_fast(response):
            raise Transient("DingTalk asks to wait", wait_s(response))
        raise_for_status(response)
        answer = answer_of(response)
        token, lives_s = text_of(answer.get("accessToken")), int_of(answer.get("expireIn"))
        if not token or lives_s is None:
            raise Refused("DingTalk gave no access token")
        return token, float(lives_s)

    return {"x-acs-dingtalk-access-token": await TOKENS.get(account, login)}


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file, by the address that DingTalk gives for its code. Raises Transient, Refused or EffectUnknown."""
    code = attachment.ref.get("code", "")
    if not code:
        raise Refused("DingTalk gave no code for the file")
    headers = await authorised(account, api)
    body = {"downloadCode": code, "robotCode": account.credential("app_key")}
    url = method_url(account, "/v1.0/robot/messageFiles/download")
    response = await api.request("fetch", "POST", url, headers=headers, json=body)
    if is_token_refused(response):
        TOKENS.forget(account)
        raise Transient("the access token is not taken any more")
    if is_too_fast(response):
        raise Transient("DingTalk asks to wait", wait_s(response))
    raise_for_status(response)
    place = text_of(answer_of(response).get("downloadUrl"))
    if not is_on(place, FILE_HOSTS, account):
        raise Refused("the file lies on another host")
    file = await api.request("fetch", "GET", place, max_bytes=max_bytes)
    raise_for_status(file)
    if len(file.body) > max_bytes:
        raise Refused("the file is larger than allowed")
    return file.body


def answer_of(response: PlatformResponse) -> dict[str, Json]:
    """The answer of a call without an effect. Raises Transient where it is no object."""
    try:
        answer = response.json()
    except Malformed as error:
        raise Transient("the platform's answer cannot be read") from error
    if not isinstance(answer, dict):
        raise Transient("the platform's answer is no object")
    return map_of(answer)


def is_token_refused(response: PlatformResponse) -> bool:
    """True when a definite error says that the access token is used up or unknown."""
    return response.status == 401 or (400 <= response.status < 500 and _code_has(response, TOKEN_WORDS))


def is_too_fast(response: PlatformResponse) -> bool:
    """True for 429, and for the errors 400 and 403 whose code says the same."""
    return response.status == 429 or (400 <= response.status < 500 and _code_has(response, RATE_WORDS))


def wait_s(response: PlatformResponse) -> float | None:
    """How long to wait, where the platform says."""
    return retry_after_s(header(response.headers, "retry-after"))


def is_on(url: str, hosts: tuple[str, ...], account: AccountSettings) -> bool:
    """True for an address on `hosts`, over TLS on the usual port, or on `credentials.api_url`'s server."""
    asked = parts_of(url)
    if asked is None:
        return False
    return is_stand_in(asked, account) or is_tls_on(asked, hosts)


def _code_has(response: PlatformResponse, words: tuple[str, ...]) -> bool:
    try:
        code = text_of(map_of(response.json()).get("code")).lower()
    except Malformed:
        return False
    return any(word in code for word in words)
