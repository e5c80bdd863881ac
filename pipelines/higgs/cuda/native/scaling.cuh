// What the products' epilogues do for the next norm, for the embeddings, which no product makes.
#pragma once
#include "product.cuh"

namespace scaling {

constexpr int THREADS = 256;

// hidden [R, columns] -> scaled = hidden * norm, and the one part of each row's sum of squares.
__global__ void __launch_bounds__(THREADS)
    scale_rows(const __nv_bfloat16* hidden, const __nv_bfloat16* norm, __nv_bfloat16* scaled,
               float* squares, int columns) {
  __shared__ float parts[THREADS / 32];
  ptx::launch_next();
  ptx::wait_for_previous();
  const size_t line = static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.f;
  for (int column = threadIdx.x; column < columns; column += THREADS) {
    const float value = __bfloat162float(hidden[line + column]);
    sum += value * value;
    scaled[line + column] = __float2bfloat16(value * __bfloat162float(norm[column]));
  }
  sum = product::warp_sum(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < THREADS / 32; warp++) sum += parts[warp];
    squares[blockIdx.x] = sum;
  }
}

}  // namespace scaling
