"""FedRec: federated rating prediction (PMF, SVD++) with virtual ratings."""
