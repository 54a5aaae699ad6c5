"""What a type checker and an editor know of the installed product, and what a program is told of its mistakes."""

import subprocess
import sys
import sysconfig

import pytest
from tests.packaging.environments import install, new_environment, surroundings

SCRIPT = """
import federank as fr

split = fr.split_temporal(fr.city())
reveal_type(split)
model = fr.FPL(pi=0.3, epochs=2)
reveal_type(model)
reveal_type(model.settings.factors)
reveal_type(model.fit(split.train, training_options=fr.TrainingOptions(threads=2)))
reveal_type(model.recommend("7"))
reveal_type(model.recommend(["7", "8"], n=5))
found = fr.evaluate(model, split, at=(5, 10))
reveal_type(found)
reveal_type(fr.compare({"one": found, "other": found}))
reveal_type(fr.audit_model(model).findings)
reveal_type(fr.load_model("runs/city"))
"""

KNOWN = [
    "federank.data.splits.Split",
    "federank.methods.fpl.recommender.FPL",
    "int",
    "federank.methods.fpl.recommender.FPL",
    "list[tuple[Any, float, str, fallback=federank.methods.recommendations.Recommended]]",
    "federank.methods.recommendations.Recommendations",
    "federank.evaluation.evaluate.Evaluation",
    "list[federank.evaluation.significance.Comparison]",
    "list[federank.audit.scoring.Findings]",
    "federank.methods.recommender.Recommender",
]

MISTAKES = {
    "fr.FPL(pie=0.3)": ('Unexpected keyword argument "pie" for "FPL"', "'pie'"),
    "fr.FPL(factors='many')": ('Argument "factors" to "FPL" has incompatible type "str"', "'many'"),
    "fr.MostPopular(seed=1)": ('Unexpected keyword argument "seed"', "'seed'"),
    "fr.TrainingOptions(engine='quick')": ('Argument "engine" to "TrainingOptions"', "'quick'"),
    "fr.MostPopular().fit(fr.city(), chekpoint='x')": (
        'Unexpected keyword argument "chekpoint" for "fit"',
        "'chekpoint'",
    ),
    "fr.BPR().fit(fr.city(), progress=print)": (
        'Unexpected keyword argument "progress" for "fit"',
        "'progress'",
    ),
    "fr.BPR().fit(fr.city(), training_options=2)": (
        'Argument "training_options" to "fit"',
        "training_options is 2",
    ),
}


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """An environment with the wheel, which borrows the packages it needs from the one these tests run in."""
    python = new_environment(tmp_path_factory.mktemp("typed") / "environment")
    install(python, "--no-deps", wheel)
    [site] = python.parents[1].glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def checked(python, folder, text):
    """What mypy says of a user's program, line by line, without the name of its file."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "--python-executable", python]
    command += ["--cache-dir", folder / "cache", "--no-error-summary", "--hide-error-context", program.name]
    answer = subprocess.run(command, cwd=folder, env=surroundings(), capture_output=True, text=True, check=False)
    assert not answer.stderr
    return [line.removeprefix("program.py:") for line in answer.stdout.splitlines() if line.startswith("program.py:")]


def run(python, mistakes):
    """The sentence that a program is told for each of its mistakes."""
    tries = (f"try:\n    {one}\nexcept fr.FedeRankError as reason:\n    print(reason)\n" for one in mistakes)
    command = [python, "-c", "import federank as fr\n" + "".join(tries)]
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_types_are_inferred_and_mistakes_are_refused_twice(python, tmp_path):
    lines = checked(python, tmp_path, SCRIPT + "\n".join(MISTAKES))
    revealed = [line.split('Revealed type is "')[1].rstrip('"') for line in lines if "Revealed type" in line]
    assert revealed == KNOWN
    first = SCRIPT.count("\n") + 1
    told = run(python, MISTAKES)
    for number, (mistake, (at_check_time, fact)) in enumerate(MISTAKES.items(), start=first):
        errors = [line for line in lines if line.startswith(f"{number}: error:")]
        assert len(errors) == 1, (mistake, errors)
        assert at_check_time in errors[0]
        assert fact in told[number - first]
    others = [line for line in lines if ": error:" in line and int(line.split(":")[0]) < first]
    assert not others
