"""One module per dialect: the parameters that its clients send, and the answers that they read."""
