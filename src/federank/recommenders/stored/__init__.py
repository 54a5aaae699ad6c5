"""Models, folds and recommendations as files that carry no code, whole or not at all.

What a server may hold and what only devices hold are separate files. Methods are found by their name (registry.py).
"""
