"""FPL: federated pair-wise learning to rank (Anelli et al., 2020); FedeRank (2021) is FPL as its equations are printed.

A client draws pairs of an item i that it has and an item j that it has not, steps its own vector by BPR (Rendle et al.,
2009: gradient ascent on ln sigma(x_ui - x_uj)), and sends the gradients of both items: of the negative always, of the
positive with probability pi. The server adds the sum of all updates to the item vectors and biases, times the learning
rate.

    x = b_i - b_j + p . (q_i - q_j)     g = 1 / (1 + e^x)      p += rate (g (q_i - q_j) - lambda_user p)
    row i: g p - lambda_positive q_i, bias g                    row j: -g p - lambda_negative q_j, bias -g
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector
from federank._numerics.rows import dot, holds, inlined
from federank.checks import setting
from federank.errors import BadMessage, SettingError
from federank.federation import wire
from federank.federation.adam import Adam, adam_step
from federank.federation.defences import Defences
from federank.federation.method import (
    AUTO,
    Aggregate,
    Client,
    ClientResult,
    DataSummary,
    FederatedMethod,
    Records,
    UserVector,
    low_bias,
)
from federank.federation.rng import (
    MASK,
    NEGATIVE,
    TRIPLE,
    USER_FACTORS,
    absent_item,
    below,
    first_items,
    first_word,
    happens,
    normal_rows,
    words,
    words_wrap_around,
)
from federank.federation.wire import Array, array
from federank.privacy.policy import Policy

MOST_TRIPLES = 1_000_000
HOME_ROUND = 0xFFFFFFFF
"""The round number of draws in a fold-in, which no round uses."""
HOME_STEPS = 1000
"""Number of pairs of a fold-in: on MovieLens 100K it ranks as well as trained vectors."""
SLACK = 1e-3
"""Per pair, for rounding errors of 32-bit sums."""


@dataclass(frozen=True, eq=False)
class FPLModel:
    """What clients download."""

    vectors: Array = array("items", "factors")
    biases: Array = array("items")


@dataclass(frozen=True, eq=False)
class FPLState(FPLModel):
    """The server's state: the model and Adam's moments, which are empty for plain SGD."""

    mean: Array = array("items", "moments")  # of past sums; the last column is the bias's
    square: Array = array("items", "moments")
    steps: Array = array("clocks", dtype="i8")  # rounds so far


@dataclass(frozen=True, eq=False)
class FPLUpdate:
    """A client's upload: one gradient per item."""

    items: Array = array("rows", dtype="index")
    vectors: Array = array("rows", "factors")
    biases: Array = array("rows")


@dataclass(eq=False, kw_only=True)
class FPLSums(Aggregate):
    """Sum of a round's updates."""

    vectors: Array = array("items", "factors")
    biases: Array = array("items")


# The maths of a pair (Rendle et al., 2009), by the values before the step; callers multiply by the learning rate.


_LOG2_E = np.float32(np.log2(np.e))
_ONE = np.float32(1.0)
_FARTHEST = np.float32(80.0)  # e^80 is still a float32, and 1 / (1 + e^80) is effectively zero
_ROUND = np.float32(1.5 * 2**23)  # adding it to a small number leaves the nearest integer in the lowest bits

# 2^f on [-1/2, 1/2] as a polynomial of degree 6 (interpolated at Chebyshev points): within 1 unit in the last place.
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c)
    for c in np.polynomial.chebyshev.Chebyshev.interpolate(np.exp2, 6, domain=[-0.5, 0.5])
    .convert(kind=np.polynomial.Polynomial)
    .coef
)


