#include <algorithm>
#include <cmath>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/model/decoder.hpp>

namespace plait {

namespace {

/// The widest head that the attention operation takes.
constexpr std::int64_t most_head_dim = 512;

/// The widest that each activation gets over the layers.
struct widths {
    std::int64_t width = 0, qkv = 0, heads = 0, hidden = 0, vocabulary = 0;
};

widths widest(model_spec const& spec)
{
    widths w;
    w.width = spec.width;
    w.vocabulary = spec.vocabulary;
    for (auto const& layer : spec.layers) {
        auto const& a = layer.attention;
        w.qkv = std::max(w.qkv, a.query_width() + 2 * a.kv_width());
        w.heads = std::max(w.heads, a.query_width());
        w.hidden = std::max(w.hidden, layer.ffn.hidden);
    }
    return w;
}

std::int64_t aligned(std::int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/// F32 values, and the same in 8 bit with a scale and a sum for each block: a product takes one or the other.
std::int64_t activation_bytes(std::int64_t rows, std::int64_t cols)
{
    auto blocks = (cols + block_columns - 1) / block_columns;
    return aligned(rows * cols * 4) + aligned(rows * cols) + 2 * aligned(rows * blocks * 4);
}

/// Summands that a rank has to keep apart, for a collective or for an addition after the product.
std::int64_t kept_summands(shard const& part)
{
    return part.ranks > 1 ? part.parts : part.parts > 1 ? 1 : 0;
}

/// What the decoder's constructor takes from its arena for a lane, but for the logits.
std::int64_t step_bytes(widths const& w, shard const& part, step_limits const& limits)
{
    auto n = limits.rows;
    return 2 * activation_bytes(n, w.width) + activation_bytes(n, w.heads) + activation_bytes(n, w.hidden) +
           aligned(n * w.qkv * 4) + aligned(kept_summands(part) * n * w.width * 4) +
           activation_bytes(limits.logit_rows, w.width);
}

/// The logits of a rank's rows; where ranks share them also what it has of all rows, and what it gets of its own.
std::int64_t logit_bytes(widths const& w, shard const& part, step_limits const& limits)
{
    if (!part.last()) return 0;
    auto rows = aligned(part.rows_each(limits.logit_rows) * w.vocabulary * 4);
    return part.ranks == 1 ? rows : 3 * rows;
}

std::vector<double> inverse_frequencies(rope_spec const& rope)
{
    auto out = host::rope_frequencies(rope.dims, rope.base);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] /= rope.linear_scale;
        if (!rope.factors.empty()) out[i] /= rope.factors[i];
    }
    return out;
}

/// The distinct rotations of a model, and which of them each layer has.
std::pair<std::vector<rope_spec>, std::vector<std::size_t>> rotations(model_spec const& spec)
{
    std::vector<rope_spec> distinct;
    std::vector<std::size_t> of_layer;
    for (auto const& layer : spec.layers) {
        auto const& rope = layer.attention.rope;
        auto found = std::ranges::find(distinct, rope);
        if (found == distinct.end()) found = distinct.insert(found, rope);
        of_layer.push_back(static_cast<std::size_t>(found - distinct.begin()));
    }
    return {std::move(distinct), std::move(of_layer)};
}

host::activation function_of(activation_kind kind)
{
    return kind == activation_kind::silu ? host::activation::silu : host::activation::gelu_tanh;
}

host::rope_style style_of(rope_style style)
{
    return style == rope_style::halves ? host::rope_style::halves : host::rope_style::pairs;
}

/// Which forms of its input a product reads: F32, 8 bit, or (several products) both.
struct forms {
    bool f32 = false;
    bool q8 = false;
};

forms read_by(weight_view const& w)
{
    return {!takes_q8(w.format), takes_q8(w.format)};
}

forms read_by(summed_weights const& w)
{
    return read_by(w.parts.front());
}

forms read_by(stacked_weights const& w)
{
    forms out;
    for (auto const& part : w.parts) {
        auto one = read_by(part.weights);
        out = {out.f32 || one.f32, out.q8 || one.q8};
    }
    return out;
}

/// `from` with only the forms that are read; the others are not computed.
activation_view only(activation_view from, forms wanted)
{
    if (!wanted.q8) from.q8 = nullptr, from.scales = nullptr, from.sums = nullptr;
    if (!wanted.f32) from.f32 = nullptr;
    return from;
}

activation_view first_rows(activation_view from, std::int64_t rows, std::int64_t cols)
{
    from.rows = rows;
    from.cols = cols;
    return from;
}

} // namespace

