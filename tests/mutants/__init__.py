"""How many small faults the tests detect: a sample of mutants of the maths, protocol, secure aggregation and server.

    python -m tests.mutants FOLDER [--mutants 200] [--seed 1]

A mutant is one change inside a function: another comparison or arithmetic operator, a constant plus one, a negated
condition, `and` for `or`, or a statement left out. Annotations, defaults, decorators, error and log texts, asserts,
`strict=` and calls that only prefetch or flush are not changed.

FOLDER gets a copy of the tree. The fast suite runs there once, and `coverage` records which test runs which line. Each
mutant then meets only fast tests that run its line, those that import its module first; compiled code has no coverage,
so its mutants meet the tests that import it. A test that fails with the mutant and passes without it kills it. What no
test kills within its time has survived. Results are printed and kept as they come, and a second call continues there.
"""
