"""What can be chosen about Frugal, whose clients send few messages over their lifetime, with one of two losses.

The guarantee of messages, cohorts, availability and policies are the same for both. What belongs to one loss alone is
refused for the other. Frugal with the loss pairs is a federation of pair-wise learning (`as_pairs`): everyone whose
turn it is takes part, T is three times their own profile, and the server takes a step of Adam with the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from federank.checks import check_choice, setting
from federank.errors import SettingError
from federank.methods.fpl.settings import FPLSettings
from federank.methods.frugal.settings import ImplicitSettings

DEFAULT_RATE = 0.05
"""Of pairs; chosen, as the regularisation of items is, on the validation parts of MovieLens 100K and 1M."""

_OF_FRUGAL = (
    "alpha",
    "unobserved_weight",
    "regulariser",
    "shrinkage",
    "activity",
    "popularity",
    "damping",
    "server",
    "encoding",
    "sigma",
    "delta",
    "rounding",
    "most_shown",
    "min_support",
    "item_weights",
)
_OF_PAIRS = ("triples", "item_pull")


@dataclass(frozen=True, kw_only=True)
class FrugalSettings(ImplicitSettings):
    """Settings of Frugal."""

    learning_rate: float | None = setting(None, expert=True)
    """Learning rate of the server with `server` adam, and of clients with the loss pairs. Refused where the server
    solves.  [default: 0.1, for pairs 0.05]"""
    loss: Literal["squares", "pairs"] = setting("squares", expert=True)
    """Loss: implicit least squares, solved in closed form (squares), or FPL's pairwise loss (pairs), which needs about
    30 uploads; the server then uses Adam."""
    triples: str | int = setting("3x profile", expert=True)
    """Loss pairs: training triples per upload; a number, `mean`, `profile` or `3x profile`."""
    item_pull: float = 20.0
    """Loss pairs: weight decay of all item vectors at the server, per pass over all clients."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("loss", self.loss, ("squares", "pairs"))
        if self.loss == "pairs" and self.guarantees:
            raise SettingError(
                f"epsilon is {self.epsilon!r}, but noise belongs to the loss squares, and the loss is pairs; leave "
                "epsilon out, or choose the loss squares."
            )
        others, other = self._of_the_other_loss()
        usual = {field.name: field.default for field in fields(self)}
        for name in others:
            if getattr(self, name) != usual[name]:
                raise SettingError(
                    f"{name} is {getattr(self, name)!r}, but it belongs to the loss {other}, and the loss is "
                    f"{self.loss}; leave {name} out, or choose the loss {other}."
                )
        self.as_pairs(1)

    @property
    def counts_first(self) -> bool:
        """The loss pairs has no message of counts."""
        return self.loss == "squares" and super().counts_first

    @property
    def takes_steps(self) -> bool:
        """With the loss pairs the server always steps with Adam."""
        return self.loss == "pairs" or super().takes_steps

    def without_effect(self) -> dict[str, str]:
        """The settings that do nothing beside the others, each with the reason."""
        others, other = self._of_the_other_loss()
        return super().without_effect() | dict.fromkeys(others, f"it belongs to the loss {other}")

    def _of_the_other_loss(self) -> tuple[tuple[str, ...], str]:
        return (_OF_FRUGAL, "squares") if self.loss == "pairs" else (_OF_PAIRS, "pairs")

    def as_pairs(self, factors: int) -> FPLSettings:
        """The federation of pair-wise learning with these messages: everyone whose turn it is, Adam at the server."""
        return FPLSettings(
            factors=factors,
            learning_rate=DEFAULT_RATE if self.learning_rate is None else self.learning_rate,
            pi=self.pi,
            clients_per_round="all",
            triples=self.triples,
            epochs=(self.rounds or self.messages * self.cohorts) // self.cohorts,
            seed=self.seed,
            sharing=self.sharing,
            item_epsilon=self.item_epsilon,
            basis="shared",
            budget=self.budget,
            policies=self.policies,
            clip=self.clip,
            # What pulls item vectors towards zero is the server: clients that send the pull along would repeat it.
            positive_regulariser=0.0,
            negative_regulariser=0.0,
            initial_scale=self.initial_scale,
            dropout=self.dropout,
            server="adam",
            beta1=self.beta1,
            beta2=self.beta2,
            item_pull=self.item_pull / self.cohorts,
        )
