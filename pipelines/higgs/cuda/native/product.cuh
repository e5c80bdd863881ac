// y[R, N] = x[R, K] weights[N, K]^T for few rows R, and all that happens to y before the next product.
//
// The weights are read once, at the pace of the memory; everything else must hide behind that. A
// block has 128 weight rows and a part of K; the blocks that share the rows are a cluster and add up
// in shared memory. One thread keeps a ring of tiles filled by the copy engine: those of the weights
// before it waits for the previous kernel, so the memory does not idle between two kernels. Eight warps
// multiply: four groups of 32 weight rows, each on either half of the 64 elements of K in a tile.
//
// RMSNorm is not a kernel: who writes the residual stream also writes it times the next norm's
// weight, and the sum of squares of its 128 columns; who reads multiplies its result by the scale.
#pragma once
#include "ptx.cuh"
#include "rows.cuh"

namespace product {

constexpr int TILE_ROWS = 128;
constexpr int TILE_DEPTH = 64;  // of K: 128 bytes, the copy engine's widest swizzle
constexpr int WEIGHT_BYTES = TILE_ROWS * TILE_DEPTH * 2;
constexpr int WARPS = 8;
constexpr int THREADS = (WARPS + 1) * 32;
constexpr int MAX_STAGES = 12;
constexpr int PART_PITCH = TILE_ROWS + 4;  // floats: warps write the parts without bank conflicts
constexpr int MAX_ROWS = 64;

enum class Kind { HEADS, ADD, GATE, LOGITS };

// What becomes of y. Pointers that a kind does not use are null.
struct Target {
  // Of what x was scaled by: parts of the sums of squares, [part_count, MAX_ROWS]; none: no scale.
  const float* squares;
  int part_count;
  float inverse_hidden;  // 1 / hidden_size
  float epsilon;
  int rows;     // R
  int columns;  // N of LOGITS, the hidden size of ADD, the intermediate size of GATE
  __nv_bfloat16* out;  // LOGITS, GATE: [R, columns]. HEADS: queries [R, query_heads * 128].
  // ADD: the residual stream [R, columns], it times the next norm's weight, and its parts.
  __nv_bfloat16* residual;
  const __nv_bfloat16* next_norm;
  __nv_bfloat16* scaled;
  float* next_squares;
  // HEADS: packed rows, norms of the heads, RoPE [positions, 64], the layer's cache.
  const int* packed;
  int packed_width;
  int query_heads;
  int key_heads;
  int positions;
  const __nv_bfloat16* query_norm;
  const __nv_bfloat16* key_norm;
  const float* cos;
  const float* sin;
  __nv_bfloat16* keys;
  __nv_bfloat16* values;
};

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

__device__ __forceinline__ float rounded(float value) {
  return __bfloat162float(__float2bfloat16(value));
}

// One head of one row, from its 128 products: norm, RoPE, and to its place.
__device__ __forceinline__ void place_head(const Target& target, int head, int row, int lane,
                                           float (&y)[4]) {
  const int* packed = target.packed + row * target.packed_width;
  const int position = packed[ROW_POSITION];
  if (position < 0) return;
  const bool is_query = head < target.query_heads;
  const bool is_value = head >= target.query_heads + target.key_heads;
  if (!is_value) {
    const __nv_bfloat16* norm = is_query ? target.query_norm : target.key_norm;
    float squares = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      y[i] = rounded(y[i]);
      squares += y[i] * y[i];
    }
    const float scale = rsqrtf(warp_sum(squares) * (1.f / TILE_ROWS) + target.epsilon);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      y[i] = rounded(rounded(y[i] * scale) * __bfloat162float(norm[lane + 32 * i]));
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int place = position * (TILE_ROWS / 2) + lane + 32 * i;
      const float cos = target.cos[place], sin = target.sin[place];
      const float first = y[i], second = y[i + 2];
      y[i] = first * cos - second * sin;
      y[i + 2] = second * cos + first * sin;
    }
  }
  __nv_bfloat16* to;
  if (is_query) {
    to = target.out + (static_cast<size_t>(row) * target.query_heads + head) * TILE_ROWS;
  } else {
    const int of = (head - target.query_heads) % target.key_heads;
    const size_t line = static_cast<size_t>(packed[ROW_SLOT]) * target.key_heads + of;
    to = (is_value ? target.values : target.keys) +
         (line * target.positions + position) * TILE_ROWS;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) to[lane + 32 * i] = __float2bfloat16(y[i]);
}

