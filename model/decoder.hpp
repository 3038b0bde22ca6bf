#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <plait/kernels/ops.hpp>
#include <plait/kv/kv_storage.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/weights.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

/// The largest step that a decoder can be asked for; its activations are sized by it, once.
struct step_limits {
    std::int64_t rows = 512;      ///< tokens of all sequences together
    std::int64_t logit_rows = 64; ///< tokens whose logits are wanted
    std::int64_t positions = 0;   ///< the longest sequence
};

/// One forward pass, as data. What the pointers point to stays as it is until the step's ticket has passed.
struct decoder_step {
    std::int64_t rows = 0;
    std::int32_t const* tokens = nullptr; ///< one a row, read when the step runs
    /// The rows as chunks of sequences; one list for each KV group, with that group's page tables.
    std::span<std::vector<sequence_chunk> const> chunks;
    std::int32_t const* logit_row_index = nullptr; ///< the rows whose logits are wanted
    std::int64_t logit_rows = 0;
};

/// Runs any model_spec: embedding, layers, final norm and logits, as operations of a flow. Nothing here waits, and
/// nothing depends on the kind of device. Activations live in one buffer that every step uses again, which is safe
/// because a decoder's steps go to one stream.
class decoder {
public:
    /// Bytes of the activations and tables that a decoder of these limits holds, with derivation.
    static std::vector<memory_line> plan(model_spec const& spec, step_limits const& limits);

    /// `weights` and `kv` must outlive the decoder. Throws error(errc::unsupported) for a layer that no operation runs.
    decoder(device& where, model_spec spec, step_limits limits, model_weights& weights, kv_storage& kv);

    /// Puts the pass on the flow's stream. Returns the logits: step.logit_rows × vocabulary, F32, valid until the next
    /// step of this decoder is put on the stream and used up by sampling.
    float* forward(flow& f, ops& on, decoder_step const& step);

    model_spec const& spec() const noexcept { return spec_; }

private:
    struct arena;

    activation_view take(std::int64_t rows, std::int64_t cols, arena& from) const;
    void attend(flow& f, ops& on, decoder_step const& step, std::size_t layer, activation_view input);
    void feed_forward(flow& f, ops& on, std::size_t layer, activation_view input);
    void normalise(flow& f, ops& on, norm_spec const& norm, float const* weight, activation_view out,
                   std::int32_t const* row_index = nullptr);
    activation_view residual(std::int64_t rows) const;

    model_spec spec_;
    step_limits limits_;
    model_weights& weights_;
    kv_storage& kv_;
    std::vector<host::rope_table> angles_; // the distinct ones
    std::vector<std::size_t> angles_of_layer_;

    buffer memory_;
    activation_view x_;        // the residual stream; quantised too, for layers that read it without a norm
    activation_view normed_;   // input of a sublayer
    activation_view attended_; // heads, before the output projection
    activation_view gated_;    // between the two halves of the feed-forward network
    activation_view last_;     // final norm of the rows whose logits are wanted
    float* qkv_ = nullptr;
    float* logits_ = nullptr;
    std::int64_t qkv_width_ = 0;
};

} // namespace plait
