"""Studies: a set of runs described in one TOML file, run, stored, and reported as tables and figures.

documents, spec                a study's file, and what it says; report_spec: what it says about its report
plan                           its data, and which runs follow from it
task, run, pool                carries them out
results, rows                  the folder they are stored in, and the rows that they are gathered into
tables, run_tables, figures/   rows as tables and figures
report, writers                the report, as HTML, Markdown, LaTeX and CSV
"""
