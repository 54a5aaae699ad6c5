"""`federank train`: options in, a model's folder out; what a method can do is asked of the method.

Decisions live below: ways to split in data/, how a run is carried out in engines/conduct.py.
"""
