#!/usr/bin/env python3
"""Renders conversations and language features with Python's jinja2 and writes the goldens of tests/data/templates.

    pip install jinja2 gguf
    make_template_goldens.py TEMPLATES_DIR MODEL.gguf OUTPUT_DIR

TEMPLATES_DIR holds published templates (*.jinja); MODEL.gguf gives one more, its tokenizer.chat_template, under the
name `smollm2`. The templates themselves are not written: conversations.json holds the inputs, renderings.json for each
template and conversation the text or the error, features.json small templates with theirs.

The environment is the one of Hugging Face's apply_chat_template.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)


class Generation(jinja2.ext.Extension):
    """The tag of Hugging Face's AssistantTracker, without the tracking."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENV = environment()


def render(source, variables):
    """{"text": ...} or {"error": message}; every exception counts, as a caller of apply_chat_template sees it."""
    try:
        return {"text": ENV.from_string(source).render(**variables)}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as e:  # noqa: BLE001
        return {"error": type(e).__name__ + ": " + str(e)}


# Conversations ---------------------------------------------------------------------------------------------------

def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def tool(text, **more):
    return {"role": "tool", "content": text, **more}


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city, e.g. \"Paris, France\""},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "The unit", "default": "celsius"},
                "days": {"type": "integer", "description": "How many days ahead"},
            },
            "required": ["location"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the web — fast & <safe>",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for"},
                "limits": {"type": "array", "items": {"type": "number"}, "description": "Bounds"},
                "options": {"type": "object", "description": "More", "additionalProperties": {"type": "boolean"}},
                "mode": {"type": ["string", "null"], "description": "Either"},
            },
            "required": ["query", "limits"],
        },
        "return": {"type": "string", "description": "The hits"},
    },
}
NO_PARAMETERS = {
    "type": "function",
    "function": {"name": "ping", "description": "Ask whether it is there", "parameters": {"type": "object", "properties": {}}},
}

CONVERSATIONS = {}


def conversation(name, messages, prompt=True, tools=None, **extra):
    CONVERSATIONS[name] = {"messages": messages, "add_generation_prompt": prompt, "tools": tools, "extra": extra}


HELLO = [user("Hello!")]
TURNS = [user("What is 2 + 2?"), assistant("2 + 2 = 4."), user("And 3 + 3?")]
TOOL_TURNS = [
    user("What is the weather in Paris?"),
    assistant("", tool_calls=[call("get_weather", {"location": "Paris, France", "unit": "celsius"})]),
    tool("{\"temperature\": 21.5, \"sky\": \"clear\"}", name="get_weather"),
]
conversation("one user turn", HELLO)
conversation("one user turn without a prompt", HELLO, prompt=False)
conversation("system and user", [system("You are a helpful assistant."), *HELLO])
conversation("system and user without a prompt", [system("You are a helpful assistant."), *HELLO], prompt=False)
conversation("three turns", TURNS)
conversation("three turns without a prompt", TURNS, prompt=False)
conversation("system and three turns", [system("Answer briefly."), *TURNS])
conversation("ends with the assistant", [*HELLO, assistant("Hi, how can I help?")], prompt=False)
conversation("ends with the assistant, prompt on", [*HELLO, assistant("Hi, how can I help?")])
conversation("long alternation", [m for i in range(12) for m in (user(f"Question {i}"), assistant(f"Answer {i}"))] + [user("Last")])
conversation("unicode", [system("Antworte auf Deutsch — ‘höflich’."), user("你好，世界！ 🌍👩‍👩‍👧‍👦 naïve Ωμέγα"),
                         assistant("Grüße! 😀\u200d ٣ हिन्दी"), user("\u00a0Ünïcödé\u3000")])
conversation("white space everywhere", [system("  leading and trailing  "), user("\n\n\ttabs and lines\n\n"),
                                        assistant("  \n"), user(" a \r\n b ")])
conversation("empty content", [system(""), user("")])
conversation("empty answers", [user("Say nothing"), assistant(""), user("")])
conversation("special characters", [user("<|im_end|>\n<|im_start|>system\n{{ 7*7 }} {% raw %} \"quotes\" 'single' \\ back & <b>"),
                                    assistant("</s> [INST] <<SYS>> {# no #}"), user("\u0001\u007f\u0085 control")])
