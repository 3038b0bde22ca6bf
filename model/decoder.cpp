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

/// What the decoder's constructor takes from its arena, but for the logits.
std::int64_t step_bytes(widths const& w, step_limits const& limits)
{
    auto n = limits.rows;
    return 2 * activation_bytes(n, w.width) + activation_bytes(n, w.heads) + activation_bytes(n, w.hidden) +
           aligned(n * w.qkv * 4) + activation_bytes(limits.logit_rows, w.width);
}

std::int64_t logit_bytes(widths const& w, step_limits const& limits)
{
    return aligned(limits.logit_rows * w.vocabulary * 4);
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

std::vector<memory_line> decoder::plan(model_spec const& spec, step_limits const& limits)
{
    auto w = widest(spec);
    auto n = limits.rows;
    std::int64_t angles = 0;
    for (auto const& rope : rotations(spec).first)
        angles += limits.positions * rope.dims * 4;
    return {{"activations",
             std::to_string(n) + " tokens × (2 × " + std::to_string(w.width) + " + QKV " + std::to_string(w.qkv) +
                 " + heads " + std::to_string(w.heads) + " + hidden " + std::to_string(w.hidden) + ") in F32 and 8 bit",
             step_bytes(w, limits)},
            {"logits", std::to_string(limits.logit_rows) + " × " + std::to_string(w.vocabulary) + " × 4 B",
             logit_bytes(w, limits)},
            {"rotary angles", std::to_string(limits.positions) + " positions", angles}};
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

decoder::decoder(device& where, model_spec spec, step_limits limits, model_weights& weights, kv_storage& kv)
    : spec_(std::move(spec))
    , limits_(limits)
    , weights_(weights)
    , kv_(kv)
{
    check(spec_);
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
        auto const& layer = spec_.layers[i];
        auto refuse = [&](std::string const& what) {
            throw error(errc::unsupported, "layer " + std::to_string(i) + ": " + what);
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
    memory_ = buffer(where, static_cast<std::size_t>(step_bytes(w, limits_) + logit_bytes(w, limits_)));
    arena space{memory_.data()};
    x_ = take(limits_.rows, w.width, space);
    normed_ = take(limits_.rows, w.width, space);
    attended_ = take(limits_.rows, w.heads, space);
    gated_ = take(limits_.rows, w.hidden, space);
    qkv_ = space.take<float>(limits_.rows * w.qkv);
    last_ = take(limits_.logit_rows, w.width, space);
    logits_ = space.take<float>(limits_.logit_rows * w.vocabulary);
    qkv_width_ = w.qkv;
}

activation_view decoder::residual(std::int64_t rows) const
{
    return first_rows(x_, rows, spec_.width);
}

void decoder::normalise(flow& f, ops& on, norm_spec const& norm, float const* weight, activation_view out,
                        std::int32_t const* row_index)
{
    on.rms_norm(f, {x_.f32, spec_.width, row_index, weight, norm.epsilon, out});
}

void decoder::attend(flow& f, ops& on, decoder_step const& step, std::size_t layer, activation_view input)
{
    auto const& a = spec_.layers[layer].attention;
    auto const& w = weights_.layer(layer);
    auto kv = kv_.layer(static_cast<int>(layer));
    std::span<sequence_chunk const> chunks =
        step.chunks[static_cast<std::size_t>(kv_.group_of(static_cast<int>(layer)))];
    auto heads = static_cast<std::int32_t>(a.heads);
    auto x = residual(step.rows);

    for (auto const& part : w.qkv.parts)
        on.product(f, {part.weights, input, qkv_ + part.first_row, qkv_width_, nullptr});

    rope_args rotate;
    rotate.qkv = qkv_;
    rotate.stride = qkv_width_;
    rotate.heads = heads;
    rotate.kv = kv;
    rotate.rope = angles_[angles_of_layer_[layer]].view();
    rotate.style = style_of(a.rope.style);
    rotate.chunks = chunks;
    on.rope_and_store(f, rotate);

    attention_args attention;
    attention.queries = qkv_;
    attention.stride = qkv_width_;
    attention.heads = heads;
    attention.kv = kv;
    attention.chunks = chunks;
    attention.scale = a.scale;
    attention.soft_cap = a.soft_cap;
    attention.window = static_cast<std::int32_t>(a.window);
    // Attention quantises what it makes a head at a time; heads that are not whole blocks are quantised afterwards.
    auto const attended = first_rows(attended_, step.rows, a.query_width());
    auto const input_of_output = only(attended, read_by(w.attention_out));
    auto const whole_blocks = a.head_dim % block_columns == 0;
    attention.out = whole_blocks ? input_of_output : only(attended, {true, false});
    on.attention(f, attention);
    if (!whole_blocks && input_of_output.q8 != nullptr) on.quantise(f, {attended});

    on.product(f, {w.attention_out, input_of_output, x.f32, spec_.width, x.f32});
}

void decoder::feed_forward(flow& f, ops& on, std::size_t layer, activation_view input)
{
    auto const& ffn = spec_.layers[layer].ffn;
    auto const& w = weights_.layer(layer);
    auto x = residual(input.rows);
    auto inner = only(first_rows(gated_, input.rows, ffn.hidden), read_by(w.down));
    on.gated(f, {w.gate_up, input, inner, function_of(ffn.activation)});
    on.product(f, {w.down, inner, x.f32, spec_.width, x.f32});
}

float* decoder::forward(flow& f, ops& on, decoder_step const& step)
{
    auto x = residual(step.rows);
    auto normed = first_rows(normed_, step.rows, spec_.width);
    on.embed(f, {weights_.token_embedding(), step.tokens, step.rows, spec_.embedding_scale, x.f32});

    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
        auto const& layer = spec_.layers[i];
        auto const& w = weights_.layer(i);
        switch (layer.placement) {
        case norm_placement::pre: {
            // x + f(N(x)): the product adds its result to the residual stream.
            auto input = only(normed, read_by(w.qkv));
            normalise(f, on, layer.norm, w.attention_norm, input);
            attend(f, on, step, i, input);
            input = only(normed, read_by(w.gate_up));
            normalise(f, on, layer.norm, w.ffn_norm, input);
            feed_forward(f, on, i, input);
            break;
        }
        case norm_placement::post_add: {
            // N(x + f(x)): sublayers read the stream itself, and the norm replaces it.
            if (i == 0 && read_by(w.qkv).q8) on.quantise(f, {x});
            attend(f, on, step, i, only(x, read_by(w.qkv)));
            normalise(f, on, layer.norm, w.attention_norm, x);
            feed_forward(f, on, i, only(x, read_by(w.gate_up)));
            normalise(f, on, layer.norm, w.ffn_norm, x);
            break;
        }
        }
    }

    if (step.logit_rows > 0) {
        auto last = only(first_rows(last_, step.logit_rows, spec_.width), read_by(weights_.output()));
        normalise(f, on, spec_.final_norm, weights_.output_norm(), last, step.logit_row_index);
        on.product(f, {weights_.output(), last, logits_, spec_.vocabulary, nullptr});
    }
    memory_.used_by(f.last());
    weights_.used_by(f.last());
    kv_.used_by(f.last());
    return logits_;
}

} // namespace plait
