"""The stages' plans, put where the runner finds them."""

from typing import Final

from workers.admission import effects as admission
from workers.delivery import effects as delivery
from workers.dispatch import effects as dispatch
from workers.engagement import effects as engagement
from workers.judge import effects as judge
from workers.quotes import effects as quotes
from workers.runner import Plans

PLANS: Final = Plans(
    batches={"admission": admission.plan, "engagement": engagement.plan},
    singles={"judge": judge.plan, "quotes": quotes.plan, "delivery": delivery.plan},
    turns=dispatch.plan,
)
