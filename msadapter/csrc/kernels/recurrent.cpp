// Recurrent layers: all steps of one direction, and their gradients. MindSpore has no operator for them.
//
// The rows of all steps lie one after the other. A step has as many rows as sequences that last so long, the longest
// sequence first. Sequences do not depend on each other, so threads divide them and run all steps without waiting.
#include "gemm.h"
#include "loops.h"
#include "recurrent_cells.h"

namespace msa {
namespace {

using recurrent::Cell;

// Rows of a weight whose products are columns of the gates.
struct Block {
  int64_t row, count, column;
};

struct Layer {
  Cell cell;
  bool reverse = false, lstm = false;
  int64_t batch = 0, hidden = 0, width = 0, rows = 0, columns = 0;
  Dims sizes, starts;           // of the steps
  std::vector<Block> of_input;  // the parts of the gates that the weight of the input gives
  Block of_state{};             // the part that the weight of the state gives
  int64_t steps() const { return static_cast<int64_t>(sizes.size()); }
  int64_t step(int64_t k) const { return reverse ? steps() - 1 - k : k; }
};

Cell cell_of(const std::string &mode) {
  for (auto [name, cell] :
       {std::pair{"LSTM", Cell::kLstm}, {"GRU", Cell::kGru}, {"RNN_TANH", Cell::kTanh}, {"RNN_RELU", Cell::kRelu}})
    if (mode == name) return cell;
  fail("Unrecognized RNN mode: ", mode);
}

void check_shape(const Tensor &t, const Dims &shape, const char *name) {
  check(t.shape() == shape, "recurrent layer: ", name, " must have the shape ", shape, ", but got ", t.shape());
}

// Describes the layer, and checks everything that the loops rely on.
Layer layer_of(const Tensor &x, const Tensor &h, const Tensor &w_ih, const Tensor &w_hh, const std::string &mode,
               bool reverse, const Dims &batch_sizes) {
  Layer l;
  l.cell = cell_of(mode);
  l.lstm = l.cell == Cell::kLstm;
  l.reverse = reverse;
  check(h.ndim == 2, "recurrent layer: the state must have 2 dimensions, got ", h.ndim);
  l.batch = h.size(0);
  l.hidden = h.size(1);
  if (batch_sizes.empty()) {
    check(x.ndim == 3, "recurrent layer: input must have 3 dimensions, got ", x.ndim);
    check(x.size(1) == l.batch, "recurrent layer: the input has ", x.size(1), " sequences, the state ", l.batch);
    l.sizes.assign(x.size(0), l.batch);
  } else {
    check(x.ndim == 2, "recurrent layer: packed input must have 2 dimensions, got ", x.ndim);
    l.sizes = batch_sizes;
  }
  l.width = x.size(-1);
  for (int64_t s = 0; s < l.steps(); ++s) {
    check(l.sizes[s] >= 0 && l.sizes[s] <= (s ? l.sizes[s - 1] : l.batch),
          "recurrent layer: batch_sizes must not grow, and the first one must be at most ", l.batch);
    l.starts.push_back(l.rows);
    l.rows += l.sizes[s];
  }
  check(x.numel == l.rows * l.width, "recurrent layer: the input does not have the ", l.rows, " rows of batch_sizes");
  const int64_t n = l.hidden;
  if (l.cell == Cell::kGru) {  // columns: new gate of the input, reset, update, new gate of the state
    l.columns = 4 * n;
    l.of_input = {{0, 2 * n, n}, {2 * n, n, 0}};
    l.of_state = {0, 3 * n, n};
  } else {
    l.columns = l.lstm ? 4 * n : n;
    l.of_input = {{0, l.columns, 0}};
    l.of_state = {0, l.columns, 0};
  }
  check_shape(w_ih, {l.of_state.count, l.width}, "the weight of the input");
  check_shape(w_hh, {l.of_state.count, n}, "the weight of the state");
  return l;
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b, int64_t b_row,
             int64_t b_col, bool add, T *c, int64_t ldc) {
  gemm(dtype_of<T>::value, m, n, k, make_scalar(1), {a, a_row, a_col}, {b, b_row, b_col}, make_scalar(add ? 1 : 0), c,
       ldc);
}

// Calls f(first sequence, end) for parts of the batch. A part is not smaller than the products are efficient for.
template <class F>
void for_sequences(const Layer &l, F f) {
  constexpr int64_t kFewest = 8;
  if (l.batch < 2 * kFewest)
    f(0, l.batch);
  else
    parallel_for(l.batch, kFewest, f);
}

// The row before `row` of step number k of a sequence: the state at its beginning, or a row of the step before.
template <class T>
const T *row_before(const Layer &l, int64_t k, int64_t row, const T *rows, const T *first) {
  const int64_t n = l.hidden;
  if (k > 0) {
    const int64_t s = l.step(k - 1);
    if (row < l.sizes[s]) return rows + (l.starts[s] + row) * n;
  }
  return first + row * n;
}

// The biases, where there are any, in the columns of the gates.
template <class T>
void fill_bias(const Layer &l, const T *b_ih, const T *b_hh, T *gates) {
  std::vector<T> bias(l.columns, T(0));
  if (b_ih)
    for (const Block &b : l.of_input)
      for (int64_t j = 0; j < b.count; ++j) bias[b.column + j] += b_ih[b.row + j];
  if (b_hh)
    for (int64_t j = 0; j < l.of_state.count; ++j) bias[l.of_state.column + j] += b_hh[j];
  parallel_for(l.rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, l.columns)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::copy(bias.begin(), bias.end(), gates + r * l.columns);
  });
}

