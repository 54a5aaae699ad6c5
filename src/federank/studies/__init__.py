"""Studies: a set of runs described in one TOML file, run, stored, and reported as tables and figures.

    plan/      what a study's file says, and which runs follow from it
    run/       carrying them out: workers, choosing, extras, audits
    results/   the folder they are kept in, line by line, and the rows that lines are gathered into
    figures/   a picture of rows
    report/    tables and pictures, as HTML, Markdown, LaTeX and CSV

results/ knows nothing of the others; plan/ and figures/ read it; run/ and report/ stand on top and do not know each
other.
"""
