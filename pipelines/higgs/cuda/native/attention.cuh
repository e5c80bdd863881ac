// Attention over the static cache: a row's queries with the keys of its slot up to its position.
//
// Up to four rows of a prompt that follow one another read the keys together: with four queries to
// a key head they fill the 16 rows of a matrix instruction. A warp takes tiles of 16 keys, through
// a ring of its own: keys of earlier steps are on their way before the previous kernel has ended.
// The blocks that share a row and key head are a cluster, and combine their parts in shared memory.
//
// On an H200, behind 500 rows: 10 us for 16 rows and 35 us for 64, where reading takes 7.5 and 30.
#pragma once
#include "ptx.cuh"
#include "rows.cuh"

namespace attention {

constexpr int DIM = 128;
constexpr int TILE_KEYS = 16;
constexpr int LINE_BYTES = DIM * 2;
constexpr int TILE_BYTES = 2 * TILE_KEYS * LINE_BYTES;  // keys, then values
constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;
constexpr int QUERIES = 16;          // four rows of four heads
constexpr int HEADS_OF_ROW = 4;      // at most so many queries to a key head
constexpr int PART_PITCH = DIM + 8;  // floats: without bank conflicts
constexpr float FAINT = -1e30f;      // a score below all others whose differences are still finite

struct Task {
  const __nv_bfloat16* queries;  // [R, query_heads * 128]
  const __nv_bfloat16* keys;     // the layer's, [slots, key_heads, positions, 128]
  const __nv_bfloat16* values;
  __nv_bfloat16* attended;  // [R, query_heads * 128]
  const int* packed;
  int packed_width;
  int query_heads;
  int key_heads;
  int positions;
  float scale;  // of scores, for powers of two
};

struct Part {
  float sums[QUERIES][PART_PITCH];
  float greatest[QUERIES];
  float total[QUERIES];
};

__device__ __forceinline__ uint32_t pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

__device__ __forceinline__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// What a warp knows of its 16 queries; its lane holds those of rows g and g + 8.
struct Running {
  float sums[DIM / 8][4];
  float greatest[2];
  float total[2];
};

// One tile: scores, their exponentials, and the values they weigh. `seen`: how many keys from the
// tile's first on each of the lane's two queries sees.
__device__ __forceinline__ void take_tile(Running& running, uint32_t tile, const uint4 (&asked)[8],
                                          const int (&seen)[2], float scale, int lane) {
  const int g = lane / 4, t = lane % 4;
  float scores[2][4] = {};
#pragma unroll
  for (int n = 0; n < 2; n++) {
    const uint32_t line = tile + (n * 8 + g) * LINE_BYTES;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint4 key = ptx::load_shared_16(line + (((k * 4 + t) ^ ((g & 1) * 4)) << 4));
      const uint4 upper = asked[k], lower = asked[k + 4];
      ptx::multiply(scores[n], upper.x, lower.x, upper.y, lower.y, key.x, key.y);
      ptx::multiply(scores[n], upper.z, lower.z, upper.w, lower.w, key.z, key.w);
    }
  }
  float fade[2];
#pragma unroll
  for (int side = 0; side < 2; side++) {
    float greatest = FAINT;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float& score = scores[i / 2][side * 2 + i % 2];
      const bool is_seen = i / 2 * 8 + 2 * t + i % 2 < seen[side];
      score = is_seen ? score * scale : 2.f * FAINT;
      greatest = fmaxf(greatest, score);
    }
    greatest = fmaxf(running.greatest[side], quad_max(greatest));
    fade[side] = ptx::power_of_two(running.greatest[side] - greatest);
    running.greatest[side] = greatest;
    float total = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float& score = scores[i / 2][side * 2 + i % 2];
      score = ptx::power_of_two(score - greatest);  // 0 where the key is not seen
      total += score;
    }
    running.total[side] = running.total[side] * fade[side] + total;
  }
#pragma unroll
  for (int n = 0; n < DIM / 8; n++) {
    running.sums[n][0] *= fade[0];
    running.sums[n][1] *= fade[0];
    running.sums[n][2] *= fade[1];
    running.sums[n][3] *= fade[1];
  }
  const uint32_t a0 = pair(scores[0][0], scores[0][1]), a1 = pair(scores[0][2], scores[0][3]);
  const uint32_t a2 = pair(scores[1][0], scores[1][1]), a3 = pair(scores[1][2], scores[1][3]);
  const int key = lane % 16;  // the line whose address this lane gives
