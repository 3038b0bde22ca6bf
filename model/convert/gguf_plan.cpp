#include <plait/model/convert/gguf_plan.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/rope_scaling.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace plait {
namespace {

/// How llama.cpp's files hold a family, as far as a model's specification does not say it.
struct gguf_form {
    std::string_view hf_architecture;
    std::string_view architecture;
    rope_style rope = rope_style::halves;
    bool fused_qkv = false;       ///< attn_qkv: queries, keys, values
    bool fused_gate_up = false;   ///< ffn_up: gate, up
    bool embedding_scale = false; ///< is a key; otherwise it follows from the family
    bool logit_scale = false;     ///< is a key
    bool logit_divisor = false;   ///< the same key, what logits are divided by
    bool parallel = false;        ///< is a key
    std::string_view ffn_norm = "ffn_norm";
    bool expert_size = false;        ///< is a key; otherwise experts are as large as a dense network would be
    bool normalised_experts = false; ///< the weights of the chosen, where no key says
    bool routing = false;            ///< how experts are chosen and weighted is in keys
};

constexpr auto pairs = rope_style::pairs;
constexpr std::array forms{
    gguf_form{.hf_architecture = "LlamaForCausalLM", .architecture = "llama", .rope = pairs},
    gguf_form{.hf_architecture = "MistralForCausalLM", .architecture = "llama", .rope = pairs},
    gguf_form{.hf_architecture = "SmolLM3ForCausalLM", .architecture = "smollm3", .rope = pairs},
    gguf_form{.hf_architecture = "GraniteForCausalLM",
              .architecture = "granite",
              .rope = pairs,
              .embedding_scale = true,
              .logit_divisor = true},
    gguf_form{.hf_architecture = "Qwen2ForCausalLM", .architecture = "qwen2"},
    gguf_form{.hf_architecture = "Qwen3ForCausalLM", .architecture = "qwen3"},
    gguf_form{.hf_architecture = "Starcoder2ForCausalLM", .architecture = "starcoder2"},
    gguf_form{.hf_architecture = "GemmaForCausalLM", .architecture = "gemma"},
    gguf_form{.hf_architecture = "Gemma2ForCausalLM", .architecture = "gemma2"},
    gguf_form{.hf_architecture = "Gemma3ForCausalLM", .architecture = "gemma3"},
    gguf_form{.hf_architecture = "Olmo2ForCausalLM", .architecture = "olmo2"},
    gguf_form{.hf_architecture = "Phi3ForCausalLM", .architecture = "phi3", .fused_qkv = true, .fused_gate_up = true},
    gguf_form{.hf_architecture = "GPT2LMHeadModel", .architecture = "gpt2", .fused_qkv = true},
    gguf_form{.hf_architecture = "GPTNeoXForCausalLM", .architecture = "gptneox", .fused_qkv = true, .parallel = true},
    gguf_form{.hf_architecture = "CohereForCausalLM", .architecture = "command-r", .rope = pairs, .logit_scale = true},
    gguf_form{.hf_architecture = "Cohere2ForCausalLM", .architecture = "cohere2", .rope = pairs, .logit_scale = true},
    gguf_form{.hf_architecture = "GlmForCausalLM", .architecture = "chatglm", .rope = pairs, .fused_gate_up = true},
    gguf_form{.hf_architecture = "Glm4ForCausalLM", .architecture = "glm4", .rope = pairs, .fused_gate_up = true},
    gguf_form{.hf_architecture = "ChatGLMModel",
              .architecture = "chatglm",
              .rope = pairs,
              .fused_qkv = true,
              .fused_gate_up = true},
    gguf_form{.hf_architecture = "ChatGLMForConditionalGeneration",
              .architecture = "chatglm",
              .rope = pairs,
              .fused_qkv = true,
              .fused_gate_up = true},
    gguf_form{.hf_architecture = "MixtralForCausalLM", .architecture = "llama", .rope = pairs},
    gguf_form{.hf_architecture = "Qwen3MoeForCausalLM",
              .architecture = "qwen3moe",
              .expert_size = true,
              .normalised_experts = true},
    gguf_form{.hf_architecture = "Glm4MoeForCausalLM",
              .architecture = "glm4moe",
              .ffn_norm = "post_attention_norm",
              .expert_size = true,
              .routing = true},
    gguf_form{.hf_architecture = "GptOssForCausalLM",
              .architecture = "gpt-oss",
              .ffn_norm = "post_attention_norm",
              .expert_size = true},
};

constexpr std::string_view no_architecture = "is not written: llama.cpp has no architecture for it";

gguf_form const& form_of(hf_directory const& folder)
{
    auto const name = folder.config().strings("architectures").at(0); // described already
    auto const found = std::ranges::find(forms, name, &gguf_form::hf_architecture);
    if (found != forms.end()) return *found;
    if (name == "OpenAIGPTLMHeadModel")
        throw error(errc::unsupported,
                    folder.config().where("architectures") + ": GPT-1 " + std::string(no_architecture));
    std::string names;
    for (auto const& form : forms)
        names += (names.empty() ? "" : ", ") + std::string(form.hf_architecture);
    throw error(errc::unsupported, folder.config().where("architectures") + ": " + quote(name) +
                                       " is not written as GGUF; written are " + names);
}

/// Makes the plan of a model in a Hugging Face folder.
class planner {
public:
    planner(hf_directory const& folder, described_model const& model)
        : folder_(folder)
        , model_(model)
        , form_(form_of(folder))
    {
    }