struct decoder::arena {
    std::byte* next;

    template<class T>
    T* take(std::int64_t count)
    {
        auto* out = reinterpret_cast<T*>(next);
        next += aligned(count * static_cast<std::int64_t>(sizeof(T)));
        return out;
    }
};

std::vector<memory_line> decoder::plan(model_spec const& spec, shard const& part, step_limits const& limits)
{
    auto w = widest(spec);
    auto n = limits.rows;
    std::int64_t angles = 0;
    for (auto const& rope : rotations(spec).first)
        angles += limits.positions * rope.dims * 4;
    auto lanes = limits.lanes > 1 ? std::to_string(limits.lanes) + " lanes × " : "";
    auto summands = kept_summands(part) * w.width;
    std::vector<memory_line> lines;
    lines.push_back({"activations",
                     lanes + std::to_string(n) + " tokens × (2 × " + std::to_string(w.width) + " + QKV " +
                         std::to_string(w.qkv) + " + heads " + std::to_string(w.heads) + " + hidden " +
                         std::to_string(w.hidden) + ") in F32 and 8 bit" +
                         (summands > 0 ? ", sums " + std::to_string(summands) + " in F32" : ""),
                     limits.lanes * step_bytes(w, part, limits)});
    if (part.last())
        lines.push_back({"logits",
                         lanes + std::to_string(part.rows_each(limits.logit_rows)) + " × " +
                             std::to_string(w.vocabulary) + " × 4 B" + (part.ranks > 1 ? ", three times" : ""),
                         limits.lanes * logit_bytes(w, part, limits)});
    lines.push_back({"rotary angles", std::to_string(limits.positions) + " positions", angles});
    return lines;
}

activation_view decoder::take(std::int64_t rows, std::int64_t cols, arena& from) const
{
    auto blocks = (cols + block_columns - 1) / block_columns;
    activation_view out{rows, cols};
    out.f32 = from.take<float>(rows * cols);
    out.q8 = from.take<std::int8_t>(rows * cols);
    out.scales = from.take<float>(rows * blocks);
    out.sums = from.take<float>(rows * blocks);
    return out;
}

decoder::decoder(device& where, model_spec spec, shard const& part, step_limits limits, model_weights& weights,
                 kv_storage& kv)
    : spec_(std::move(spec))
    , part_(part)
    , limits_(limits)
    , weights_(weights)
    , kv_(kv)
{
    check(spec_);
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
        auto const& layer = spec_.layers[i];
        auto refuse = [&](std::string const& what) {
            throw error(errc::unsupported,
                        "layer " + std::to_string(static_cast<std::size_t>(part_.first_layer) + i) + ": " + what);
        };
        if (layer.attention.head_dim > most_head_dim) refuse("heads of " + std::to_string(layer.attention.head_dim));
        if (!layer.ffn.gated) refuse("a feed-forward network without a gate");
        if (layer.norm.kind != norm_kind::rms) refuse("norm " + std::string(name(layer.norm.kind)));
    }
    if (spec_.final_norm.kind != norm_kind::rms)
        throw error(errc::unsupported, "final norm " + std::string(name(spec_.final_norm.kind)));

    auto [distinct, of_layer] = rotations(spec_);
    for (auto const& rope : distinct)
        angles_.emplace_back(rope.style == rope_style::none ? std::vector<double>{} : inverse_frequencies(rope),
                             limits_.positions);
    angles_of_layer_ = std::move(of_layer);

    auto w = widest(spec_);
    qkv_width_ = w.qkv;
    memory_ = buffer(where, static_cast<std::size_t>(limits_.lanes *
                                                     (step_bytes(w, part_, limits_) + logit_bytes(w, part_, limits_))));
    arena memory{memory_.data()};
    for (std::int64_t lane = 0; lane < limits_.lanes; ++lane) {
        auto& s = spaces_.emplace_back();
        s.x = take(limits_.rows, w.width, memory);
        s.normed = take(limits_.rows, w.width, memory);
        s.attended = take(limits_.rows, w.heads, memory);
        s.gated = take(limits_.rows, w.hidden, memory);
        s.qkv = memory.take<float>(limits_.rows * w.qkv);
        s.summands = memory.take<float>(kept_summands(part_) * limits_.rows * w.width);
        s.last = take(limits_.logit_rows, w.width, memory);
        if (!part_.last()) continue;
        auto rows = part_.rows_each(limits_.logit_rows) * w.vocabulary;
        s.logits = memory.take<float>(rows);
        if (part_.ranks > 1) s.shards = memory.take<float>(2 * rows);
    }
}

