// The columns of a packed row; the same as in packing.py.
#pragma once

constexpr int ROW_SLOT = 0;
constexpr int ROW_POSITION = 1;
constexpr int ROW_RAMP = 3;
constexpr int ROW_SEED = 4;
constexpr int ROW_DRAW = 5;
constexpr int ROW_TEMPERATURE = 6;
constexpr int ROW_TOP_P = 7;
constexpr int ROW_TOP_K = 8;
constexpr int ROW_SETTLED = 9;
constexpr int ROW_GROUP = 10;
constexpr int ROW_KEEPS = 11;
