"""Runs told to other people's dashboards: MLflow and TensorBoard. It may call results; it decides nothing of a run.

What is kept in a study's folder or in a model's stays what counts; a tracker is told a copy of it.
"""
