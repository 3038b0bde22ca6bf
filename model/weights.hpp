#pragma once

#include <cstdint>
#include <vector>

#include <plait/actors/tasks/task.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/numerics.hpp>
#include <plait/model/shard.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

/// Matrices that read the same input, one below the other; neighbours in one format share a product.
struct stacked_weights {
    struct part {
        weight_view weights;
        std::int64_t first_row = 0; ///< where its outputs go
    };
    std::vector<part> parts;
    std::int64_t rows = 0;
};

/// A matrix whose columns are cut: each part makes a summand of the product from its columns of the input.
struct summed_weights {
    std::vector<weight_view> parts; ///< of one format and of equally many columns

    weight_format format() const noexcept { return parts.front().format; }
};

/// Null pointers: ones, and no bias.
struct norm_weights {
    float const* weight = nullptr;
    float const* bias = nullptr;
};

/// A feed-forward network, this rank's hidden features of it. Biases are null where there are none.
struct ffn_weights {
    weight_view gate_up; ///< of a gated one: panels of gate and up alternate
    weight_view up;      ///< of one without a gate
    float const* gate_bias = nullptr;
    float const* up_bias = nullptr;
    summed_weights down;
    float const* down_bias = nullptr; ///< on every rank, to be added once
};

/// A mixture's router, whole, and this rank's experts, one behind the other. Biases are null where there are none.
struct experts_weights {
    weight_view router;
    float const* router_bias = nullptr;
    float const* selection_bias = nullptr;
    std::int64_t first = 0;
    std::int64_t count = 0;
    weight_view gate_up; ///< of the first expert here; the next one's is gate_up_bytes further on
    std::size_t gate_up_bytes = 0;
    weight_view down;
    std::size_t down_bytes = 0;
    float const* gate_bias = nullptr; ///< count × hidden
    float const* up_bias = nullptr;   ///< count × hidden
    float const* down_bias = nullptr; ///< count × width
};

/// The weights of a layer, in device memory: this rank's.
struct layer_weights {
    norm_weights attention_norm;
    norm_weights attention_output_norm;
    stacked_weights qkv; ///< rows: queries, keys, values
    float const* qkv_bias = nullptr;
    norm_weights query_norm, key_norm;
    float const* sinks = nullptr; ///< one a head
    summed_weights attention_out;
    float const* attention_out_bias = nullptr; ///< on every rank, to be added once
    norm_weights ffn_norm;
    norm_weights ffn_output_norm;
    ffn_weights ffn; ///< the dense network, or the expert that every token goes through
    experts_weights experts;
};

/// A rank's part of a model's weights in the layout of its device. Only that part of the file is read. Loading is done
/// in steps, so that whoever loads can show progress and stop between two of them; the file's pages are let go as they
/// are repacked, so the weights are held once.
class model_weights {
public:
    /// What loading will take, computed from the header alone.
    static std::vector<memory_line> plan(tensor_source const& file, described_model const& model, numerics mode,
                                         shard const& part);

    /// Allocates the memory of plan() on `where`. `file` must outlive the loading; `model` is the whole one.
    model_weights(device& where, tensor_source const& file, described_model const& model, numerics mode,
                  shard const& part);

    /// Loads the next few MiB; returns the part that is done, 1 at the end. Throws error(errc::io) when the file can't
    /// be read or was changed meanwhile.
    task<double> load_next(flow& f, ops& on, tensor_source& file);

    /// This rank's tokens, from first_token() on. Of the first stage.
    weight_view token_embedding() const noexcept { return token_embedding_; }
    std::int64_t first_token() const noexcept { return first_token_; }
    /// Of the first stage, whole on each rank; without panels where the model has none.
    weight_view position_embedding() const noexcept { return position_embedding_; }
    /// This rank's tokens, the same. Of the last stage.
    weight_view output() const noexcept { return output_; }
    norm_weights const& output_norm() const noexcept { return output_norm_; }
    layer_weights const& layer(std::size_t i) const noexcept { return layers_[i]; }
    std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(memory_.size()); }

    /// `t`'s operation is the newest that reads the weights.
    void used_by(ticket t) { memory_.used_by(t); }

private:
    /// Rows and columns of a matrix.
    struct region {
        std::int64_t row = 0, rows = 0;
        std::int64_t col = 0, cols = 0;
    };
    /// Part of a matrix or of a vector of the file and where it goes.
    struct placement {
        stored_tensor const* tensor = nullptr;
        tensor_ref where; ///< the matrix in the tensor
        region from_file; ///< of the matrix; a vector is a matrix of one column
        weight_format from = weight_format::f32;
        weight_format to = weight_format::f32;
        std::size_t offset = 0; ///< of the matrix's panels, or of the vector, from the start of memory_
        std::int64_t first_row = 0;
        host::interleave place;
        bool vector = false; ///< F32, not in panels
    };
    struct layout;
    void read(tensor_source const& file, placement const& p, std::int64_t row, std::int64_t rows) const;
    void read_transposed(tensor_source const& file, placement const& p, std::int64_t row, std::int64_t rows) const;

    buffer memory_;
    buffer slice_; ///< of the file, while loading
    weight_view token_embedding_;
    std::int64_t first_token_ = 0;
    weight_view position_embedding_;
    weight_view output_;
    norm_weights output_norm_;
    std::vector<layer_weights> layers_;
    std::vector<placement> placements_;
    std::size_t next_ = 0; ///< the placement to load next
    std::uint64_t file_bytes_ = 0;
    std::uint64_t loaded_bytes_ = 0;
};

} // namespace plait
