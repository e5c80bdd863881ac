// y[R, N] = x[R, K] weights[N, K]^T for few rows R, and all that happens to y before the next one.
//
// The weights are read once, at the pace of the memory; everything else must hide behind that. A
// block has 128 weight rows and a part of K; the blocks that share the rows are a cluster and add
// up in shared memory. One thread keeps a ring of tiles filled by the copy engine: those of the
// weights before it waits for the previous kernel, so the memory does not idle between two kernels.
// Two warpgroups multiply, each 64 weight rows with all of x: the tensor cores read both from the
// ring.
//
// RMSNorm is not a kernel: who writes the residual stream also writes it times the next norm's
// weight, and the sum of squares of its 128 columns; who reads multiplies its result by the scale.
//
// Measured on an H200 in a whole step: the cache hints save 8 % at one row and 4 % at 64. Slower
// were fetching more tiles into the L2 cache while waiting, blocks that share inputs by multicast,
// and letting the next kernel start later; beginning each tile elsewhere in K changes nothing.
#pragma once
#include "ptx.cuh"
#include "rows.cuh"
#include "wgmma.cuh"

namespace product {

constexpr int TILE_ROWS = 128;
constexpr int TILE_DEPTH = 64;  // of K: 128 bytes, the copy engine's widest swizzle
constexpr int WEIGHT_BYTES = TILE_ROWS * TILE_DEPTH * 2;
constexpr int WARPS = 8;  // two warpgroups, each with 64 of a tile's rows
constexpr int THREADS = (WARPS + 1) * 32;
constexpr int MAX_STAGES = 12;
constexpr int RING_ALIGNMENT = 1024;  // of the swizzle's pattern
constexpr int SUMS_PITCH = TILE_ROWS + 4;  // floats: warps write them without bank conflicts
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

__device__ __forceinline__ float4 widened(uint2 bits) {
  const float2 low = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.x));
  const float2 high = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.y));
  return make_float4(low.x, low.y, high.x, high.y);
}

__device__ __forceinline__ uint2 narrowed(float4 values) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(values.x, values.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(values.z, values.w);
  return make_uint2(*reinterpret_cast<const uint32_t*>(&low),
                    *reinterpret_cast<const uint32_t*>(&high));
}

// What the end of a row reads beside its sums; it is on its way while the cluster gathers.
struct Beside {
  int position;
  int slot;
  float4 cos;
  float4 sin;
  uint2 norm;
  uint2 residual;
};

// A lane has the four columns from 4 * lane on of the tile's 128.
template <Kind KIND>
__device__ __forceinline__ Beside read_beside(const Target& target, int tile, int row, int lane) {
  Beside beside = {};
  if constexpr (KIND == Kind::HEADS) {
    const int* packed = target.packed + row * target.packed_width;
    beside.position = packed[ROW_POSITION];
    beside.slot = packed[ROW_SLOT];
    if (beside.position < 0 || tile >= target.query_heads + target.key_heads) return beside;
    const auto* norm = tile < target.query_heads ? target.query_norm : target.key_norm;
    beside.norm = reinterpret_cast<const uint2*>(norm)[lane];
    const int place = beside.position * (TILE_ROWS / 8) + lane % 16;
    beside.cos = reinterpret_cast<const float4*>(target.cos)[place];
    beside.sin = reinterpret_cast<const float4*>(target.sin)[place];
  } else if constexpr (KIND == Kind::ADD) {
    const size_t place = static_cast<size_t>(row) * target.columns + tile * TILE_ROWS;
    beside.residual = reinterpret_cast<const uint2*>(target.residual + place)[lane];
    beside.norm = reinterpret_cast<const uint2*>(target.next_norm + tile * TILE_ROWS)[lane];
  }
  return beside;
}

