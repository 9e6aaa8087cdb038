"""The paper's method: posteriors over task and language vectors, and a network that generates heads from them."""
