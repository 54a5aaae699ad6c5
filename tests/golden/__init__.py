"""Golden values: trained models and messages for fixed seeds, which show whether a refactoring changed a result.

    python -m tests.golden                      compare with golden.json, and count what is bit-identical
    python -m tests.golden --write [NAME ...]   record what differs: all entries, or those whose names begin with NAME

An entry is a function without arguments that returns named values (models.py, messages.py). Only these functions use
names of the product: after a rename, change the function and not the record.
"""