// One head of one row: norm, RoPE, and to its place.
__device__ __forceinline__ void place_head(const Target& target, const Beside& beside, int head,
                                           int row, int lane, float4 y) {
  if (beside.position < 0) return;
  const bool is_query = head < target.query_heads;
  const bool is_value = head >= target.query_heads + target.key_heads;
  if (!is_value) {
    y = make_float4(rounded(y.x), rounded(y.y), rounded(y.z), rounded(y.w));
    const float squares = warp_sum(y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w);
    const float scale = rsqrtf(squares * (1.f / TILE_ROWS) + target.epsilon);
    const float4 norm = widened(beside.norm);
    y = make_float4(rounded(rounded(y.x * scale) * norm.x), rounded(rounded(y.y * scale) * norm.y),
                    rounded(rounded(y.z * scale) * norm.z), rounded(rounded(y.w * scale) * norm.w));
    // Dimension i turns with dimension i + 64, which is 16 lanes away.
    const float4 other = make_float4(
        __shfl_xor_sync(0xffffffffu, y.x, 16), __shfl_xor_sync(0xffffffffu, y.y, 16),
        __shfl_xor_sync(0xffffffffu, y.z, 16), __shfl_xor_sync(0xffffffffu, y.w, 16));
    const float sign = lane < 16 ? -1.f : 1.f;
    y.x = y.x * beside.cos.x + sign * other.x * beside.sin.x;
    y.y = y.y * beside.cos.y + sign * other.y * beside.sin.y;
    y.z = y.z * beside.cos.z + sign * other.z * beside.sin.z;
    y.w = y.w * beside.cos.w + sign * other.w * beside.sin.w;
  }
  __nv_bfloat16* to;
  if (is_query) {
    to = target.out + (static_cast<size_t>(row) * target.query_heads + head) * TILE_ROWS;
  } else {
    const int of = (head - target.query_heads) % target.key_heads;
    const size_t line = static_cast<size_t>(beside.slot) * target.key_heads + of;
    to = (is_value ? target.values : target.keys) +
         (line * target.positions + beside.position) * TILE_ROWS;
  }
  reinterpret_cast<uint2*>(to)[lane] = narrowed(y);
}

__device__ __forceinline__ float gated(float gate, float up) {
  return gate / (1.f + __expf(-gate)) * up;
}

