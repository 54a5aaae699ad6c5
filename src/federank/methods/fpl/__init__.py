"""FPL and FedeRank: federated pair-wise learning to rank; BPR on the same kernels."""
