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
    std::vector<std::vector<sequence_chunk>> chunks;
    step_result result;
};

task<> rank::issue(flow& f, frame& step, std::size_t lane)
{
    auto& batch = step.batch;
    auto const& part = decoder_->part();
    for (auto const& start : batch.starts)
        sampler_->start(start.slot, start.params, {batch.seen.data() + start.seen_first, start.seen_count},
                        {batch.biases.data() + start.bias_first, start.bias_count});
    for (std::size_t g = 0; g < batch.groups.size(); ++g) {
        auto const& group = batch.groups[g];
        for (std::size_t i = 0; i < batch.chunks.size(); ++i) {
            auto const& chunk = batch.chunks[i];
            step.chunks[g].push_back(
                {chunk.first_row, chunk.rows, chunk.first_position, group.pages.data() + group.first[i]});
        }
        if (!group.copies.empty() && !layers_of_group_[g].empty())
            ops_->copy_pages(f, {layers_of_group_[g], group.copies});
    }
    auto rows = static_cast<std::int64_t>(batch.tokens.size());
    if (part.first()) ops_->gather_tokens(f, {batch.tokens.data(), rows, sampler_->newest(), step.tokens.data()});
    decoder_step pass;
    pass.rows = rows;
    pass.tokens = step.tokens.data();
    pass.chunks = step.chunks;
    pass.logit_row_index = batch.logit_rows.data();
    pass.logit_rows = static_cast<std::int64_t>(batch.draws.size());
    auto* logits = co_await decoder_->forward(f, *ops_, pass, lane);
    // Every rank of the last stage draws: all have the same logits, and the next step reads the token where it is.
    if (part.last() && !batch.draws.empty())
        sampler_->draw(f, {logits, decoder_->spec().vocabulary, batch.draws, step.result.tokens.data(),
                           step.result.logprobs.data(), step.result.top.data(), batch.top_logprobs});
}

task<step_result> rank::run(step_batch batch)
{
    frame step;
    step.tokens.resize(batch.tokens.size());
    step.chunks.resize(batch.groups.size());
    auto draws = batch.draws.size();
    step.result.tokens.resize(draws);
    step.result.logprobs.resize(draws);
    step.result.top.resize(draws * static_cast<std::size_t>(batch.top_logprobs));
    step.batch = std::move(batch);

    auto turn = co_await issuing_.acquire();
    weave strands(driven(), 1, {member_.tensor.get(), member_.stages.get()});
    // Passes take the activations by turns: where there are stages, one comes in while another goes out.
    auto lane = passes_++ % static_cast<std::size_t>(decoder_->limits().lanes);
    auto issued = co_await as_result(strands.run(issue(strands[0], step, lane)));
    turn.release();
    // Also when not all was issued: what was put points into this frame.
    auto done = co_await as_result(strands[0].operator co_await());
    std::move(issued).value();
    std::move(done).value();
    co_return std::move(step.result);
}

} // namespace plait
