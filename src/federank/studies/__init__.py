"""Studies: a set of runs described in one TOML file, carried out, kept, and told as tables and figures."""
