"""How many small faults the tests detect: a sample of mutants of the maths, protocol, secure aggregation and server.

    python -m tests.mutants FOLDER [--mutants 200] [--seed 1]

A mutant is one change inside a function: another comparison or arithmetic operator, a constant plus one, a negated
condition, `and` for `or`, or a statement left out. Annotations, defaults, decorators, error and log texts, asserts,
`strict=` and calls that only prefetch or flush are not changed.

Each mutant runs in a copy of the tree. First come the tests that import its module or have its name, then those of its
folder, the golden values and the engines' agreement, and then slow tests among the nearest. A test that fails with the
mutant and passes without it kills it. A mutant whose tests take too long counts as survived. FOLDER gets the copy,
compiled kernels and results.jsonl; an interrupted run continues there.
"""
