"""Where rounds of few messages are played: plain Python to read, compiled code to use.

Calls protocol/squares and models; no other family.
"""
