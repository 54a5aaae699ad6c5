"""Settings of FPL and FedeRank, and the published configurations.

`recipe_for` resolves `FPLSettings` for a population: clients per round, pairs per client, rounds per epoch. The four
configurations of the papers are `PRESETS` (FPL, 2020, section 4; X+ is the number of training interactions, U the
number of users):

    sFPL     one client per round, one pair           X+ rounds per epoch
    sFPL+    one client per round, int(X+/U) pairs    X+ rounds
    pFPL     all clients, one pair                    int(X+/U) rounds
    pFPL+    all clients, int(X+/U) pairs             int(X+/U) rounds

In each, an epoch has X+ interactions between a client and the server (rounded down to full rounds).

`federank` is FedeRank (2021) with Eq. 1-5 as printed: all pairs of a round use the same user vector, which changes
once by their sum, and a positive item's row is masked once per round. The authors' code differs in both points, and
the papers' tables come from it. With one pair (T = 1) the two readings differ in random numbers only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import inlined
from federank.checks import Settings, check_int, check_positive, check_range, setting
from federank.errors import SettingError
from federank.federation.rng import ONLINE, SELECT, SERVER, below, first_word, happens, words
from federank.methods.fpl.method import FPL, FPLRules
from federank.privacy.policy import Policy, SharingSettings, default_basis
from federank.privacy.population import AS_HISTORIES_ARE, SharedProfiles

PRESETS: dict[str, dict[str, Any]] = {
    "sfpl": {"clients_per_round": 1, "triples": 1},
    "sfpl+": {"clients_per_round": 1, "triples": "mean"},
    "pfpl": {"clients_per_round": "all", "triples": 1},
    "pfpl+": {"clients_per_round": "all", "triples": "mean"},
    "federank": {"clients_per_round": 1, "order": "as-printed", "mask": "as-printed"},
    # Our own: few, large uploads. The server decays item vectors; clients that did so too would repeat it.
    "few": {
        "clients_per_round": "all",
        "rounds_per_epoch": 1,
        "epochs": 30,
        "triples": "3x profile",
        "sharing": "fixed-subset",
        "server": "adam",
        "weight_decay": 20.0,
        "positive_regulariser": 0.0,
        "negative_regulariser": 0.0,
    },
}


@dataclass(frozen=True, kw_only=True)
class FPLSettings(SharingSettings, FPLRules, Settings):
    """Settings of federated pair-wise learning; the defaults are the authors' values."""

    pi: float | str | Sequence[float] = 1.0
    """Probability that a positive item's gradient is sent (0: never, 1: always); or a CSV file `user,pi`.
    From Python also one number per user, in the sorted order of their ids."""
    clients_per_round: int | float | Literal["all"] = 1
    """Clients per round: a number, a share below 1 (0.1), or `all`."""
    triples: int | str = 1
    """Training triples of a client in a round (T): a number, `mean` = int(X+/U), `profile` = the size of its history,
    or `3x profile`."""
    epochs: int = setting(20, 1)
    """Passes over the data: an epoch has as many client-server interactions as there are training interactions."""
    rounds_per_epoch: int | None = setting(None, 1, expert=True)
    """Rounds of an epoch. [default: as many as make one client-server interaction per training interaction]"""
    sharing: Literal["all", "fixed-subset", "randomized-response"] = setting("all", extensible=True)
    """Which positives are sent: each with probability pi, drawn in every round, as published (all); a share pi of them,
    drawn once per lifetime (fixed-subset); or that share with decoys (randomized-response)."""
    basis: Literal["default", "history", "shared"] = setting("default", paper=True)
    """What updates are computed from: the full history, as published, or only the shared items (the others are used for
    local recommendations). [default: shared; history if sharing is all]"""
    clip: float | None = setting(None, positive=True)
    """Norm bound: an update with a larger L2 norm is scaled down to it."""
    noise: float = setting(0.0, 0)
    """Standard deviation of Gaussian noise on updates, as a multiple of `clip`; the run reports its epsilon."""
    noise_on: Literal["all-rows", "sums"] = setting("all-rows", paper=True)
    """Noise on every row of the catalogue; or each client's share of the noise of a sum, for a server that sees only
    sums."""
    delta: float = 1e-6
    """With noise: the probability that the guarantee fails."""
    user_draw: Literal["uniform", "activity"] = setting("uniform", paper=True)
    """With one client per round: draw users uniformly, or by the size of their history, so that every training
    interaction is equally likely (Rendle et al., 2009). A simulation knows histories; a real server does not."""
    weights: Literal["sum", "mean", "profile"] = setting("sum", paper=True)
    """Weight of an update in the sum of a round (w_u of FPL, 2020, Eq. 1): 1 (sum); 1/n for n updates (mean); or the
    client's share of all interactions (profile), which a simulation knows and a real server does not."""
    online: float = setting(1.0, 0, 1)
    """Probability that a client is online when a round begins."""
    trace: str | None = None
    """CSV file `round,user` with the online clients of each round, repeated from its end; instead of `online`."""
    dropout: float = setting(0.0, 0, 1)
    """Probability that a client drops out before its update arrives."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pi is None or isinstance(self.pi, float | int):
            check_range("pi", self.pi, 0, 1)
        if self.weights == "profile" and self.noise:
            raise SettingError(
                f"weights is profile and noise is {self.noise:g}, so noise would count more for long histories; "
                "take the weights sum or mean, or no noise."
            )
        if self.user_draw == "activity" and str(self.clients_per_round) != "1":
            raise SettingError(
                f"user_draw is activity, which is a draw of one client a round, and clients_per_round is "
                f"{self.clients_per_round}; set it to 1, or draw users uniformly."
            )
        if self.noise and self.clip is None:
            raise SettingError(f"noise is {self.noise:g} times the clip, and there is no clip; choose one, such as 1.")
        if not 0 < self.delta < 1:
            raise SettingError(f"delta is {self.delta!r}; a probability above 0 and below 1 is needed.")
        self.policy(float(self.pi) if isinstance(self.pi, float | int) else 0.5)
        if not isinstance(self.triples, str):
            check_int("triples", self.triples, 1)
        elif self.triples != "mean" and not _profile_multiple(self.triples):
            raise SettingError(
                f"triples is {self.triples!r}; an integer, `mean`, `profile` or such as `3x profile` is needed."
            )
        if self.clients_per_round != "all":
            check_positive("clients_per_round", self.clients_per_round)
        self.check_server()

    def without_effect(self) -> dict[str, str]:
        """The settings without effect, each with the reason."""
        idle = dict.fromkeys(("beta1", "beta2"), "the server's step is plain") if self.server == "plain" else {}
        return idle if self.noise else idle | dict.fromkeys(("delta", "noise_on"), "noise is 0")

    def policy(self, pi: float) -> Policy:
        """The policy of users who choose nothing themselves."""
        return Policy(
            sharing=self.sharing,
            pi=pi,
            item_epsilon=self.item_epsilon,
            basis=default_basis(self.sharing) if self.basis == "default" else self.basis,
            budget=self.budget,
        )

    def method(self, n_items: int) -> FPL:
        """The method of these settings; the recipe has each client's number of pairs."""
        rules = {name: getattr(self, name) for name in FPLRules.__dataclass_fields__}
        return FPL(n_items=n_items, triples=1, **rules)