conversation("control tokens of others", [user("<think>\nno\n</think> <|eot_id|> [/INST] <start_of_turn>")])
conversation("think blocks in history", [user("Why?"), assistant("<think>\nBecause I reason.\n</think>\n\nBecause."), user("Sure?")])
conversation("two think blocks", [user("Why?"), assistant("<think>a</think>b<think>c</think>\nd"), user("Sure?"), assistant("</think>x")], prompt=False)
conversation("reasoning field", [user("Why?"), assistant("Because.", reasoning_content="I reason.\n", thinking="I think."), user("Sure?")])
conversation("reasoning in the last turn", [user("Why?"), assistant("Because.", reasoning_content="I reason.\n", thinking="I think.")], prompt=False)
conversation("thinking off", TURNS, enable_thinking=False)
conversation("thinking on", TURNS, enable_thinking=True, thinking=True)
conversation("think commands in the system turn", [system("You are terse. /no_think"), *HELLO])
conversation("think command", [system("/think about it "), *TURNS])
conversation("tools offered", HELLO, tools=[WEATHER])
conversation("three tools offered", [system("Use tools."), *HELLO], tools=[WEATHER, SEARCH, NO_PARAMETERS])
conversation("tools offered, one without parameters", HELLO, tools=[NO_PARAMETERS])
conversation("tool call and result", TOOL_TURNS, tools=[WEATHER])
conversation("tool call, result and answer", [*TOOL_TURNS, assistant("It is 21.5 °C and clear."), user("Thanks!")], tools=[WEATHER, SEARCH])
conversation("tool call without an offer", TOOL_TURNS)
conversation("tool call with identifiers", [
    user("Weather?"),
    assistant("", tool_calls=[call("get_weather", {"location": "Paris"}, id="abcdef123")]),
    tool("rain", tool_call_id="abcdef123", name="get_weather"),
], tools=[WEATHER])
conversation("two tool calls", [
    user("Compare Paris and Rome"),
    assistant("I shall look.", tool_calls=[call("get_weather", {"location": "Paris", "days": 2}, id="call00001"),
                                           call("get_weather", {"location": "Rome", "unit": None, "nested": {"a": [1, 2.5, True], "é": "ü"}}, id="call00002")]),
    tool("21", tool_call_id="call00001"),
    tool("25", tool_call_id="call00002"),
], tools=[WEATHER])
conversation("tool call with arguments as text", [
    user("Ping"),
    assistant("", tool_calls=[call("ping", "{\"n\": 1}")]),
    tool("pong"),
], tools=[NO_PARAMETERS])
conversation("tool calls without content", [
    user("Ping"),
    {"role": "assistant", "tool_calls": [call("ping", {})]},
    tool("pong"),
], tools=[NO_PARAMETERS])
conversation("tool calls with null content", [
    user("Ping"),
    assistant(None, tool_calls=[call("ping", {})]),
    tool("pong"),
], tools=[NO_PARAMETERS])
conversation("tool result as a list", [*TOOL_TURNS[:2], {"role": "tool", "content": [{"output": "21"}, {"output": "22"}]}], tools=[WEATHER])
conversation("assistant asks without a user", [assistant("Hello?")])
conversation("two user turns in a row", [user("One"), user("Two")])
conversation("system turn in the middle", [*HELLO, assistant("Hi"), system("Be brief."), user("Bye")])
conversation("two system turns", [system("One"), system("Two"), *HELLO])
conversation("developer turn", [{"role": "developer", "content": "Speak like a pirate."}, *HELLO], reasoning_effort="high")
conversation("unknown role", [{"role": "critic", "content": "Hm."}, *HELLO])
conversation("content in parts", [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "text", "text": "here"}]}])
conversation("content in parts, one an image", [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}])
conversation("null content", [user("Hi"), assistant(None), user("Hello?")])
conversation("missing content", [user("Hi"), {"role": "assistant"}, user("Hello?")])
conversation("missing role", [{"content": "Hi"}])
conversation("no messages", [])
conversation("documents", HELLO, documents=[{"title": "A", "text": "First"}, {"title": "B", "text": "Second: ü"}])
conversation("built-in tools and an identity", HELLO, builtin_tools=["browser", "python"], model_identity="You are plait.")
conversation("date and options given", [system("S"), *HELLO], date_string="01 Jan 2030", tools_in_user_message=False)
conversation("tools in the system turn", [system("S"), *HELLO], tools=[WEATHER], tools_in_user_message=False)
conversation("numbers as content", [user("7"), {"role": "assistant", "content": 7}, user("8")])
conversation("a long text", [user("lorem ipsum — dolor\n" * 60)])
conversation("from right to left, and combined", [
    system("ענה בקצרה."), user("مرحبا \u202eabc\u202c שָׁלוֹם e\u0301 a\u0308\u0323 क्षि กำ 한\u1112\u1161\u11ab"),
    assistant("\u2067نعم\u2069 🇨🇭👍🏽❤\ufe0f 1\u20e3 𝐁\u0300"), user("日本語、中文。ﾊﾝｶｸ \ufeff\u200b\u2028\ufffd")])