    gguf_plan run()
    {
        refuse_features();
        set_keys();
        set_rope();
        add_tensors();
        return std::move(plan_);
    }

private:
    layer_spec const& first() const { return model_.spec.layers.front(); }

    void set(std::string_view key, std::int64_t value)
    {
        plan_.keys.set(std::string(form_.architecture) + "." + std::string(key), static_cast<std::uint32_t>(value));
    }
    void set(std::string_view key, float value)
    {
        plan_.keys.set(std::string(form_.architecture) + "." + std::string(key), value);
    }

    [[noreturn]] void refuse(std::string const& what) const
    {
        throw error(errc::unsupported, folder_.source() + ": " + what + " is not written as GGUF");
    }

    void refuse_features() const
    {
        auto const& spec = model_.spec;
        if (spec.prefix)
            throw error(errc::unsupported, folder_.source() + ": ChatGLM-6B " + std::string(no_architecture));
        auto const dense = leading_dense_layers();
        for (std::size_t i = dense; i < spec.layers.size(); ++i)
            if (experts() != nullptr && spec.layers[i].ffn.experts.count == 0)
                refuse("a dense layer behind a mixture of experts");
        if (experts() != nullptr && dense > 0 && !form_.routing) refuse("a dense layer in a mixture of experts");
    }

    /// Of the first layer that has some; null where none has.
    experts_spec const* experts() const
    {
        for (auto const& layer : model_.spec.layers)
            if (layer.ffn.experts.count > 0) return &layer.ffn.experts;
        return nullptr;
    }

    std::size_t leading_dense_layers() const
    {
        auto const sparse = [](layer_spec const& layer) { return layer.ffn.experts.count > 0; };
        auto const& layers = model_.spec.layers;
        return static_cast<std::size_t>(std::ranges::find_if(layers, sparse) - layers.begin());
    }

