#pragma once

#include <cstdint>
#include <vector>

#include <plait/actors/task.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/families/family.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

/// In what arithmetic a model runs.
enum class numerics : std::uint8_t {
    native, ///< weights as the file has them; activations in 8 bit where the weights are quantised
    f32,    ///< weights dequantised, activations in F32: the reference, at four to eight times the memory
};

/// Matrices that read the same input, one below the other; neighbours in one format share a product.
struct stacked_weights {
    struct part {
        weight_view weights;
        std::int64_t first_row = 0; ///< where its outputs go
    };
    std::vector<part> parts;
    std::int64_t rows = 0;
};

/// The weights of a layer, in device memory.
struct layer_weights {
    float const* attention_norm = nullptr;
    stacked_weights qkv; ///< rows: queries, keys, values
    weight_view attention_out;
    float const* ffn_norm = nullptr;
    weight_view gate_up; ///< panels of gate and up alternate
    weight_view down;
};

/// A model's weights in the layout of its device. Loading is done in steps, so that whoever loads can show progress and
/// stop between two of them; the file's pages are let go as they are repacked, so the weights are held once.
class model_weights {
public:
    /// What loading will take, computed from the header alone.
    static std::vector<memory_line> plan(gguf_file const& file, described_model const& model, numerics mode);

    /// Allocates the memory of plan() on `where`. `file` must outlive the loading.
    model_weights(device& where, gguf_file const& file, described_model const& model, numerics mode);

    /// Loads the next few MiB; returns the part that is done, 1 at the end. Throws error(errc::io) when the file can't
    /// be read or was changed meanwhile.
    task<double> load_next(flow f, ops& on, gguf_file& file);

    weight_view token_embedding() const noexcept { return token_embedding_; }
    weight_view output() const noexcept { return output_; }
    float const* output_norm() const noexcept { return output_norm_; }
    layer_weights const& layer(std::size_t i) const noexcept { return layers_[i]; }
    std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(memory_.size()); }

    /// `t`'s operation is the newest that reads the weights.
    void used_by(ticket t) { memory_.used_by(t); }

private:
    /// One tensor of the file and where it goes.
    struct placement {
        gguf_tensor const* tensor = nullptr;
        weight_format from = weight_format::f32;
        weight_format to = weight_format::f32;
        std::size_t offset = 0; ///< of the matrix's panels, or of the vector, from the start of memory_
        std::int64_t first_row = 0;
        host::interleave place;
        bool vector = false; ///< a norm: F32, not in panels
    };
    struct layout;

    buffer memory_;
    buffer slice_; ///< of the file, while loading
    weight_view token_embedding_;
    weight_view output_;
    float const* output_norm_ = nullptr;
    std::vector<layer_weights> layers_;
    std::vector<placement> placements_;
    std::size_t next_ = 0; ///< the placement to load next
    std::uint64_t file_bytes_ = 0;
    std::uint64_t loaded_bytes_ = 0;
};

} // namespace plait