@inlined
def slope(x: Any) -> Any:
    """1 / (1 + e^x) in float32, for any x: it saturates instead of overflowing."""
    # e^x = 2^y = 2^n 2^f, n an integer, |f| <= 1/2: n goes into the exponent's bits, f into the polynomial.
    y = min(max(x, -_FARTHEST), _FARTHEST) * _LOG2_E
    rounded = np.float32(y + _ROUND)
    f = y - (rounded - _ROUND)
    f2 = f * f
    # Estrin's scheme: a dependency chain half as long as Horner's.
    fraction = (_C0 + f * _C1) + f2 * ((_C2 + f * _C3) + f2 * ((_C4 + f * _C5) + f2 * _C6))
    power = np.int32((rounded.view(np.int32) << np.int32(23)) + np.int32(127 << 23)).view(np.float32)
    return _ONE / (_ONE + fraction * power)


@inlined
def pair_slope(p: Any, q_i: Any, q_j: Any, b_i: Any, b_j: Any) -> Any:
    """g of one pair: how wrong the user's ranking of i and j still is."""
    return slope(dot(p, q_i - q_j) + (b_i - b_j))


@inlined
def user_gradient(g: Any, p: Any, q_i: Any, q_j: Any, regulariser: Any) -> Any:
    """Gradient of the user's vector."""
    return g * (q_i - q_j) - regulariser * p


@inlined
def item_gradient(g: Any, p: Any, q: Any, regulariser: Any) -> Any:
    """Gradient of an item's vector: g for the positive of a pair, -g for the negative."""
    return g * p - regulariser * q


@dataclass(frozen=True, kw_only=True)
class PairwiseSettings:
    """Settings that FPL, FedeRank and centralised BPR share."""

    factors: int = setting(20, 1, 1024)
    """Number of latent factors."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model."""
    learning_rate: float = setting(0.05, positive=True)
    """Learning rate of clients and server."""
    user_regulariser: float = setting(1 / 20, 0, paper=True)
    """Regularization of the user vector, as a multiple of the learning rate."""
    positive_regulariser: float = setting(1 / 20, 0, paper=True)
    """Regularization of a positive item's vector, as a multiple of the learning rate."""
    negative_regulariser: float = setting(1 / 200, 0, paper=True)
    """Regularization of a negative item's vector, as a multiple of the learning rate."""
    initial_scale: float = setting(0.1, positive=True, paper=True)
    """Standard deviation of the initial vectors."""
    initial_biases: Literal["normal", "zero"] = setting("normal", paper=True)
    """Initial item biases: drawn like the vectors, or zero."""


@dataclass(frozen=True, kw_only=True)
class FPLRules(PairwiseSettings):
    """Rules of a federation of FPL, simulated or real."""

    order: Literal["as-in-code", "as-printed"] = setting("as-in-code", paper=True)
    """The client's vector changes with every pair, as in the authors' code; or once per round by the sum of all steps,
    as in FedeRank's Eq. 1-3."""
    mask: Literal["as-in-code", "as-printed"] = setting("as-in-code", paper=True)
    """The coin of pi is tossed for every pair, as in the authors' code; or once per positive item and round, as in
    FedeRank's Eq. 4-5."""
    most_triples: int | None = setting(None, 1, MOST_TRIPLES)
    """Maximum number of pairs that a user may choose for their own client. [default: `triples`]"""
    server: Literal["plain", "adam"] = setting("plain", expert=True)
    """Server step: add the sum of a round times the learning rate (plain), or Adam."""
    beta1: float = setting(0.9, fraction=True, expert=True)
    """Adam: decay of the first moment."""
    beta2: float = setting(0.999, fraction=True, expert=True)
    """Adam: decay of the second moment."""
    weight_decay: float = setting(0.0, 0)
    """Weight decay of all item vectors at the server, once per round."""

    def check_server(self) -> None:
        """Refuse settings of Adam if the server uses plain SGD."""
        for name in ("beta1", "beta2"):
            if self.server == "plain" and getattr(self, name) != self.__dataclass_fields__[name].default:
                raise SettingError(
                    f"{name} is {getattr(self, name):g}, but server is plain; set server to adam, or leave it out."
                )


