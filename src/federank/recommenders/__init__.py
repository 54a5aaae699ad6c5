"""The methods as objects: fit, recommend, save, load; open to methods from outside.

    methods/   one file per method
    people/    what people choose for themselves, read from files
    stored/    models and recommendations as files

They call engines/ to play rounds and models/ for maths; evaluation, audits and studies call them.
"""
