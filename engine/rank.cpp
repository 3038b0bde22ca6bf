#include <plait/engine/rank.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/streams/weave.hpp>

namespace plait {

void rank::prepare(rank_options const& options)
{
    file_ = gguf_file::open(options.model);
    auto model = describe(*file_);
    ops_ = make_host_ops(options.instruction_set);
    sampler_ = make_host_sampler(options.instruction_set, options.slots);
    weights_ = std::make_unique<model_weights>(dev(), *file_, model, options.mode, options.part);
    kv_ = std::make_unique<kv_storage>(dev(), kv_geometry_of(model.spec, options.kv, options.part), options.pages);
    decoder_ = std::make_unique<decoder>(dev(), part_of(model.spec, options.part), options.part, options.limits,
                                         *weights_, *kv_);
    for (auto const& group : kv_->geometry().groups) {
        auto& layers = layers_of_group_.emplace_back();
        for (auto layer : group.layers)
            layers.push_back(kv_->layer(layer));
    }
}

task<double> rank::load_next()
{
    auto f = flow_on(stream_role::compute);
    auto done = co_await weights_->load_next(f, *ops_, *file_);
    if (done >= 1) file_.reset();
    co_return done;
}

struct rank::frame {
    step_batch batch;
    std::vector<std::int32_t> tokens;
    /// Of a lane: its chunks in every KV group, and the writes that other lanes follow.
    struct lane {
        std::vector<std::vector<sequence_chunk>> chunks;
        kv_writes writes;
        std::vector<kv_writes const*> reads;
    };
    std::vector<lane> lanes;
    step_result result;
};

/// What comes before all lanes: new sequences take their slots, shared pages are copied, and rows get their tokens.
void rank::prepare_step(flow& f, frame& step)
{
    auto const& batch = step.batch;
    for (auto const& start : batch.starts)
        sampler_->start(start.slot, start.params, {batch.seen.data() + start.seen_first, start.seen_count},
                        {batch.biases.data() + start.bias_first, start.bias_count});
    for (std::size_t g = 0; g < batch.groups.size(); ++g)
        if (!batch.groups[g].copies.empty() && !layers_of_group_[g].empty())
            ops_->copy_pages(f, {layers_of_group_[g], batch.groups[g].copies});
    if (decoder_->part().first())
        ops_->gather_tokens(f, {batch.tokens.data(), static_cast<std::int64_t>(batch.tokens.size()), sampler_->newest(),
                                step.tokens.data()});
}

task<> rank::issue(flow& f, frame& step, std::size_t lane, std::size_t space)
{
    auto const& batch = step.batch;
    auto const& pass = batch.passes[lane];
    auto& mine = step.lanes[lane];
    mine.chunks.resize(batch.groups.size());
    for (std::size_t g = 0; g < batch.groups.size(); ++g)
        for (auto i = pass.chunks.first; i < pass.chunks.first + pass.chunks.count; ++i) {
            auto const& chunk = batch.chunks[i];
            auto const& group = batch.groups[g];
            mine.chunks[g].push_back(
                {chunk.first_row, chunk.rows, chunk.first_position, group.pages.data() + group.first[i]});
        }
    for (std::size_t other = 0; other < lane; ++other)
        if ((pass.reads >> other & 1) != 0) mine.reads.push_back(&step.lanes[other].writes);
    decoder_step what;
    what.rows = pass.rows.count;
    what.tokens = step.tokens.data() + pass.rows.first;
    what.chunks = mine.chunks;
    what.logit_row_index = batch.logit_rows.data() + pass.draws.first;
    what.logit_rows = pass.draws.count;
    what.writes = &mine.writes;
    what.reads = mine.reads;
    auto* logits = co_await decoder_->forward(f, *ops_, what, space);
    // Every rank of the last stage draws: all have the same logits, and the next step reads the token where it is.
    if (!decoder_->part().last() || pass.draws.count == 0) co_return;
    draw_args draw;
    draw.logits = logits;
    draw.vocabulary = decoder_->spec().vocabulary;
    draw.rows = std::span(batch.draws).subspan(pass.draws.first, pass.draws.count);
    draw.tokens = step.result.tokens.data() + pass.draws.first;
    draw.logprobs = step.result.logprobs.data() + pass.draws.first;
    draw.top = step.result.top.data() + pass.draws.first * static_cast<std::size_t>(batch.top_logprobs);
    draw.top_stride = batch.top_logprobs;
    draw.lane = space;
    sampler_->draw(f, draw);
}

task<step_result> rank::run(step_batch batch)
{
    frame step;
    step.tokens.resize(batch.tokens.size());
    step.lanes.resize(batch.passes.size());
    auto draws = batch.draws.size();
    step.result.tokens.resize(draws);
    step.result.logprobs.resize(draws);
    step.result.top.resize(draws * static_cast<std::size_t>(batch.top_logprobs));
    step.batch = std::move(batch);

    auto turn = co_await issuing_.acquire();
    std::vector<stream_role> where;
    for (auto const& pass : step.batch.passes)
        where.push_back(pass.where);
    weave strands(driven(), where, {member_.tensor.get(), member_.stages.get()});
    // On the device a step begins when the one before it has ended: it reads its tokens, and pages that it wrote.
    auto& first = strands[0];
    for (auto t : newest_.tickets())
        first.follow(t);
    prepare_step(first, step);
    std::vector<task<>> passes;
    // Steps take the activations by turns: where there are stages, one comes in while another goes out.
    auto spaces = static_cast<std::size_t>(decoder_->limits().lanes);
    for (std::size_t lane = 0; lane < strands.lanes(); ++lane) {
        if (lane > 0) strands[lane].follow(first.last());
        passes.push_back(issue(strands[lane], step, lane, next_space_++ % spaces));
    }
    auto issued = co_await as_result(strands.run(std::move(passes)));
    newest_.clear();
    for (std::size_t lane = 0; lane < strands.lanes(); ++lane)
        newest_.add(strands[lane].last());
    turn.release();
    // Also when not all was issued: what was put points into this frame.
    std::exception_ptr failure = issued.failure();
    for (std::size_t lane = 0; lane < strands.lanes(); ++lane) {
        auto done = co_await as_result(strands[lane].operator co_await());
        if (done.failure() && !failure) failure = done.failure();
    }
    if (failure) std::rethrow_exception(failure);
    co_return std::move(step.result);
}

} // namespace plait
