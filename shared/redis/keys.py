"""Every Redis key, spelled once. The scripts in `lua/` make the same names from the same prefix (`core.lua`).

What each holds is told in docs/data-model.md.
"""

from dataclasses import dataclass

from shared.message import short_hash


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names under one prefix."""

    prefix: str = "ms:"

    def record(self, id_: str) -> str:
        """Hash: where an id is, and everything known of it."""
        return f"{self.prefix}rec:{id_}"

    def at(self, place: str, name: str = "") -> str:
        """Sorted set: the ids that are at `place` (`name`: partition or harness where the place has one)."""
        return f"{self.prefix}at:{place}:{name}" if name else f"{self.prefix}at:{place}"

    def wake(self, stage: str) -> str:
        """List: Celery's queue of a stage."""
        return f"{self.prefix}wake.{stage}"

    def lane(self, lane: str, part: str = "") -> str:
        """Hash (current, state), or its sorted sets `pending` and `ready`."""
        return f"{self.prefix}lane:{lane}:{part}" if part else f"{self.prefix}lane:{lane}"

    def claim(self, account: str, key: str) -> str:
        """String: the envelope id and identity that hold a stable message key."""
        return self.claim_of(short_hash(account, key))

    def claim_of(self, name: str) -> str:
        """The same by the hash of account and key."""
        return f"{self.prefix}dup:{name}"

    def frozen(self, account: str, key: str) -> str:
        """String: a turn's frozen input with its digest."""
        return self.frozen_of(short_hash(account, key))

    def frozen_of(self, name: str) -> str:
        """The same by the hash of account and key, which the record keeps as `fkey`."""
        return f"{self.prefix}frozen:{name}"

    def ledger(self, outbound: str) -> str:
        """Hash: part number to state, token, time, ids."""
        return f"{self.prefix}ledger:{outbound}"

    def index(self, account: str, part: str = "") -> str:
        """Sorted set: the rows of an account's outbound index by time, or its hash `texts`. Only scripts use it."""
        return f"{self.prefix}index:{account}:{part}" if part else f"{self.prefix}index:{account}"

    def log(self, conversation: str) -> str:
        """List: registered rows of a conversation, newest first."""
        return f"{self.prefix}log:{conversation}"

    def cooldown(self, account: str, chat_id: str) -> str:
        """String: Unix ms until which a group's COOLDOWN lasts."""
        return f"{self.prefix}cool:{short_hash(account, chat_id)}"

    def flow(self, account: str, sender_id: str) -> str:
        """Sorted set: a sender's allowed private messages by received time."""
        return f"{self.prefix}flow:{short_hash(account, sender_id)}"

    def warned(self, account: str, what: str) -> str:
        """String with an expiry: a notice or warning that is given once a while."""
        return f"{self.prefix}warned:{short_hash(account, what)}"

    def owner_spoke(self, account: str) -> str:
        """Hash: chat to the time of the last unaddressed answer to the owner."""
        return f"{self.prefix}owner:{account}"

    def bot_runs(self, account: str) -> str:
        """Hash: conversation to bot turns in a row."""
        return f"{self.prefix}bots:{account}"

    def access(self, account: str) -> str:
        """Hash: the run-time access overlay."""
        return f"{self.prefix}access:{account}"

    def rate(self, account: str, what: str) -> str:
        """String: a rate limiter's theoretical arrival time, ms."""
        return f"{self.prefix}rate:{short_hash(account, what)}"

    def busy(self, account: str) -> str:
        """Sorted set: an account's platform calls under way."""
        return f"{self.prefix}busy:{account}"

    def silent(self, account: str) -> str:
        """Stream, capped: decisions about messages that ended in silence."""
        return f"{self.prefix}silent:{account}"

    def letter(self, id_: str) -> str:
        """Hash: a dead letter."""
        return f"{self.prefix}dead:{id_}"

    def letters(self, stage: str) -> str:
        """Sorted set: dead letters of a stage by the time they died."""
        return f"{self.prefix}deads:{stage}"

    def cursor(self, account: str) -> str:
        """String: a connector's cursor."""
        return f"{self.prefix}cursor:{account}"

    def config(self, version: int) -> str:
        """String: one numbered version of the shared configuration."""
        return f"{self.prefix}config:{version}"

    @property
    def config_current(self) -> str:
        """String: the number of the version in force."""
        return f"{self.prefix}config"

    @property
    def config_history(self) -> str:
        """List: one JSON row a change of the configuration."""
        return f"{self.prefix}configs"

    @property
    def held(self) -> str:
        """Hash: every claim and lease: name to token, beat, ids."""
        return f"{self.prefix}held"

    @property
    def guests(self) -> str:
        """Hash: account and guest to the envelope that has the guest's turn slot."""
        return f"{self.prefix}guests"

    @property
    def switches(self) -> str:
        """Hash: read_only, safe_mode, paused."""
        return f"{self.prefix}switches"

    @property
    def audit(self) -> str:
        """Stream, capped: what operators and blocks did, without text."""
        return f"{self.prefix}audit"

    @property
    def stats(self) -> str:
        """Hash: counters that scripts keep."""
        return f"{self.prefix}stats"

    @property
    def depth(self) -> str:
        """Hash: live messages by account, and all under `*`."""
        return f"{self.prefix}depth"

    @property
    def partitions(self) -> str:
        """String: the number of partitions, fixed at first start."""
        return f"{self.prefix}partitions"

    def harness(self, name: str) -> str:
        """Hash: a harness's breaker, and its wake-ups under way. Only scripts write it."""
        return f"{self.prefix}harness:{name}"

    @property
    def due(self) -> str:
        """Sorted set: ids that wait for a time."""
        return f"{self.prefix}at:due"

    @property
    def timers(self) -> str:
        """Sorted set: what must happen at a time, which is no place."""
        return f"{self.prefix}timers"

    @property
    def run_id(self) -> str:
        """String: run and replication id of the server that was last seen, and since when, to notice a restart."""
        return f"{self.prefix}run_id"

    @property
    def log_key(self) -> str:
        """String: the key of the hash under which a quoted id may stand in a log, the same in every process."""
        return f"{self.prefix}log_key"

    @property
    def ticket(self) -> str:
        """String: the last ticket. Only scripts use it."""
        return f"{self.prefix}ticket"

    def started(self, token: str) -> str:
        """String with an expiry: the turn that a start with this token got. Only scripts use it."""
        return f"{self.prefix}started:{token}"

    @property
    def woken(self) -> str:
        """Hash: when a partition was woken, ms, until somebody found it empty or gave it back. Only scripts use it."""
        return f"{self.prefix}woken"


class SessionKeys:
    """The keys of harness sessions."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def bound(self, lane: str) -> str:
        """The lane's binding."""
        return f"{self._prefix}session:bound:{lane}"

    def turns(self, session: str) -> str:
        """The texts of a session's turns."""
        return f"{self._prefix}session:{session}:turns"

    def marks(self, session: str) -> str:
        """The outlines of a session's turns."""
        return f"{self._prefix}session:{session}:marks"

    def meta(self, session: str) -> str:
        """Title, last end and the floor of what the model sees."""
        return f"{self._prefix}session:{session}:meta"