    void set_keys()
    {
        auto const& spec = model_.spec;
        auto const& a = first().attention;
        plan_.architecture = form_.architecture;
        plan_.keys.set("general.architecture", form_.architecture);
        plan_.keys.set("general.type", "model");
        plan_.keys.set("general.name", spec.name);
        set("block_count", static_cast<std::int64_t>(spec.layers.size()));
        set("context_length", spec.context);
        set("embedding_length", spec.width);
        set_hidden();
        set_each("attention.head_count", [](layer_spec const& layer) { return layer.attention.heads; });
        set_each("attention.head_count_kv", [](layer_spec const& layer) { return layer.attention.kv_heads; });
        set("attention.key_length", a.head_dim);
        set("attention.value_length", a.head_dim);
        set(first().norm.kind == norm_kind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
            first().norm.epsilon);
        if (a.scale != 1.0f / std::sqrt(static_cast<float>(a.head_dim))) set("attention.scale", a.scale);
        std::int64_t window = 0;
        for (auto const& layer : spec.layers)
            window = std::max(window, layer.attention.window);
        if (window > 0) set("attention.sliding_window", window);
        if (a.soft_cap > 0) set("attn_logit_softcapping", a.soft_cap);
        if (spec.logit_cap > 0) set("final_logit_softcapping", spec.logit_cap);
        if (form_.embedding_scale) set("embedding_scale", spec.embedding_scale);
        if (first().output_scale != 1) set("residual_scale", first().output_scale);
        if (form_.logit_scale) set("logit_scale", spec.logit_scale);
        if (form_.logit_divisor) set("logit_scale", 1 / spec.logit_scale);
        if (form_.parallel)
            plan_.keys.set(std::string(form_.architecture) + ".use_parallel_residual", first().parallel);
        set_experts();
        set("vocab_size", spec.vocabulary);
        if (!folder_.chat_template().empty()) plan_.keys.set("tokenizer.chat_template", folder_.chat_template());
    }

    /// One value where all layers have the same, or an array.
    template<class Value>
    void set_each(std::string_view key, Value value)
    {
        std::vector<std::int32_t> values;
        values.reserve(model_.spec.layers.size());
        for (auto const& layer : model_.spec.layers)
            values.push_back(static_cast<std::int32_t>(value(layer)));
        if (std::ranges::count(values, values.front()) == std::ssize(values))
            set(key, std::int64_t{values.front()});
        else
            plan_.keys.set(std::string(form_.architecture) + "." + std::string(key), values);
    }

    /// A model of experts alone has this key too; then it says what no network has.
    void set_hidden()
    {
        auto const* const mixture = experts();
        if (mixture == nullptr) {
            set_each("feed_forward_length", [](layer_spec const& layer) { return layer.ffn.hidden; });
            return;
        }
        auto hidden = first().ffn.hidden;
        if (hidden == 0) hidden = mixture->hidden;
        if (form_.expert_size && first().ffn.hidden == 0)
            hidden = folder_.config().integer("intermediate_size", hidden);
        set("feed_forward_length", hidden);
    }

    void set_experts()
    {
        auto const* const mixture = experts();
        if (mixture == nullptr) return;
        set("expert_count", mixture->count);
        set("expert_used_count", mixture->used);
        if (form_.expert_size) set("expert_feed_forward_length", mixture->hidden);
        auto const flag = [&](char const* key, bool value) {
            plan_.keys.set(std::string(form_.architecture) + "." + key, value);
        };
        if (!form_.routing) {
            bool const by_sum = mixture->scoring == routing::softmax;
            if (by_sum && mixture->normalised != form_.normalised_experts)
                flag("expert_weights_norm", mixture->normalised);
            return;
        }
        set("expert_group_count", mixture->groups);
        set("expert_group_used_count", mixture->groups_used);
        if (mixture->shared_hidden > 0) set("expert_shared_count", mixture->shared_hidden / mixture->hidden);
        set("leading_dense_block_count", static_cast<std::int64_t>(leading_dense_layers()));
        set("expert_gating_func", std::int64_t{2}); // a sigmoid
        set("expert_weights_scale", mixture->scale);
        flag("expert_weights_norm", mixture->normalised);
    }

    void set_rope()
    {
        // Of the layers that see all, where only they are stretched, or of the only ones that turn.
        rope_spec const* all = nullptr;
        rope_spec const* windowed = nullptr;
        for (auto const& layer : model_.spec.layers) {
            auto const& a = layer.attention;
            if (a.rope.style != rope_style::none) (a.window > 0 ? windowed : all) = &a.rope;
        }
        if (all == nullptr) std::swap(all, windowed);
        if (all == nullptr) return;
        rotation_ = all;
        auto const& rope = *all;
        set("rope.dimension_count", rope.dims);
        set("rope.freq_base", rope.base);
        if (windowed != nullptr && windowed->base != rope.base) set("rope.freq_base_swa", windowed->base);
        set_scaling(rope);
    }

