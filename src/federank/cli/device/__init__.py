"""`federank device`: command.py takes part, choices.py changes what may leave, looks.py looks into the device's file.

They call service/device, and only when asked for; what a device does is decided there.
"""