// What a warp does with the 128 sums of a row; lane l has those of l, l + 32, l + 64 and l + 96.
template <Kind KIND>
__device__ __forceinline__ void finish_row(const Target& target, int tile, int row, int lane,
                                           float (&y)[4]) {
  const size_t line = static_cast<size_t>(row) * target.columns;
  if constexpr (KIND == Kind::HEADS) {
    place_head(target, tile, row, lane, y);
  } else if constexpr (KIND == Kind::GATE) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const float gated = y[i] / (1.f + __expf(-y[i])) * y[i + 2];
      target.out[line + tile * (TILE_ROWS / 2) + lane + 32 * i] = __float2bfloat16(gated);
    }
  } else if constexpr (KIND == Kind::LOGITS) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int column = tile * TILE_ROWS + lane + 32 * i;
      if (column < target.columns) target.out[line + column] = __float2bfloat16(y[i]);
    }
  } else {
    float squares = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int column = tile * TILE_ROWS + lane + 32 * i;
      const float sum = rounded(__bfloat162float(target.residual[line + column]) + rounded(y[i]));
      squares += sum * sum;
      target.residual[line + column] = __float2bfloat16(sum);
      const float norm = __bfloat162float(target.next_norm[column]);
      target.scaled[line + column] = __float2bfloat16(sum * norm);
    }
    squares = warp_sum(squares);
    if (lane == 0) target.next_squares[tile * MAX_ROWS + row] = squares;
  }
}

// ROW_TILES: R / 8, rounded up.
template <int ROW_TILES>
constexpr int STAGE_BYTES = WEIGHT_BYTES + ROW_TILES * 8 * TILE_DEPTH * 2;

