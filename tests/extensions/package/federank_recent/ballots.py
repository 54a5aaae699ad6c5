"""A federated method: everyone casts a ballot for what they take part with, and short histories weigh more."""

from dataclasses import dataclass

import numpy as np

import federank as fr


@dataclass(frozen=True, kw_only=True)
class BallotSettings(fr.FederatedSettings):
    """What can be chosen, beside rounds and what people let out."""

    patience_of_votes: float = 0.5
    """What a vote is still worth a round later."""


class Ballots(fr.FederatedMethod):
    """Votes that are cast on devices and added up at the server."""

    name = "ballots"
    settings_type = BallotSettings

    def first_shared(self, n_items, rng):  # noqa: ARG002 (every method is asked alike)
        return {"votes": np.zeros(n_items, dtype=np.float32)}

    def compute(self, broadcast, device):  # noqa: ARG002
        weight = np.float32(1 / np.sqrt(len(device.profile)))
        return {"items": device.profile, "votes": np.full(len(device.profile), weight)}

    def aggregate(self, shared, updates, round_number):  # noqa: ARG002
        votes = shared["votes"] * np.float32(self.settings.patience_of_votes)
        for update in updates:
            votes[update["items"]] += update["votes"]
        return {"votes": votes}

    def scores(self, broadcast, device):  # noqa: ARG002
        return broadcast["votes"]
