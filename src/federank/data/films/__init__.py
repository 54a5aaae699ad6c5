"""Well-known films, and synthetic people who like some of them: a catalogue that a visitor can judge.

Titles, years and genres are facts (films.csv); who likes what is made up on the spot (films.py).
"""