@dataclass(frozen=True, kw_only=True)
class FedeRankSettings(FPLSettings):
    """Settings of FedeRank: those of FPL, with the paper's equations as printed."""

    order: Literal["as-in-code", "as-printed"] = setting("as-printed", paper=True)
    mask: Literal["as-in-code", "as-printed"] = setting("as-printed", paper=True)


class Recipe(NamedTuple):
    """Settings resolved for a population: numbers and arrays that every engine can use."""

    seed: int
    factors: int
    learning_rate: np.float32
    user_regulariser: np.float32
    positive_regulariser: np.float32
    negative_regulariser: np.float32
    summed: bool  # the client's vector changes once per round
    mask_per_row: bool
    # Users who can train: all but those with no items or the full catalogue. With user_draw activity, one entry per
    # interaction.
    participants: IntVector
    clients_per_round: int
    triples: IntVector  # per user
    pi: RealVector  # per user: probability of sending; 1 if that was decided for its lifetime
    shared_profile: SharedProfiles  # shared profiles, if they are not the histories
    clip: float  # norm bound of an update; 0: none
    deviation: float  # of the noise on every number of an update; 0: none
    rounds_per_epoch: int
    online: float
    trace: NDArray[np.bool_]  # rounds x users; no rows: none
    dropout: float
    weights: RealVector  # per user: weight of an update in its round; empty: all 1
    only_adds: bool  # the server adds a sum, times the learning rate: other rows stay unchanged

    @property
    def one_by_one(self) -> bool:
        """Whether each client's update must be processed separately before it is summed."""
        return self.clip > 0 or len(self.weights) > 0

    @property
    def pairs_per_round(self) -> float:
        """Mean number of pairs of a round."""
        return self.clients_per_round * float(np.mean(self.triples[self.participants]))


