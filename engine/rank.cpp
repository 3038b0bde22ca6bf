#include <algorithm>
#include <array>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/engine/rank.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/model/quantise.hpp>
#include <plait/streams/trace.hpp>
#include <plait/streams/weave.hpp>

namespace plait {

void rank::prepare(rank_options const& options)
{
    files_ = open_model(options.model);
    auto model = describe(*files_);
    if (options.quantize) quantise(*files_, model, *options.quantize);
    apply(options.overrides, model.spec);
    ops_ = make_host_ops(options.instruction_set);
    sampler_ = make_host_sampler(options.instruction_set, options.slots);
    weights_ = std::make_unique<model_weights>(dev(), files_->tensors(), model, options.mode, options.part);
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
    auto done = co_await weights_->load_next(f, *ops_, files_->tensors());
    if (done >= 1) files_.reset();
    co_return done;
}

/// What was drawn for some rows.
struct rank::drawn {
    std::vector<std::int32_t> tokens;
    std::vector<float> logprobs;
    std::vector<token_logprob> top;

    void resize(std::size_t rows, std::size_t top_logprobs)
    {
        tokens.resize(rows);
        logprobs.resize(rows);
        top.resize(rows * top_logprobs);
    }
};

struct rank::frame {
    step_batch batch;
    std::vector<std::int32_t> tokens;
    /// Of a lane: its chunks in every KV group, and the writes that other lanes follow.
    struct lane {
        std::vector<std::vector<sequence_chunk>> chunks;
        kv_writes writes;
        std::vector<kv_writes const*> reads;
        drawn mine; ///< this rank's rows, as many as every rank has at most
        drawn all;  ///< everybody's, where there are several ranks
        /// Of the rows that are scored, in order; of this rank's of each slice where there are several.
        std::vector<float> scores, my_scores;
        std::vector<float> hidden;
        ticket known;                      ///< what was drawn is there, on the last stage
        std::vector<std::int32_t> arrived; ///< and on the first

        drawn const& everybodys() const noexcept { return all.tokens.empty() ? mine : all; }
    };
    std::vector<lane> lanes;
    ticket_set after; ///< what all lanes follow
    ticket_set sent;  ///< of the tokens from the last stage to the first
    bool noted = false;
    std::vector<std::shared_ptr<frame>> sources; ///< whose tokens this step notes, on the first stage

    bool under_way() const noexcept { return !std::ranges::all_of(sent.tickets(), &ticket::over); }
    bool draws_for(std::int32_t slot) const noexcept
    {
        return std::ranges::find(batch.draws, slot, &draw_row::slot) != batch.draws.end();
    }
};

rank::~rank()
{
    // What is under way between stages points into frames: nothing of it runs when they go.
    if (std::ranges::any_of(handed_, &frame::under_way))
        dev().abort(std::make_exception_ptr(error(errc::closed, "the device's rank has gone")));
}

/// What comes before all lanes: new sequences take their slots, shared pages are copied, and rows get their tokens.
void rank::prepare_step(flow& f, frame& step)
{
    auto const& batch = step.batch;
    for (auto const& start : batch.starts) {
        if (!decoder_->part().last()) break; // only there tokens are drawn
        sampler_->start(start.slot, start.params, {batch.seen.data() + start.seen_first, start.seen_count},
                        {batch.biases.data() + start.bias_first, start.bias_count});
    }
    for (std::size_t g = 0; g < batch.groups.size(); ++g)
        if (!batch.groups[g].copies.empty() && !layers_of_group_[g].empty())
            ops_->copy_pages(f, {layers_of_group_[g], batch.groups[g].copies});
    if (!decoder_->part().first()) return;
    if (stages() > 1) take_tokens(f, step);
    ops_->gather_tokens(f, {batch.tokens.data(), static_cast<std::int64_t>(batch.tokens.size()), sampler_->newest(),
                            step.tokens.data()});
}

/// Of the steps whose tokens come from the last stage, those up to the newest that this one computes with are noted.
/// Tokens of later steps are not waited for.
void rank::take_tokens(flow& f, frame& step)
{
    std::size_t needed = 0;
    for (auto const token : step.batch.tokens)
        for (auto i = handed_.size(); token < 0 && i > needed; --i)
            if (handed_[i - 1]->draws_for(-1 - token)) needed = i;
    for (std::size_t i = 0; i < needed; ++i) {
        auto& from = *handed_[i];
        if (std::exchange(from.noted, true)) continue;
        step.sources.push_back(handed_[i]);
        for (auto t : from.sent.tickets())
            f.follow(t);
        for (std::size_t lane = 0; lane < from.lanes.size(); ++lane) {
            auto const& rows = from.batch.passes[lane].draws;
            if (rows.count > 0)
                sampler_->note(f, std::span(from.batch.draws).subspan(rows.first, rows.count),
                               from.lanes[lane].arrived.data());
        }
    }
}

/// The last stage sends the tokens that it has drawn to the first, which computes with them when the host has not heard
/// of them yet.
task<> rank::hand_over(flow& f, frame& step)
{
    auto const& part = decoder_->part();
    for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) {
        auto& l = step.lanes[lane];
        auto const count = static_cast<std::int64_t>(step.batch.passes[lane].draws.count);
        if (count == 0) continue;
        if (part.last()) {
            f.follow(l.known);
            co_await f.send(element_kind::i32, l.everybodys().tokens.data(), count, 0);
        } else {
            l.arrived.resize(static_cast<std::size_t>(count));
            co_await f.receive(element_kind::i32, l.arrived.data(), count, part.stages - 1);
        }
        step.sent.add(f.last());
    }
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
            auto const offset = chunk.stretched_positions ? decoder_->limits().positions : 0;
            mine.chunks[g].push_back({chunk.first_row, chunk.rows, chunk.first_position,
                                      group.pages.data() + group.first[i], chunk.prefix,
                                      static_cast<std::int32_t>(offset)});
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
    what.after = step.after.tickets();
    auto* logits = co_await decoder_->forward(f, *ops_, what, space);
    if (!decoder_->part().last()) co_return;
    if (pass.draws.count > 0) co_await draw(f, step, lane, space, logits);
    if (pass.scores.count > 0) co_await score(f, step, lane, space);
    if (pass.shown.count == 0) co_return;
    mine.hidden.resize(static_cast<std::size_t>(pass.shown.count * decoder_->spec().width));
    decoder_->hidden(f, *ops_, std::span(batch.shown_rows).subspan(pass.shown.first, pass.shown.count),
                     mine.hidden.data(), space);
}