template <class T>
void run_layer(Call &c, const Layer &l) {
  auto operand = [&](int i) { return c.has(i) ? c.contiguous(c.in(i)).template ptr<T>() : nullptr; };
  const DType type = c.in(0).dtype;
  const int64_t n = l.hidden, columns = l.columns;
  const T *x = operand(0), *w_ih = operand(3), *w_hh = operand(4), *b_ih = operand(5), *b_hh = operand(6);
  Dims shape = c.in(0).shape();
  shape.back() = n;
  const bool keeps_gates = l.lstm || l.cell == Cell::kGru;  // the other cells write their output to the gates' place
  const Tensor out = c.out(0, type, shape), h = c.out(1, type, Dims{l.batch, n});
  const Tensor last = c.out(2, type, Dims{l.lstm ? l.batch : 0, n});
  const Tensor kept = c.out(3, type, Dims{keeps_gates ? l.rows : 0, columns});
  const Tensor cells = c.out(4, type, Dims{l.lstm ? l.rows : 0, n});
  if (shape_only()) return;
  T *gates = keeps_gates ? kept.ptr<T>() : out.ptr<T>();
  std::copy_n(operand(1), l.batch * n, h.ptr<T>());
  if (l.lstm) std::copy_n(operand(2), l.batch * n, last.ptr<T>());
  fill_bias(l, b_ih, b_hh, gates);
  for (const Block &b : l.of_input)
    product<T>(l.rows, b.count, l.width, x, l.width, 1, w_ih + b.row * l.width, 1, l.width, true, gates + b.column,
               columns);
  // Products of several rows read the columns of the weight. A transposed copy pays if there are enough of them.
  const int64_t count = l.of_state.count;
  const bool copied = l.batch >= 8 && l.steps() >= 4;
  const T *turned =
      copied ? c.contiguous(make_view(c.in(4), {n, count}, {c.in(4).stride(1), c.in(4).stride(0)})).template ptr<T>()
             : nullptr;
  for_sequences(l, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < l.steps(); ++k) {
      const int64_t s = l.step(k), rows = std::min(l.sizes[s], end) - begin, at = l.starts[s] + begin;
      if (rows <= 0) continue;
      T *g = gates + at * columns, *state = h.ptr<T>() + begin * n;
      product<T>(rows, count, n, state, n, 1, copied ? turned : w_hh, copied ? count : 1, copied ? 1 : n, true,
                 g + l.of_state.column, columns);
      for (int64_t r = 0; r < rows; ++r, g += columns, state += n) {
        T *o = out.ptr<T>() + (at + r) * n;
        if (l.lstm)
          recurrent::lstm(n, g, last.ptr<T>() + (begin + r) * n, state, o, cells.ptr<T>() + (at + r) * n);
        else if (l.cell == Cell::kGru)
          recurrent::gru(n, g, state, o);
        else
          recurrent::plain(l.cell, n, o, state);
      }
    }
  });
}

