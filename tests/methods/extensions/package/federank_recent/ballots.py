"""A federated method: every client casts a ballot for what it takes part with, and short histories weigh more."""

from dataclasses import dataclass

import numpy as np

import federank as fr


@dataclass(frozen=True)
class Votes:
    """State and broadcast."""

    votes: np.ndarray = fr.array("items", minimum=0)


@dataclass(frozen=True)
class Ballot:
    """Update: a vote for some items."""

    items: np.ndarray = fr.array("rows", dtype="index")
    votes: np.ndarray = fr.array("rows", minimum=0, maximum=1)


@dataclass(kw_only=True)
class Count(fr.Aggregate):
    """The votes of a round."""

    votes: np.ndarray = fr.array("items", dtype="f8")


@dataclass(frozen=True, kw_only=True)
class Ballots(fr.FederatedMethod):
    """Votes that are cast on clients and added up at the server."""

    name = "ballots"
    records = fr.Records(state=Votes, update=Ballot, aggregate=Count, client=None)
    patience_of_votes: float = fr.setting(0.5, 0, 1)
    """What a vote is worth a round later."""

    def initial_state(self):
        return Votes(np.zeros(self.n_items))

    def client_update(self, client, broadcast):  # noqa: ARG002 (a ballot does not depend on the votes so far)
        return fr.ClientResult(Ballot(client.items, np.full(len(client.items), 1 / np.sqrt(len(client.items)))))

    def server_update(self, state, aggregate):
        return Votes(self.patience_of_votes * state.votes + aggregate.votes) if aggregate.count else state

    def fold_in(self, client, broadcast):  # noqa: ARG002 (everyone is recommended the same)
        return np.ones(1, dtype=np.float32)

    def scores(self, broadcast, factors):
        return factors @ broadcast.votes[None]
