"""What the server tells about itself: counters, histograms, log lines."""
