// The doors of the library: each puts one kernel on a stream and returns a cudaError_t, or -1 where
// the driver refuses a tensor map. Built by native.py.
#include <climits>
#include <cstddef>
#include "attention.cuh"
#include "drawing.cuh"
#include "product.cuh"
#include "scaling.cuh"

namespace {

// A kernel that may start while the one before it on the stream still runs.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, int threads, int shared_bytes,
                   int cluster, void* stream, Arguments... arguments) {
  cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = cluster;
  attributes[1].val.clusterDim.y = 1;
  attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encode() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  return error == cudaSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

// A matrix bfloat16 [rows, depth] in boxes of `box_rows` rows and one tile's depth.
bool encode(CUtensorMap* map, const void* matrix, int rows, int depth, int box_rows) {
  static const Encode encode_tiled = find_encode();
  if (!encode_tiled) return false;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[1] = {static_cast<cuuint64_t>(depth) * 2};
  const cuuint32_t box[2] = {product::TILE_DEPTH, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode_tiled(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(matrix), sizes,
                      pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <int ROW_TILES, product::Kind KIND>
int multiply(const void* weights, const void* inputs, const product::Target& target,
             int weight_rows, int depth, int splits, int stages, void* stream) {
  CUtensorMap of_weights, of_inputs;
  if (!encode(&of_weights, weights, weight_rows, depth, product::TILE_ROWS / 2) ||
      !encode(&of_inputs, inputs, target.rows, depth, ROW_TILES * 8)) {
    return -1;
  }
  const int tiles = (weight_rows + product::TILE_ROWS - 1) / product::TILE_ROWS;
  const int ring = stages * product::STAGE_BYTES<ROW_TILES>;
  const int sums = ROW_TILES * 8 * product::SUMS_PITCH * 4;
  const int bytes = (ring > sums ? ring : sums) + product::RING_ALIGNMENT;
  return launch(product::multiply_rows<ROW_TILES, KIND>, dim3(tiles * splits), product::THREADS,
                bytes, splits, stream, of_weights, of_inputs, target,
                depth / product::TILE_DEPTH, stages);
}

template <product::Kind KIND>
int multiply_any(const void* weights, const void* inputs, const product::Target* target,
                 int weight_rows, int depth, int splits, int stages, void* stream) {
  if (stages > product::MAX_STAGES || target->rows > product::MAX_ROWS) {
    return cudaErrorInvalidValue;
  }
  const int tiles = (target->rows + 7) / 8;
#define OF_TILES(TILES)                                                                            \
  if (tiles <= TILES)                                                                              \
  return multiply<TILES, KIND>(weights, inputs, *target, weight_rows, depth, splits, stages, stream)
  OF_TILES(1);
  OF_TILES(2);
  OF_TILES(3);
  OF_TILES(4);
  OF_TILES(6);
  OF_TILES(8);
#undef OF_TILES
  return cudaErrorInvalidValue;
}

}  // namespace

extern "C" {

// Whether this library's runtime works with the driver. Asked once, before anything is captured.
int parley_try() {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(scaling::scale_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, 0);
}

int parley_multiply(int kind, const void* weights, const void* inputs,
                    const product::Target* target, int weight_rows, int depth, int splits,
                    int stages, void* stream) {
  using product::Kind;
#define OF_KIND(KIND)                                                                              \
  case KIND:                                                                                       \
    return multiply_any<KIND>(weights, inputs, target, weight_rows, depth, splits, stages, stream)
  switch (static_cast<Kind>(kind)) {
    OF_KIND(Kind::HEADS);
    OF_KIND(Kind::ADD);
    OF_KIND(Kind::GATE);
    OF_KIND(Kind::LOGITS);
  }
#undef OF_KIND
  return cudaErrorInvalidValue;
}

int parley_attend(const attention::Task* task, int rows, int splits, int stages, void* stream) {
  const dim3 grid(splits, task->key_heads, rows);
#define OF_STAGES(STAGES)                                                                          \
  case STAGES:                                                                                     \
    return launch(attention::attend_rows<STAGES>, grid, attention::THREADS,                        \
                  attention::SHARED_BYTES<STAGES>, splits, stream, *task)
  switch (stages) {
    OF_STAGES(2);
    OF_STAGES(3);
    OF_STAGES(4);
    OF_STAGES(6);
  }
#undef OF_STAGES
  return cudaErrorInvalidValue;
}

int parley_draw(const drawing::Task* task, int rows, void* stream) {
  const int threads = task->codebooks * 32;
  if (threads > 1024 || task->size > drawing::CODES) return cudaErrorInvalidValue;
  const auto kernel = task->size <= 33 * 32 ? drawing::draw_codes<33> : drawing::draw_codes<64>;
  return launch(kernel, dim3(rows), threads, 0, 1, stream, *task);
}

int parley_scale(const void* hidden, const void* norm, void* scaled, float* squares, int rows,
                 int columns, void* stream) {
  return launch(scaling::scale_rows, dim3(rows), scaling::THREADS, 0, 1, stream,
                static_cast<const __nv_bfloat16*>(hidden), static_cast<const __nv_bfloat16*>(norm),
                static_cast<__nv_bfloat16*>(scaled), squares, columns);
}

}  // extern "C"
