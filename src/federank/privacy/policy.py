"""Policy: what its owner allows a client to send, and the shared profile that follows from it.

A policy belongs to one user. It, the user's history and the client's own draws give the *shared profile*: the items
that the client draws its positives from, and which of them may ever be sent. Lifetime decisions are draws keyed by the
item, so they need no memory.

    all                   A positive is sent with probability pi, drawn again every time. This only delays
                          disclosure: over enough rounds nearly every item has been sent once.
    fixed-subset          Of n items, ceil(pi n) may ever be sent: those with the smallest words. The choice holds for
                          the client's lifetime.
    randomized-response   Every item of the catalogue is decided once per lifetime. A liked item is sent with
                          probability pi, any other with a smaller probability q, so that no sent item is surely liked
                          (Warner, 1965; memoized as in RAPPOR, Erlingsson et al., 2014).
                          q follows from pi and item_epsilon = ln( pi (1 - q) / (q (1 - pi)) ).

Updates are computed from the policy's *basis*. With `history`, as published, the client's vector follows the full
history, and negatives avoid it. With `shared` the client uses its shared profile instead of its history; everything it
sends is then a function of that profile and of random draws. docs/sharing.md has the proof.

With ratings, a client sends the rated items that the policy allows, hidden among virtual ratings of other items:
`filling`, `rho` and `sampling` say which and how many. Virtual ratings take the place of decoys.

A sharing policy of your own is a function, registered by name (`register_policy`, or an entry point of the group
`federank.policies`): it gets the history and returns the shared profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank import extensions
from federank._numerics.arrays import IntVector, LongVector
from federank._numerics.compiling import compiled
from federank.checks import check_choice, check_int, check_positive, check_range, setting
from federank.errors import SettingError
from federank.federation.rng import DENIABLE, STICKY, happens, words, words_wrap_around

# Registered sharing policies: a function decides the shared profile.


OwnSharing = Callable[[IntVector, float, int, np.random.Generator], Any]
"""history, pi, number of items, random numbers -> items of the shared profile"""


def known_sharing(sharing: str, ours: tuple[str, ...]) -> None:
    """Refuse a sharing policy that is neither built in nor registered."""
    if sharing not in extensions.names("policies"):
        check_choice("sharing", sharing, (*ours, *extensions.names("policies")))


def register_policy(sharing: OwnSharing, name: str | None = None) -> OwnSharing:
    """Register a sharing policy under its function's name, for this process; also as a decorator."""
    called = str(name or getattr(sharing, "__name__", ""))
    if called in ("all", "fixed-subset", "randomized-response"):
        raise SettingError(f"{called!r} is the name of an existing sharing policy; choose another.")
    if not callable(sharing):
        raise SettingError(f"{sharing!r} is not a sharing policy; a function of (history, pi, n_items, rng) is needed.")
    extensions.add("policies", called, sharing)
    return sharing


def own_profile(sharing: str, pi: float, seed: int, user: int, history: IntVector, n_items: int) -> IntVector:
    """The shared profile of a registered policy, checked to be items."""
    decide = extensions.find("policies", sharing)
    if decide is None:
        raise SettingError(f"The sharing policy {sharing!r} is not registered; install the package that has it.")
    answer = np.asarray(decide(history, pi, n_items, np.random.default_rng([seed, user, 0x5A5A])))
    if answer.ndim != 1 or (answer.size and answer.dtype.kind not in "iu"):
        raise SettingError(f"The sharing policy {sharing!r} returned {answer!r}; a row of item numbers is needed.")
    profile: IntVector = np.unique(answer).astype(np.int32)
    if len(profile) and (profile[0] < 0 or profile[-1] >= n_items):
        raise SettingError(f"The sharing policy {sharing!r} returned an item outside 0 to {n_items - 1}.")
    return profile


