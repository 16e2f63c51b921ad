"""Where the configuration comes from: `millstream.toml`, then secret files, then the environment; the later one wins.

- Environment: `MILLSTREAM_` and the path of the key with `__` between its parts, in any case; lists and tables as
  JSON. An account is named by its number or its id (`MILLSTREAM_ACCOUNTS__TG__CREDENTIALS__TOKEN`), a harness by its
  name; there upper and lower case are the same and `-` and `.` are written `_`.
- Secret files: `MILLSTREAM_SECRETS_DIR` names a folder whose files have such names; their stripped text is the value.
- Any secret of the form `file:/path` is the stripped text of that file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, NestedSecretsSettingsSource
from pydantic_settings.exceptions import SettingsError
from pydantic_settings.sources.utils import parse_env_vars

from shared.settings_errors import ConfigurationError, explained, leaves, nearest, written
from shared.settings_model import CROSS_CHECK, Settings

PREFIX = "MILLSTREAM_"
SECRETS_DIR = "MILLSTREAM_SECRETS_DIR"
CONFIG_FILE = "MILLSTREAM_CONFIG"
"""Path of the configuration file; read by the command line, no key of the configuration."""

PROCESS_KEYS = ("redis", "ingest.host", "ingest.port", "metrics", "log", "admin", "storage")
"""Settings that stay with the process; everything else is the shared configuration (design.md section 7)."""

_FILE = "file:"
# Kubernetes sets such variables for every Service of the namespace; one named `millstream` makes them look like ours.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)")


class _Keys(Settings, BaseSettings):
    """The same keys in the form in which pydantic-settings looks for them; never instantiated."""


class _Environment(EnvSettingsSource):
    """pydantic-settings' environment source over a mapping that is an argument."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._given = env
        super().__init__(_Keys, case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter="__")

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(self._given)


def from_mapping(data: Mapping[str, Any]) -> Settings:
    """Settings from nested plain data with the keys of `millstream.toml`.

    Raises ConfigurationError, which names every fault.
    """
    try:
        return Settings.model_validate(dict(data))
    except ValidationError as error:
        lines = explained(error, Settings, CROSS_CHECK)
    # Raised outside the handler: the pydantic error must not travel along as its context, it holds the input.
    raise ConfigurationError(lines)


def load(path: Path | None, env: Mapping[str, str]) -> Settings:
    """Settings from the file (None: none), the secret files and the environment.

    Raises ConfigurationError: the file cannot be read (with file and line of a syntax error), or any fault of a key.
    """
    data: dict[str, Any] = _toml(path) if path is not None else {}
    wrong: list[str] = []
    secrets = env.get(SECRETS_DIR)
    if secrets:
        data = _overlaid(data, _secret_files(secrets, wrong), wrong)
    ours = {name: value for name, value in env.items() if _is_ours(name, value)}
    data = _overlaid(data, _values(_Environment(ours), ours, wrong), wrong)
    if wrong:
        raise ConfigurationError(wrong)
    return _with_secret_references(from_mapping(data))


def shared_part(settings: Settings) -> dict[str, Any]:
    """What all processes share, as JSON-able data with the keys that were written (defaults stay defaults).

    Secrets are in clear, because this is what a version of the configuration in Redis holds and what another process
    must work with. Never print it: `settings.model_dump_json()` is the form to show.
    """
    exclude: dict[str, Any] = {}
    for key in PROCESS_KEYS:
        table, _, name = key.partition(".")
        if name:
            exclude.setdefault(table, set()).add(name)
        else:
            exclude[table] = True
    return cast("dict[str, Any]", _clear(settings.model_dump(exclude=exclude, exclude_unset=True)))


def with_shared_part(settings: Settings, shared: Mapping[str, Any]) -> Settings:
    """`settings` of this process with `shared` (see `shared_part`) in place of its own shared configuration.

    A process setting in `shared` is passed over. Raises ConfigurationError as `from_mapping` does.
    """
    own = cast("dict[str, Any]", _clear(settings.model_dump(exclude_unset=True)))
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in shared.items()}
    for key in PROCESS_KEYS:
        table, _, name = key.partition(".")
        if not name:
            merged.pop(table, None)
            if table in own:
                merged[table] = own[table]
        else:
            kept = own.get(table, {})
            if table not in merged and name not in kept:
                continue
            target = merged.setdefault(table, {})
            if not isinstance(target, dict):
                continue  # from_mapping says what is wrong with it
            cast("dict[str, Any]", target).pop(name, None)
            if name in kept:
                target[name] = kept[name]
    return from_mapping(merged)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        where = f"{path}:{found[1]}" if found else f"{path}: at the end"
        raise ConfigurationError([f"{where}: is not valid TOML: {error}"]) from None
    except UnicodeDecodeError:
        raise ConfigurationError([f"{path}: is not UTF-8: save it as UTF-8"]) from None
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None
    except (ValueError, RecursionError):  # what TOML allows and Python does not read
        raise ConfigurationError([f"{path}: a number is too long, or tables are nested too deep"]) from None


