// Matrices, and the dimension legend that every shape comment of the project uses.
//
//   B          sequences in a batch          T            positions in a sequence
//   N = B * T  tokens (rows)                 V            vocabulary size
//   d_model    width of the hidden state     d_ff         width inside an FFN
//   H, H_kv    heads, key-value heads        d_head       width of a head
//   E          num_experts                   k            top_k
//   A          assignments (token, expert)   C            capacity of an expert
//
// Everything is row-major; a token is a row. The weight of a linear map is (out, in). The gradient of x is
// dx.
#pragma once

#include <Eigen/Core>

namespace moelab {

// One scalar for the whole build: float32 in the product, float64 in the library that tests check gradients
// with.
#ifdef MOELAB_FLOAT64
using Scalar = double;
#else
using Scalar = float;
#endif

using Index = Eigen::Index;
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<Matrix>;
using ConstMatrixView = Eigen::Map<const Matrix>;

// Arguments of functions that read or write a row-major block without owning it.
using In = const Eigen::Ref<const Matrix>&;
using Out = Eigen::Ref<Matrix>;

}  // namespace moelab