#pragma unroll
  for (int n = 0; n < DIM / 8; n += 2) {
    const uint32_t line = tile + TILE_KEYS * LINE_BYTES + key * LINE_BYTES;
    const uint4 value = ptx::load_matrices_transposed(line + (((n + lane / 16) ^ (key & 7)) << 4));
    ptx::multiply(running.sums[n], a0, a1, a2, a3, value.x, value.y);
    ptx::multiply(running.sums[n + 1], a0, a1, a2, a3, value.z, value.w);
  }
}

template <int STAGES>
__global__ void __launch_bounds__(THREADS) attend_rows(const Task task) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int splits = ptx::cluster_size(), split = ptx::cluster_rank();
  const int head = blockIdx.y, leader = blockIdx.z;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  ptx::launch_next();

  const int* packed = task.packed + leader * task.packed_width;
  const int group = packed[ROW_GROUP];
  if (group == 0) {  // its leader's blocks do its work; so of the whole cluster
    ptx::wait_for_previous();
    return;
  }
  const int sharing = task.query_heads / task.key_heads;
  const int settled = packed[ROW_SETTLED];
  const int end = packed[(group - 1) * task.packed_width + ROW_POSITION] + 1;
  const int tiles = (end + TILE_KEYS - 1) / TILE_KEYS, step = splits * WARPS;
  const size_t base =
      (static_cast<size_t>(packed[ROW_SLOT]) * task.key_heads + head) * task.positions * DIM;
  const uint32_t ring = ptx::shared_address(shared) + warp * STAGES * TILE_BYTES;

  auto load = [&](int tile, int stage) {
    const uint32_t to = ring + stage * TILE_BYTES;
#pragma unroll
    for (int i = 0; i < TILE_KEYS / 2; i++) {
      const int line = i * 2 + lane / 16, chunk = lane % 16;
      const int key = tile * TILE_KEYS + line;
      const size_t from = base + static_cast<size_t>(min(key, end - 1)) * DIM + chunk * 8;
      const uint32_t at = to + line * LINE_BYTES;
      ptx::copy_16(at + ((chunk ^ ((line & 1) * 4)) << 4), task.keys + from, key < end);
      ptx::copy_16(at + TILE_KEYS * LINE_BYTES + ((chunk ^ (line & 7)) << 4), task.values + from,
                   key < end);
    }
  };
  // A group of copies a stage, empty where there is no tile: waiting counts groups.
  const int first = split * WARPS + warp;
  int started = 0;
  for (; started < STAGES; started++) {
    const int tile = first + started * step;
    if (tile < tiles && (tile + 1) * TILE_KEYS > settled) break;
    if (tile < tiles) load(tile, started);
    ptx::copies_commit();
  }
  int limit[2];
#pragma unroll
  for (int side = 0; side < 2; side++) {
    const int query = g + side * 8, row = query / HEADS_OF_ROW;
    const bool is_there = row < group && query % HEADS_OF_ROW < sharing;
    limit[side] = is_there ? packed[row * task.packed_width + ROW_POSITION] + 1 : 0;
  }
  ptx::wait_for_previous();
  for (; started < STAGES; started++) {
    if (first + started * step < tiles) load(first + started * step, started);
    ptx::copies_commit();
  }

  uint4 asked[8];