/// Each rank draws its rows; all hear of all tokens, and the next step reads them where they are.
task<> rank::draw(flow& f, frame& step, std::size_t lane, std::size_t space, float* logits)
{
    auto const& batch = step.batch;
    auto const& part = decoder_->part();
    auto& l = step.lanes[lane];
    auto const draws = std::span(batch.draws).subspan(batch.passes[lane].draws.first, batch.passes[lane].draws.count);
    auto const rows = static_cast<std::int64_t>(draws.size());
    auto const each = part.rows_each(rows);
    auto const top = static_cast<std::size_t>(batch.top_logprobs);
    l.mine.resize(static_cast<std::size_t>(each), top);
    if (part.rows_of(rows) > 0) {
        draw_args args;
        args.logits = logits;
        args.vocabulary = decoder_->spec().vocabulary;
        args.rows =
            draws.subspan(static_cast<std::size_t>(part.first_row(rows)), static_cast<std::size_t>(part.rows_of(rows)));
        args.tokens = l.mine.tokens.data();
        args.logprobs = l.mine.logprobs.data();
        args.top = l.mine.top.data();
        args.top_stride = batch.top_logprobs;
        args.lane = space;
        sampler_->draw(f, args);
    }
    if (part.ranks > 1) {
        l.all.resize(static_cast<std::size_t>(each * part.ranks), top);
        co_await f.all_gather(element_kind::i32, l.mine.tokens.data(), l.all.tokens.data(), each);
        co_await f.all_gather(element_kind::f32, l.mine.logprobs.data(), l.all.logprobs.data(), each);
        if (top > 0)
            co_await f.all_gather(element_kind::u8, l.mine.top.data(), l.all.top.data(),
                                  static_cast<std::int64_t>(l.mine.top.size() * sizeof(token_logprob)));
    }
    sampler_->note(f, draws, l.everybodys().tokens.data());
    l.known = f.last();
}

/// As many rows at a time as there is room for logits, each rank those that it has the logits of; then all hear of all.
task<> rank::score(flow& f, frame& step, std::size_t lane, std::size_t space)
{
    auto const& batch = step.batch;
    auto const& part = decoder_->part();
    auto const& pass = batch.passes[lane];
    auto& l = step.lanes[lane];
    auto const rows = std::span(batch.scored_rows).subspan(pass.scores.first, pass.scores.count);
    auto const tokens = std::span(batch.scored).subspan(pass.scores.first, pass.scores.count);
    auto const most = static_cast<std::size_t>(decoder_->limits().logit_rows);
    auto const each = static_cast<std::size_t>(part.rows_each(static_cast<std::int64_t>(most)));
    // What is gathered is whole blocks: what fills up the last one lies behind the rows, or is overwritten.
    l.scores.resize(rows.size() + each * static_cast<std::size_t>(part.ranks));
    auto const together = part.ranks > 1;
    if (together) l.my_scores.resize((rows.size() / most + 1) * each);
    for (std::size_t first = 0; first < rows.size(); first += most) {
        auto* own = together ? l.my_scores.data() + first / most * each : l.scores.data() + first;
        auto const slice = std::min(most, rows.size() - first);
        auto const count = static_cast<std::int64_t>(slice);
        auto* logits = co_await decoder_->logits(f, *ops_, rows.data() + first, count, space);
        score_args args;
        args.logits = logits;
        args.rows = part.rows_of(count);
        args.vocabulary = decoder_->spec().vocabulary;
        args.tokens = tokens.data() + first + part.first_row(count);
        args.logprobs = own;
        if (args.rows > 0) sampler_->score(f, args);
        if (together) co_await f.all_gather(element_kind::f32, own, l.scores.data() + first, part.rows_each(count));
    }
}