SHARING = ("all", "fixed-subset", "randomized-response")
BASES = ("history", "shared")
FILLINGS = ("hybrid", "average", "none")
SAMPLINGS = ("fixed", "fresh")
MOST_RHO = 1000.0
"""Maximum number of virtual ratings per real one."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What one user allows."""

    sharing: str
    """How the items to send are decided: `all`, `fixed-subset`, `randomized-response`, or a registered policy."""
    pi: float
    """How much of the history is sent: the probability each time, the share per lifetime, or the probability per
    lifetime."""
    item_epsilon: float | None = None
    """Randomized response only: bounds the disclosure of one item."""
    basis: Literal["history", "shared"]
    """What updates are computed from: the full history, or the shared profile alone."""
    never_items: frozenset[int] = frozenset()
    """Numbers of items that must never be sent as liked."""
    budget: int | None = None
    """Maximum number of items that are ever sent; items that are removed or forbidden later still count."""
    messages: int | None = None
    """Maximum number of uploads, over all seasons; afterwards the client still gets models and recommendations."""
    epsilon: float | None = None
    """With secure aggregation: maximum epsilon of all uploads of all seasons."""
    filling: str | None = None
    """Ratings only: virtual ratings are averages first and predictions later (`hybrid`), averages, or there are `none`;
    None for federations without ratings."""
    rho: float | None = None
    """Ratings only: number of virtual ratings per rating that may be sent."""
    sampling: str | None = None
    """Ratings only: the items with virtual ratings are drawn once per lifetime (`fixed`), or again each time
    (`fresh`)."""
    triples: int | None = None
    """Pairs that the client trains on in a round, up to the federation's limit (FedeRank, 2021, section 3); None: the
    federation's number."""
    paused: bool = False
    """Takes no part in rounds for now."""

    def __post_init__(self) -> None:
        known_sharing(self.sharing, SHARING)
        check_choice("basis", self.basis, BASES)
        check_range("pi", self.pi, 0, 1)
        for name, least in (("budget", 0), ("messages", 0), ("triples", 1)):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), least)
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)
        self._check_virtual_ratings()
        if not isinstance(self.paused, bool):  # the text "false" would count as true
            raise SettingError(f"paused is {self.paused!r}; true or false is needed.")
        if self.sharing != "randomized-response":
            if self.item_epsilon is not None:
                raise SettingError(
                    f"item_epsilon is {self.item_epsilon!r}, but sharing is {self.sharing}, not randomized-response."
                )
            if self.brought and (self.basis != "shared" or self.budget is not None):
                raise SettingError(
                    f"{self.sharing} says itself what stands for the history: it needs the basis shared, and no budget."
                )
            return
        if self.item_epsilon is None:
            raise SettingError("Randomized response needs an item_epsilon, such as 2; smaller hides more.")
        check_positive("item_epsilon", self.item_epsilon)
        if self.pi == 1:
            raise SettingError(
                "pi is 1: what is not seen is then surely not liked; randomized response needs less than 1."
            )
        if self.basis != "shared":
            raise SettingError(
                "Randomized response computes uploads from what is shared; with the full history item_epsilon would "
                "not be true. Choose the basis shared."
            )
        if self.budget is not None:
            raise SettingError(
                "A budget makes one item's answer depend on the others', so item_epsilon would not "
                "be true; choose a smaller pi in its place, or fixed-subset sharing."
            )

    def _check_virtual_ratings(self) -> None:
        if self.filling is None and self.rho is None and self.sampling is None:
            return
        check_choice("filling", str(self.filling), FILLINGS)
        check_choice("sampling", str(self.sampling), SAMPLINGS)
        if self.rho is None:
            raise SettingError("rho is not named; it says how many virtual ratings go with each of your own.")
        check_range("rho", self.rho, 0, MOST_RHO)
        if self.rho > 0 and self.filling == "none":
            raise SettingError(f"rho is {self.rho:g}, but filling is none; choose average or hybrid, or rho 0.")

    @property
    def brought(self) -> bool:
        """Whether its sharing policy is a registered one."""
        return self.sharing not in SHARING

    @property
    def decoy_rate(self) -> float:
        """q: the probability that an item which is not liked is sent; 0 unless randomized-response."""
        return 0.0 if self.item_epsilon is None else decoy_rate(self.pi, self.item_epsilon)


def default_basis(sharing: str) -> Literal["history", "shared"]:
    """The default basis: the history for `all`, as published, else the shared profile.

    A lifetime decision computed from the full history would disclose the rest of it (docs/privacy.md).
    """
    return "history" if sharing == "all" else "shared"


def decoy_rate(pi: float, item_epsilon: float) -> float:
    """q of pi and item_epsilon."""
    return pi * math.exp(-item_epsilon) / (pi * math.exp(-item_epsilon) + 1 - pi)


class SharedProfile(NamedTuple):
    """The items that a client takes part with."""

    profile: IntVector  # the items that positives are drawn from, ascending
    real: Flags  # which of them are the owner's; others are decoys
    allowed: Flags  # which of them may ever be sent as positives
    lifelong: bool  # the allowed ones are always sent; else a coin of pi is tossed each time


def shared_profile(
    policy: Policy, seed: int, user: int, history: IntVector, n_items: int, sent: IntVector | None = None
) -> SharedProfile:
    """One user's shared profile, from an ascending history.

    A changing history keeps its guarantees if the client passes the items that were sent as liked (`sent`, each once,
    even if its owner has removed or forbidden it since). Those still in the history stay chosen, before new ones; new
    ones are chosen only while fewer than the bound have ever been sent.
    """
    may = ~np.isin(history, list(policy.never_items))
    if policy.sharing == "randomized-response":
        return _randomized_response(policy, seed, user, history[may], n_items)
    if policy.brought:
        return updated_shared_profile(policy, seed, user, history[may], n_items)
    allowed = np.zeros(len(history), dtype=np.bool_)
    candidates = np.flatnonzero(may)
    drawn = words_of_items(seed, np.full(len(candidates), user, dtype=np.int64), history[candidates])
    ever = history[:0] if sent is None else sent
    before = np.isin(history[candidates], ever)
    order = np.lexsort((drawn, ~before))
    allowed[candidates[order[: most_chosen(policy, len(candidates), int(before.sum()), len(ever))]]] = True
    if policy.basis == "shared":
        history = history[allowed]
        allowed = np.ones(len(history), dtype=np.bool_)
    return SharedProfile(history, np.ones(len(history), dtype=np.bool_), allowed, policy.sharing == "fixed-subset")


