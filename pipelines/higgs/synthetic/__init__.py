"""Models of random weights under the published names, of any size."""
