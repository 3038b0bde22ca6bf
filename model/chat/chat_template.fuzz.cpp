#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>

// The input is a template, then optionally a zero byte and the messages as JSON.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const all(reinterpret_cast<char const*>(data), size);
    auto const zero = all.find('\0');
    plait::template_limits limits;
    limits.steps = 100'000;
    limits.output_bytes = 1 << 20;
    limits.memory_bytes = 1 << 24;
    plait::render_input input;
    input.messages_json = R"([{"role": "system", "content": "S"}, {"role": "user", "content": "Ü"},
        {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]}])";
    if (zero != std::string_view::npos) input.messages_json = all.substr(zero + 1);
    input.tools_json = R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])";
    input.now = std::chrono::sys_seconds(std::chrono::seconds(1'741'529'107));
    try {
        plait::chat_template::parse(std::string(all.substr(0, zero)), limits).render(input);
    } catch (plait::error const&) {
        return 0;
    }
    return 0;
}
