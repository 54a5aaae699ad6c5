"""The chain of a federation's versions, as a verification follows it: each version from the one before and a round."""

from __future__ import annotations

from typing import Any

from federank._numerics.arrays import IntVector
from federank.errors import BadMessage
from federank.federation.server import Published
from federank.secagg.config import SecaggConfig
from federank.secagg.exchange import RoundRecord
from federank.secagg.ring import implausible
from federank.secagg.round_config import Offer, check_offer
from federank.service.server.methods import ServerMethod


class Chain:
    """The versions one after the other, each named by its digest; with published sums, recomputed."""

    def __init__(self, wanted: frozenset[int]) -> None:
        self._wanted = wanted  # versions that later seasons start from
        self.starts: dict[int, Published] = {}
        self.recomputed = self.version = 0
        self._digest = ""
        self.known: set[tuple[int, str]] = set()

    def begin(
        self,
        served: ServerMethod,
        settings: Any,
        config: SecaggConfig,
        version: int,
        first: Published | None,
    ) -> None:
        """The first version of a season; one that is not published is known by the digest of its first offer."""
        self._served, self._settings, self._config = served, settings, config
        self._model, self.is_recomputed = first, first is not None
        self._add(version, "" if first is None else served.digest(settings, first).hex())
        if first is not None:
            self._keep(first)

    def check(self, offer: Offer) -> None:
        """Refuse a round config that is not about the newest version, or asks for another upload than the plan's."""
        self.name(offer.version, offer.model)
        if (offer.version, offer.model) != (self.version, self._digest):
            raise BadMessage(f"The offer of round {offer.round} was not about the model of that moment.")
        rows = None if self._model is None else self._served.rows(self._settings, self._model)
        check_offer(offer, self._config, bytes.fromhex(self._digest), 0, rows)
        if self._model is not None and offer.stage != self._served.stage(self._model):
            raise BadMessage(f"The offer of round {offer.round} asked for another message than the plan's.")

    def name(self, version: int, digest: str) -> None:
        """Know a newest version that is not published by what names it first.

        Without noise that is the first version of a season, and the one after a restore.
        """
        if not self._digest and version == self.version:
            self._add(version, digest)

    def recompute(self, offer: Offer, record: RoundRecord, total: IntVector) -> None:
        """The next version from a round's sum; it must be the one that the record names."""
        why = implausible(total, offer.columns, record.messages, offer.noise)
        if why is not None:
            raise BadMessage(f"Round {record.round} was aggregated, though {why}.")
        assert self._model is not None, "sums with noise are always there"
        content = self._served.step_of_sum(self._settings, self._model, record.people, total, record.messages)
        self._model = self._model.followed_by(content)
        if self._served.digest(self._settings, self._model).hex() != record.model:
            raise BadMessage(
                f"Version {self._model.version} does not follow from the sums of round {record.round}: its record "
                "names another model."
            )
        self.recomputed += 1
        self._add(self._model.version, record.model)
        self._keep(self._model)

    def follow(self, record: RoundRecord) -> None:
        """The next version, as its record names it."""
        self._model, self.is_recomputed = None, False
        self._add(self.version + 1, record.model)

    def jump(self, version: int) -> None:
        """The same model under a later number."""
        if self._model is None:
            self.version, self._digest = version, ""
            return
        self._model = self._model._replace(version=version)
        self._add(version, self._served.digest(self._settings, self._model).hex())

    def _keep(self, model: Published) -> None:
        if model.version in self._wanted:
            self.starts[model.version] = model

    def _add(self, version: int, digest: str) -> None:
        self.version, self._digest = version, digest
        self.known.add((version, digest))
