"""Audits of methods that bring their own messages: messages are read for what any method's give away.

It may call what all audits share, engines and recommenders; no family of methods may call another.
"""
