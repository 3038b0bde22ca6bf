#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <plait/actors/tasks/task.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/kv/kv_storage.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/activations.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/rotary_tables.hpp>
#include <plait/model/shard.hpp>
#include <plait/model/weights.hpp>

namespace plait {

/// The tickets of the writes of keys and values that one pass has issued, layer by layer.
using kv_writes = std::vector<ticket>;

/// One forward pass, as data. What the pointers point to stays as it is until the step's ticket has passed.
struct decoder_step {
    std::int64_t rows = 0;
    std::int32_t const* tokens = nullptr; ///< one a row, read when the step runs
    /// The rows as chunks of sequences; one list for each KV group, with that group's page tables.
    std::span<std::vector<sequence_chunk> const> chunks;
    std::int32_t const* logit_row_index = nullptr; ///< the rows whose logits are wanted
    std::int64_t logit_rows = 0;
    kv_writes* writes = nullptr; ///< where to note this pass's writes, for passes of the same plan; may be null
    /// Passes of the same plan that write pages which this one reads: earlier chunks of the same sequences.
    std::span<kv_writes const* const> reads;
    /// What the pass computes follows these too. What comes in from the stage before does not: it is under way
    /// meanwhile.
    std::span<ticket const> after;
};

/// Runs any model_spec, or a rank's part of it: embedding, layers, final norm and logits, as operations of a flow.
/// Nothing here waits for the device, and nothing depends on its kind. The only suspensions are at collectives, where
/// the turn passes to other flows of the weave. Activations live in one buffer, which every step uses again; the device
/// sees to the order.
class decoder {
public:
    /// Bytes of the activations and tables that a decoder of these limits holds, with derivation. `spec` is the part's.
    static std::vector<memory_line> plan(model_spec const& spec, shard const& part, step_limits const& limits);

    /// `spec` is what this rank computes (part_of). `weights` and `kv` must outlive the decoder. Throws
    /// error(errc::unsupported) for a layer that no operation runs.
    decoder(device& where, model_spec spec, shard const& part, step_limits limits, model_weights& weights,
            kv_storage& kv);

    /// Puts the pass on the flow's streams, with the activations of `lane`. Gives the logits of this rank's rows of
    /// step.logit_rows (part().first_row(), rows_of()): rows × vocabulary, F32, valid until the next step of this lane
    /// is put on the device and used up by sampling; null on other stages than the last. No rank holds the logits of
    /// all rows: each computes its tokens' of every row, and they are exchanged for all tokens' of its rows. Throws
    /// error(errc::bad_plan) when it would read a page whose write has not been issued. `f`, `on` and what `step`
    /// points to outlive the task.
    task<float*> forward(flow& f, ops& on, decoder_step step, std::size_t lane = 0);

    /// Puts on the stream the logits of other rows of the pass that this lane computed last, at most
    /// limits().logit_rows at a time: as forward() gives them. On the last stage. The `count` row numbers at `rows`
    /// outlive the pass.
    task<float*> logits(flow& f, ops& on, std::int32_t const* rows, std::int64_t count, std::size_t lane = 0);

    /// Puts on the stream the hidden state of rows of the pass that this lane computed last, behind the final norm:
    /// rows × width, F32, to `out`. Every rank has them. On the last stage. `rows` outlives the pass.
    void hidden(flow& f, ops& on, std::span<std::int32_t const> rows, float* out, std::size_t lane = 0);

    model_spec const& spec() const noexcept { return spec_; }
    shard const& part() const noexcept { return part_; }
    step_limits const& limits() const noexcept { return limits_; }

private:
    struct pass;

    void note_use(lane_activations& s, flow const& f);

    model_spec spec_;
    shard part_;
    step_limits limits_;
    model_weights& weights_;
    kv_storage& kv_;
    rotary_tables angles_;
    activations activations_;
};

} // namespace plait
