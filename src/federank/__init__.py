"""FedeRank: a recommender that learns without collecting anyone's history.

    import federank as fr

    split = fr.split_temporal(fr.load("city").keep_users(min_interactions=20))
    model = fr.FPL(pi=0.3, epochs=60).fit(split.train)
    model.recommend(42)
    fr.evaluate(model, split).means["precision@10"]

The public API is listed in `__init__.pyi`. Each name is imported on first use, so `import federank` is fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.3.0"
