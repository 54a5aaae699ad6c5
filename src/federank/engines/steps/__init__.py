"""Rounds of methods that bring their own messages: the federation, and devices in memory that call their steps.

It may call the protocol and what all engines share; no family of methods may call another.
"""
