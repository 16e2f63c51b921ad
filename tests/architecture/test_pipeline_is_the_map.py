"""`workers/pipeline.py` is the map: folders, queues, services and the README's diagrams agree with it."""

import re
from pathlib import Path

import yaml
from source_tree import ROOT, STAGES

from shared import outcome
from workers import pipeline

README = (ROOT / "README.md").read_text(encoding="utf-8")


def diagram(kind: str) -> str:
    """The README's Mermaid diagram of this kind."""
    found = re.search(rf"```mermaid\n{kind}[^\n]*\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no {kind}"
    return found[1]


def test_the_map_names_the_stages_in_order() -> None:
    assert tuple(stage.name for stage in pipeline.STAGES) == STAGES == outcome.STAGES


def test_every_stage_leads_to_a_stage_and_the_last_one_out() -> None:
    names = set(STAGES)
    assert [stage.name for stage in pipeline.STAGES if stage.next is None] == ["delivery"]
    assert all(stage.next in names for stage in pipeline.STAGES if stage.next is not None)


def test_every_stage_has_its_own_queue() -> None:
    assert len({stage.queue for stage in pipeline.STAGES}) == len(STAGES)


def test_what_reads_and_writes_its_own_state_runs_alone() -> None:
    """One writer a partition: admission and engagement are solo, what calls out has threads (design.md, section 3)."""
    assert {stage.name for stage in pipeline.STAGES if stage.pool == "solo"} == {"admission", "engagement"}


def test_the_diagram_of_the_readme_has_every_step_of_the_map() -> None:
    arrows = {(a, b) for a, b in re.findall(r"(\w+) -->(?:\|[^|]*\|)? (\w+)", diagram("flowchart"))}
    for stage in pipeline.STAGES:
        if stage.next is not None:
            assert (stage.name, stage.next) in arrows
    assert ("ingest", STAGES[0]) in arrows


def test_the_turn_diagram_has_the_states_of_a_turn() -> None:
    states = set(re.findall(r"^\s+(\w+) -->|--> (\w+)", diagram("stateDiagram-v2"), re.MULTILINE))
    assert {a or b for a, b in states} == {
        "ready", "running", "answered", "sending", "sent", "waiting", "cancelled", "dead", "unknown",
    }  # fmt: skip


def test_every_stage_is_a_service() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert {service["command"][1] for service in services.values() if service["command"][0] == "worker"} == set(STAGES)


def test_every_document_that_a_page_links_to_is_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    missing = [
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / Path(link)).exists()
    ]
    assert missing == []