    void set_scaling(rope_spec const& rope)
    {
        auto const scaling = folder_.config().find_object("rope_parameters");
        auto const& how = scaling ? scaling : folder_.config().find_object("rope_scaling");
        // A model with two kinds of rotation has an entry for each.
        auto const nested = how ? how->find_object("full_attention") : std::nullopt;
        if (nested) {
            set_scaling(rope, nested);
            return;
        }
        set_scaling(rope, how);
    }

    void set_scaling(rope_spec const& rope, std::optional<json_config> const& how)
    {
        std::string const type = how ? how->string(how->has("rope_type") ? "rope_type" : "type", "default") : "default";
        std::string const key = std::string(form_.architecture) + ".rope.scaling.type";
        if (type == "linear") {
            plan_.keys.set(key, type);
            set("rope.scaling.factor", rope.linear_scale);
        } else if (type == "yarn") {
            auto const factor = how->number("factor");
            plan_.keys.set(key, type);
            set("rope.scaling.factor", static_cast<float>(factor));
            set("rope.scaling.original_context_length",
                how->integer("original_max_position_embeddings", model_.spec.context));
            set("rope.scaling.yarn_beta_fast", static_cast<float>(how->number("beta_fast", 32)));
            set("rope.scaling.yarn_beta_slow", static_cast<float>(how->number("beta_slow", 1)));
            auto const usual = static_cast<float>(yarn_magnitude(factor));
            if (rope.magnitude != usual) set("rope.scaling.attn_factor", rope.magnitude / usual);
        } else if (!rope.long_factors.empty()) {
            set("rope.scaling.original_context_length", rope.short_context);
            set("rope.scaling.attn_factor", rope.magnitude);
            add_values("rope_factors_long.weight", rope.long_factors);
            add_values("rope_factors_short.weight", rope.factors);
        } else if (!rope.factors.empty()) {
            add_values("rope_freqs.weight", rope.factors);
        }
    }

    void add_values(char const* name, std::vector<float> const& values)
    {
        auto& tensor = plan_.tensors.emplace_back();
        tensor.name = name;
        tensor.dims = {static_cast<std::int64_t>(values.size())};
        tensor.values = values;
        tensor.vector = true;
    }

    void add(std::string name, std::vector<std::int64_t> dims, std::vector<planned_tensor::part> parts,
             bool vector = false)
    {
        std::erase_if(parts, [](planned_tensor::part const& p) { return p.from.empty(); });
        if (parts.empty()) return;
        plan_.tensors.push_back({std::move(name), std::move(dims), std::move(parts), {}, vector, false});
    }

    void add_matrix(std::string const& name, tensor_ref const& from, std::int64_t cols, std::int64_t rows)
    {
        add(name, {cols, rows}, {{from, rows}});
    }

    void add_vector(std::string const& name, tensor_ref const& from, std::int64_t length)
    {
        add(name, {length}, {{from, length}}, true);
    }

    /// Of queries or keys: one for all heads, or for each, or for all of them together.
    void add_head_norm(std::string const& name, norm_tensors const& from, attention_spec const& a, std::int64_t heads)
    {
        auto const length = a.query_key_norm == head_norm::head ? a.head_dim : heads * a.head_dim;
        auto const dims =
            a.query_key_norm == head_norm::each_head ? std::vector{a.head_dim, heads} : std::vector{length};
        add(name + ".weight", dims, {{from.weight, length}}, true);
        add(name + ".bias", dims, {{from.bias, length}}, true);
    }

    void add_norm(std::string const& name, norm_tensors const& from, std::int64_t length)
    {
        add_vector(name + ".weight", from.weight, length);
        add_vector(name + ".bias", from.bias, length);
    }