/// One forward pass on its way: what its parts share.
struct decoder::pass {
    decoder& of;
    flow& f;
    ops& on;
    decoder_step const& step;
    space& s;

    activation_view residual() const { return first_rows(s.x, step.rows, of.spec_.width); }
    activation_view normed() const { return first_rows(s.normed, step.rows, of.spec_.width); }

    void normalise(norm_spec const& norm, float const* weight, activation_view out,
                   std::int32_t const* row_index = nullptr)
    {
        norm_args args;
        args.x = s.x.f32;
        args.x_stride = of.spec_.width;
        args.row_index = row_index;
        args.weight = weight;
        args.eps = norm.epsilon;
        args.out = out;
        on.norm(f, args);
    }

    task<> embed();
    task<> attend(std::size_t layer, activation_view input);
    task<> feed_forward(std::size_t layer, activation_view input);
    task<> add_product(summed_weights const& w, activation_view input);
    task<> decoder_layer(std::size_t layer);
    task<> project_logits();
    void follow_writes(std::size_t layer);
};

/// The residual stream of the first stage: each rank has part of the vocabulary and zeros for the rest.
task<> decoder::pass::embed()
{
    auto x = residual();
    embed_args args;
    args.weights = of.weights_.token_embedding();
    args.tokens = step.tokens;
    args.rows = step.rows;
    args.first_token = static_cast<std::int32_t>(of.weights_.first_token());
    args.scale = of.spec_.embedding_scale;
    args.out = x.f32;
    on.embed(f, args);
    co_await f.all_reduce(x.f32, x.f32, x.rows * x.cols);
}

/// x += input * w^T, where each rank has some columns of `w` and of the input. The sum over all summands comes first,
/// in their order, and then the residual stream, whether there is one device or many.
task<> decoder::pass::add_product(summed_weights const& w, activation_view input)
{
    auto x = residual();
    auto cols = x.cols;
    if (f.ranks() == 1 && w.parts.size() == 1) {
        on.product(f, {w.parts.front(), input, x.f32, cols, x.f32});
        co_await f.turn();
        co_return;
    }
    auto count = x.rows * cols;
    for (std::size_t i = 0; i < w.parts.size(); ++i) {
        auto const& part = w.parts[i];
        auto columns_of_part = columns(input, static_cast<std::int64_t>(i) * part.cols, part.cols);
        if (f.ranks() == 1) {
            on.product(f, {part, columns_of_part, s.summands, cols, i == 0 ? nullptr : s.summands});
        } else {
            auto* summand = s.summands + static_cast<std::int64_t>(i) * count;
            on.product(f, {part, columns_of_part, summand, cols, nullptr});
        }
    }
    auto parts = f.ranks() == 1 ? 1 : static_cast<std::int32_t>(w.parts.size());
    co_await f.all_reduce(s.summands, s.summands, count, parts);
    on.add(f, {s.summands, x.f32, x.rows, cols});
}

/// What this pass reads of the pages was written by passes whose writes have all been issued, or it is an error of the
/// plan: the device would compute with what is not there.
void decoder::pass::follow_writes(std::size_t layer)
{
    for (auto const* writes : step.reads) {
        if (writes->size() <= layer)
            throw error(errc::bad_plan, "layer " +
                                            std::to_string(static_cast<std::size_t>(of.part_.first_layer) + layer) +
                                            " would read pages whose write has not been issued: the lane that writes "
                                            "them comes later");
        f.follow((*writes)[layer]);
    }
    if (step.writes != nullptr) step.writes->push_back(f.last());
}

