#include <algorithm>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/model/decoder.hpp>

namespace plait {

namespace {

/// The widest head that the attention operation takes.
constexpr std::int64_t most_head_dim = 512;

host::activation function_of(activation_kind kind)
{
    switch (kind) {
    case activation_kind::silu:
        return host::activation::silu;
    case activation_kind::gelu_tanh:
        return host::activation::gelu_tanh;
    case activation_kind::gelu_erf:
        return host::activation::gelu_erf;
    case activation_kind::relu:
        return host::activation::relu;
    case activation_kind::relu_squared:
        return host::activation::relu_squared;
    case activation_kind::swiglu_clamped:
        return host::activation::swiglu_clamped;
    }
    return host::activation::silu;
}

host::rope_style style_of(rope_style style)
{
    switch (style) {
    case rope_style::halves:
        return host::rope_style::halves;
    case rope_style::two_halves:
        return host::rope_style::two_halves;
    case rope_style::none:
    case rope_style::pairs:
        break;
    }
    return host::rope_style::pairs;
}

host::expert_scoring scoring_of(routing scoring)
{
    switch (scoring) {
    case routing::softmax:
        return host::expert_scoring::softmax;
    case routing::softmax_of_chosen:
        return host::expert_scoring::softmax_chosen;
    case routing::sigmoid:
        return host::expert_scoring::sigmoid;
    }
    return host::expert_scoring::softmax;
}

host::norm_kind kind_of(norm_kind kind)
{
    switch (kind) {
    case norm_kind::none:
        return host::norm_kind::none;
    case norm_kind::rms:
        return host::norm_kind::rms;
    case norm_kind::layer:
        return host::norm_kind::layer;
    }
    return host::norm_kind::none;
}

/// out = N(x), where the rows of `x` are `stride` numbers apart.
norm_args norm_of(norm_spec const& norm, norm_weights const& w, float const* x, std::int64_t stride,
                  activation_view out)
{
    norm_args args;
    args.kind = kind_of(norm.kind);
    args.x = x;
    args.x_stride = stride;
    args.weight = w.weight;
    args.bias = w.bias;
    args.eps = norm.epsilon;
    args.out = out;
    return args;
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

forms either(forms one, forms other)
{
    return {one.f32 || other.f32, one.q8 || other.q8};
}

forms read_by(stacked_weights const& w)
{
    forms out;
    for (auto const& part : w.parts)
        out = either(out, read_by(part.weights));
    return out;
}

/// By whatever of a layer's feed-forward networks is there.
forms read_by(layer_weights const& w)
{
    forms out;
    for (auto const* matrix : {&w.ffn.gate_up, &w.ffn.up, &w.experts.router, &w.experts.gate_up})
        if (matrix->rows > 0) out = either(out, read_by(*matrix));
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

/// The specification, if there is an operation for every layer of it.
model_spec runnable(model_spec spec, shard const& part)
{
    check(spec);
    for (std::size_t i = 0; i < spec.layers.size(); ++i) {
        auto const& layer = spec.layers[i];
        auto refuse = [&](std::string const& what) {
            throw error(errc::unsupported,
                        "layer " + std::to_string(static_cast<std::size_t>(part.first_layer) + i) + ": " + what);
        };
        if (layer.attention.head_dim > most_head_dim) refuse("heads of " + std::to_string(layer.attention.head_dim));
        if (layer.norm.kind == norm_kind::none) refuse("norm none");
        if (layer.norms_output() && (layer.attention.output_bias || layer.ffn.bias))
            refuse("a bias under norm placement " + std::string(name(layer.placement)));
    }
    return spec;
}

} // namespace

decoder::decoder(device& where, model_spec spec, shard const& part, step_limits limits, model_weights& weights,
                 kv_storage& kv)
    : spec_(runnable(std::move(spec), part))
    , part_(part)
    , limits_(limits)
    , weights_(weights)
    , kv_(kv)
    , angles_(spec_, limits.positions)
    , activations_(where, spec_, part, limits)
{
}

std::vector<memory_line> decoder::plan(model_spec const& spec, shard const& part, step_limits const& limits)
{
    auto lines = activations::plan(spec, part, limits);
    lines.push_back(rotary_tables::plan(spec, limits.positions));
    return lines;
}

/// One forward pass on its way: what its parts share.
struct decoder::pass {
    decoder& of;
    flow& f;
    ops& on;
    decoder_step const& step;
    lane_activations& s;

    activation_view residual() const { return first_rows(s.x, step.rows, of.spec_.width); }
    activation_view normed() const { return first_rows(s.normed, step.rows, of.spec_.width); }
    layer_spec const& spec(std::size_t layer) const { return of.spec_.layers[layer]; }
    layer_weights const& weights(std::size_t layer) const { return of.weights_.layer(layer); }

    void normalise(norm_spec const& norm, norm_weights const& w, float const* x, activation_view out,
                   std::int32_t const* row_index = nullptr)
    {
        auto args = norm_of(norm, w, x, of.spec_.width, out);
        args.row_index = row_index;
        on.norm(f, args);
    }

    task<> embed();
    task<> attend(std::size_t layer, activation_view input);
    task<> feed_forward(std::size_t layer, activation_view input);
    task<> mix_experts(std::size_t layer, activation_view input);
    activation_view hidden(ffn_spec const& ffn, std::int64_t features, ffn_weights const& w, activation_view input);
    task<> add_product(std::size_t layer, summed_weights const& w, activation_view input, float const* bias,
                       norm_weights const& output_norm);
    void add_sum(std::size_t layer, float const* sum, float const* bias, norm_weights const& output_norm);
    activation_view sublayer_input(std::size_t layer, norm_weights const& norm, forms wanted);
    void end_sublayer(std::size_t layer, norm_weights const& norm);
    task<> decoder_layer(std::size_t layer);
    task<> parallel_layer(std::size_t layer);
    task<> project_logits();
    void norm_heads(std::size_t layer, norm_weights const& w, float* heads, std::int64_t width);
    void follow_writes(std::size_t layer);
};

/// The residual stream of the first stage: each rank has part of the vocabulary and zeros for the rest. Whoever has a
/// token adds its position.
task<> decoder::pass::embed()
{
    auto x = residual();
    embed_args args;
    args.weights = of.weights_.token_embedding();
    args.tokens = step.tokens;
    args.rows = step.rows;
    args.first_token = static_cast<std::int32_t>(of.weights_.first_token());
    args.scale = of.spec_.embedding_scale;
    args.positions = of.weights_.position_embedding();
    args.chunks = step.chunks.front();
    args.out = x.f32;
    on.embed(f, args);
    co_await f.all_reduce(x.f32, x.f32, x.rows * x.cols);
}

/// What a sublayer has made goes into the residual stream.
void decoder::pass::add_sum(std::size_t layer, float const* sum, float const* bias, norm_weights const& output_norm)
{
    auto x = residual();
    auto const& how = spec(layer);
    if (!how.norms_output()) {
        on.add(f, {sum, x.f32, x.rows, x.cols, bias, how.output_scale, how.residual_scale});
        return;
    }
    auto args = norm_of(how.norm, output_norm, sum, x.cols, only(x, {true, false}));
    args.residual = x.f32;
    args.residual_scale = how.residual_scale;
    args.scale = how.output_scale;
    on.norm(f, args);
}

/// The end of a sublayer: input * w^T into the residual stream, where each rank has some columns of `w` and of the
/// input. The sum over all summands comes first, in their order, then bias and norm, and then the residual stream,
/// whether there is one device or many.
task<> decoder::pass::add_product(std::size_t layer, summed_weights const& w, activation_view input, float const* bias,
                                  norm_weights const& output_norm)
{
    auto x = residual();
    auto cols = x.cols;
    auto const& how = spec(layer);
    if (f.ranks() == 1 && w.parts.size() == 1 && !how.norms_output()) {
        on.product(f, {w.parts.front(), input, x.f32, cols, x.f32, bias, how.output_scale, how.residual_scale});
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
    add_sum(layer, s.summands, bias, output_norm);
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
    auto const& a = spec(layer).attention;
    auto const& w = weights(layer);
    auto kv = of.kv_.layer(static_cast<int>(layer));
    std::span<sequence_chunk const> chunks =
        step.chunks[static_cast<std::size_t>(of.kv_.group_of(static_cast<int>(layer)))];
    auto heads = static_cast<std::int32_t>(a.heads);

    for (auto const& part : w.qkv.parts)
        on.product(f, {part.weights, input, s.qkv + part.first_row, of.activations_.qkv_width(), nullptr,
                       w.qkv_bias == nullptr ? nullptr : w.qkv_bias + part.first_row});
    if (a.query_key_norm == head_norm::all_heads) {
        norm_heads(layer, w.query_norm, s.qkv, a.query_width());
        norm_heads(layer, w.key_norm, s.qkv + a.query_width(), a.kv_width());
    }

    rope_args rotate;
    rotate.qkv = s.qkv;
    rotate.stride = of.activations_.qkv_width();
    rotate.heads = heads;
    rotate.kv = kv;
    rotate.rope = of.angles_.view(layer);
    rotate.style = style_of(a.rope.style);
    rotate.chunks = chunks;
    if (a.query_key_norm == head_norm::head || a.query_key_norm == head_norm::each_head) {
        rotate.norm = kind_of(a.norm.kind);
        rotate.query_norm = w.query_norm.weight;
        rotate.key_norm = w.key_norm.weight;
        rotate.norm_eps = a.norm.epsilon;
        rotate.norm_per_head_weights = a.query_key_norm == head_norm::each_head;
    }
    on.rope_and_store(f, rotate);
    follow_writes(layer);

    attention_args attention;
    attention.queries = s.qkv;
    attention.stride = of.activations_.qkv_width();
    attention.heads = heads;
    attention.kv = kv;
    attention.chunks = chunks;
    attention.scale = a.scale;
    attention.soft_cap = a.soft_cap;
    attention.window = static_cast<std::int32_t>(a.window);
    attention.sinks = w.sinks;
    // Attention quantises what it makes a head at a time; heads that are not whole blocks are quantised afterwards.
    auto const attended = first_rows(s.attended, step.rows, a.query_width());
    auto const input_of_output = only(attended, read_by(w.attention_out));
    auto const whole_blocks = a.head_dim % block_columns == 0;
    attention.out = whole_blocks ? input_of_output : only(attended, {true, false});
    on.attention(f, attention);
    if (!whole_blocks && input_of_output.q8 != nullptr) on.quantise(f, {attended});

    co_await add_product(layer, w.attention_out, input_of_output, w.attention_out_bias, w.attention_output_norm);
}

/// The norm over all heads of the queries or of the keys, in place.
void decoder::pass::norm_heads(std::size_t layer, norm_weights const& w, float* heads, std::int64_t width)
{
    activation_view const out{.rows = step.rows, .cols = width, .f32 = heads, .stride = of.activations_.qkv_width()};
    on.norm(f, norm_of(spec(layer).attention.norm, w, heads, of.activations_.qkv_width(), out));
}

/// Both halves of a dense network but for the sum: what its second product reads.
activation_view decoder::pass::hidden(ffn_spec const& ffn, std::int64_t features, ffn_weights const& w,
                                      activation_view input)
{
    auto inner = only(first_rows(s.gated, input.rows, features), read_by(w.down));
    auto function = function_of(ffn.activation);
    if (ffn.gated)
        on.gated(f, {w.gate_up, only(input, read_by(w.gate_up)), inner, function, w.gate_bias, w.up_bias, ffn.alpha,
                     ffn.limit});
    else
        on.activated(f, {w.up, only(input, read_by(w.up)), w.up_bias, inner, function});
    return inner;
}

task<> decoder::pass::feed_forward(std::size_t layer, activation_view input)
{
    auto const& ffn = spec(layer).ffn;
    auto const& w = weights(layer);
    if (ffn.experts.count > 0) {
        co_await mix_experts(layer, input);
        co_return;
    }
    auto inner = hidden(ffn, ffn.hidden, w.ffn, input);
    co_await add_product(layer, w.ffn.down, inner, w.ffn.down_bias, w.ffn_output_norm);
}

/// Each token through the experts that the router chooses for it, and through the one that all share. Experts are
/// divided among the summands, and so among the ranks, in their order.
task<> decoder::pass::mix_experts(std::size_t layer, activation_view input)
{
    auto const& ffn = spec(layer).ffn;
    auto const& how = ffn.experts;
    auto const& w = weights(layer);
    auto const& e = w.experts;
    auto rows = input.rows;
    auto count = rows * of.spec_.width;
    on.product(f, {e.router, only(input, read_by(e.router)), s.router, how.count, nullptr, e.router_bias});

    auto choice = s.choice;
    choice.rows = rows;
    choice.used = static_cast<std::int32_t>(how.used);
    choice.first_expert = static_cast<std::int32_t>(e.first);
    choice.experts = static_cast<std::int32_t>(e.count);
    route_args route;
    route.logits = s.router;
    route.experts = static_cast<std::int32_t>(how.count);
    route.scoring = scoring_of(how.scoring);
    route.selection_bias = e.selection_bias;
    route.groups = static_cast<std::int32_t>(how.groups);
    route.groups_used = static_cast<std::int32_t>(how.groups_used);
    route.renormalise = how.normalised;
    route.scale = how.scale;
    route.choice = choice;
    on.route(f, route);

    auto inner = only(first_rows(s.expert_gated, rows * how.used, how.hidden), read_by(e.down));
    on.expert_gated(f, {choice, e.gate_up, e.gate_up_bytes, only(input, read_by(e.gate_up)), inner, e.gate_bias,
                        e.up_bias, function_of(ffn.activation), ffn.alpha, ffn.limit});
    on.expert_product(f, {choice, e.down, e.down_bytes, inner, e.down_bias, s.expert_out});

    activation_view shared;
    if (how.shared_hidden > 0) shared = hidden(ffn, how.shared_hidden, w.ffn, input);
    auto each = choice.experts / of.part_.parts;
    choice.experts = each;
    for (std::int32_t i = 0; i < of.part_.parts; ++i) {
        // A single device adds up what it makes; where there are several, the collective does.
        auto* summand = s.summands + (f.ranks() > 1 ? i : std::min(i, 1)) * count;
        on.expert_sum(f, {choice, s.expert_out, of.spec_.width, nullptr, summand});
        choice.first_expert += each;
        if (how.shared_hidden > 0) {
            auto const& down = w.ffn.down.parts[static_cast<std::size_t>(i)];
            on.product(f, {down, columns(shared, i * down.cols, down.cols), summand, of.spec_.width, summand});
        }
        if (f.ranks() == 1 && i > 0) on.add(f, {summand, s.summands, rows, of.spec_.width});
    }
    auto const parts = f.ranks() == 1 ? 1 : of.part_.parts;
    co_await f.all_reduce(s.summands, s.summands, count, parts);
    add_sum(layer, s.summands, nullptr, w.ffn_output_norm);
}

/// What a sublayer reads: the stream, or its norm, where its placement has one before the sublayer.
activation_view decoder::pass::sublayer_input(std::size_t layer, norm_weights const& norm, forms wanted)
{
    auto const& how = spec(layer);
    auto x = residual();
    switch (how.placement) {
    case norm_placement::pre:
    case norm_placement::sandwich: {
        auto input = only(normed(), wanted);
        normalise(how.norm, norm, s.x.f32, input);
        return input;
    }
    case norm_placement::input: {
        // The normed stream takes the stream's place: what the sublayer makes is added to it.
        auto both = only(x, {true, wanted.q8});
        normalise(how.norm, norm, s.x.f32, both);
        return both;
    }
    case norm_placement::post_add:
    case norm_placement::output:
        if (wanted.q8) on.quantise(f, {x});
        break;
    }
    return only(x, wanted);
}

/// Both sublayers read the stream as it was before either.
task<> decoder::pass::parallel_layer(std::size_t i)
{
    auto const& layer = spec(i);
    auto const& w = weights(i);
    auto first = only(normed(), layer.shared_norm ? either(read_by(w.qkv), read_by(w)) : read_by(w.qkv));
    normalise(layer.norm, w.attention_norm, s.x.f32, first);
    auto second = normed();
    if (!layer.shared_norm) {
        second = first_rows(s.normed_too, step.rows, of.spec_.width);
        normalise(layer.norm, w.ffn_norm, s.x.f32, only(second, read_by(w)));
    }
    co_await attend(i, only(first, read_by(w.qkv)));
    co_await feed_forward(i, only(second, read_by(w)));
}

task<> decoder::pass::decoder_layer(std::size_t i)
{
    auto const& w = weights(i);
    auto input = sublayer_input(i, w.attention_norm, read_by(w.qkv));
    co_await attend(i, input);
    end_sublayer(i, w.attention_norm);
    input = sublayer_input(i, w.ffn_norm, read_by(w));
    co_await feed_forward(i, input);
    end_sublayer(i, w.ffn_norm);
}

/// After the original transformer's sublayers the norm of the stream takes its place.
void decoder::pass::end_sublayer(std::size_t layer, norm_weights const& norm)
{
    auto const& how = spec(layer);
    if (how.placement == norm_placement::post_add) normalise(how.norm, norm, s.x.f32, only(residual(), {true, false}));
}

/// Each rank computes the logits of its part of the vocabulary for all rows, and gets all of the vocabulary for its
/// rows.
task<> decoder::pass::project_logits()
{
    auto const& output = of.weights_.output();
    auto rows = step.logit_rows;
    auto last = only(first_rows(s.last, rows, of.spec_.width), read_by(output));
    normalise(of.spec_.final_norm, of.weights_.output_norm(), s.x.f32, last, step.logit_row_index);
    auto const scaled = of.spec_.logit_scale != 1.0f || of.spec_.logit_cap != 0;
    if (f.ranks() == 1) {
        on.product(f, {output, last, s.logits, of.spec_.vocabulary, nullptr});
        if (scaled) on.soft_cap(f, {s.logits, rows * of.spec_.vocabulary, of.spec_.logit_cap, of.spec_.logit_scale});
        co_return;
    }
    // What is sent is whole blocks of rows: what fills up the last ones is never read.
    auto each = of.part_.rows_each(rows);
    auto* mine = s.shards + each * of.spec_.vocabulary;
    on.product(f, {output, last, s.shards, output.rows, nullptr});
    if (scaled) on.soft_cap(f, {s.shards, rows * output.rows, of.spec_.logit_cap, of.spec_.logit_scale});
    co_await f.all_to_all(element_kind::f32, s.shards, mine, each * output.rows);
    on.join_columns(f, {mine, f.ranks(), each, output.rows, s.logits});
}

task<float*> decoder::forward(flow& f, ops& on, decoder_step step, std::size_t lane)
{
    auto& s = activations_.lane(lane);
    pass p{*this, f, on, step, s};
    f.follow(s.newest);
    auto count = step.rows * spec_.width;
    if (!part_.first()) co_await f.receive(element_kind::f32, s.x.f32, count, part_.stage - 1);
    for (auto t : step.after)
        f.follow(t);
    if (part_.first()) co_await p.embed();
    for (std::size_t i = 0; i < spec_.layers.size(); ++i)
        if (p.spec(i).parallel)
            co_await p.parallel_layer(i);
        else
            co_await p.decoder_layer(i);
    if (!part_.last())
        co_await f.send(element_kind::f32, s.x.f32, count, part_.stage + 1);
    else if (step.logit_rows > 0)
        co_await p.project_logits();
    note_use(s, f);
    co_return part_.last() ? s.logits : nullptr;
}

void decoder::note_use(lane_activations& s, flow const& f)
{
    s.newest = f.last();
    activations_.used_by(f.last());
    weights_.used_by(f.last());
    kv_.used_by(f.last());
}

task<float*> decoder::logits(flow& f, ops& on, std::int32_t const* rows, std::int64_t count, std::size_t lane)
{
    auto& s = activations_.lane(lane);
    decoder_step step;
    step.logit_row_index = rows;
    step.logit_rows = count;
    pass p{*this, f, on, step, s};
    co_await p.project_logits();
    note_use(s, f);
    co_return s.logits;
}

void decoder::hidden(flow& f, ops& on, std::span<std::int32_t const> rows, float* out, std::size_t lane)
{
    auto& s = activations_.lane(lane);
    decoder_step const step;
    pass p{*this, f, on, step, s};
    activation_view to;
    to.rows = static_cast<std::int64_t>(rows.size());
    to.cols = spec_.width;
    to.f32 = out;
    p.normalise(spec_.final_norm, weights_.output_norm(), s.x.f32, to, rows.data());
    note_use(s, f);
}

} // namespace plait
