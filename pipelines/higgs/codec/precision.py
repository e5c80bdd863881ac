"""Full float32 on NVIDIA hardware, where convolutions otherwise drop to TF32's 10 bits."""

from __future__ import annotations

import torch


def keep_float32_exact(device: torch.device) -> None:
    """Turn TF32 off for the whole process, once and for good, if `device` is CUDA's.

    The switches are the process's: turning them back on around each call would race with other
    threads. The voice's process has no other float32 work, and its bfloat16 work is not touched.
    """
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