task<> decoder::pass::attend(std::size_t layer, activation_view input)
{
    auto const& a = of.spec_.layers[layer].attention;
    auto const& w = of.weights_.layer(layer);
    auto kv = of.kv_.layer(static_cast<int>(layer));
    std::span<sequence_chunk const> chunks =
        step.chunks[static_cast<std::size_t>(of.kv_.group_of(static_cast<int>(layer)))];
    auto heads = static_cast<std::int32_t>(a.heads);

    for (auto const& part : w.qkv.parts)
        on.product(f, {part.weights, input, s.qkv + part.first_row, of.qkv_width_, nullptr});

    rope_args rotate;
    rotate.qkv = s.qkv;
    rotate.stride = of.qkv_width_;
    rotate.heads = heads;
    rotate.kv = kv;
    rotate.rope = of.angles_[of.angles_of_layer_[layer]].view();
    rotate.style = style_of(a.rope.style);
    rotate.chunks = chunks;
    on.rope_and_store(f, rotate);
    follow_writes(layer);

    attention_args attention;
    attention.queries = s.qkv;
    attention.stride = of.qkv_width_;
    attention.heads = heads;
    attention.kv = kv;
    attention.chunks = chunks;
    attention.scale = a.scale;
    attention.soft_cap = a.soft_cap;
    attention.window = static_cast<std::int32_t>(a.window);
    // Attention quantises what it makes a head at a time; heads that are not whole blocks are quantised afterwards.
    auto const attended = first_rows(s.attended, step.rows, a.query_width());
    auto const input_of_output = only(attended, read_by(w.attention_out));
    auto const whole_blocks = a.head_dim % block_columns == 0;
    attention.out = whole_blocks ? input_of_output : only(attended, {true, false});
    on.attention(f, attention);
    if (!whole_blocks && input_of_output.q8 != nullptr) on.quantise(f, {attended});

    co_await add_product(w.attention_out, input_of_output);
}

task<> decoder::pass::feed_forward(std::size_t layer, activation_view input)
{
    auto const& ffn = of.spec_.layers[layer].ffn;
    auto const& w = of.weights_.layer(layer);
    auto inner = only(first_rows(s.gated, input.rows, ffn.hidden), read_by(w.down));
    on.gated(f, {w.gate_up, input, inner, function_of(ffn.activation)});
    co_await add_product(w.down, inner);
}

task<> decoder::pass::decoder_layer(std::size_t i)
{
    auto const& layer = of.spec_.layers[i];
    auto const& w = of.weights_.layer(i);
    switch (layer.placement) {
    case norm_placement::pre: {
        // x + f(N(x)): the product adds its result to the residual stream.
        auto input = only(normed(), read_by(w.qkv));
        normalise(layer.norm, w.attention_norm, input);
        co_await attend(i, input);
        input = only(normed(), read_by(w.gate_up));
        normalise(layer.norm, w.ffn_norm, input);
        co_await feed_forward(i, input);
        break;
    }
    case norm_placement::post_add: {
        // N(x + f(x)): sublayers read the stream itself, and the norm replaces it.
        auto x = residual();
        if (i == 0 && read_by(w.qkv).q8) on.quantise(f, {x});
        co_await attend(i, only(x, read_by(w.qkv)));
        normalise(layer.norm, w.attention_norm, x);
        co_await feed_forward(i, only(x, read_by(w.gate_up)));
        normalise(layer.norm, w.ffn_norm, x);
        break;
    }
    }
}

/// Each rank computes the logits of its part of the vocabulary for all rows, and gets all of the vocabulary for its
/// rows.
task<> decoder::pass::project_logits()
{
    auto const& output = of.weights_.output();
    auto rows = step.logit_rows;
    auto last = only(first_rows(s.last, rows, of.spec_.width), read_by(output));
    normalise(of.spec_.final_norm, of.weights_.output_norm(), last, step.logit_row_index);
    if (f.ranks() == 1) {
        on.product(f, {output, last, s.logits, of.spec_.vocabulary, nullptr});
        co_return;
    }
    // What is sent is whole blocks of rows: what fills up the last ones is never read.
    auto each = of.part_.rows_each(rows);
    auto* mine = s.shards + each * of.spec_.vocabulary;
    on.product(f, {output, last, s.shards, output.rows, nullptr});
    co_await f.all_to_all(element_kind::f32, s.shards, mine, each * output.rows);
    on.join_columns(f, {mine, f.ranks(), each, output.rows, s.logits});
}

task<float*> decoder::forward(flow& f, ops& on, decoder_step step, std::size_t lane)
{
    auto& s = spaces_[lane];
    pass p{*this, f, on, step, s};
    f.follow(s.newest);
    auto count = step.rows * spec_.width;
    if (!part_.first()) co_await f.receive(element_kind::f32, s.x.f32, count, part_.stage - 1);
    for (auto t : step.after)
        f.follow(t);
    if (part_.first()) co_await p.embed();
    for (std::size_t i = 0; i < spec_.layers.size(); ++i)
        co_await p.decoder_layer(i);
    if (!part_.last())
        co_await f.send(element_kind::f32, s.x.f32, count, part_.stage + 1);
    else if (step.logit_rows > 0)
        co_await p.project_logits();
    s.newest = f.last();
    memory_.used_by(f.last());
    weights_.used_by(f.last());
    kv_.used_by(f.last());
    co_return part_.last() ? s.logits : nullptr;
}

} // namespace plait
