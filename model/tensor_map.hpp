#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plait {

/// A matrix of a model, or a vector, as part of a stored tensor. Files fuse matrices in many ways: row r of the matrix
/// is row first + r / run * step + r % run of the tensor, or that column where it is stored the other way round; then
/// column c is the tensor's row first_input + c. Of a vector the same goes for its values.
struct tensor_ref {
    std::string name; ///< in the file; empty: the model has no such tensor
    std::int64_t first = 0;
    std::int64_t run = 0;         ///< rows that follow each other; 0: all
    std::int64_t step = 0;        ///< from the start of a run to the next one's
    bool transposed = false;      ///< stored as inputs × outputs
    std::int64_t first_input = 0; ///< of a transposed one: the stored row of its first input
    float plus = 0;               ///< added to each value of a vector: norms that are stored less 1

    tensor_ref() = default;
    tensor_ref(std::string whole)
        : name(std::move(whole))
    {
    }
    tensor_ref(char const* whole)
        : name(whole)
    {
    }

    /// `rows` rows from `first` on.
    tensor_ref rows(std::int64_t first_row, std::int64_t count) const
    {
        auto out = *this;
        out.first = first + first_row;
        out.run = out.step = count;
        return out;
    }
    /// Runs of `count` rows that begin every `every` rows, from `first_row` on.
    tensor_ref runs(std::int64_t first_row, std::int64_t count, std::int64_t every) const
    {
        auto out = rows(first_row, count);
        out.step = every;
        return out;
    }

    /// Of a matrix stored as inputs × outputs among others: its inputs begin at stored row `row`.
    tensor_ref inputs_from(std::int64_t row) const
    {
        auto out = *this;
        out.first_input = row;
        return out;
    }

    bool empty() const noexcept { return name.empty(); }
    /// The row of the tensor, or the column, that is row `r` of the matrix.
    std::int64_t stored(std::int64_t r) const noexcept
    {
        return run == 0 ? first + r : first + r / run * step + r % run;
    }

    bool operator==(tensor_ref const&) const = default;
};

/// A weight and what is added after it.
struct norm_tensors {
    tensor_ref weight;
    tensor_ref bias;

    bool operator==(norm_tensors const&) const = default;
};

struct ffn_tensors {
    tensor_ref gate; ///< empty where the network is not gated
    tensor_ref up;
    tensor_ref down;
    tensor_ref gate_bias, up_bias, down_bias;

    bool operator==(ffn_tensors const&) const = default;
};

/// Where one layer's weights are.
struct layer_tensors {
    norm_tensors attention_norm;        ///< N of the attention
    norm_tensors attention_output_norm; ///< its M
    tensor_ref query, key, value, attention_output;
    tensor_ref query_bias, key_bias, value_bias, attention_output_bias;
    norm_tensors query_norm, key_norm;
    tensor_ref sinks;
    norm_tensors ffn_norm;
    norm_tensors ffn_output_norm;
    ffn_tensors ffn; ///< the dense network, or the expert that every token goes through
    tensor_ref router, router_bias, selection_bias;
    std::vector<ffn_tensors> experts;

    bool operator==(layer_tensors const&) const = default;
};

/// Where a model's weights are.
struct tensor_map {
    tensor_ref token_embedding;
    tensor_ref position_embedding;
    tensor_ref output; ///< empty where the output is tied to the token embedding
    norm_tensors output_norm;
    std::vector<std::string> read; ///< tensors whose values are in the specification already
    std::vector<layer_tensors> layers;

    bool operator==(tensor_map const&) const = default;
};

} // namespace plait