// What the backward pass needs, and what it makes.
template <class T>
struct Pass {
  const T *g_out, *x, *h0, *c0, *w_ih, *w_hh, *out, *gates, *cells;
  T *slopes;  // the gradient of the gates before their functions
  T *g_h, *g_c;
};

template <class T>
void run_back(const Layer &l, const Pass<T> &p) {
  const int64_t n = l.hidden, columns = l.columns;
  for_sequences(l, [&](int64_t begin, int64_t end) {
    for (int64_t k = l.steps() - 1; k >= 0; --k) {
      const int64_t s = l.step(k), rows = std::min(l.sizes[s], end) - begin, at = l.starts[s] + begin;
      if (rows <= 0) continue;
      T *slopes = p.slopes + at * columns, *g_h = p.g_h + begin * n;
      for (int64_t r = 0; r < rows; ++r) {
        const T *given = p.g_out ? p.g_out + (at + r) * n : nullptr, *g = p.gates + (at + r) * columns;
        T *to = slopes + r * columns, *own = g_h + r * n;
        if (given)
          for (int64_t j = 0; j < n; ++j) own[j] += given[j];
        if (l.lstm)
          recurrent::lstm_grad(n, g, row_before(l, k, begin + r, p.cells, p.c0), p.cells + (at + r) * n, own,
                               p.g_c + (begin + r) * n, to);
        else if (l.cell == Cell::kGru)
          recurrent::gru_grad(n, g, row_before(l, k, begin + r, p.out, p.h0), own, to);
        else
          recurrent::plain_grad(l.cell, n, p.out + (at + r) * n, own, to);
      }
      product<T>(rows, n, l.of_state.count, slopes + l.of_state.column, columns, 1, p.w_hh, n, 1, l.cell == Cell::kGru,
                 g_h, n);
    }
  });
}

// The sums of the columns over all rows. Parts of a few rows are added in double, as rounding errors of long sums grow.
template <class T>
std::vector<T> column_sums(const Layer &l, const T *slopes) {
  constexpr int64_t kRows = 128;
  std::vector<T> sums(l.columns);
  parallel_for(l.columns, 64, [&](int64_t begin, int64_t end) {
    std::vector<double> total(end - begin, 0.);
    std::vector<T> part(end - begin);
    for (int64_t r = 0; r < l.rows; r += kRows) {
      std::fill(part.begin(), part.end(), T(0));
      for (int64_t i = r; i < std::min(r + kRows, l.rows); ++i)
        for (int64_t j = begin; j < end; ++j) part[j - begin] += slopes[i * l.columns + j];
      for (int64_t j = 0; j < end - begin; ++j) total[j] += static_cast<double>(part[j]);
    }
    for (int64_t j = begin; j < end; ++j) sums[j] = static_cast<T>(total[j - begin]);
  });
  return sums;
}

// The states before all steps, row by row.
template <class T>
const T *states_before(Call &c, const Layer &l, const Pass<T> &p) {
  T *to = c.scratch_of<T>(l.rows * l.hidden);
  for (int64_t k = 0; k < l.steps(); ++k) {
    const int64_t s = l.step(k);
    for (int64_t r = 0; r < l.sizes[s]; ++r)
      std::copy_n(row_before(l, k, r, p.out, p.h0), l.hidden, to + (l.starts[s] + r) * l.hidden);
  }
  return to;
}

// The gradient of a weight: the products of the gates' slopes with what the weight was multiplied with.
template <class T>
void weight_grad(const Layer &l, const Block &b, const T *slopes, const T *rows, int64_t width, T *to) {
  product<T>(b.count, width, l.rows, slopes + b.column, 1, l.columns, rows, width, 1, false, to + b.row * width, width);
}

enum Wanted { kInput, kState, kCell, kInputWeight, kStateWeight, kInputBias, kStateBias, kWanted };