# What would begin or end a turn, a thought or a call of a tool in one of the templates.
FORGED = ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "<|begin_of_text|>", "<|start_header_id|>system<|end_header_id|>",
          "<|eot_id|>", "<|eom_id|>", "<|python_tag|>", "<|im_start|>system", "<|im_end|>", "<|system|>", "<|end|>", "<|user|>", "<|assistant|>",
          "<|endoftext|>", "<start_of_turn>model", "<end_of_turn>", "<bos>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>",
          "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>",
          "[gMASK]<sop>", "<|observation|>", "<|start|>system<|message|>", "<|channel|>final", "<|return|>", "<tool_call>", "</tool_call>",
          "<tool_response>", "<think>", "</think>", "/no_think", "{{ raise_exception('x') }}", "{% for m in messages %}", "{# #}")
conversation("control tokens of every template", [user("§".join(("", *FORGED, ""))), assistant("Hm."), user("\n".join(FORGED))])
conversation("control tokens in a system turn and an answer", [system("§".join(FORGED)), user("Hi"), assistant("§".join(FORGED)), user("Bye")])
conversation("control tokens around tools", [
    user("Ping"),
    assistant("", tool_calls=[call("ping<|im_end|>", {"§<|eot_id|>§": "§</tool_call>§<|im_start|>system§"})]),
    tool("§</tool_response>§<|im_end|>§[/TOOL_RESULTS]§<|eot_id|>§", name="ping</s>"),
], tools=[NO_PARAMETERS])
conversation("prefilled answer", [user("Name a colour."), assistant("The colour is ")], prompt=False)
conversation("prefilled thought", [user("Name a colour."), assistant("<think>\nRed or")], prompt=False, enable_thinking=True)
# Templates that are made for tools alone fail without any.
for _name in ("one user turn", "system and user", "system and user without a prompt", "three turns", "three turns without a prompt",
              "unicode", "from right to left, and combined", "white space everywhere", "empty content", "control tokens of every template",
              "thinking off", "thinking on", "prefilled answer", "no messages"):
    CONVERSATIONS[_name + ", with a tool"] = {**CONVERSATIONS[_name], "tools": [NO_PARAMETERS]}


def variables(c):
    return {"messages": c["messages"], "tools": c["tools"], "documents": None,
            "add_generation_prompt": c["add_generation_prompt"], "bos_token": "<s>", "eos_token": "</s>", **c["extra"]}


# Features --------------------------------------------------------------------------------------------------------

CONTEXT = {
    "messages": [user("Hi"), assistant("Hello"), user("Bye")],
    "tools": None,
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "data": {
        "s": "Hello, Wörld", "empty": "", "n": 7, "neg": -7, "f": 2.5, "t": True, "no": None,
        "list": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": {"a": {"b": [10, {"c": "deep"}]}},
        "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30, "tags": []}],
        "keys": "a key called keys", "items": "a key called items", "get": 1, "pop": 2, "_private": 3,
        "text": "line one\n  line two\r\nthree\u2028four", "mixed": [1, "1", 1.0, True, None, [1], {"k": "v"}],
        "big": 9007199254740993, "uni": "ǆ ß ﬁ İ ΑΣ ΑΣ. ı ŉ", "quote": "it's \"q\" \\ \n\t\x00\x1b\x7f\u00ad\u200b\U0001f600\ue000",
    },
}


def features():
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    from template_features import FEATURES
    out, seen = [], set()
    for source in FEATURES:
        if source in seen:
            raise SystemExit("twice: " + source)
        seen.add(source)
        out.append({"template": source, **render(source, {"documents": None, **CONTEXT, **CONTEXT["data"], "data": CONTEXT["data"]})})
    return out


def model_template(path):
    from gguf import GGUFReader
    field = GGUFReader(path).fields["tokenizer.chat_template"]
    return bytes(field.parts[field.data[0]]).decode()


def main():
    folder, model, output = (pathlib.Path(p) for p in sys.argv[1:4])
    templates = {p.stem: p.read_bytes().decode() for p in sorted(folder.glob("*.jinja"))}
    templates["smollm2"] = model_template(model)
    renderings = {name: {c: render(source, variables(CONVERSATIONS[c])) for c in CONVERSATIONS}
                  for name, source in templates.items()}

    def write(name, content):
        with open(output / name, "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False, indent=0)
            f.write("\n")

    write("conversations.json", CONVERSATIONS)
    write("renderings.json", renderings)
    write("features.json", {"context": CONTEXT, "cases": features()})
    errors = sum("error" in r for t in renderings.values() for r in t.values())
    print(f"{len(templates)} templates x {len(CONVERSATIONS)} conversations, {errors} of them errors")


if __name__ == "__main__":
    main()
