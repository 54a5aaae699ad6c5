"""How good, how even and how costly recommendations are: lists, the metrics of metrics/, their means, tests of them.

Settings are searched for here as well, and a model's card is written. Calls recommenders and all below; knows no study.
"""
