"""Policies: what owners allow to leave their devices, and the outward profiles that follow from it.

policy.py is one person's, choices.py everybody's at once, sharing.py what holds for whoever has not chosen, and
own_sharing.py knows ways of sharing from outside. They call draws, and know no family of methods.
"""
