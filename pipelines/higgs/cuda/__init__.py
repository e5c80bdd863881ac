"""The decoder on an NVIDIA GPU: one CUDA graph a step. `decoder.CudaDecoder` is its door."""
