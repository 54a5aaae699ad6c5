"""What it is worth to PFedRec that training never draws a held-out item as disliked, as its authors' program has it.

    FEDERANK_DATA=... python benchmarks/pfedrec.py [--rounds 60] [--leave-out held-out]

Each person's newest item is the test, the one before it validation. Every tenth round both are ranked among 99 drawn
items (sampled hit rate and nDCG at 10); a line of JSON each. A device cannot know what will be held out, so the product
has no such setting.
"""

from __future__ import annotations

import argparse
import json
from typing import ClassVar

import numpy as np

import federank as fr
from federank.data.splits import Split
from federank.evaluation.lists import evaluate_with_sampled_negatives
from federank.methods.baselines.pfedrec import draw_examples, pass_over
from federank.methods.federated_model import model_class


class NeverDrawn(fr.PFedRec):
    """PFedRec whose devices never draw what `whole` says a person has, held out or not."""

    whole: ClassVar[list[np.ndarray]]

    def fitted(self, client, vectors):
        vectors, weights = vectors.copy(), self._weights(client)
        rates = self.learning_rate, self.learning_rate * self.item_rate * self.n_items
        items, labels = draw_examples(self.whole[client.user], self.n_items, self.negatives, client.rng)
        kept = (labels == 0) | np.isin(items, client.items)  # what is held out is not learnt from either
        items, labels = items[kept], labels[kept]
        workspace = np.empty(len(items), np.float32), np.empty(self.weights, np.float32)
        pass_over(vectors, weights, items, labels, *workspace, self.batch_size, *rates)
        return vectors, weights


def judged(data: fr.Interactions, rounds: int, leave_out: str) -> list[dict[str, float]]:
    """What PFedRec reaches on validation and test after every tenth round."""
    split = fr.split_leave_last_out(data, validation=True)
    method = NeverDrawn if leave_out == "held-out" else fr.PFedRec
    model = model_class(method)(rounds=rounds)
    if method is NeverDrawn:
        train = split.train.compact()
        number = {item: place for place, item in enumerate(train.item_ids.tolist())}
        everything = (data.item_ids[data.profiles.of(data.user_index(user))] for user in train.user_ids.tolist())
        NeverDrawn.whole = [
            np.array(sorted(number[item] for item in items.tolist() if item in number), dtype=np.int32)
            for items in everything
        ]
    parts = {"validation": split.development, "test": Split(split.train, split.test)}
    found: list[dict[str, float]] = []

    def judge(number: int) -> None:
        if number % 10 == 0:
            values = {name: evaluate_with_sampled_negatives(model, part, negatives=99) for name, part in parts.items()}
            figures = {
                f"{name} {metric}": round(those[f"sampled_{metric}@10"], 4)
                for name, those in values.items()
                for metric in ("hit_rate", "ndcg")
            }
            found.append({"round": number, **figures})

    model.fit(split.train, training_options=fr.TrainingOptions(after_epoch=judge))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--leave-out", choices=["training", "held-out"], default="training")
    asked = parser.parse_args()
    for figures in judged(fr.load(asked.data), asked.rounds, asked.leave_out):
        print(json.dumps({"never drawn": asked.leave_out, **figures}), flush=True)


if __name__ == "__main__":
    main()