    /// Queries, keys and values, or their biases, which have no columns.
    void add_heads(std::string const& prefix, std::string const& ending, std::array<tensor_ref, 3> const& from,
                   attention_spec const& a, std::int64_t cols)
    {
        // All layers alike, also those that do not turn: their scores do not depend on the order.
        bool const turns =
            rotation_ != nullptr && rotation_->style == rope_style::halves && form_.rope == rope_style::pairs;
        if (!turns && rotation_ != nullptr && rotation_->style != form_.rope)
            refuse("a rotation of " + std::string(name(rotation_->style)));
        std::array<planned_tensor::part, 3> parts;
        std::array const rows{a.query_width(), a.kv_width(), a.kv_width()};
        for (std::size_t i = 0; i < 3; ++i) {
            parts[i] = {from[i], rows[i]};
            if (turns && i < 2) { // values do not turn
                parts[i].head = a.head_dim;
                parts[i].turned = rotation_->dims;
            }
        }
        auto const dims = [&](std::int64_t all) {
            return cols == 0 ? std::vector<std::int64_t>{all} : std::vector<std::int64_t>{cols, all};
        };
        if (form_.fused_qkv) {
            add(prefix + "attn_qkv" + ending, dims(rows[0] + rows[1] + rows[2]), {parts.begin(), parts.end()},
                cols == 0);
            return;
        }
        constexpr std::array names{"attn_q", "attn_k", "attn_v"};
        for (std::size_t i = 0; i < 3; ++i)
            add(std::string(prefix).append(names[i]).append(ending), dims(rows[i]), {parts[i]}, cols == 0);
    }

    /// What all experts have of a kind, one behind the other.
    void add_stack(std::string const& name, std::vector<ffn_tensors> const& from, tensor_ref ffn_tensors::* which,
                   std::vector<std::int64_t> dims, std::int64_t rows)
    {
        std::vector<planned_tensor::part> parts;
        parts.reserve(from.size());
        for (auto const& expert : from)
            parts.push_back({expert.*which, rows});
        dims.push_back(static_cast<std::int64_t>(from.size()));
        bool const vector = dims.size() == 2;
        add(name, std::move(dims), std::move(parts), vector);
    }

    void add_mixture(std::string const& prefix, layer_tensors const& at, experts_spec const& e)
    {
        auto const width = model_.spec.width;
        // What chooses is never rounded.
        add(prefix + "ffn_gate_inp.weight", {width, e.count}, {{at.router, width * e.count}}, true);
        add_vector(prefix + "ffn_gate_inp.bias", at.router_bias, e.count);
        add_vector(prefix + "exp_probs_b.bias", at.selection_bias, e.count);
        add_stack(prefix + "ffn_gate_exps.weight", at.experts, &ffn_tensors::gate, {width, e.hidden}, e.hidden);
        add_stack(prefix + "ffn_up_exps.weight", at.experts, &ffn_tensors::up, {width, e.hidden}, e.hidden);
        add_stack(prefix + "ffn_down_exps.weight", at.experts, &ffn_tensors::down, {e.hidden, width}, width);
        add_stack(prefix + "ffn_gate_exps.bias", at.experts, &ffn_tensors::gate_bias, {e.hidden}, e.hidden);
        add_stack(prefix + "ffn_up_exps.bias", at.experts, &ffn_tensors::up_bias, {e.hidden}, e.hidden);
        add_stack(prefix + "ffn_down_exps.bias", at.experts, &ffn_tensors::down_bias, {width}, width);
        if (e.shared_hidden == 0) return;
        add_matrix(prefix + "ffn_gate_shexp.weight", at.ffn.gate, width, e.shared_hidden);
        add_matrix(prefix + "ffn_up_shexp.weight", at.ffn.up, width, e.shared_hidden);
        add_matrix(prefix + "ffn_down_shexp.weight", at.ffn.down, e.shared_hidden, width);
    }

    void add_network(std::string const& prefix, ffn_tensors const& at, std::int64_t hidden)
    {
        auto const width = model_.spec.width;
        if (form_.fused_gate_up) {
            add(prefix + "ffn_up.weight", {width, 2 * hidden}, {{at.gate, hidden}, {at.up, hidden}});
        } else {
            add_matrix(prefix + "ffn_gate.weight", at.gate, width, hidden);
            add_matrix(prefix + "ffn_up.weight", at.up, width, hidden);
            add_vector(prefix + "ffn_gate.bias", at.gate_bias, hidden);
            add_vector(prefix + "ffn_up.bias", at.up_bias, hidden);
        }
        add_matrix(prefix + "ffn_down.weight", at.down, hidden, width);
        add_vector(prefix + "ffn_down.bias", at.down_bias, width);
    }