/// What the lanes made, one after the other.
step_result rank::result_of(frame const& step)
{
    step_result out;
    auto const top = static_cast<std::size_t>(step.batch.top_logprobs);
    for (std::size_t i = 0; i < step.lanes.size(); ++i) {
        auto count = step.batch.passes[i].draws.count;
        auto const& from = step.lanes[i].everybodys();
        auto const& l = step.lanes[i];
        auto scores = l.scores.empty() ? 0 : step.batch.passes[i].scores.count; // none of another stage
        out.scores.insert(out.scores.end(), l.scores.begin(), l.scores.begin() + scores);
        out.hidden.insert(out.hidden.end(), l.hidden.begin(), l.hidden.end());
        if (from.tokens.empty()) continue; // of another stage, or nothing was drawn
        out.tokens.insert(out.tokens.end(), from.tokens.begin(), from.tokens.begin() + count);
        out.logprobs.insert(out.logprobs.end(), from.logprobs.begin(), from.logprobs.begin() + count);
        out.top.insert(out.top.end(), from.top.begin(), from.top.begin() + static_cast<std::ptrdiff_t>(count * top));
    }
    return out;
}

task<> rank::put_on_streams(std::shared_ptr<frame> held)
{
    auto& step = *held;
    auto const& batch = step.batch;
    step.tokens.resize(batch.tokens.size());
    step.lanes.resize(batch.passes.size());
    if (auto* record = dev().recorded_in()) record->enter_step(batch.number);
    std::vector<stream_role> where;
    where.reserve(batch.passes.size());
    for (auto const& pass : batch.passes)
        where.push_back(pass.where);
    weave strands(driven(), where, {member_.tensor.get(), member_.stages.get()});
    std::vector<task<>> passes;
    passes.reserve(strands.lanes());
    // On the device a step computes when the one before it has computed: it reads its tokens, and pages that it wrote.
    // What comes in from the stage before follows nothing but its activations, and nothing follows what goes out.
    auto before = flow_on(where.front());
    for (auto t : computed_.tickets())
        before.follow(t);
    prepare_step(before, step);
    step.after = computed_;
    step.after.add(before.last());
    // Steps take the activations by turns: where there are stages, one comes in while another goes out.
    auto spaces = static_cast<std::size_t>(decoder_->limits().lanes);
    for (std::size_t lane = 0; lane < strands.lanes(); ++lane)
        passes.push_back(issue(strands[lane], step, lane, next_space_++ % spaces));
    auto issued = co_await as_result(strands.run(std::move(passes)));
    computed_.clear();
    for (auto role : {stream_role::urgent, stream_role::compute})
        computed_.add(driven().stream_of(role).last());
    std::move(issued).value();
    if (!hands_over() || batch.draws.empty()) co_return;
    handed_.push_back(held);
    weave messages(driven(), 1, {nullptr, member_.stages.get()});
    co_await messages.run(hand_over(messages[0], step));
    while (handed_.size() > stages() && !handed_.front()->under_way())
        handed_.pop_front();
}

task<step_result> rank::run(step_batch batch)
{
    auto const held = std::make_shared<frame>();
    auto& step = *held;
    step.batch = std::move(batch);
    auto turn = co_await issuing_.acquire();
    auto issued = co_await as_result(put_on_streams(held));
    // Whatever was put, also where not all was: it points into this frame. Messages that go from the last stage to the
    // first have a stream for themselves, and keep theirs.
    std::array<ticket, stream_roles> ends;
    for (std::size_t i = 0; i < stream_roles; ++i) {
        auto const role = static_cast<stream_role>(i);
        auto const messages = decoder_->part().first() ? stream_role::copy_in : stream_role::copy_out;
        if (!hands_over() || role != messages) ends[i] = driven().stream_of(role).last();
    }
    turn.release();
    auto failure = issued.failure();
    if (failure) {
        // What this rank does not issue, the others must not wait for.
        for (auto* group : {member_.tensor.get(), member_.stages.get()})
            if (group != nullptr) group->abort(failure);
    }
    for (auto t : ends) {
        auto done = co_await as_result(t.operator co_await());
        if (done.failure() && !failure) failure = done.failure();
    }
    // What it has noted is noted, or never will be. Kept, each step would keep the one before it, and so all there
    // were.
    step.sources.clear();
    if (failure) std::rethrow_exception(failure);
    co_return result_of(step);
}

} // namespace plait
