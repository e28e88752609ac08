// How random values are written to tensors: the draws are in the order of the destination's memory.
#pragma once
#include <functional>

#include "loops.h"
#include "random.h"

namespace msa {

// produce(buffer, n) makes the next n values; they are converted to the type of `o`.
void fill_in_order(const Tensor &o, const std::function<void(double *, int64_t)> &produce);
void fill_in_order(const Tensor &o, const std::function<void(float *, int64_t)> &produce);
void fill_in_order(const Tensor &o, const std::function<void(int64_t *, int64_t)> &produce);

void fill_uniform(const Tensor &o, double from, double to, Generator &g);
void fill_normal(const Tensor &o, double mean, double std, Generator &g);
void fill_integers(const Tensor &o, int64_t from, uint64_t range, Generator &g);
void fill_bernoulli(const Tensor &o, double p, Generator &g);

// The next n draws of 53 bits.
void draw53(Generator &g, uint64_t *out, int64_t n);
// Smallest k with k * 2^-53 >= p: a 53-bit draw d means u < p exactly when d < bound.
uint64_t bound53(double p);
// MindSpore stores probabilities in float32. The number that the user wrote is its shortest decimal form.
double as_written(double p);
// A number in an error message, as C++ streams print it ("1.5", "2").
std::string shown(double v);
// A complex tensor as its (..., 2) real view.
Tensor real_view(const Tensor &t);

}  // namespace msa
