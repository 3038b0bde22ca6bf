#include <deque>
#include <unordered_map>
#include <vector>

#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/op_info.hpp>
#include <plait/kernels/sampler.hpp>
#include <plait/streams/host/host_stream.hpp>

namespace plait {

namespace {

struct slot_state {
    sample_params params;
    std::vector<seen_token> seen;
    std::vector<token_bias> biases;
    std::unordered_map<std::int32_t, std::size_t> place; // of a token in `seen`
    bool counts = false;                                 // some penalty looks at `seen`
};

class host_sampler final : public sampler {
public:
    host_sampler(host::isa set, std::int64_t slots)
        : sample_(host::attention_ops(set).sample)
        , score_(host::attention_ops(set).score)
        , slots_(static_cast<std::size_t>(slots))
        , newest_(static_cast<std::size_t>(slots), 0)
    {
    }

    void start(std::int32_t slot, sample_params const& params, std::span<seen_token const> seen,
               std::span<token_bias const> biases) override
    {
        auto& s = slots_[static_cast<std::size_t>(slot)];
        s.params = params;
        s.biases.assign(biases.begin(), biases.end());
        s.counts = params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
        s.seen.clear();
        s.place.clear();
        if (!s.counts) return;
        s.seen.assign(seen.begin(), seen.end());
        for (std::size_t i = 0; i < s.seen.size(); ++i)
            s.place.emplace(s.seen[i].token, i);
    }

    void draw(flow& f, draw_args const& args) override
    {
        while (params_.size() <= args.lane)
            params_.emplace_back();
        call c{this, args, sample_};
        host::put(f, {"prepare_draw"}, prepare, c);
        host::put(f, host::info_of(args), sample, c);
    }

    void score(flow& f, score_args const& args) override { host::put(f, host::info_of(args), score_, args); }

    void note(flow& f, std::span<draw_row const> rows, std::int32_t const* tokens) override
    {
        host::put(f, {"note_tokens"}, record, drawn{this, rows, tokens});
    }

    std::int32_t const* newest() const noexcept override { return newest_.data(); }

private:
    struct call {
        host_sampler* self;
        draw_args args;
        decltype(host::attention_table::sample) sample;
    };
    struct drawn {
        host_sampler* self;
        std::span<draw_row const> rows;
        std::int32_t const* tokens;
    };

    slot_state& slot_of(draw_row const& row) { return slots_[static_cast<std::size_t>(row.slot)]; }

    static void prepare(call const& c, share part)
    {
        if (part.index != 0) return;
        // Filled in when the draw runs, not when it is put on the stream: a step in flight before it still adds to what
        // the penalties count.
        auto& rows = c.self->params_[c.args.lane];
        rows.resize(c.args.rows.size());
        for (std::size_t i = 0; i < c.args.rows.size(); ++i) {
            auto const& s = c.self->slot_of(c.args.rows[i]);
            auto& params = rows[i];
            params = s.params;
            params.position = c.args.rows[i].position;
            params.seen = s.seen.data();
            params.seen_count = static_cast<std::int32_t>(s.seen.size());
            params.biases = s.biases.data();
            params.bias_count = static_cast<std::int32_t>(s.biases.size());
        }
    }

    static void sample(call const& c, share part)
    {
        host::sample_args args;
        args.logits = c.args.logits;
        args.rows = static_cast<std::int64_t>(c.args.rows.size());
        args.vocabulary = c.args.vocabulary;
        args.stride = c.args.vocabulary;
        args.params = c.self->params_[c.args.lane].data();
        args.tokens = c.args.tokens;
        args.logprobs = c.args.logprobs;
        args.top = c.args.top;
        args.top_stride = c.args.top_stride;
        c.sample(args, part);
    }

    static void record(drawn const& c, share part)
    {
        if (part.index != 0) return;
        for (std::size_t i = 0; i < c.rows.size(); ++i) {
            auto token = c.tokens[i];
            auto const& row = c.rows[i];
            // A token that isn't one goes on as 0: its sequence fails when the host sees it.
            c.self->newest_[static_cast<std::size_t>(row.slot)] = token < 0 ? 0 : token;
            auto& s = c.self->slot_of(row);
            if (!s.counts || token < 0) continue;
            auto [found, added] = s.place.emplace(token, s.seen.size());
            if (added) s.seen.push_back({token, 0, false});
            ++s.seen[found->second].count;
        }
    }

    decltype(host::attention_table::sample) sample_;
    decltype(host::attention_table::score) score_;
    std::vector<slot_state> slots_;
    std::vector<std::int32_t> newest_;
    std::deque<std::vector<sample_params>> params_; // of each lane: of the rows of the draw that is running
};

} // namespace

std::unique_ptr<sampler> make_host_sampler(host::isa set, std::int64_t slots)
{
    return std::make_unique<host_sampler>(set, slots);
}

} // namespace plait