@dataclass(frozen=True, kw_only=True)
class FPL(FPLRules, FederatedMethod):
    """Federated pair-wise learning to rank."""

    name = "fpl"
    records = Records(FPLState, FPLModel, FPLUpdate, FPLSums, UserVector)
    audit = "federank.methods.fpl.audit"
    kernels = "federank.methods.fpl.simulation:FPLClients"
    sharing_policies: ClassVar[tuple[str, ...]] = ("all", "fixed-subset", "randomized-response")
    owner_choices: ClassVar[tuple[str, ...]] = ("pi",)
    defences: ClassVar[Defences] = Defences()

    pi: float = setting(1.0, 0, 1)
    """Probability that a positive item's gradient is sent (0: never, 1: always)."""
    triples: int = setting(AUTO, 1, MOST_TRIPLES)
    """Pairs that a client trains on in a round. [default: the mean size of the histories]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_server()

    @property
    def moments(self) -> int:
        """Columns of Adam's moments."""
        return self.factors + 1 if self.server == "adam" else 0

    @property
    def clocks(self) -> int:
        """1 if the server step counts its rounds (Adam), else 0."""
        return int(self.server == "adam")

    @property
    def most_own_triples(self) -> int:
        """The maximum number of pairs that an owner may choose."""
        return self.most_triples or self.triples

    def resolve(self, data: DataSummary) -> Self:
        """The method with its number of pairs resolved."""
        triples = self.triples
        if triples is AUTO:
            if not (data.n_clients and data.n_interactions):
                raise SettingError(
                    "triples defaults to the mean size of the histories, and the data have none; "
                    "set triples to a number, such as 20."
                )
            triples = max(1, data.n_interactions // data.n_clients)
        return replace(self, n_items=data.n_items, triples=triples)

    def chosen(self, policy: Policy, pi: float) -> Self:
        """The method with this client's pi, and its owner's number of pairs up to the limit."""
        triples = self.triples if policy.triples is None else min(policy.triples, self.most_own_triples)
        return replace(self, pi=pi, triples=triples)

    def max_rows(self) -> int:
        """A client that trains on T pairs sends at most 2 T items."""
        return min(2 * max(self.triples, self.most_own_triples), self.n_items)

    def initial_state(self) -> FPLState:
        """Vectors and biases drawn from the seed, as in a simulation; no moments."""
        vectors, biases = first_items(
            self.n_items,
            self.factors,
            seed=self.seed,
            scale=self.initial_scale,
            biases=self.initial_biases,
        )
        none = np.zeros((self.n_items, self.moments), dtype=np.float32)
        return FPLState(vectors, biases, none, none, np.zeros(self.clocks, dtype=np.int64))

    def broadcast(self, state: FPLState) -> FPLModel:
        """Vectors and biases."""
        return FPLModel(state.vectors, state.biases)

    # The client.

    def client_update(self, client: Client, broadcast: FPLModel) -> ClientResult:
        """Step the client's vector pair by pair, and return one gradient per item that may be sent."""
        if client.state is None:
            purpose, scale = USER_FACTORS, self.initial_scale
            p = normal_rows(1, self.factors, seed=client.seed, purpose=purpose, scale=scale, first_row=client.user)[0]
        else:
            p = client.state.vector
        with np.errstate(over="ignore"):
            rate = np.float32(self.learning_rate)
            regularisers = self.user_regulariser, self.positive_regulariser, self.negative_regulariser
            of_user, of_positive, of_negative = (np.float32(self.learning_rate * factor) for factor in regularisers)
        items, vectors, biases = [], [], []
        moves, drawn = np.zeros_like(p), p
        may_leave = ~np.isin(client.items, client.withheld)
        profile = Profile(client.not_negative, 0, len(client.not_negative), NO_BITS, self.n_items)
        with words_wrap_around():
            for counter in range(self.triples):
                draw = Draw(client.seed, client.user, client.round, counter)
                first, second, third, coin = words(draw.seed, draw.user, TRIPLE, draw.round_number, counter)
                _, j = pair_of_words(first, second, third, draw, profile)
                position = below(first, len(client.items))
                i = client.items[position]
                q_i, q_j = broadcast.vectors[i], broadcast.vectors[j]
                g = pair_slope(p, q_i, q_j, broadcast.biases[i], broadcast.biases[j])
                once = self.mask == "as-printed"
                if may_send(may_leave[position], once, client.seed, client.user, client.round, i, coin, self.pi):
                    items.append(i)
                    vectors.append(item_gradient(g, p, q_i, of_positive))
                    biases.append(g)
                items.append(j)
                vectors.append(item_gradient(-g, p, q_j, of_negative))
                biases.append(-g)
                move = rate * user_gradient(g, p, q_i, q_j, of_user)
                if self.order == "as-printed":
                    moves += move
                else:
                    p = p + move
        update = summed(items, vectors, biases)
        raised = update.biases > 0
        state = UserVector(drawn + moves if self.order == "as-printed" else p)
        return ClientResult(update, state, update.items[raised], update.items[~raised])

    def fold_in(self, client: Client, broadcast: FPLModel) -> FloatVector:
        """The trained vector, or one learnt from pairs, starting from zero. Zero if no pair can be drawn."""
        if client.state is not None:
            trained: FloatVector = client.state.vector
            return trained
        nothing: FloatVector = np.zeros(self.factors, dtype=np.float32)
        if not 0 < len(client.items) < self.n_items:
            return nothing
        at_home = replace(client, round=HOME_ROUND, state=UserVector(nothing))
        method = replace(self, triples=HOME_STEPS, order="as-in-code", pi=0.0)
        vector: FloatVector = method.client_update(at_home, broadcast).state.vector
        return vector

    def scores(self, broadcast: FPLModel, factors: Array) -> FloatMatrix:
        """b_i + p . q_i."""
        scores: FloatMatrix = factors @ broadcast.vectors.T + broadcast.biases
        return scores

    # The server.

    def server_update(self, state: FPLState, sums: FPLSums) -> FPLState:
        """A step along the sum of a round's updates."""
        if not sums.count:
            return state
        ascent = sums.vectors
        if self.weight_decay > 0:
            ascent = ascent - np.float32(self.weight_decay) * state.vectors
        with np.errstate(over="ignore", invalid="ignore"):
            if self.server == "plain":
                rate = np.float32(self.learning_rate)
                return replace(state, vectors=state.vectors + rate * ascent, biases=state.biases + rate * sums.biases)
            adam = Adam(float(np.float32(self.learning_rate)), self.beta1, self.beta2)
            mean, square, steps = state.mean.copy(), state.square.copy(), state.steps + 1
            gradient = -np.column_stack((ascent, sums.biases))
            values = np.column_stack((state.vectors, state.biases))
            moved = adam_step(adam, values, gradient, mean, square, int(steps[0]))
        return FPLState(moved[:, :-1].copy(), moved[:, -1].copy(), mean, square, steps)

    def check(self, _broadcast: FPLModel, update: FPLUpdate) -> None:
        """Refuse biases that T pairs cannot produce.

        Each pair adds g, from 0 to 1, to the bias of a positive and subtracts it from that of a negative; only
        positives can be withheld. A malicious client can still choose its T pairs: the defences bound their effect.
        """
        triples = max(self.triples, self.most_own_triples)
        biases, slack = update.biases.astype(np.float64), SLACK * triples
        raised, lowered = float(biases[biases > 0].sum()), float(-biases[biases < 0].sum()) + 0.0
        if float(biases.sum()) > slack or raised > triples + slack or lowered > triples + slack:
            raise BadMessage(
                f"{triples} pairs cannot change biases by +{raised:g} and -{lowered:g}: each moves at most 1 from one "
                "item to another."
            )

    def grow(self, state: FPLState, n_items: int) -> FPLState:
        """New items get a zero vector and a low bias, so they are never first."""
        larger: FPLState = wire.extended(state, n_items)
        larger.biases[len(state.biases) :] = low_bias(state.biases)
        return larger

    def exported(self, arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        """The arrays of the recommender of this name (recommender.py)."""
        from federank.methods.fpl.settings import FPLSettings

        names = set(FPLSettings.__dataclass_fields__) & set(self.__dataclass_fields__) - {"clip", "noise"}
        settings = {name: getattr(self, name) for name in names}
        return settings, {"item_vectors": arrays["vectors"], "item_biases": arrays["biases"]}


def summed(items: list[int], vectors: list[FloatVector], biases: list[float]) -> FPLUpdate:
    """Sum the gradients of pairs into one row per item."""
    named, positions = np.unique(np.array(items, dtype=np.int32), return_inverse=True)
    sum_of_vectors = np.zeros((len(named), len(vectors[0])), dtype=np.float32)
    sum_of_biases = np.zeros(len(named), dtype=np.float32)
    np.add.at(sum_of_vectors, positions, np.array(vectors, dtype=np.float32))
    np.add.at(sum_of_biases, positions, np.array(biases, dtype=np.float32))
    return FPLUpdate(named, sum_of_vectors, sum_of_biases)


# The random choices of a client, in the same words for Python, Numba and JavaScript.


class Draw(NamedTuple):
    """The key of a pair's random choices."""

    seed: Any
    user: Any
    round_number: Any
    counter: Any


class Profile(NamedTuple):
    """A shared profile as kernels use it: a range of all users' items."""

    items: Any  # ascending from `start` on
    start: Any
    size: Any
    bits: Any  # users x words of 64 items: the same as bits; no rows where there are none
    n_items: Any  # of the catalogue


@inlined
def draw_pair(draw: Any, profile: Any) -> Any:
    """One pair: the position of a positive in the profile (with replacement), a negative, and a word for the coin."""
    first, second, third, coin = words(draw.seed, draw.user, TRIPLE, draw.round_number, draw.counter)
    position, j = pair_of_words(first, second, third, draw, profile)
    return position, j, coin


@inlined
def pair_of_words(first: Any, second: Any, third: Any, draw: Any, profile: Any) -> Any:
    """The pair of three random words: the position of its positive in the profile, and its negative.

    The papers draw a negative again while it is in the profile. This does so once; if both are in the profile, it
    draws the negative's rank among the missing items. The distribution is the same, and the loop ends even if a
    single item is missing.
    """
    items, start, size, _, n_items = profile
    position = start + below(first, size)
    negative = below(second, n_items)
    if has_item(profile, draw.user, negative):
        negative = below(third, n_items)
        if has_item(profile, draw.user, negative):
            word = first_word(draw.seed, draw.user, NEGATIVE, draw.round_number, draw.counter)
            negative = absent_item(items, start, size, below(word, n_items - size))
    return position, negative


@inlined
def has_item(profile: Any, user: Any, item: Any) -> Any:
    """Whether a user has an item: one bit of the bitmap if there is one, else a search."""
    if len(profile.bits) > 0:
        return (profile.bits[user, item >> 6] >> np.uint64(item & 63)) & np.uint64(1) != 0
    return holds(profile.items, profile.start, profile.size, item)


NO_BITS = np.zeros((0, 0), dtype=np.uint64)


@inlined
def may_send(allowed: Any, per_row: Any, seed: Any, user: Any, round_number: Any, item: Any, coin: Any, pi: Any) -> Any:
    """Whether this positive item's gradient may be sent; `allowed` is the lifetime decision about this item."""
    if not allowed:
        return False
    if per_row:
        return happens(first_word(seed, user, MASK, round_number, item), pi)
    return happens(coin, pi)
