// Writes random values to tensors. The draws are made in the order of the elements in memory, as in PyTorch.
#pragma once
#include <functional>

#include "loops.h"
#include "random.h"

namespace msa {

// Fills `o` with values from produce(buffer, n), which writes the next n values to a buffer. They are converted to the
// type of `o`.
void fill_in_order(const Tensor &o, const std::function<void(double *, int64_t)> &produce);
void fill_in_order(const Tensor &o, const std::function<void(float *, int64_t)> &produce);
void fill_in_order(const Tensor &o, const std::function<void(int64_t *, int64_t)> &produce);

void fill_uniform(const Tensor &o, double from, double to, Generator &g);
void fill_normal(const Tensor &o, double mean, double std, Generator &g);
void fill_integers(const Tensor &o, int64_t from, uint64_t range, Generator &g);
void fill_bernoulli(const Tensor &o, double p, Generator &g);

// The next n draws of 53 bits.
void draw53(Generator &g, uint64_t *out, int64_t n);
// Returns the smallest k with k * 2^-53 >= p. A draw d of 53 bits stands for the number d * 2^-53, which is below p
// exactly if d is below this bound.
uint64_t bound53(double p);
// MindSpore stores probabilities in float32. Returns the number that the user wrote, which is the shortest decimal
// number that rounds to this float.
double as_written(double p);
// A number in an error message, as C++ streams print it ("1.5", "2").
std::string shown(double v);
// Returns the view of a complex tensor as real numbers, with a last dim of size 2.
Tensor real_view(const Tensor &t);

}  // namespace msa
