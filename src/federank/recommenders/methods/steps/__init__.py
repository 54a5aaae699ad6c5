"""Methods of ours that bring their own messages, as a method from outside would (recommenders/federated_method.py)."""
