"""Messages a second, saturated: ours and each peer's chain in turn (A B A B), medians."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import httpx

from workers.ops.bench import programs, truth
from workers.ops.bench.chains import CHAINS, Chain
from workers.ops.bench.cpu import cpu_s, since, total
from workers.ops.bench.events import ACCOUNT, event
from workers.ops.bench.figures import Rate, Row, Runs, Target, Trouble, in_turn, written
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import BATCH, Ours
from workers.ops.bench.venvs import NotMade

LOG_ROWS: Final = 150
"""Silenced messages of one run in a conversation: its log holds 200, and each must be found again."""
UNIT: Final = "messages/s"
ANSWERED: Final = "answered, from webhooks"


def rates(bench: Bench) -> Iterator[Row]:
    """Answered and silenced against every chain; what has a target is compared with the first of them."""
    sizes = bench.sizes
    with ExitStack() as ending:
        ours = ending.enter_context(Ours(bench.folder))
        kinds: dict[str, Callable[[], Rate]] = {
            ANSWERED: lambda: answered(ours, sizes.answered, sizes.conversations),
            "silenced, from webhooks": lambda: silenced(ours, sizes.silenced),
            f"silenced, from a connector or a file, {BATCH} together": lambda: fed(ours, sizes.fed, BATCH),
            "silenced, from a file, one by one": lambda: fed(ours, sizes.singles, 1),
        }
        targets = dict(zip(kinds, (Target("at least", 2), Target("at least", 6), Target("at least", 20)), strict=False))
        for peer in CHAINS:
            first = peer == CHAINS[0]
            mine = {kind: Runs() for kind in (kinds if first else [ANSWERED])}
            theirs = _alternate(bench, peer, kinds, mine, sizes.rounds if first else sizes.other_rounds)
            for kind, runs in mine.items():
                yield _row(kind, runs, peer, theirs, targets.get(kind) if first else None)
    with programs.ours("platform", 2) as platform:
        callback = f"http://127.0.0.1:{platform.answer()['port']}/out"
        with Ours(bench.folder, callback=callback) as ours:
            bench.tell("answered, each sent by HTTP")
            yield _sent(ours, callback, sizes.answered, sizes.conversations)


def _alternate(
    bench: Bench, peer: str, kinds: dict[str, Callable[[], Rate]], mine: dict[str, Runs], rounds: int
) -> Runs | str:
    """Runs of ours and of a peer in turn. The peer's, or why there are none; ours beside the first are run all the
    same."""
    sizes, theirs, why = bench.sizes, Runs(), ""
    first = peer == CHAINS[0]
    with ExitStack() as ending:
        bench.tell(f"{peer}: its environment (a minute, the first time) and its workers")
        try:
            chain = ending.enter_context(Chain(peer, bench.folder))
        except NotMade as error:
            chain, why = None, str(error)
        for number in range(rounds if chain or first else 0):
            for kind, runs in mine.items():
                bench.tell(f"round {number + 1} beside {peer}: {kind}")
                runs.add(kinds[kind]())
            if chain:
                bench.tell(f"round {number + 1}: {peer}")
                theirs.add(chain.rate(sizes.answered, sizes.conversations))
    return why or theirs


def _row(kind: str, mine: Runs, peer: str, theirs: Runs | str, target: Target | None) -> Row:
    made = partial(
        Row, "rates", kind, UNIT, mine.rate, peer, target=target, trouble=mine.trouble if mine.runs else None
    )
    if isinstance(theirs, str):
        return made(unmeasured=theirs)
    note = f"medians of {len(mine.runs)} runs each, in turn"
    if mine.cpu_ms is not None and theirs.cpu_ms is not None:
        note += f"; CPU ms a message: {written(mine.cpu_ms)} and {written(theirs.cpu_ms)}"
    ratio = in_turn(mine.rates, theirs.rates)
    return made(theirs=theirs.rate, paired=ratio, peer_trouble=theirs.trouble, note=note)


def answered(ours: Ours, messages: int, conversations: int) -> Rate:
    """Webhooks of people in private chats, until the last answer has been delivered."""
    run = ours.next_run()
    told = ours.load("answered", run, messages, conversations)
    trouble, _ = truth.answered(ours, run, told["accepted"])
    return of_load(told, trouble)


def silenced(ours: Ours, messages: int) -> Rate:
    """Webhooks of groups that talk among themselves."""
    run = ours.next_run()
    told = ours.load("silenced", run, messages, -(-messages // LOG_ROWS))
    return of_load(told, truth.silenced(ours, run, told["accepted"]))


def of_load(told: dict[str, Any], trouble: Trouble) -> Rate:
    """The rate that a load's answer comes to."""
    computed_s, accepted = told["cpu_s"], told["accepted"]
    cpu_ms = None if computed_s is None or not accepted else computed_s * 1000 / accepted
    return Rate(accepted / told["until_end"], trouble, cpu_ms)


def fed(ours: Ours, messages: int, together: int) -> Rate:
    """The same from a file of saved events, `together` of one group in each: the path of connectors and replays."""
    run, conversations = ours.next_run(), -(-messages // LOG_ROWS)
    file = ours.folder / "events.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for line, first in enumerate(range(0, messages, together)):
            numbers = range(first, min(first + together, messages))
            events = [event("silenced", run, number, line % conversations) for number in numbers]
            out.write(json.dumps({"account": ACCOUNT, "event": events}) + "\n")
    with programs.ours("feed", ours.log.fileno(), str(ours.config), environment=ours.environment) as feed:
        feed.answer()
        pids = [feed.pid]
        before_s = total(ours.cpu_s(), cpu_s(pids))
        told = feed.ask({"file": str(file)})
        ours.rest()
        told |= {"accepted": told["events"], "until_end": time.monotonic() - told["began"]}
        told["cpu_s"] = since(before_s, total(ours.cpu_s(), cpu_s(pids)))
    return of_load(told, truth.silenced(ours, run, told["events"]))


def _sent(ours: Ours, callback: str, messages: int, conversations: int) -> Row:
    run = ours.next_run()
    told = ours.load("answered", run, messages, conversations)
    seen = httpx.get(callback.replace("/out", "/seen"), trust_env=False).json()
    trouble = truth.at_platform(seen, run, told["accepted"])
    rate = told["accepted"] / told["until_end"]
    note = "trouble as the platform saw it"
    return Row("rates", f"{ANSWERED}, each sent by HTTP to an emulator", UNIT, rate, trouble=trouble, note=note)