// What a warp does with the 128 sums of a row.
template <Kind KIND>
__device__ __forceinline__ void finish_row(const Target& target, const Beside& beside, int tile,
                                           int row, int lane, float4 y) {
  const size_t line = static_cast<size_t>(row) * target.columns;
  if constexpr (KIND == Kind::HEADS) {
    place_head(target, beside, tile, row, lane, y);
  } else if constexpr (KIND == Kind::GATE) {
    const float4 up = make_float4(
        __shfl_down_sync(0xffffffffu, y.x, 16), __shfl_down_sync(0xffffffffu, y.y, 16),
        __shfl_down_sync(0xffffffffu, y.z, 16), __shfl_down_sync(0xffffffffu, y.w, 16));
    if (lane >= 16) return;
    reinterpret_cast<uint2*>(target.out + line + tile * (TILE_ROWS / 2))[lane] = narrowed(
        make_float4(gated(y.x, up.x), gated(y.y, up.y), gated(y.z, up.z), gated(y.w, up.w)));
  } else if constexpr (KIND == Kind::LOGITS) {
    const int column = tile * TILE_ROWS + 4 * lane;
    const float values[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (column + i < target.columns) target.out[line + column + i] = __float2bfloat16(values[i]);
    }
  } else {
    const float4 residual = widened(beside.residual), norm = widened(beside.norm);
    y = make_float4(rounded(residual.x + rounded(y.x)), rounded(residual.y + rounded(y.y)),
                    rounded(residual.z + rounded(y.z)), rounded(residual.w + rounded(y.w)));
    const size_t place = line + tile * TILE_ROWS;
    reinterpret_cast<uint2*>(target.residual + place)[lane] = narrowed(y);
    reinterpret_cast<uint2*>(target.scaled + place)[lane] =
        narrowed(make_float4(y.x * norm.x, y.y * norm.y, y.z * norm.z, y.w * norm.w));
    const float squares = warp_sum(y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w);
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
  extern __shared__ uint8_t unaligned[];
  __shared__ uint64_t barriers[2 * MAX_STAGES];
  __shared__ float scales[MAX_ROWS];
  constexpr uint32_t WITHIN = RING_ALIGNMENT - 1;
  const uint32_t ring = (ptx::shared_address(unaligned) + WITHIN) & ~WITHIN;
  const uint32_t full = ptx::shared_address(barriers);
  const uint32_t empty = full + MAX_STAGES * 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int splits = ptx::cluster_size(), split = ptx::cluster_rank();
  const int tile = blockIdx.x / splits;
  const int first = chunks * split / splits, count = chunks * (split + 1) / splits - first;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) {
      ptx::barrier_init(full + stage * 8, 1);
      ptx::barrier_init(empty + stage * 8, WARPS / 4);
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
      // The weights pass once; what every block reads must not give way to them.
      const uint64_t once = ptx::evict_first(), often = ptx::evict_last();
      auto load_weights = [&](int chunk, int stage) {
        const uint32_t place = ring + stage * BYTES, barrier = full + stage * 8;
        const int column = (first + chunk) * TILE_DEPTH;
        ptx::barrier_expect(barrier, BYTES);
        ptx::load_box(place, &weights, column, upper, barrier, once);
        ptx::load_box(place + WEIGHT_BYTES / 2, &weights, column, lower, barrier, once);
      };
      auto load_inputs = [&](int chunk, int stage) {
        ptx::load_box(ring + stage * BYTES + WEIGHT_BYTES, &inputs, (first + chunk) * TILE_DEPTH, 0,
                      full + stage * 8, often);
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
    const int group = warp / 4;
    float sums[ROW_TILES][4] = {};
    int stage = 0, parity = 0;
    for (int chunk = 0; chunk < count; chunk++) {
      ptx::barrier_wait(full + stage * 8, parity);
      const uint32_t place = ring + stage * BYTES;
      const uint64_t weight = wgmma::describe(place + group * (WEIGHT_BYTES / 2));
      const uint64_t input = wgmma::describe(place + WEIGHT_BYTES);
      wgmma::fence();
#pragma unroll
      for (int step = 0; step < TILE_DEPTH / 16; step++) {
        wgmma::multiply<ROW_TILES>(sums, weight + 2 * step, input + 2 * step);
      }
      wgmma::commit();
      wgmma::wait<0>();
      if (threadIdx.x % 128 == 0) ptx::barrier_arrive(empty + stage * 8);
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    __syncthreads();  // the ring's memory now holds the sums: [row][weight row]
    float* gathered = reinterpret_cast<float*>(unaligned + (ring - ptx::shared_address(unaligned)));
    float* mine = gathered + warp * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < ROW_TILES; n++) {
#pragma unroll
      for (int c = 0; c < 4; c++) {
        mine[(n * 8 + lane % 4 * 2 + c % 2) * SUMS_PITCH + c / 2 * 8] = sums[n][c];
      }
    }
  }

  // A row's sums are gathered, and finished, by one warp of the cluster.
  int row = warp < WARPS ? split + splits * warp : target.rows;
  Beside beside = {};
  if (row < target.rows) beside = read_beside<KIND>(target, tile, row, lane);
  ptx::cluster_barrier();
  while (row < target.rows) {
    const uint32_t place = ring + (row * SUMS_PITCH + 4 * lane) * 4;
    float4 part[ptx::MAX_CLUSTER];
#pragma unroll
    for (int other = 0; other < ptx::MAX_CLUSTER; other++) {
      const uint32_t there = ptx::address_in(place, min(other, splits - 1));
      part[other] = ptx::load_cluster_16(there, other < splits);
    }
    float4 y = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int other = 0; other < ptx::MAX_CLUSTER; other++) {
      y.x += part[other].x;
      y.y += part[other].y;
      y.z += part[other].z;
      y.w += part[other].w;
    }
    const float scale = scales[row];
    y = make_float4(y.x * scale, y.y * scale, y.z * scale, y.w * scale);
    finish_row<KIND>(target, beside, tile, row, lane, y);
    row += splits * WARPS;
    if (row < target.rows) beside = read_beside<KIND>(target, tile, row, lane);
  }
  ptx::cluster_barrier();  // no block leaves while another reads its sums
}

}  // namespace product