def _is_ours(name: str, value: str) -> bool:
    upper = name.upper()
    if not upper.startswith(PREFIX) or upper in (SECRETS_DIR, CONFIG_FILE):
        return False
    return not (_SERVICE_LINK.search(upper) or (upper.endswith("_PORT") and "://" in value))


def _secret_files(folder: str, wrong: list[str]) -> dict[str, Any]:
    try:
        source = NestedSecretsSettingsSource(
            cast("Any", _Keys),
            secrets_dir=folder,
            secrets_dir_missing="error",
            secrets_prefix=PREFIX,
            secrets_nested_delimiter="__",
        )
    except (SettingsError, OSError, UnicodeDecodeError) as error:
        wrong.append(f"{SECRETS_DIR}: {error}")
        return {}
    return _values(source, {name: "" for name in source.env_vars if name.upper().startswith(PREFIX)}, wrong)


def _values(source: EnvSettingsSource, names: Mapping[str, str], wrong: list[str]) -> dict[str, Any]:
    tables = Settings.model_fields
    known = [PREFIX + path.replace("[]", "__0").replace(".", "__").upper() for path in leaves(Settings)]
    for name in names:
        first = name[len(PREFIX) :].split("__")[0].lower()
        if first not in tables:
            wrong.append(f"{name}: unknown key in the environment{nearest(name, known)}")
    values: dict[str, Any] = {}
    for field_name, field in tables.items():
        try:
            raw, _, is_complex = source.get_field_value(field, field_name)
            value = source.prepare_field_value(field_name, field, raw, is_complex)
        except (ValueError, RecursionError):
            variable = PREFIX + field_name.upper()
            wrong.append(f"{variable}…: is not valid JSON: lists and tables are written as JSON")
            continue
        if value is not None:
            values[field_name] = value
    return values


def _overlaid(base: dict[str, Any], over: Mapping[str, Any], wrong: list[str], path: str = "") -> dict[str, Any]:
    merged = dict(base)
    names = {_folded(name): name for name in base} if path == "harnesses" else {}
    for written_key, value in over.items():
        key = names.get(_folded(written_key), written_key)
        below = merged.get(key)
        here = f"{path}.{key}" if path else key
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _overlaid(dict(below), value, wrong, here)
        elif isinstance(value, Mapping) and key in ("accounts", "routes"):
            if below is None or isinstance(below, list):  # what is neither is refused later
                merged[key] = _patched(cast("list[Any]", below or []), value, wrong, here)
        else:
            merged[key] = value
    return merged


def _patched(items: list[Any], patches: Mapping[str, Any], wrong: list[str], path: str) -> list[Any]:
    """`items` with single ones overlaid that are named by number or, for accounts, by id."""
    patched = list(items)
    ids = [_folded(str(item.get("id", ""))) if isinstance(item, Mapping) else "" for item in items]
    for selector, patch in patches.items():
        folded = _folded(selector)
        is_number = selector.isdecimal() and len(selector) < 10  # Python reads no number of thousands of digits
        number = ids.index(folded) if folded in ids else int(selector) if is_number else len(items)
        if number >= len(items):
            wrong.append(f"`{path}`: nothing in it is named {selector}: write its number from 0 or its id")
        elif isinstance(patch, Mapping) and isinstance(patched[number], Mapping):
            values = {key: _decoded(value) for key, value in patch.items()}
            patched[number] = _overlaid(dict(patched[number]), values, wrong, f"{path}[{number}]")
    return patched


def _folded(name: str) -> str:
    return re.sub(r"[.-]", "_", name.lower())


def _decoded(value: object) -> object:
    """A list or a table that was written as JSON; anything else as it is (pydantic reads numbers and switches)."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _clear(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {key: _clear(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_clear(item) for item in cast("list[object]", value)]
    return value


def _secret_places(value: object, location: tuple[int | str, ...] = ()) -> Iterator[tuple[tuple[int | str, ...], str]]:
    if isinstance(value, SecretStr):
        yield location, value.get_secret_value()
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _secret_places(item, (*location, key))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(cast("list[object]", value)):
            yield from _secret_places(item, (*location, number))


def _with_secret_references(settings: Settings) -> Settings:
    dumped = settings.model_dump(exclude_unset=True)
    places = [(location, value) for location, value in _secret_places(dumped) if value.startswith(_FILE)]
    if not places:
        return settings
    clear = cast("dict[str, Any]", _clear(dumped))
    wrong: list[str] = []
    for location, value in places:
        file = Path(value.removeprefix(_FILE))
        try:
            secret = file.read_text(encoding="utf-8").strip()
        except OSError as error:
            wrong.append(f"`{written(location)}`: cannot read {file}: {error.strerror}")
            continue
        except UnicodeDecodeError:
            wrong.append(f"`{written(location)}`: cannot read {file}: it is not UTF-8")
            continue
        except ValueError:
            wrong.append(f"`{written(location)}`: what follows {_FILE} is no path")
            continue
        target: Any = clear
        for part in location[:-1]:
            target = target[part]
        target[location[-1]] = secret
    if wrong:
        raise ConfigurationError(wrong)
    return from_mapping(clear)