template <class T>
void run_layer_grad(Call &c, const Layer &l) {
  auto operand = [&](int i) { return c.has(i) ? c.contiguous(c.in(i)).template ptr<T>() : nullptr; };
  const Dims &needs = c.ints(14);
  const Tensor &x = c.in(3), &w_ih = c.in(6), &w_hh = c.in(7);
  const int64_t n = l.hidden, columns = l.columns, gates = l.of_state.count;
  Tensor made[kWanted];
  const Dims shapes[kWanted] = {x.shape(), {l.batch, n}, {l.lstm ? l.batch : 0, n}, w_ih.shape(), w_hh.shape(),
                                {gates},   {gates}};
  for (int i = 0; i < kWanted; ++i)
    made[i] = c.out(i, x.dtype, needs[i] || i == kState || i == kCell ? shapes[i] : Dims{0});
  if (shape_only()) return;
  Pass<T> p{operand(0),
            operand(3),
            operand(4),
            operand(5),
            operand(6),
            operand(7),
            operand(8),
            operand(9),
            operand(10),
            c.scratch_of<T>(l.rows * columns),
            made[kState].ptr<T>(),
            made[kCell].ptr<T>()};
  auto begin_with = [&](int i, const Tensor &to) {
    if (c.has(i))
      std::copy_n(operand(i), to.numel, to.ptr<T>());
    else
      std::fill_n(to.ptr<T>(), to.numel, T(0));
  };
  begin_with(1, made[kState]);
  if (l.lstm) begin_with(2, made[kCell]);
  run_back(l, p);
  if (needs[kInput])
    for (const Block &b : l.of_input)
      product<T>(l.rows, l.width, b.count, p.slopes + b.column, columns, 1, p.w_ih + b.row * l.width, l.width, 1,
                 &b != &l.of_input[0], made[kInput].ptr<T>(), l.width);
  if (needs[kInputWeight])
    for (const Block &b : l.of_input) weight_grad(l, b, p.slopes, p.x, l.width, made[kInputWeight].ptr<T>());
  if (needs[kStateWeight]) weight_grad(l, l.of_state, p.slopes, states_before(c, l, p), n, made[kStateWeight].ptr<T>());
  if (!needs[kInputBias] && !needs[kStateBias]) return;
  const std::vector<T> sums = column_sums(l, p.slopes);
  if (needs[kInputBias])
    for (const Block &b : l.of_input) std::copy_n(&sums[b.column], b.count, made[kInputBias].ptr<T>() + b.row);
  if (needs[kStateBias]) std::copy_n(&sums[l.of_state.column], gates, made[kStateBias].ptr<T>());
}

}  // namespace

// input [steps, batch, width], or packed rows [rows, width]; h [batch, hidden], c?, w_ih, w_hh, b_ih?, b_hh?, mode,
// reverse, batch_sizes (none for input that is not packed) -> output, last h, last c, and what the gradient reads: the
// gates and the cells of each row
MSA_KERNEL(Recurrent) {
  const Layer l = layer_of(c.in(0), c.in(1), c.in(3), c.in(4), c.str(7), c.flag(8), c.ints(9));
  const Tensor &x = c.in(0);
  if (l.lstm) check_shape(c.in(2), {l.batch, l.hidden}, "the cell state");
  for (int i : {5, 6})
    if (c.has(i)) check_shape(c.in(i), {l.of_state.count}, "a bias");
  for (int i = 1; i < 7; ++i)
    check(!c.has(i) || c.in(i).dtype == x.dtype, "recurrent layer: all operands must have the type ", x.dtype);
  if (x.dtype == DType::F64) return run_layer<double>(c, l);
  check(x.dtype == DType::F32, "recurrent layer: not implemented for ", x.dtype);
  run_layer<float>(c, l);
}

// gradients of output?, last h?, last c?; input, h, c?, w_ih, w_hh, output, gates, cells, mode, reverse, batch_sizes,
// which gradients are needed -> gradients of input, h, c, w_ih, w_hh, b_ih, b_hh
MSA_KERNEL(RecurrentGrad) {
  const Layer l = layer_of(c.in(3), c.in(4), c.in(6), c.in(7), c.str(11), c.flag(12), c.ints(13));
  if (c.in(3).dtype == DType::F64) return run_layer_grad<double>(c, l);
  run_layer_grad<float>(c, l);
}

}  // namespace msa