def most_chosen(policy: Policy, candidates: int, before: int, ever: int) -> int:
    """Number of candidates to choose, if `before` of them were sent and `ever` items were sent in all."""
    most = most_allowed(policy, candidates)
    if policy.budget is None and (policy.sharing == "all" or policy.pi == 1):
        return most  # no lifetime decision, so nothing to count
    return min(most, before + max(0, most - ever))


def most_allowed(policy: Policy, candidates: int) -> int:
    """Maximum number of items, outside the never-lists, that may ever be sent."""
    # Exact integer products: in floating point, 0.07 x 100 is a little more than 7.
    most = math.ceil(policy.pi * candidates - 1e-9) if policy.sharing == "fixed-subset" else candidates
    return most if policy.budget is None else min(most, policy.budget)


def _randomized_response(policy: Policy, seed: int, user: int, liked: IntVector, n_items: int) -> SharedProfile:
    """Liked items are sent with probability pi; all others, and those that must never be sent, with q."""
    drawn = randomized_response_words(seed, np.array([user]), n_items)[0]
    sends = happens(drawn, policy.decoy_rate)
    sends[liked] = happens(drawn[liked], policy.pi)
    profile = np.flatnonzero(sends).astype(np.int32)
    return SharedProfile(profile, np.isin(profile, liked), np.ones(len(profile), dtype=np.bool_), True)


def updated_shared_profile(policy: Policy, seed: int, user: int, history: IntVector, n_items: int) -> SharedProfile:
    """The shared profile of a registered policy; items outside the history are decoys."""
    profile = own_profile(policy.sharing, policy.pi, seed, user, history, n_items)
    return SharedProfile(profile, np.isin(profile, history), np.ones(len(profile), dtype=np.bool_), True)


@compiled
def words_of_items(seed: int, users: LongVector, items: IntVector) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The words by which items are ordered for sharing."""
    drawn = np.empty(len(items), np.uint32)
    for position in range(len(items)):
        word, _, _, _ = words(seed, users[position], STICKY, 0, items[position])
        drawn[position] = word
    return drawn


def randomized_response_words(seed: int, users: LongVector, n_items: int) -> NDArray[np.uint32]:
    """Users x items: the words that decide about each item for a client's lifetime. A draw gives those of four."""
    with words_wrap_around():
        blocks = np.arange(-(-n_items // 4), dtype=np.uint32)
        drawn = words(seed, users[:, None].astype(np.uint32), DENIABLE, 0, blocks[None, :])
    table: NDArray[np.uint32] = np.stack(drawn, axis=-1).reshape(len(users), -1)[:, :n_items]
    return table


# The default policy, as settings that several methods share.


@dataclass(frozen=True, kw_only=True)
class SharingSettings:
    """Settings of every method whose users have policies."""

    item_epsilon: float | None = None
    """Randomized response: e^item_epsilon bounds the odds that an item is liked, given everything sent about it."""
    budget: int | None = None
    """Maximum number of items of a history that are ever sent."""
    policies: str | None = None
    """TOML file of users' policies: [default], [groups.NAME] with a `share` of users, [people."ID"]."""


@dataclass(frozen=True, kw_only=True)
class SharedProfileSettings(SharingSettings):
    """The default policy, for users who choose nothing themselves."""

    sharing: Literal["fixed-subset", "randomized-response"] = setting("fixed-subset", extensible=True)
    """What uploads are made from: a share of the history, drawn once per lifetime (fixed-subset), or that share with
    decoys (randomized-response). Withheld items are still used for local recommendations."""
    pi: float | str = 1.0
    """Share of each history that is ever used in uploads; or a CSV file `user,pi`."""

    def __post_init__(self) -> None:
        known_sharing(self.sharing, ("fixed-subset", "randomized-response"))
        if isinstance(self.pi, float | int):
            check_range("pi", self.pi, 0, 1)
        self.policy(float(self.pi) if isinstance(self.pi, float | int) else 0.5)

    def policy(self, pi: float) -> Policy:
        """The policy of users who choose nothing themselves."""
        return Policy(sharing=self.sharing, pi=pi, item_epsilon=self.item_epsilon, basis="shared", budget=self.budget)
