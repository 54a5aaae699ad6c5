"""What every federated method and every host share: draws, messages, rounds, defences."""
