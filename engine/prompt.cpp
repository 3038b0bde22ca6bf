#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/engine/prompt.hpp>

namespace plait {

namespace {

constexpr std::int32_t most_choices = 64;
constexpr std::int32_t most_logprobs = 20;
constexpr std::size_t most_stops = 64;
constexpr std::size_t longest_stop = 4096; // bytes; as much of an answer may be held back

[[noreturn]] void refuse(std::string const& what)
{
    throw error(errc::invalid_argument, what);
}

void require_between(char const* name, double value, double low, double high)
{
    if (!(value >= low && value <= high)) // also refuses NaN
        refuse(std::string(name) + ": " + std::to_string(value) + " is not between " + std::to_string(low) + " and " +
               std::to_string(high));
}

} // namespace

std::vector<std::int32_t> prompt_tokens(request const& what, engine_info const& model, std::chrono::sys_seconds today)
{
    auto const& text = *model.text;
    std::vector<std::int32_t> tokens;
    if (!what.tokens.empty()) {
        tokens = what.tokens;
        for (auto id : tokens)
            if (id < 0 || id >= model.spec.vocabulary)
                refuse("tokens: " + std::to_string(id) + " is not in the vocabulary of " +
                       std::to_string(model.spec.vocabulary));
    } else if (!what.messages.empty()) {
        if (model.chat == nullptr) throw error(errc::unsupported, "messages: the model has no chat template");
        render_input input;
        input.messages = what.messages;
        input.tools_json = what.tools_json;
        input.extra_json = what.extra_json;
        input.think = what.think;
        input.bos_token = model.bos_text;
        input.eos_token = model.eos_text;
        input.now = what.date.value_or(today);
        // Control tokens are the template's to write: a message that holds the text of one is text.
        auto const prompt = model.chat->render_parts(input);
        tokens = text.encode(prompt.text, {false, true, prompt.trusted});
    } else {
        tokens = text.encode(what.text, {true, what.parse_special});
    }
    if (tokens.empty()) refuse("prompt: it is empty");
    return tokens;
}

std::vector<std::int32_t> marker_tokens(tokenizer const& text, answer_style style)
{
    std::vector<std::int32_t> out;
    for (auto const marker : markers_of(style)) {
        auto const id = text.find(marker);
        if (id && text.is_special(*id)) out.push_back(*id);
    }
    return out;
}

namespace {

/// The number that the parser would have given a call of this name next: `call00041` is followed by 42.
std::size_t number_after(std::string_view id) noexcept
{
    constexpr std::string_view begin = "call";
    std::size_t number = 0;
    if (!id.starts_with(begin)) return 0;
    auto const [end, failed] = std::from_chars(id.data() + begin.size(), id.data() + id.size(), number);
    return failed == std::errc() && end == id.data() + id.size() && number < 100'000 ? number + 1 : 0;
}

} // namespace

answer_plan plan_answer(request const& what, std::span<std::int32_t const> prompt, engine_info const& model)
{
    answer_plan out;
    bool called = false;
    for (auto const& message : what.messages)
        for (auto const& call : message.calls) {
            called = true;
            // Earlier turns may have been forgotten: what counts is which names are taken.
            out.earlier_calls = std::max(out.earlier_calls, number_after(call.id));
        }
    if (what.style) {
        out.style = *what.style;
    } else if (what.tokens.empty() && !what.messages.empty()) {
        out.style = model.style;
        // Elsewhere what looks like a call is what somebody wanted to see: JSON, for example. The channels of harmony
        // are not told apart without their calls.
        bool const may_call = !what.tools_json.empty() || called;
        if (!may_call && out.style.tools != answer_style::calls::harmony) out.style.tools = answer_style::calls::none;
    }
    auto const names = markers_of(out.style);
    for (auto const id : what.style ? marker_tokens(*model.text, out.style) : model.markers)
        if (std::ranges::find(names, model.text->piece(id)) != names.end()) out.markers.push_back(id);
    // The last tokens are enough to see a marker, spelled out at worst, and the white space behind it.
    out.inside_thoughts = opens_thoughts(model.text->decode(prompt.last(std::min<std::size_t>(prompt.size(), 32))));
    return out;
}

std::shared_ptr<sequence_request> check_request(request const& what, std::int64_t prompt, engine_info const& model,
                                                time_point now, std::uint64_t random_seed, reading read)
{
    auto const& s = what.sampling;
    require_between("temperature", s.temperature, 0, 100);
    if (s.top_k < 0) refuse("top_k: " + std::to_string(s.top_k));
    require_between("top_p", s.top_p, 0, 1);
    if (s.top_p == 0) refuse("top_p: 0 keeps nothing");
    require_between("min_p", s.min_p, 0, 1);
    require_between("repetition_penalty", s.repetition_penalty, 0.01, 100);
    require_between("presence_penalty", s.presence_penalty, -2, 2);
    require_between("frequency_penalty", s.frequency_penalty, -2, 2);
    if (what.choices < 1 || what.choices > most_choices) refuse("choices: " + std::to_string(what.choices));
    if (what.max_tokens < 0) refuse("max_tokens: " + std::to_string(what.max_tokens));
    if (what.stop.size() > most_stops) refuse("stop: more than " + std::to_string(most_stops) + " strings");
    for (auto const& stop : what.stop)
        if (stop.size() > longest_stop)
            refuse("stop: a string of " + std::to_string(stop.size()) + " bytes; at most " +
                   std::to_string(longest_stop) + " are looked for");
    if (what.logprobs && (*what.logprobs < 0 || *what.logprobs > most_logprobs))
        refuse("logprobs: " + std::to_string(*what.logprobs) + " is not between 0 and " +
               std::to_string(most_logprobs));
    if (what.timeout && *what.timeout <= duration::zero()) refuse("timeout: not positive");

    auto const most_tokens = static_cast<std::size_t>(model.spec.vocabulary);
    for (auto const& [name, size] :
         {std::pair{"logit_bias", s.logit_bias.size()}, std::pair{"stop_tokens", what.stop_tokens.size()}})
        if (size > most_tokens)
            refuse(std::string(name) + ": " + std::to_string(size) + " entries for a vocabulary of " +
                   std::to_string(most_tokens));

    auto out = std::make_shared<sequence_request>();
    for (auto [id, bias] : s.logit_bias) {
        if (id < 0 || id >= model.spec.vocabulary) refuse("logit_bias: token " + std::to_string(id));
        require_between("logit_bias", bias, -100, 100);
        out->biases.push_back({id, bias});
    }
    for (auto id : what.stop_tokens)
        if (id < 0 || id >= model.spec.vocabulary) refuse("stop_tokens: token " + std::to_string(id));
    if (read == reading::scores && model.spec.prefix)
        throw error(errc::unsupported, "score: the tokens of this model's prompts see those after them");
    if (read != reading::none && prompt > model.context)
        throw error(errc::never_fits, "the prompt's " + std::to_string(prompt) + " tokens are more than a context of " +
                                          std::to_string(model.context));
    if (read == reading::none && prompt >= model.context)
        throw error(errc::never_fits, "the prompt's " + std::to_string(prompt) +
                                          " tokens leave no room for an answer in a context of " +
                                          std::to_string(model.context));
    out->tenant = what.tenant;
    out->priority = what.priority;
    out->arrival = now;
    if (what.timeout) out->deadline = now + *what.timeout;
    out->read = read;
    out->choices = read == reading::none ? what.choices : 1;
    out->prompt = prompt;
    out->limit =
        what.max_tokens > 0 && what.max_tokens < model.context - prompt ? prompt + what.max_tokens : model.context;
    if (read != reading::none) out->limit = prompt;
    out->sampling.temperature = s.temperature;
    out->sampling.top_k = s.top_k;
    out->sampling.top_p = s.top_p;
    out->sampling.min_p = s.min_p;
    out->sampling.repetition_penalty = s.repetition_penalty;
    out->sampling.presence_penalty = s.presence_penalty;
    out->sampling.frequency_penalty = s.frequency_penalty;
    out->sampling.order = s.order;
    out->sampling.seed = s.seed.value_or(random_seed);
    out->sampling.top_logprobs = what.logprobs.value_or(-1);
    return out;
}

} // namespace plait
