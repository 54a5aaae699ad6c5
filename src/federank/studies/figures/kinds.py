"""The kinds of figures, each as one record: what draws it, what it says above and below, and what its panels are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from federank.studies.figures.convergence import draw_convergence
from federank.studies.figures.cost import draw_cost
from federank.studies.figures.coverage import draw_coverage
from federank.studies.figures.disparity import draw_disparity
from federank.studies.figures.lifetime import draw_lifetime
from federank.studies.figures.poisoning import draw_poisoning
from federank.studies.figures.privacy.leakage import draw_leakage, draw_privacy
from federank.studies.figures.privacy.price import draw_price, draw_whole_price
from federank.studies.figures.privacy.promise import draw_promise
from federank.studies.figures.shares import draw_item_updates, draw_popularity
from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.sweep import draw_sweep


class Kind(NamedTuple):
    """A kind of figure."""

    draw: Callable[[Shown], Drawn | None]
    """Draws one panel; None where the runs have nothing for it."""
    title: str
    caption: str
    """What to look at."""
    metric: str = ""
    """What it shows unless the study wishes for another; empty where the runs themselves tell."""
    sweep: str = "pi"
    """The setting whose values it draws."""
    panels: Literal["data", "groups", "handfuls", "all"] = "data"
    """A panel for each data set, for each method on one, for as many rows as can be told apart, or one for all."""
    shows_best: bool = False
    """Whether the best point of a sweep is drawn though the sweep has the same point already."""
    keeps_others: bool = False
    """Whether rows outside of the wished groups stay, as level lines."""


KINDS = {
    "f1-against-pi": Kind(
        draw_sweep,
        title="Accuracy against the share of likes that may leave",
        caption="Further right, devices send more of what their owners like. A curve that is flat after the first "
        "step says that little has to be shared; level lines are methods that were not swept.",
        metric="f1@10",
        keeps_others=True,
    ),
    "precision-against-coverage": Kind(
        draw_coverage,
        title="Accuracy against variety",
        caption="Up is more accurate, right is more variety. Follow the arrows from the smallest pi to the largest "
        "(the hollow point).",
        metric="precision@10",
        keeps_others=True,
    ),
    "cost-against-precision": Kind(
        draw_cost,
        title="Accuracy against what is sent",
        caption="Up is more accurate, right is cheaper. Points on the broad line are not beaten in both by any other.",
        metric="precision@10",
    ),
    "lifetime": Kind(
        draw_lifetime,
        title="Accuracy against what a device sends and receives in its life",
        caption="Up is more accurate, left is cheaper; each step along the bottom is ten times as much. Lines join the "
        "numbers of messages of one method, black marks are the best of methods with one such number, level lines see "
        "every history.",
        metric="precision@10",
    ),
    "item-updates": Kind(
        draw_item_updates,
        title="Which items are updated",
        caption="A level line means that items are updated alike; a steep one that the messages carry the popularity "
        "of items. With pi = 0 only comparisons are sent.",
        panels="groups",
    ),
    "popularity": Kind(
        draw_popularity,
        title="Recommended items against popular items",
        caption="Coloured lines above the dashed one, at the left: lists favour the top more than people do.",
        panels="groups",
    ),
    "bias-disparity": Kind(
        draw_disparity,
        title="Which categories the lists favour",
        caption="Bars to the right: more of this category than in people's histories. To the left: less.",
        metric="bias_disparity@10",
        panels="handfuls",
        shows_best=True,
    ),
    "convergence": Kind(
        draw_convergence,
        title="How learning goes on",
        caption="Where a curve is level, more epochs bring nothing; where it turns, the model has begun to learn by "
        "heart.",
        shows_best=True,
    ),
    "rho": Kind(
        draw_sweep,
        title="What made-up ratings cost",
        caption="Further right, more unrated items are sent to hide the rated ones. Lower is better; crosses are the "
        "paper's.",
        metric="rmse",
        sweep="rho",
        keeps_others=True,
    ),
    "privacy": Kind(
        draw_privacy,
        title="What messages give away",
        caption="Of everything that people have: how often a curious server, with its best attack, ranks it above "
        "something else. The gap between the two bars is what it has learnt beyond what is popular anyway.",
    ),
    "leakage": Kind(
        draw_leakage,
        title="Accuracy against leakage",
        caption="Right is more accurate, down is more private: by how much the best attack of a curious server ranks "
        "what people have above what popularity alone tells (the dotted line).",
        metric="precision@10",
    ),
    "poisoning": Kind(
        draw_poisoning,
        title="What liars reach",
        caption="Hollow: the federation as published. Filled: with the defences that a server has by default, or "
        "that the name says. Attacks that reach nobody are left out.",
    ),
    "price": Kind(
        draw_price,
        title="What privacy costs",
        caption="Right is more accurate, down is more private. In the pale band the best attacker has learnt next to "
        "nothing of what people held back; marks on the broad line are not beaten in both by any other, and "
        "larger ones have a larger pi.",
        metric="precision@10",
    ),
    "gain": Kind(
        draw_whole_price,
        title="Accuracy against what the best attacker gains",
        caption="Right is more accurate, down is more private. In the pale band the best attacker has learnt next to "
        "nothing about people beyond what is popular; marks on the broad line are not beaten in both by any other.",
        metric="precision@10",
    ),
    "promise": Kind(
        draw_promise,
        title="Accuracy against epsilon, for federations of different size",
        caption="Further left, messages tell less. The noise is the same for any number of people, so the larger a "
        "federation, the less it costs. Hollow marks do worse than what is popular.",
        metric="precision@10",
        sweep="epsilon",
        panels="all",
        keeps_others=True,
    ),
}
"""Every kind of figure that a study may wish for."""
