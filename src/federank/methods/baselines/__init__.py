"""Baselines: popularity, neighbours, EASE, SLIM, iALS, Mult-VAE, biases; FedMF and PFedRec."""
