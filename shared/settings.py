"""The configuration: import everything about it from here.

`load` and `from_mapping` make a `Settings`; `problems` says what `millstream check` prints. The keys are in
`settings_tables`, `settings_accounts` and `settings_model`, loading in `settings_source`.
"""

from shared.settings_accounts import (
    TRANSPORTS,
    AccountSettings,
    Channel,
    ChatType,
    EngagementSettings,
    Role,
    RouteSettings,
    Transport,
)
from shared.settings_check import Problem, problems
from shared.settings_errors import ConfigurationError, leaves
from shared.settings_model import Settings
from shared.settings_scenario import scenario_account_defaults, scenario_defaults, scenario_mapping
from shared.settings_source import (
    CONFIG_FILE,
    PROCESS_KEYS,
    SECRETS_DIR,
    from_mapping,
    load,
    shared_part,
    with_shared_part,
)
from shared.settings_tables import (
    AdminSettings,
    BreakerSettings,
    DeadLetterSettings,
    HarnessSettings,
    IndexSettings,
    IngestSettings,
    JudgeSettings,
    LogSettings,
    LookbackSettings,
    MediaSettings,
    MetricsSettings,
    NoticesSettings,
    PipelineSettings,
    PresenceSettings,
    RedisSettings,
    RetrySettings,
    StorageSettings,
    SttSettings,
)

__all__ = [
    "CONFIG_FILE",
    "PROCESS_KEYS",
    "SECRETS_DIR",
    "TRANSPORTS",
    "AccountSettings",
    "AdminSettings",
    "BreakerSettings",
    "Channel",
    "ChatType",
    "ConfigurationError",
    "DeadLetterSettings",
    "EngagementSettings",
    "HarnessSettings",
    "IndexSettings",
    "IngestSettings",
    "JudgeSettings",
    "LogSettings",
    "LookbackSettings",
    "MediaSettings",
    "MetricsSettings",
    "NoticesSettings",
    "PipelineSettings",
    "PresenceSettings",
    "Problem",
    "RedisSettings",
    "RetrySettings",
    "Role",
    "RouteSettings",
    "Settings",
    "StorageSettings",
    "SttSettings",
    "Transport",
    "from_mapping",
    "leaves",
    "load",
    "problems",
    "scenario_account_defaults",
    "scenario_defaults",
    "scenario_mapping",
    "shared_part",
    "with_shared_part",
]
