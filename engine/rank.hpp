#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <plait/actors/sync/semaphore.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/engine/step_batch.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/kernels/sampler.hpp>
#include <plait/kv/kv_storage.hpp>
#include <plait/model/decoder.hpp>
#include <plait/model/model_overrides.hpp>
#include <plait/streams/communicator.hpp>
#include <plait/streams/gpu.hpp>

namespace plait {

/// The groups that a rank is a member of, its own ends of them.
struct rank_membership {
    std::unique_ptr<communicator> tensor;
    std::unique_ptr<communicator> stages;
};

/// What a rank needs to know to load its part of a model.
struct rank_options {
    rank_options() = default; // not an aggregate: it is passed through awaits

    std::filesystem::path model;
    shard part;
    numerics mode = numerics::native;
    std::optional<weight_format> quantize;
    model_overrides overrides;
    kv_type kv = kv_type::f16;
    std::int64_t pages = 0;
    std::int64_t slots = 0;
    step_limits limits;
    host::isa instruction_set = host::isa::scalar;
};

/// One device's part of an engine: the weights, the KV pages and the sampling state that live there, and the steps that
/// run on it. The engine sends it one step after the other without waiting for the results; they run in that order.
class rank final : public gpu {
public:
    rank(event_loop& home, std::unique_ptr<device> owned, rank_membership member)
        : gpu(home, std::move(owned))
        , member_(std::move(member))
    {
    }
    ~rank();

    /// Opens the file and allocates everything. Throws what opening a model throws, and error(errc::out_of_memory).
    void prepare(rank_options const& options);

    /// Loads a few MiB of weights; returns the part that is done, 1 at the end.
    task<double> load_next();

    /// Runs a step and returns its tokens. Several calls may be in flight; each is put on the streams whole before the
    /// next begins, in the order of the calls, so that all ranks issue the same. Where there are stages, a row may
    /// stand for a token (step_batch::tokens) that was drawn so many steps before, or earlier: the last stage sends
    /// them to the first, and no call waits for that.
    task<step_result> run(step_batch batch);

    /// Gives up what is in flight: the device fails with `why`, and so does every run().
    void abandon(std::exception_ptr why) { dev().abort(why); }

private:
    /// What a step's operations point to; it stays until their tickets have passed.
    struct frame;
    struct drawn;
    task<> put_on_streams(std::shared_ptr<frame> held);
    void prepare_step(flow& f, frame& step);
    void take_tokens(flow& f, frame& step);
    task<> hand_over(flow& f, frame& step);
    bool hands_over() const { return stages() > 1 && (decoder_->part().first() || decoder_->part().last()); }
    std::size_t stages() const { return static_cast<std::size_t>(decoder_->part().stages); }
    task<> issue(flow& f, frame& step, std::size_t lane, std::size_t space);
    task<> draw(flow& f, frame& step, std::size_t lane, std::size_t space, float* logits);
    task<> score(flow& f, frame& step, std::size_t lane, std::size_t space);
    static step_result result_of(frame const& step);

    rank_membership member_;
    std::size_t next_space_ = 0; ///< the decoder's, in turn
    ticket_set computed_;        ///< the end of the last step, but for what its lanes send to other stages
    semaphore issuing_{1};       ///< whose step is being put on the streams
    /// The last steps whose tokens go from the last stage to the first, and those of which they are still under way.
    std::deque<std::shared_ptr<frame>> handed_;
    std::unique_ptr<ops> ops_;
    std::unique_ptr<sampler> sampler_;
    std::optional<model_files> files_; ///< while loading
    std::unique_ptr<model_weights> weights_;
    std::unique_ptr<kv_storage> kv_;
    std::unique_ptr<decoder> decoder_;
    std::vector<std::vector<paged_kv>> layers_of_group_;
};

} // namespace plait
