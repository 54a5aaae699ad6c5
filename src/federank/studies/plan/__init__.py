"""What a study's file says, checked, and the runs that follow from it, each named by its content.

Nothing is trained or drawn here. It may call results/ (whose format is part of a run's name), never run/ or report/.
"""
