"""Private numerical tools: kernels kept between runs, threads, top-N, products."""
