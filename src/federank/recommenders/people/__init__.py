"""What people choose for themselves, read from files: their pi, their policies, when their device is there.

Files in, records of protocol/ out; nothing here knows how anything is learnt.
"""