#pragma unroll
  for (int side = 0; side < 2; side++) {
    const int query = g + side * 8, row = query / HEADS_OF_ROW, of = query % HEADS_OF_ROW;
    const bool is_there = row < group && of < sharing;
    const __nv_bfloat16* from =
        task.queries +
        (static_cast<size_t>(leader + row) * task.query_heads + head * sharing + of) * DIM;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      asked[side * 4 + k] = is_there ? *reinterpret_cast<const uint4*>(from + k * 32 + t * 8)
                                     : make_uint4(0, 0, 0, 0);
    }
  }
  Running running = {};
  running.greatest[0] = running.greatest[1] = FAINT;
  int stage = 0;
  for (int tile = first; tile < tiles; tile += step) {
    ptx::copies_wait<STAGES - 1>();
    __syncwarp();
    const int seen[2] = {limit[0] - tile * TILE_KEYS, limit[1] - tile * TILE_KEYS};
    take_tile(running, ring + stage * TILE_BYTES, asked, seen, task.scale, lane);
    __syncwarp();
    if (tile + STAGES * step < tiles) load(tile + STAGES * step, stage);
    ptx::copies_commit();
    if (++stage == STAGES) stage = 0;
  }
  ptx::copies_wait<0>();
  __syncthreads();

  // The warps' parts, then the block's behind them, then the cluster's.
  Part* parts = reinterpret_cast<Part*>(shared);
  Part& mine = parts[warp];
#pragma unroll
  for (int side = 0; side < 2; side++) {
    const int query = g + side * 8;
    const float total = quad_sum(running.total[side]);
    if (query / HEADS_OF_ROW >= group) continue;
#pragma unroll
    for (int n = 0; n < DIM / 8; n++) {
      mine.sums[query][n * 8 + 2 * t] = running.sums[n][side * 2];
      mine.sums[query][n * 8 + 2 * t + 1] = running.sums[n][side * 2 + 1];
    }
    if (t == 0) mine.greatest[query] = running.greatest[side], mine.total[query] = total;
  }
  __syncthreads();
  Part& of_block = parts[WARPS];
  const int column = threadIdx.x;
#pragma unroll 4
  for (int query = 0; query < group * HEADS_OF_ROW; query++) {
    float greatest = FAINT, total = 0.f, sum = 0.f;
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
      greatest = fmaxf(greatest, parts[other].greatest[query]);
    }
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
      const float weight = ptx::power_of_two(parts[other].greatest[query] - greatest);
      total += parts[other].total[query] * weight;
      sum += parts[other].sums[query][column] * weight;
    }
    of_block.sums[query][column] = sum;
    if (column == 0) of_block.greatest[query] = greatest, of_block.total[query] = total;
  }
  ptx::cluster_barrier();
  const uint32_t here = ptx::shared_address(&of_block);
  for (int query = split; query < group * HEADS_OF_ROW; query += splits) {
    const int row = query / HEADS_OF_ROW, of = query % HEADS_OF_ROW;
    if (of >= sharing) continue;
    float greatests[ptx::MAX_CLUSTER], totals[ptx::MAX_CLUSTER], sums[ptx::MAX_CLUSTER];
#pragma unroll
    for (int other = 0; other < ptx::MAX_CLUSTER; other++) {
      const bool is_there = other < splits;
      const uint32_t there = ptx::address_in(here, min(other, splits - 1));
      greatests[other] = ptx::load_cluster(there + offsetof(Part, greatest) + query * 4, is_there);
      totals[other] = ptx::load_cluster(there + offsetof(Part, total) + query * 4, is_there);
      sums[other] = ptx::load_cluster(there + (query * PART_PITCH + column) * 4, is_there);
    }
    float greatest = FAINT, total = 0.f, sum = 0.f;
#pragma unroll
    for (int other = 0; other < ptx::MAX_CLUSTER; other++) {
      if (other < splits) greatest = fmaxf(greatest, greatests[other]);
    }
#pragma unroll
    for (int other = 0; other < ptx::MAX_CLUSTER; other++) {
      const float weight = other < splits ? ptx::power_of_two(greatests[other] - greatest) : 0.f;
      total += totals[other] * weight;
      sum += sums[other] * weight;
    }
    const float result = total > 0.f ? sum / total : 0.f;
    task.attended[(static_cast<size_t>(leader + row) * task.query_heads + head * sharing + of) *
                      DIM +
                  column] = __float2bfloat16(result);
  }
  ptx::cluster_barrier();  // no block leaves while another reads its part
}

template <int STAGES>
constexpr int SHARED_BYTES =
    WARPS * STAGES * TILE_BYTES > (WARPS + 1) * sizeof(Part) ? WARPS * STAGES * TILE_BYTES
                                                             : (WARPS + 1) * sizeof(Part);

}  // namespace attention