template <int ROW_TILES, Kind KIND>
__global__ void __launch_bounds__(THREADS, ROW_TILES <= 2 ? 3 : 2)
    multiply_rows(const __grid_constant__ CUtensorMap weights,
                  const __grid_constant__ CUtensorMap inputs, const Target target, int chunks,
                  int stages) {
  constexpr int BYTES = STAGE_BYTES<ROW_TILES>;
  constexpr int AT_ONCE = ROW_TILES > 4 ? 2 : ROW_TILES;  // inputs in registers
  extern __shared__ uint8_t unaligned[];
  __shared__ uint64_t barriers[2 * MAX_STAGES];
  __shared__ float scales[MAX_ROWS];
  const uint32_t ring = (ptx::shared_address(unaligned) + 1023u) & ~1023u;
  const uint32_t full = ptx::shared_address(barriers);
  const uint32_t empty = full + MAX_STAGES * 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int splits = ptx::cluster_size(), split = ptx::cluster_rank();
  const int tile = blockIdx.x / splits;
  const int first = chunks * split / splits, count = chunks * (split + 1) / splits - first;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) {
      ptx::barrier_init(full + stage * 8, 1);
      ptx::barrier_init(empty + stage * 8, WARPS);
    }
    ptx::fence_barrier_init();
  }
  __syncthreads();
  ptx::launch_next();

  if (warp == WARPS) {
    if (lane == 0) {
      constexpr int HALF = TILE_ROWS / 2;
      // A tile of gates has the gates' rows first and then those that they gate.
      const int upper = KIND == Kind::GATE ? tile * HALF : tile * TILE_ROWS;
      const int lower = KIND == Kind::GATE ? target.columns + upper : upper + HALF;
      const uint64_t once = ptx::evict_first(), often = ptx::evict_last();
      auto load_weights = [&](int chunk, int stage) {
        const uint32_t place = ring + stage * BYTES, barrier = full + stage * 8;
        const int column = (first + chunk) * TILE_DEPTH;
        ptx::barrier_expect(barrier, BYTES);
        ptx::load_box(place, &weights, column, upper, barrier, once);
        ptx::load_box(place + WEIGHT_BYTES / 2, &weights, column, lower, barrier, once);
      };
      auto load_inputs = [&](int chunk, int stage) {
        ptx::load_box(ring + stage * BYTES + WEIGHT_BYTES, &inputs,
                      (first + chunk) * TILE_DEPTH, 0, full + stage * 8, often);
      };
      const int ahead = min(count, stages);
      for (int chunk = 0; chunk < ahead; chunk++) load_weights(chunk, chunk);
      ptx::wait_for_previous();
      for (int chunk = 0; chunk < ahead; chunk++) load_inputs(chunk, chunk);
      int stage = 0, parity = 0;
      for (int chunk = ahead; chunk < count; chunk++) {
        ptx::barrier_wait(empty + stage * 8, parity);
        load_weights(chunk, stage);
        load_inputs(chunk, stage);
        if (++stage == stages) stage = 0, parity ^= 1;
      }
    }
    __syncwarp();
    __syncthreads();
  } else {
    ptx::wait_for_previous();
    for (int row = warp; row < target.rows; row += WARPS) {
      float squares = 0.f;
      for (int part = lane; part < target.part_count; part += 32) {
        squares += target.squares[part * MAX_ROWS + row];
      }
      const float mean = warp_sum(squares) * target.inverse_hidden;
      if (lane == 0) scales[row] = target.part_count ? rsqrtf(mean + target.epsilon) : 1.f;
    }
    const int group = warp / 2, half = warp % 2;
    const int g = lane / 4, t = lane % 4;
    // Lane t takes the 8 elements of K of one 16-byte chunk, for weights and inputs alike: the order
    // of a sum is free, and so fragments are read 16 bytes at a time, and without bank conflicts.
    const uint32_t within = g * 128 + (((2 * t + half) ^ g) << 4);
    float sums[2][ROW_TILES][4] = {};
    int stage = 0, parity = 0;
    for (int chunk = 0; chunk < count; chunk++) {
      ptx::barrier_wait(full + stage * 8, parity);
      const uint32_t place = ring + stage * BYTES + within;
      uint4 upper[2], lower[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        upper[i] = ptx::load_shared_16(place + (group * 32 + i * 16) * 128);
        lower[i] = ptx::load_shared_16(place + (group * 32 + i * 16 + 8) * 128);
      }
#pragma unroll
      for (int from = 0; from < ROW_TILES; from += AT_ONCE) {
        uint4 input[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
          input[n] = ptx::load_shared_16(place + WEIGHT_BYTES + (from + n) * 1024);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
          for (int n = 0; n < AT_ONCE; n++) {
            ptx::multiply(sums[i][from + n], upper[i].x, lower[i].x, upper[i].y, lower[i].y,
                          input[n].x, input[n].y);
            ptx::multiply(sums[i][from + n], upper[i].z, lower[i].z, upper[i].w, lower[i].w,
                          input[n].z, input[n].w);
          }
        }
      }
      __syncwarp();
      if (lane == 0) ptx::barrier_arrive(empty + stage * 8);
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    __syncthreads();  // the ring's memory now holds the parts: [half][row][weight row]
    float* parts = reinterpret_cast<float*>(unaligned + (ring - ptx::shared_address(unaligned)));
    float* mine = parts + half * ROW_TILES * 8 * PART_PITCH + group * 32 + g;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int n = 0; n < ROW_TILES; n++) {
#pragma unroll
        for (int c = 0; c < 4; c++) {
          mine[(n * 8 + 2 * t + c % 2) * PART_PITCH + i * 16 + c / 2 * 8] = sums[i][n][c];
        }
      }
    }
  }

  ptx::cluster_barrier();
  if (warp < WARPS) {
    for (int row = split + splits * warp; row < target.rows; row += splits * WARPS) {
      float y[4] = {};
      const uint32_t place = ring + (row * PART_PITCH + lane) * 4;
      for (int other = 0; other < splits; other++) {
        const uint32_t there = ptx::address_in(place, other);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          y[i] += ptx::load_cluster(there + 128 * i) +
                  ptx::load_cluster(there + 128 * i + ROW_TILES * 8 * PART_PITCH * 4);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++) y[i] *= scales[row];
      finish_row<KIND>(target, tile, row, lane, y);
    }
  }
  ptx::cluster_barrier();  // no block leaves while another reads its sums
}

}  // namespace product
