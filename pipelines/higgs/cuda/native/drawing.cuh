// Codes from logits, by the rule of pipelines/higgs/sampler.py: a warp a codebook, a block a row.
//
// The order that a stable sort gives (larger logits first, lower codes first among equals) is that
// of one integer a code, so top-k is the threshold that k of them reach, and top-p the one above
// which lies less than p. Both are found by bisection, with the codes in registers.
#pragma once
#include "product.cuh"

namespace drawing {

constexpr int CODE_BITS = 11;  // beside 16 of a bfloat16 logit: codebooks of at most 2048
constexpr int CODES = 1 << CODE_BITS;
constexpr float GREEDY_TEMPERATURE = 1e-5f;
constexpr int INVALID_CODE = -1;

struct Task {
  const __nv_bfloat16* logits;  // [R, codebooks * size]
  const int* packed;
  int* drawn;       // [R, codebooks]
  int* last_drawn;  // [slots, codebooks]
  int packed_width;
  int codebooks;
  int size;
  int begin_code;
};

__device__ __forceinline__ float gumbel(uint32_t seed, uint32_t position, uint32_t code) {
  uint32_t x = seed * 0x9E3779B1u + position * 0x85EBCA77u + code * 0xC2B2AE3Du;
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  const float uniform = (static_cast<float>(x >> 8) + 0.5f) * 5.9604644775390625e-08f;
  return -logf(-logf(fminf(uniform, 0.99999994f)));
}

// The place of a code in the order; `bits` are those of its bfloat16 logit.
__device__ __forceinline__ int order_of(int bits, int code) {
  if (bits == 0x8000) bits = 0;  // the two zeros are equals
  const int rank = bits & 0x8000 ? -(bits & 0x7fff) - 1 : bits;
  return rank * CODES + (CODES - 1 - code);
}

// ITEMS: codes to a lane.
template <int ITEMS>
__global__ void draw_codes(const Task task) {
  const int row = blockIdx.x, codebook = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int* packed = task.packed + row * task.packed_width;
  ptx::launch_next();
  const int ramp = packed[ROW_RAMP];
  const float temperature = __int_as_float(packed[ROW_TEMPERATURE]);
  const float top_p = __int_as_float(packed[ROW_TOP_P]);
  const int top_k = packed[ROW_TOP_K];
  ptx::wait_for_previous();
  if (ramp < 0) return;

  const uint16_t* logits = reinterpret_cast<const uint16_t*>(task.logits) +
                           (static_cast<size_t>(row) * task.codebooks + codebook) * task.size;
  int order[ITEMS];
  int best = INT_MIN;
  bool is_finite = true;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int code = lane + 32 * i;
    const int bits = code < task.size ? logits[code] : 0;
    is_finite &= (bits & 0x7f80) != 0x7f80;
    order[i] = code < task.size ? order_of(bits, code) : INT_MIN;
    best = max(best, order[i]);
  }
  best = __reduce_max_sync(0xffffffffu, best);
  auto logit_of = [](int place) {
    const int rank = place >> CODE_BITS;
    return __uint_as_float(static_cast<uint32_t>(rank < 0 ? 0x8000 | (-rank - 1) : rank) << 16);
  };
  auto code_of = [](int place) { return CODES - 1 - (place & (CODES - 1)); };

  int chosen = code_of(best);
  if (temperature > GREEDY_TEMPERATURE && top_k != 1) {
    const int wanted = top_k < 1 ? task.size : min(top_k, task.size);
    int low = -0x8000 * CODES, high = best;
    while (low < high) {
      const int middle = low + (high - low + 1) / 2;
      int count = 0;
#pragma unroll
      for (int i = 0; i < ITEMS; i++) count += order[i] >= middle;
      if (__reduce_add_sync(0xffffffffu, count) >= wanted) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const float greatest = logit_of(best) / temperature;
    float weight[ITEMS], total = 0.f;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      weight[i] = order[i] >= low ? expf(logit_of(order[i]) / temperature - greatest) : 0.f;
      total += weight[i];
    }
    const float share = top_p * product::warp_sum(total);
    high = best;
    while (low < high) {
      const int middle = low + (high - low) / 2;
      float above[3] = {};
#pragma unroll
      for (int i = 0; i < ITEMS; i++) above[i % 3] += order[i] > middle ? weight[i] : 0.f;
      if (product::warp_sum(above[0] + above[1] + above[2]) < share) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    float score = -INFINITY;
    const uint32_t seed = packed[ROW_SEED];
    const uint32_t position = packed[ROW_DRAW] * task.codebooks + codebook;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      if (order[i] < high || (weight[i] == 0.f && order[i] != best)) continue;
      const int code = lane + 32 * i;
      const float scored = logit_of(order[i]) / temperature + gumbel(seed, position, code);
      if (scored > score) score = scored, chosen = code;
    }
#pragma unroll
    for (int distance = 16; distance; distance /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, score, distance);
      const int code = __shfl_xor_sync(0xffffffffu, chosen, distance);
      if (other > score || (other == score && code < chosen)) score = other, chosen = code;
    }
  }
  if (codebook > ramp) chosen = task.begin_code;
  if (!__syncthreads_and(is_finite)) chosen = INVALID_CODE;
  if (lane == 0) {
    task.drawn[row * task.codebooks + codebook] = chosen;
    if (packed[ROW_KEEPS]) {
      task.last_drawn[packed[ROW_SLOT] * task.codebooks + codebook] = chosen;
    }
  }
}

}  // namespace drawing
