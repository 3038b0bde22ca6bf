#pragma once

#include <cstddef>
#include <cstdint>
#include <plait/model/chat/message.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// How a family of models marks the parts of an answer.
struct answer_style {
    /// think: `<think>...</think>` (Qwen3, DeepSeek-R1, SmolLM3, GLM-4.5). harmony: the channels of gpt-oss.
    /// response: as think, with `<response>...</response>` behind it (Granite 3.3).
    enum class reasoning : std::uint8_t { none, think, harmony, response };

    /// hermes: `<tool_call>{"name": ..., "arguments": ...}</tool_call>` (Hermes, Qwen). llama: the answer is
    /// `{"name": ..., "parameters": ...}`, `<|python_tag|>` before it or not. mistral: `[TOOL_CALLS][{...}]`.
    /// command_r: "Action: ```json [{"tool_name": ..., "parameters": ...}]```". glm:
    /// `<tool_call>name<arg_key>..<arg_value>..`. granite: `<|tool_call|>[{...}]`. harmony: messages to
    /// `functions.NAME`. deepseek: a block of "<｜tool▁call▁begin｜>function<｜tool▁sep｜>name ```json {...} ```
    /// <｜tool▁call▁end｜>" (V3, R1) or `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{...}<｜tool▁call▁end｜>` (V3.1).
    enum class calls : std::uint8_t { none, hermes, llama, mistral, command_r, glm, granite, harmony, deepseek };

    reasoning thoughts = reasoning::none;
    calls tools = calls::none;

    friend bool operator==(answer_style const&, answer_style const&) = default;
};

/// The style of the models that a chat template is for, by the markers in its text.
answer_style answer_style_of(std::string_view template_source) noexcept;

/// The markers that a vocabulary may have as control tokens. They are part of the text that is parsed; other control
/// tokens are not.
std::vector<std::string_view> markers_of(answer_style style);

/// Whether a prompt ends inside a block of thoughts that the template has opened, as DeepSeek-R1's does.
bool opens_thoughts(std::string_view prompt) noexcept;

/// What a piece of an answer, or all of it, holds.
struct answer_parts {
    std::string reasoning;
    std::string text; ///< with calls that are malformed, as they stand
    std::vector<tool_call> calls;
    bool malformed = false; ///< a call could not be read

    /// What comes after it.
    answer_parts& operator+=(answer_parts more);

    friend bool operator==(answer_parts const&, answer_parts const&) = default;
};

/// Splits a streamed answer into thoughts, text and calls of tools. However the answer is cut into pieces, the parts
/// joined are the same. White space at the beginning of a part is dropped, except in a style without any markers.
///
/// What could still become a marker is held back, and a call until its end; a call of more than `longest_call` bytes
/// is text. Bad input is never an error.
class answer_parser {
public:
    static constexpr std::size_t longest_call = 256 * 1024;

    /// `inside_thoughts`: see opens_thoughts. `earlier_calls`: where the numbers of calls begin, which is how the calls
    /// of one conversation differ.
    explicit answer_parser(answer_style style, bool inside_thoughts = false, std::size_t earlier_calls = 0);

    /// The parts that `piece` completes.
    answer_parts push(std::string_view piece);

    /// What was held back, when the answer has ended: by the model, or cut off where it is not `whole`. Nothing may
    /// follow.
    answer_parts finish(bool whole = true);

    /// Bytes held back.
    std::size_t held() const noexcept { return held_.size(); }

private:
    enum class state : std::uint8_t { start, thoughts, text, call, header };

    bool thinks() const noexcept;
    bool step(bool last);
    bool at_start(bool last);
    bool in_thoughts(bool last);
    bool in_text(bool last);
    bool in_call(bool last);
    bool in_header(bool last);
    void begin_call(std::string_view marker, std::string_view end);
    void give_up_call(std::size_t size);
    void show(std::size_t size);
    bool read_call(std::string_view body);
    bool read_json_calls(std::string_view body);
    bool read_glm_call(std::string_view body);
    bool read_deepseek_call(std::string_view body);
    bool add_call(tool_call call);

    answer_style style_;
    state state_ = state::start;
    std::string held_;
    std::size_t scanned_ = 0; // of held_: known not to hold the end of the call
    std::string opened_by_;   // the text that began the call
    std::string call_end_;    // the marker that ends it; empty: the end of the answer
    std::string recipient_;   // harmony: the tool that the message is for
    bool skip_space_ = false;
    bool cut_off_ = false;
    bool thinking_ = false; // harmony: the message is one of thoughts
    bool called_ = false;   // deepseek: a call came last, so the block of calls may end
    std::size_t count_;     // calls so far
    answer_parts out_;
};

} // namespace plait
