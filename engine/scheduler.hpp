#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <plait/engine/policy.hpp>
#include <plait/engine/sequence.hpp>
#include <plait/engine/step_batch.hpp>
#include <plait/kv/block_pool.hpp>
#include <plait/kv/kv_geometry.hpp>

namespace plait {

/// When a request may start.
enum class admission : std::uint8_t {
    overcommit, ///< when its prompt fits now; pages are taken as it grows, and when none is left a policy's victim
                ///< waits
    reserve,    ///< when its prompt and its whole limit can be set aside; nobody is preempted for memory
};

struct scheduler_options {
    kv_geometry kv;
    std::int64_t pages = 0;
    std::int64_t slots = 0;       ///< sequences that run at once
    std::int64_t step_tokens = 0; ///< tokens that a step may compute
    admission admit = admission::overcommit;
    /// Stages of a pipeline. With more than one the sequences that run are spread over as many steps, and one that
    /// waits for its token takes part in the step that comes so many after its last: when the first stage is done with
    /// those between them, the last one is done with that. Earlier it would hold up the first stage.
    std::int64_t stages = 1;
    std::int64_t lanes = 1;                  ///< that a step may have
    std::shared_ptr<cost_model const> costs; ///< what policies see of it; may be null
    /// A prompt's tokens but the last see each other (model_spec::prefix): they are computed in one step.
    bool prefix = false;
    /// Sequences whose limit is longer have the rotation of long ones (rope_spec::short_context); 0: there is one.
    std::int64_t short_context = 0;
};

/// Rows of a step that a prompt is read by, and where the step's result has what they give.
struct read_rows {
    std::shared_ptr<sequence> of;
    std::int64_t position = 0; ///< of the first of them
    std::size_t first = 0;     ///< in step_result::scores, or as a row of step_result::hidden
    std::size_t count = 0;     ///< may be none
    bool complete = false;     ///< they are the prompt's last
};

/// A step that was issued: what to send to the ranks, and what its tokens are for.
struct issued_step {
    step_batch batch;                               ///< moved out when it is sent
    std::vector<std::shared_ptr<sequence>> members; ///< each once
    std::vector<std::shared_ptr<sequence>> draws;   ///< whose token each draw is
    std::vector<read_rows> reads;
};

/// Decides what runs next and keeps the books: sequences, slots, pages. Knows no device, no clock and no coroutine, so
/// the same object serves an engine, a test and a simulation. Not thread-safe.
class scheduler {
public:
    scheduler(scheduler_options options, std::shared_ptr<policy> rule);

    /// A new request; its first sequence waits. `tokens` is the prompt. Returns that sequence.
    /// Throws error(errc::never_fits) when the pool could not hold it even alone, with the numbers.
    std::shared_ptr<sequence> add(std::shared_ptr<sequence_request const> request, std::vector<std::int32_t> tokens,
                                  std::shared_ptr<answer> owner);

    /// Asks the policy and builds the next step; none when there is nothing to compute now. Throws what check() throws
    /// when the policy's plan breaks a rule.
    std::optional<issued_step> next(time_point now);

    /// A sequence that a step sampled a token for, and the token.
    struct sampled {
        std::shared_ptr<sequence> of;
        std::size_t draw; ///< its place in the step's result
    };

    /// A step is done: notes its tokens and gives back what only it still used. Returns the draws of sequences that are
    /// not over, in the order of the step.
    std::vector<sampled> retire(issued_step const& step, step_result const& result);

    /// A step failed: as retire(), without tokens.
    void abandon(issued_step const& step);

    /// What the devices held is gone, and no step is in flight: every running sequence waits again, to be computed from
    /// its first token. Returns them.
    std::vector<std::shared_ptr<sequence>> restart_all();

    /// `s` takes part in no further step.
    void end(sequence& s);

    /// Sequences that are not over, in order of arrival.
    std::vector<std::shared_ptr<sequence>> const& sequences() const noexcept { return sequences_; }
    std::int64_t waiting() const noexcept;
    std::int64_t free_pages() const noexcept;
    std::int64_t pages() const noexcept { return options_.pages; }
    std::int64_t free_slots() const noexcept { return static_cast<std::int64_t>(free_slots_.size()); }
    std::int64_t preemptions() const noexcept { return preemptions_; }

    /// The sequences that the last next() preempted.
    std::vector<std::shared_ptr<sequence>> const& victims() const noexcept { return victims_; }

private:
    snapshot look(time_point now);
    bool waits_for_token(sequence const& s) const noexcept;
    sequence_view view(sequence const& s) const;
    static std::int64_t reservation(sequence_request const& request, std::int64_t choices) noexcept;
    std::int64_t owned_pages(sequence const& s) const noexcept;
    std::int64_t promised_pages() const;
    bool preempt(step_plan const& plan);
    issued_step build(step_plan const& plan);
    void start(sequence& s);
    void join(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t tokens);
    void add_rows(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t tokens);
    static void add_reads(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t row, std::int64_t tokens);
    void add_draws(issued_step& step, std::shared_ptr<sequence> const& s);
    void add_draw(issued_step& step, std::shared_ptr<sequence> const& s);
    void leave(issued_step const& step);
    void left_step(sequence& s);
    void release(sequence& s);
    std::shared_ptr<sequence> find(sequence_id id) const;

    scheduler_options options_;
    std::shared_ptr<policy> policy_;
    std::vector<std::unique_ptr<block_pool>> pools_; // one for each KV group
    std::vector<std::int32_t> free_slots_;
    std::vector<std::shared_ptr<sequence>> sequences_;
    std::vector<std::shared_ptr<sequence>> leaving_; // over, but used by steps in flight
    std::vector<sequence_view> views_;
    sequence_id next_id_ = 1;
    std::int64_t built_ = 0; ///< steps
    std::int64_t preemptions_ = 0;
    std::vector<std::shared_ptr<sequence>> victims_;
};

} // namespace plait
