// One row of one step of a recurrent network, and its gradient. Each loop runs over `n`, the hidden size, and calls
// few functions, so that the compiler vectorises it.
#pragma once
#include "vec_math.h"

namespace msa::recurrent {

enum class Cell { kLstm, kGru, kTanh, kRelu };

template <class T>
inline void sigmoids(int64_t n, T *__restrict x) {
  for (int64_t j = 0; j < n; ++j) x[j] = vec::sigmoid(x[j]);
}
template <class T>
inline void tanhs(int64_t n, T *__restrict x) {
  for (int64_t j = 0; j < n; ++j) x[j] = vec::tanh(x[j]);
}

// `gates` has the input, forget, cell and output gates before their functions, and receives them after these. `c` and
// `h` are the states, which change; `out` and `cell` receive copies of the new ones.
template <class T>
inline void lstm(int64_t n, T *__restrict gates, T *__restrict c, T *__restrict h, T *__restrict out,
                 T *__restrict cell) {
  sigmoids(2 * n, gates);
  tanhs(n, gates + 2 * n);
  sigmoids(n, gates + 3 * n);
  const T *in = gates, *forget = gates + n, *fresh = gates + 2 * n, *open = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T next = forget[j] * c[j] + in[j] * fresh[j], y = open[j] * vec::tanh(next);
    c[j] = cell[j] = next;
    h[j] = out[j] = y;
  }
}
// `before` is the cell state before the step and `cell` the one after it. `g_h` is the gradient of the new h. `g_c` is
// that of the new c, and becomes that of the old one. `slopes` receives that of the gates before their functions.
template <class T>
inline void lstm_grad(int64_t n, const T *__restrict gates, const T *__restrict before, const T *__restrict cell,
                      const T *__restrict g_h, T *__restrict g_c, T *__restrict slopes) {
  const T *in = gates, *forget = gates + n, *fresh = gates + 2 * n, *open = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T i = in[j], f = forget[j], g = fresh[j], o = open[j], y = vec::tanh(cell[j]);
    const T d = g_c[j] + g_h[j] * o * (T(1) - y * y);
    slopes[j] = d * g * i * (T(1) - i);
    slopes[n + j] = d * before[j] * f * (T(1) - f);
    slopes[2 * n + j] = d * i * (T(1) - g * g);
    slopes[3 * n + j] = g_h[j] * y * o * (T(1) - o);
    g_c[j] = d * f;
  }
}

// `gates` has the new gate of the input, the reset and update gates, and the new gate of the state, which the reset
// gate scales. The first three are replaced by the values of their functions.
template <class T>
inline void gru(int64_t n, T *__restrict gates, T *__restrict h, T *__restrict out) {
  sigmoids(2 * n, gates + n);
  T *fresh = gates;
  const T *reset = gates + n, *update = gates + 2 * n, *of_state = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T candidate = vec::tanh(fresh[j] + reset[j] * of_state[j]), y = (h[j] - candidate) * update[j] + candidate;
    fresh[j] = candidate;
    h[j] = out[j] = y;
  }
}
// `g_h` is the gradient of the new h. It becomes that part of the old one's gradient which does not come from the
// gates.
template <class T>
inline void gru_grad(int64_t n, const T *__restrict gates, const T *__restrict before, T *__restrict g_h,
                     T *__restrict slopes) {
  const T *fresh = gates, *reset = gates + n, *update = gates + 2 * n, *of_state = gates + 3 * n;
  for (int64_t j = 0; j < n; ++j) {
    const T c = fresh[j], r = reset[j], z = update[j], d = g_h[j], inner = d * (T(1) - z) * (T(1) - c * c);
    slopes[j] = inner;
    slopes[n + j] = inner * of_state[j] * r * (T(1) - r);
    slopes[2 * n + j] = d * (before[j] - c) * z * (T(1) - z);
    slopes[3 * n + j] = inner * r;
    g_h[j] = d * z;
  }
}

// `out` has the only gate, and receives the new state, of which `h` gets a copy.
template <class T>
inline void plain(Cell cell, int64_t n, T *__restrict out, T *__restrict h) {
  if (cell == Cell::kTanh)
    tanhs(n, out);
  else
    for (int64_t j = 0; j < n; ++j) out[j] = out[j] < T(0) ? T(0) : out[j];
  for (int64_t j = 0; j < n; ++j) h[j] = out[j];
}
template <class T>
inline void plain_grad(Cell cell, int64_t n, const T *__restrict out, const T *__restrict g_h, T *__restrict slopes) {
  if (cell == Cell::kTanh)
    for (int64_t j = 0; j < n; ++j) slopes[j] = g_h[j] * (T(1) - out[j] * out[j]);
  else
    for (int64_t j = 0; j < n; ++j) slopes[j] = out[j] <= T(0) ? T(0) : g_h[j];
}

}  // namespace msa::recurrent
