"""The image: two stages, no root, no shell around the process, no secret in a layer."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "deploy/docker/Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """The instructions in order, continued lines joined, comments left out."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def last_stage() -> list[tuple[str, str]]:
    all_of_them = instructions()
    start = max(number for number, (word, _) in enumerate(all_of_them) if word == "FROM")
    return all_of_them[start:]


def arguments(word: str) -> list[str]:
    return [rest for name, rest in last_stage() if name == word]


def test_the_image_is_built_in_two_stages_from_a_pinned_python() -> None:
    bases = [rest for word, rest in instructions() if word == "FROM"]
    assert len(bases) == 2
    for base in bases:
        assert re.match(r"python:3\.1[123](\.\d+)?-slim-\w+( AS build)?$", base)


def test_what_is_installed_is_locked() -> None:
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert installs
    assert all("-c constraints.txt" in rest for rest in installs)


def test_the_last_stage_has_no_build_tools_and_takes_only_the_result() -> None:
    assert not [rest for word, rest in last_stage() if word == "RUN" and ("pip" in rest or "apt" in rest)]
    assert arguments("COPY") == ["--from=build /opt/millstream /opt/millstream"]


def test_the_process_runs_as_uid_10001() -> None:
    assert arguments("USER") == ["10001:10001"]
    order = [word for word, _ in last_stage()]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "RUN" not in order[order.index("USER") :]


def test_the_process_is_started_without_a_shell() -> None:
    assert arguments("ENTRYPOINT") == ['["millstream"]']
    assert arguments("CMD") == ['["ingest"]']


def test_the_image_says_whether_it_is_healthy() -> None:
    (check,) = arguments("HEALTHCHECK")
    assert 'CMD ["python"' in check
    assert "/livez" in check


def test_no_layer_holds_a_secret() -> None:
    assert not [word for word, _ in instructions() if word == "ARG"]
    assert not [rest for word, rest in instructions() if word == "COPY" and (" . " in f" {rest} " or "toml ." in rest)]
    assert not re.search(r"(?i)token|password|secret|api_key", TEXT)


def test_the_image_is_made_of_named_files_only() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert copied == set(kept)
    for name in kept:
        assert (ROOT / name).exists()