    void add_layer(std::size_t i)
    {
        layer_spec const& layer = model_.spec.layers[i];
        layer_tensors const& at = model_.tensors.layers[i];
        auto const& a = layer.attention;
        auto const width = model_.spec.width;
        std::string const prefix = "blk." + std::to_string(i) + ".";
        add_norm(prefix + "attn_norm", at.attention_norm, width);
        add_heads(prefix, ".weight", {at.query, at.key, at.value}, a, width);
        add_heads(prefix, ".bias", {at.query_bias, at.key_bias, at.value_bias}, a, 0);
        add_head_norm(prefix + "attn_q_norm", at.query_norm, a, a.heads);
        add_head_norm(prefix + "attn_k_norm", at.key_norm, a, a.kv_heads);
        add_matrix(prefix + "attn_output.weight", at.attention_output, a.query_width(), width);
        add_vector(prefix + "attn_output.bias", at.attention_output_bias, width);
        add_vector(prefix + "attn_sinks.weight", at.sinks, a.heads);
        add_norm(prefix + "post_attention_norm", at.attention_output_norm, width);
        add_norm(prefix + std::string(form_.ffn_norm), at.ffn_norm, width);
        if (layer.ffn.experts.count > 0)
            add_mixture(prefix, at, layer.ffn.experts);
        else
            add_network(prefix, at.ffn, layer.ffn.hidden);
        add_norm(prefix + "post_ffw_norm", at.ffn_output_norm, width);
    }

    void add_tensors()
    {
        auto const& spec = model_.spec;
        auto const& at = model_.tensors;
        add_matrix("token_embd.weight", at.token_embedding, spec.width, spec.vocabulary);
        add("position_embd.weight", {spec.width, spec.learned_positions},
            {{at.position_embedding, spec.width * spec.learned_positions}}, true);
        for (std::size_t i = 0; i < spec.layers.size(); ++i)
            add_layer(i);
        add_norm("output_norm", at.output_norm, spec.width);
        add_matrix("output.weight", at.output, spec.width, spec.vocabulary);
    }

    hf_directory const& folder_;
    described_model const& model_;
    gguf_form const& form_;
    rope_spec const* rotation_ = nullptr; // null where nothing turns
    gguf_plan plan_;
};

/// Vectors, also those of several heads or experts, and what few rows a router has, as in every converter.
bool stays(stored_tensor const& tensor)
{
    auto const holds = [&](std::string_view part) { return tensor.name.find(part) != tensor.name.npos; };
    return tensor.rank == 1 || tensor.name.ends_with(".bias") || holds("_norm.") || holds("ffn_gate_inp") ||
           holds("position_embd");
}

gguf_plan plan_of(gguf_file const& file)
{
    gguf_plan plan;
    plan.architecture = file.string("general.architecture");
    for (gguf_entry const& entry : file.metadata())
        // The new file is one, laid out in the usual way.
        if (!entry.key.starts_with("split.") && entry.key != "general.alignment") plan.keys.copy(entry);
    plan.tensors.reserve(file.tensors().size());
    for (stored_tensor const& tensor : file.tensors()) {
        planned_tensor out;
        out.name = tensor.name;
        out.dims.assign(tensor.dims.begin(), tensor.dims.begin() + tensor.rank);
        out.parts.push_back({std::string(tensor.name), tensor.rows()});
        out.as_it_is = stays(tensor);
        plan.tensors.push_back(std::move(out));
    }
    return plan;
}

} // namespace

std::int64_t planned_tensor::part::source(std::int64_t r) const noexcept
{
    if (head == 0 || r % head >= turned) return r;
    auto const in_head = r % head;
    return r - in_head + in_head % 2 * (turned / 2) + in_head / 2;
}

gguf_plan plan_gguf(model_files const& files, described_model const& model)
{
    return files.gguf() != nullptr ? plan_of(*files.gguf()) : planner(*files.hf(), model).run();
}

std::vector<std::string_view> written_architectures()
{
    std::vector<std::string_view> out;
    out.reserve(forms.size());
    for (auto const& form : forms)
        out.push_back(form.hf_architecture);
    return out;
}

} // namespace plait