def recipe_for(
    settings: FPLSettings,
    sizes: LongVector,
    n_items: int,
    pi: RealVector,
    trace: NDArray[np.bool_] | None = None,
    shared_profile: SharedProfiles = AS_HISTORIES_ARE,
    own: IntVector | None = None,
) -> Recipe:
    """Resolve the settings for users with histories of these sizes over a catalogue of `n_items`.

    `own` is the number of pairs that users have chosen for their clients, 0 for none. `shared_profile` holds the
    shared profiles if policies restrict them; `pi` is then their probability of sending.
    """
    n_users, rate = len(sizes), settings.learning_rate
    own_sizes = np.diff(shared_profile.starts) if len(shared_profile.starts) else sizes
    participants = np.flatnonzero((own_sizes > 0) & (own_sizes < n_items)).astype(np.int32)
    if not len(participants):
        raise SettingError(
            "No one can take part: everyone has paused, has nothing to take part with or has the full catalogue, so "
            "no pair of an item they like and one they do not can be drawn. More items, more history or policies that "
            "share more are needed."
        )
    if len(pi) != n_users or not np.all((pi >= 0) & (pi <= 1)):
        raise SettingError(f"pi needs a value from 0 to 1 for each of the {n_users:,} users; found {len(pi):,} values.")
    clients = _clients(settings.clients_per_round, len(participants))
    if settings.user_draw == "activity":
        # One entry per interaction: a uniform draw selects users in proportion to their activity.
        participants = np.repeat(participants, own_sizes[participants])
    weights = np.zeros(0)
    if settings.weights != "sum" and clients > 1:  # a single update has share 1 by any measure
        weights = np.ones(n_users) if settings.weights == "mean" else own_sizes.astype(np.float64)
    # In sums, each client adds its share of the noise.
    share = math.sqrt(clients) if settings.noise_on == "sums" else 1.0
    return Recipe(
        settings.seed,
        settings.factors,
        np.float32(rate),
        np.float32(rate * settings.user_regulariser),
        np.float32(rate * settings.positive_regulariser),
        np.float32(rate * settings.negative_regulariser),
        summed=settings.order == "as-printed",
        mask_per_row=settings.mask == "as-printed",
        participants=participants,
        clients_per_round=clients,
        triples=_triples(settings, sizes, own_sizes, own),
        pi=np.ascontiguousarray(pi, dtype=np.float64),
        shared_profile=shared_profile,
        clip=float(settings.clip or 0.0),
        deviation=float(settings.noise) * float(settings.clip or 0.0) / share,
        rounds_per_epoch=settings.rounds_per_epoch or max(1, int(sizes.sum()) // clients),
        online=settings.online,
        trace=np.zeros((0, n_users), dtype=np.bool_) if trace is None else trace,
        dropout=settings.dropout,
        weights=weights,
        only_adds=settings.server == "plain" and settings.weight_decay == 0,
    )


def _clients(number: int | float | Literal["all"], population: int) -> int:
    if number == "all":
        return population
    if number < 1:
        return max(1, round(number * population))
    if number != int(number):
        raise SettingError(f"clients_per_round is {number}; an integer, a share below 1, or `all` is needed.")
    if number > population:
        raise SettingError(
            f"clients_per_round is {int(number):,}, but only {population:,} users can take part; ask for fewer, "
            "or for `all`."
        )
    return int(number)


def _triples(settings: FPLSettings, sizes: LongVector, own_sizes: LongVector, own: IntVector | None) -> IntVector:
    """Each client's number of pairs: as in the settings, or as its owner has chosen, up to the limit."""
    if multiple := _profile_multiple(settings.triples):
        usual = own_sizes * multiple
    else:
        mean = max(1, int(sizes.sum()) // len(sizes))
        usual = np.full(len(sizes), mean if settings.triples == "mean" else int(settings.triples))
    if own is not None:
        most = usual if settings.most_triples is None else settings.most_triples
        usual = np.where(own > 0, np.minimum(own, most), usual)
    return usual.astype(np.int32)


def _profile_multiple(triples: int | str) -> int:
    """1 for `profile`, 3 for `3x profile`; 0 for anything else."""
    match = re.fullmatch(r"(?:([0-9]{1,4})x )?profile", str(triples))
    return int(match[1] or 1) if match else 0


# The participants of a round in a simulation.


PATIENCE = 16
"""After this many draws per user, a client that was not online is offline."""


@inlined
def is_online(seed: Any, user: Any, round_number: Any, online: Any, trace: Any) -> Any:
    """Whether a client is online when a round begins."""
    if len(trace) > 0:
        return trace[np.int64(round_number) % len(trace), user]
    if online >= 1.0:
        return True
    return happens(first_word(seed, user, ONLINE, round_number, 0), online)


@inlined
def choose_clients(recipe: Any, round_number: Any, wanted: Any, marks: Any, chosen: Any) -> Any:
    """Fill `chosen` with the round's clients, `wanted` of them if that many are online; returns their number.

    `marks` (one integer per user, kept between rounds) holds who was drawn in this round already.
    """
    seed, participants, online, trace = recipe.seed, recipe.participants, recipe.online, recipe.trace
    population = len(participants)
    stamp = np.int64(round_number) + 1
    if 2 * wanted > population:
        # Most are wanted: draw those who are left out instead.
        _draw_marked(seed, round_number, participants, population - wanted, marks, stamp)
        count = 0
        for position in range(population):
            user = participants[position]
            if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
                chosen[count] = user
                count += 1
        return count
    count = 0
    for draw in range(PATIENCE * population):
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, population)]
        if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
            marks[user] = stamp
            chosen[count] = user
            count += 1
            if count == wanted:
                break
    return count


@inlined
def _draw_marked(seed: Any, round_number: Any, participants: Any, wanted: Any, marks: Any, stamp: Any) -> None:
    """Mark this many different users, drawn uniformly."""
    count = 0
    draw = 0
    while count < wanted:
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, len(participants))]
        if marks[user] != stamp:
            marks[user] = stamp
            count += 1
        draw += 1


@compiled
def clients_of_round(recipe: Recipe, round_number: int, n_users: int) -> IntVector:
    """The clients of a round, in the order of the draws."""
    marks, chosen = np.zeros(n_users, np.int64), np.empty(n_users, np.int32)
    count = choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)
    return chosen[:count]


@compiled
def participations(recipe: Recipe, n_users: int, rounds: int) -> LongVector:
    """The number of rounds that each user took part in."""
    counts, marks, chosen = np.zeros(n_users, np.int64), np.zeros(n_users, np.int64), np.empty(n_users, np.int32)
    for r in range(rounds):
        for position in range(choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)):
            counts[chosen[position]] += 1
    return counts
