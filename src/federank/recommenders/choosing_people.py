"""Methods whose people choose what they share: by the settings, by a file, or by a list of policies from Python."""

from __future__ import annotations

import hashlib
from typing import Self

import numpy as np

from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct, takes_a_conduct
from federank.protocol.policies.choices import Choices
from federank.recommenders.people.choosing import Policies, Suggests, choices_for
from federank.recommenders.recommender import Recommender
from federank.recommenders.stored.policies import choices_as_arrays


class ChoosingPeople(Recommender):
    """A method that asks everybody what may leave their device."""

    choices: Choices
    """What everybody allows."""
    _given_policies: Policies | None = None

    @takes_a_conduct
    def fit(self, train: Interactions, *, conduct: Conduct | None = None, policies: Policies | None = None) -> Self:
        """Learn from the training part of a split.

        `policies`: each user's own, in the sorted order of their ids; or some people's by their id, `{"ann": 0.3}`,
        where a number is a pi and the others do as the settings say.
        """
        self._given_policies = policies
        return super().fit(train, conduct=conduct)

    def _ask_everybody(self, settings: Suggests, train: Interactions) -> str:
        """Take down what everybody allows; its digest, for the identity of a checkpoint."""
        self.choices = choices_for(settings, train, self._given_policies)
        chosen = b"".join(np.ascontiguousarray(array).tobytes() for array in choices_as_arrays(self.choices).values())
        return hashlib.sha256(chosen).hexdigest()
