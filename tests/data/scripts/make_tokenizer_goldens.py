#!/usr/bin/env python3
"""Makes tests/data/tokenizer/: what Hugging Face's `tokenizers` and llama.cpp make of some 200 texts.

    python3 make_tokenizer_goldens.py MODEL.gguf OUT_DIR

MODEL.gguf is SmolLM2-135M-Instruct. Two files are written:

smollm.json   "texts": for each text its token ids by `tokenizers`, with the tokenizer built by hand from the model
              file: BPE over its vocabulary and merges, digits one by one, then ByteLevel; control tokens added where
              "parse_special" is true. The text is "text" (UTF-8), "hex" (bytes, not UTF-8; the ids are those of
              bytes.decode("utf-8", "replace")) or "repeat": [unit, count]. The ids are "ids", or of a
              repeated text "runs": [id, count, id, count, ...], where that is long {"count", "fnv1a"} with the hash of
              the ids as little-endian 32-bit words. "llama" has the same of llama.cpp where it differs.
              "peers" says which versions were asked; llama.cpp is asked through the module llama_cpp where that can
              be imported (LLAMA_CPP_LIB_PATH may point to a built libllama), otherwise "llama" is null.
splits.json   "rules": for each pre-tokenizer rule the lengths in bytes of the pieces into which `tokenizers` cuts each
              of "texts", with the pre-tokenizer that the models' tokenizer.json files define.

Needs: tokenizers, gguf; llama_cpp if llama.cpp is to be compared. Nothing is random but from fixed seeds.
"""

import json
import random
import sys
import unicodedata
from pathlib import Path

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CONTROL = 3

# ---- The texts ----

PROSE = {
    "english": "The quick brown fox jumps over the lazy dog. It wasn't the first time; they'd done it before, and she'll "
               "do it again, I'm sure — we've seen 'em!",
    "capitals": "IT'S A TRAP! DON'T YOU'RE THEY'LL WE'VE I'M HE'D",
    "curly": "It’s “quoted” text – with dashes — and an ellipsis… «guillemets» ‹single›",
    "german": "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Straßenbahnhaltestellenverzeichnis",
    "french": "Où êtes-vous allés, l'été dernier ? Ça n'a pas d'importance ; cœur, naïveté, à bientôt !",
    "spanish": "¿Cómo estás? ¡Qué día más bonito! El pingüino comió piñas en el año 2024.",
    "portuguese": "Não há coração que não sinta saudade da infância.",
    "polish": "Zażółć gęślą jaźń, pchnąć w tę łódź jeża lub ośm skrzyń fig.",
    "czech": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "hungarian": "Árvíztűrő tükörfúrógép",
    "turkish": "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ığdır",
    "vietnamese": "Tôi có thể ăn thủy tinh mà không hại gì. Nguyễn Thị Minh Khai",
    "icelandic": "Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю. Привет, мир!",
    "ukrainian": "Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів!",
    "greek": "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. Καλημέρα κόσμε!",
    "hebrew": "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם",
    "arabic": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. السَّلَامُ عَلَيْكُمْ ١٢٣",
    "persian": "من می‌توانم بدونِ احساس درد شيشه بخورم ۱۲۳۴",
    "urdu": "ٹھنڈ میں، ایک قحط زدہ گاؤں سے گذرتے وقت",
    "hindi": "नमस्ते दुनिया, आप कैसे हैं? क्षत्रिय १२३",
    "bengali": "আমি কাঁচ খেতে পারি, তাতে আমার কোনো ক্ষতি হয় না। ০১২",
    "tamil": "நான் கண்ணாடி சாப்பிடுவேன், அதனால் எனக்கு ஒரு கேடும் வராது.",
    "telugu": "నేను గాజు తినగలను మరియు అలా చేసినా నాకు ఏమి ఇబ్బంది లేదు",
    "thai": "ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ ๑๒๓",
    "khmer": "ខ្ញុំអាចញុំកញ្ចក់បាន ដោយគ្មានបញ្ហា",
    "burmese": "က္ယ္ဝန္တော္‌၊က္ယ္ဝန္မ မ္ယက္စားနုိင္သည္‌။",
    "georgian": "მინას ვჭამ და არა მტკივა. ᲛᲘᲜᲐᲡ",
    "armenian": "Կրնամ ապակի ուտել և ինծի անհանգիստ չըներ։",
    "amharic": "ሰማይ አይታረስ ንጉሥ አይከሰስ። ፩፪፫",
    "tibetan": "ཤེལ་སྒོ་ཟ་ནས་ང་ན་གི་མ་རེད།",
    "mongolian": "ᠪᠢ ᠰᠢᠯᠢ ᠢᠳᠡᠶᠦ ᠴᠢᠳᠠᠨᠠ ᠂ ᠨᠠᠳᠤᠷ᠎ᠠ ᠬᠣᠤᠷᠠᠳᠠᠢ ᠪᠢᠰᠢ",
    "chinese": "我能吞下玻璃而不伤身体。今天天气很好，我们去公园散步吧！《红楼梦》第一回：甄士隐梦幻识通灵",
    "chinese_traditional": "臺灣的夜市有許多好吃的小吃，例如蚵仔煎、臭豆腐與珍珠奶茶。",
    "japanese": "いろはにほへと ちりぬるを。私はガラスを食べられます。ﾊﾝｶｸｶﾅ　全角スペース　１２３",
    "korean": "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 안녕하세요",
    "mixed_scripts": "Hello Привет 你好 こんにちは 안녕 שלום مرحبا नमस्ते Γειά 👋 in one line",
    "bidi_controls": "abc \u202eright to left\u202c \u2067isolated\u2069 \u200flrm\u200e",
    "latin_math": "𝐁𝐨𝐥𝐝 𝑖𝑡𝑎𝑙𝑖𝑐 𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𝟘𝟙𝟚 ∀x∈ℝ: ∑ᵢ xᵢ² ≥ 0 ⇒ ∂f/∂x ≈ ½·π",
    "gothic": "𐌼𐌰𐌲 𐌲𐌻𐌴𐍃 𐌹̈𐍄𐌰𐌽, 𐌽𐌹 𐌼𐌹𐍃 𐍅𐌿",
    "cuneiform": "𒀀𒁀𒂀 𓀀𓁐𓃰 𐎀𐎁",
}

CODE = {
    "c": '#include <stdio.h>\n\nint main(int argc, char **argv)\n{\n\tfor (int i = 0; i < 0x1F; ++i)\n\t\tprintf("%d\\n", i);\n\treturn 0;\n}\n',
    "cpp": "template<class T>\nauto task<T>::await_suspend(std::coroutine_handle<> h) noexcept -> bool\n{\n    return handle_.promise().start(h) && !done_;\n}\n// 100'000u == 1e5\n",
    "python": "def fib(n: int) -> int:\n    \"\"\"Doc.\"\"\"\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\nif __name__ == '__main__':\n    print(f'{fib(10)=!r:>20}')\n",
    "rust": "impl<'a, T: Clone + 'static> Foo<'a, T> {\n    pub fn get(&self) -> Option<&'a T> { self.0.as_ref()? }\n}\nlet r#type = b'\\x00';\n",
    "go": "func (s *Server) Serve(l net.Listener) error {\n\tdefer l.Close()\n\tfor {\n\t\tc, err := l.Accept()\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tgo s.handle(c)\n\t}\n}\n",
    "java": "@Override\npublic List<Map<String, ? extends Number>> foo() throws IOException {\n    return stream.map(String::valueOf).collect(Collectors.toList());\n}\n",
    "javascript": "const f = async ({a, ...rest}) => { await g?.(a ?? 0); return `${rest.b}\\u00e9`; };\n/^(?:[a-z]+|\\d{3,})$/giu.test(x) && (y ||= 1);\n",
    "typescript": "type A<T extends keyof any = string> = { readonly [K in T]?: never } & Record<'x', unknown>;\n",
    "haskell": "main :: IO ()\nmain = mapM_ print . takeWhile (< 1000) $ primes\n  where primes = sieve [2..]; sieve (p:xs) = p : sieve [x | x <- xs, x `mod` p /= 0]\n",
    "lisp": "(defun fact (n)\n  (if (<= n 1)\n      1\n      (* n (fact (1- n))))) ; => 120\n",
    "sql": "SELECT u.id, COUNT(*) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.name LIKE '%O''Brien%' GROUP BY 1 HAVING COUNT(*) >= 10;\n",
    "html": "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>&lt;T&gt;</title></head>\n<body class='a b'><p>x &amp; y</p></body></html>\n",
    "css": "@media (max-width: 640px) { .a > .b::before { content: \"\\201C\"; color: #ff00aa80; margin: -1.5rem auto !important; } }\n",
    "json": '{"a": [1, 2.5e-10, null, true], "b": {"c": "\\u00e9\\n"}, "d": []}\n',
    "yaml": "- name: test\n  run: |\n    set -e\n    make -j$(nproc)\n  env: {A: 'b', C: \"d\"}\n",
    "toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\n[[bin]]\npath = 'a\\b'\n",
    "shell": "for f in *.txt; do echo \"${f%.txt}\" | sed -E 's/[^a-z]+/_/g' >>\"$OUT\" 2>&1 || exit $?; done\n",
    "makefile": "all: $(OBJS)\n\t$(CC) -o $@ $^ $(LDFLAGS)\n\n%.o: %.c\n\t@$(CC) -c $< -o $@\n",
    "assembly": "_start:\n    mov     rax, 60\n    xor     rdi, rdi        ; status 0\n    vpdpbusd zmm0, zmm1, [rsi+64*rcx]\n    syscall\n",
    "latex": "\\begin{align}\n  \\int_0^\\infty e^{-x^2}\\,dx &= \\frac{\\sqrt{\\pi}}{2} \\\\\n\\end{align}\n",
    "regex": "^(?!.*\\.\\.)[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\\.)+[A-Za-z]{2,63}$",
    "brainfuck": "++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++.",
    "diff": "--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,4 @@\n int a;\n-int b;\n+int b = 1;\n+int c;\n",
    "cuda": "__global__ void add(float const* __restrict__ a, float* b, int n)\n{\n    int const i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) b[i] += a[i];\n}\nadd<<<(n + 255) / 256, 256, 0, s>>>(a, b, n);\n",
    "zig": "pub fn main() !void {\n    const x = @as(u8, 'a') catch |e| return e;\n    try std.io.getStdOut().writer().print(\"{d}\\n\", .{x});\n}\n",
    "ocaml": "let rec map f = function [] -> [] | x :: xs -> f x :: map f xs;; (* 'a list *)\n",
    "perl": "while (<>) { s/(\\w+)/\\u\\L$1/g; $h{$_}++ unless /^#/; } print \"@{[sort keys %h]}\\n\";\n",
    "markdown": "# Title\n\n* item **bold** _it_ `code`\n  1. nested\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n```cpp\nint x;\n```\n",
    "csv": "id,name,value\n1,\"Smith, J.\",3.14\n2,O'Neil,-0.5e+10\n",
    "log": "2024-03-01T12:34:56.789Z [ERROR] 127.0.0.1:8080 GET /a/b?c=d&e=%20f HTTP/1.1 404 1532 \"-\" (0.003s) pid=4242\n",
    "base64": "SGVsbG8sIFdvcmxkIQ== 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "url": "https://user:pa55@sub.example.co.uk:8443/path/to/file.tar.gz?query=1&x[]=2#frag-ment_1",
}

EMOJI = {
    "plain": "😀😃😄 I ❤️ plaits 🥨🧶",
    "zwj_family": "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🏴‍☠️ 🧑🏿‍🤝‍🧑🏻",
    "skin_tones": "👍👍🏻👍🏼👍🏽👍🏾👍🏿",
    "flags": "🇨🇭🇩🇪🇫🇷🇬🇧🇺🇳🇯🇵 🇨",
    "keycaps": "1️⃣2️⃣#️⃣*️⃣ ©️®️™️",
    "tag_flag": "🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "glued": "word😀word 3😀4 😀, 😀. (😀)",
    "kaomoji": "¯\\_(ツ)_/¯ (╯°□°)╯︵ ┻━┻ ʕ•ᴥ•ʔ",
    "text_style": "☺︎☺️☎︎☎️✔︎✔️",
    "many": "🎉" * 40,
}

MARKS = {
    "decomposed": unicodedata.normalize("NFD", "Crème brûlée, naïve façade, Ångström, Tiếng Việt"),
    "composed": unicodedata.normalize("NFC", "Crème brûlée, naïve façade, Ångström, Tiếng Việt"),
    "zalgo": "Z̸̢̛̺̫̬͉͔̖̜̰͍̹̓̂̀͋͛̾̒̌͘͜͝a̵̡̛͎̯̫͙͈̹͚̋̌̀̽̈́͗̉̕l̷̨̛͖̟͚̗̯̈́̂̀͌̃̕͠ǧ̴̢̙̘̣̮͉̥̗̀̋̾̽̓̚͝o̶̢̪̬͉̤̔̋̀̍̒̅̚͜͝",
    "mark_first": "\u0301abc \u0301 \u0300\u0301\u0302",
    "hangul_jamo": unicodedata.normalize("NFD", "한국어 텍스트"),
    "ligatures": "ﬁnd ﬂow ﬀ ﬃ ĳ ǆ Ǆ ǅ",
    "enclosing": "a⃝ 1⃣ ⃠",
    "variation": "葛󠄀飾区 葛󠄁城市 ︎︎️",
    "superscripts": "x²y³ H₂O 10⁻⁹ ¼½¾ ⅓ Ⅷ ⅷ ① ⑳ ㉈ ㊿",
    "digits_of_the_world": "0123 ٠١٢٣ ۰۱۲۳ ०१२३ ০১২৩ ๐๑๒๓ ０１２３ 𝟎𝟏𝟐𝟑 𞥐𞥑",
    "zero_width": "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "soft_hyphen": "Donau\u00addampf\u00adschiff",
    "long_s": "I'\u017f 'ſ DON'\u017f k\u212a K\u212a",
}

SPACES = {
    "empty": "",
    "one_space": " ",
    "two_spaces": "  ",
    "many_spaces": " " * 37,
    "spaces_then_word": "     word",
    "word_then_spaces": "word     ",
    "spaces_between": "a  b   c    d     e",
    "tab": "\t",
    "tabs": "\t\t\t\tx\ty\t",
    "newline": "\n",
    "newlines": "\n\n\n\n\n",
    "crlf": "a\r\nb\r\n\r\nc\r",
    "mixed": " \t \n \t\n  \r\n\t x \n\n\n y\n ",
    "newline_then_spaces": "if x:\n        y\n\n        z\n",
    "trailing_newline_space": "x\n ",
    "form_feed": "a\x0bb\x0cc \x0b \x0c",
    "nbsp": "a\u00a0b\u00a0\u00a0c \u00a0 d",
    "unicode_spaces": "a\u2000b\u2003\u2003c\u2009d\u202fe\u205ff\u3000g\u1680h",
    "line_separators": "a\u2028b\u2029c\u0085d \u0085 e",
    "not_white_space": "a\u180eb \u180e c\u200b d\u2060e",
    "spaces_before_digits": "x  1   22    333 4\n 5",
    "spaces_before_punctuation": "x  !   ??    ...",
    "thousand_spaces": " " * 1000 + "x",
    "thousand_newlines": "\n" * 1000,
    "alternating": " \n" * 200,
    "code_indent": "".join(" " * (4 * i) + "x\n" for i in range(20)),
}

DIGITS = {
    "one": "7",
    "year": "In 1999 and 2024.",
    "long": "31415926535897932384626433832795028841971",
    "grouped": "1,234,567.89 1.234.567,89 1 234 567",
    "phone": "+41 44 123 45 67 (0)800-555-0199",
    "hex": "0xDEADBEEF 0b1010 0o777 1e-9 6.02214076e23",
    "glued": "a1b2c3 x86_64 utf8 4x4 3rd 2nd",
    "version": "v1.2.3-rc.4+build.5",
    "negatives": "-1 −1 ±1 1/2 1%",
    "time": "12:34:56.789 2024-02-29T23:59:60Z",
}

ODDITIES = {
    "apostrophes": "'s 't 're 've 'm 'll 'd 'S 'x ''s '' ' '",
    "contraction_no_word": "'sup 'twas 'revolution 'mmm",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "punctuation_runs": "!!!??? ... ---- ==== //// **** #### @@@@",
    "unicode_punctuation": "、。〈〉《》「」『』【】〔〕！（），．：；？‥…‰′″‴※‼⁇",
    "currency": "$5 €5 £5 ¥5 ₹5 ₿5 5¢",
    "arrows": "→ ⇒ ↔ ⟶ ⤴ ▶ ■ ● ★ ☆ ✓ ✗ │┌─┐",
    "underscores": "snake_case __init__ _ __ ___x___",
    "camel": "camelCaseHTTPServerXMLParserID",
    "nul": "a\x00b",
    "all_control": "".join(chr(c) for c in range(32)) + "\x7f",
    "controls_with_token": "a\x01b\x02c\x03\x05\x07\x08\x1b[31mred\x1b[0m",
    "controls_between_letters": "ab\x04cd\x06ef\x13gh\x14ij\x16kl\x1dmn",
    "controls_between_signs": "!\x04! =\x06= -\x13- >\x14> *\x16* <\x1d<",
    "c1_controls": "".join(chr(c) for c in range(0x80, 0xA0)),
    "latin1": "".join(chr(c) for c in range(0xA0, 0x100)),
    "private_use": "\ue000\uf8ff \U000f0000\U0010fffd",
    "noncharacters": "\ufffe\uffff \ufdd0\U0001fffe\U0010ffff",
    "replacement": "\ufffd\ufffd x\ufffd",
    "planes_without_lead_bytes": "a\U00040001b \U00050000! \U0009fffd",
    "bom": "\ufeffHello",
    "object_replacement": "\ufffc \ufff9a\ufffab\ufffb",
    "byte_alphabet": "Ġ Ċ ĉ Ā ġ Ģ ģ ÀÁõö÷øùúûüýþÿ Ġhello",
    "long_word": "pneumonoultramicroscopicsilicovolcanoconiosis" * 3,
    "alphabet": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "repeated_pairs": "abababababababababab aaaaaaaaaaaaaaaaaaaaa",
    "first_last": "\U00000001\U0000d7ff\U0000e000\U0010fffd",
    "question": "What is the capital of France?",
    "chat_like": "user: hi\nassistant: hello\n",
}

# Each is asked twice: with control tokens read, and as plain text.
SPECIAL = {
    "chat": "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n",
    "inside_word": "abc<|im_end|>def",
    "spaces_around": " <|im_start|> <|im_end|> ",
    "twice": "<|im_end|><|im_end|><|endoftext|>",
    "incomplete": "<|im_start| > <|im_end <|im_end||> |im_end|>",
    "code_tokens": "<repo_name>x/y<file_sep>a.py\n<gh_stars>100-1000<jupyter_code>1<empty_output>",
    "case": "<|IM_END|> <|Im_End|>",
    "only": "<|endoftext|>",
    "in_chinese": "你好<|im_end|>世界",
}

INVALID = {
    "lone_continuation": b"a\x80b",
    "lone_lead": b"a\xc3",
    "lead_then_ascii": b"\xe4\xb8x",
    "truncated_four": b"x\xf0\x9f\x98",
    "overlong": b"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf",
    "surrogates": b"\xed\xa0\x80\xed\xb0\x80",
    "past_the_end": b"\xf4\x90\x80\x80 \xf5\x80\x80\x80 \xff\xfe",
    "mixed": b"ok \xe2\x82\xac \xe2\x82 \xac \xf0\x9f\x98\x80\x80 end\xf0",
    "latin1_text": "Crème brûlée".encode("latin-1"),
    "utf16": "Hi ü".encode("utf-16"),
    "unicode_table_3_8": b"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",
    "in_special": b"<|im_\xffend|>",
}

REPEATS = {
    "a_million_a": ("a", 1_000_000),
    "a_million_spaces": (" ", 1_000_000),
    "a_million_newlines": ("\n", 1_000_000),
    "a_million_digits": ("7", 1_000_000),
    "a_million_signs": ("=", 1_000_000),
    "a_lot_of_chinese": ("的", 300_000),
    "a_lot_of_emoji": ("👩🏽‍💻", 50_000),
    "a_lot_of_words": ("The cat sat on the mat. ", 40_000),
    "a_lot_of_pairs": ("xyzzy", 100_000),
}


def random_texts():
    """Code points of what Unicode 14 had assigned, so that readers of later tables agree; and private ones."""
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    assert unicodedata.unidata_version == "14.0.0", "run this with a Python whose unicodedata is Unicode 14"
    assigned = [c for c in every if unicodedata.category(c) not in ("Cn", "Co")]
    low = [c for c in assigned if ord(c) < 0x3000]
    ascii_ = [chr(c) for c in range(128)]
    words = " ".join(PROSE.values()).split(" ")
    out = {}
    for seed in range(8):
        out[f"assigned_{seed}"] = "".join(random.Random(seed).choices(assigned, k=60))
        out[f"low_{seed}"] = "".join(random.Random(100 + seed).choices(low, k=80))
    for seed in range(6):
        out[f"ascii_{seed}"] = "".join(random.Random(200 + seed).choices(ascii_, k=150))
        pick = random.Random(300 + seed)
        out[f"words_{seed}"] = "".join(
            pick.choice(words) + pick.choice([" ", " ", "  ", "\n", "\t", "", ", ", "\n\n"]) for _ in range(60))
    spaces = [c for c in assigned if c.isspace()]
    for seed in range(4):
        out[f"spaces_{seed}"] = "".join(random.Random(400 + seed).choices(spaces + list("aZ1!é中"), k=80))
    return out


# ---- The peers ----

def hugging_face(reader, added):
    field = lambda key: reader.get_field("tokenizer.ggml." + key).contents()
    tokens, types, merges = field("tokens"), field("token_type"), field("merges")
    t = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(tokens)},
                             merges=[tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    if added:
        t.add_special_tokens([AddedToken(text, special=True, normalized=False)
                              for text, kind in zip(tokens, types) if kind == CONTROL])
    return t


class Llama:
    def __init__(self, path):
        import ctypes
        import llama_cpp.llama_cpp as api
        self.api = api
        quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        self.quiet = quiet
        api.llama_log_set(ctypes.cast(quiet, api.llama_log_callback), ctypes.c_void_p(0))
        parameters = api.llama_model_default_params()
        parameters.vocab_only = True
        self.model = api.llama_model_load_from_file(str(path).encode(), parameters)
        self.vocab = api.llama_model_get_vocab(self.model)
        import importlib.util
        init = Path(importlib.util.find_spec("llama_cpp").origin).read_text()
        self.version = "llama.cpp of llama-cpp-python " + init.split('__version__ = "')[1].split('"')[0]

    def encode(self, data, parse_special):
        room = len(data) + 8
        ids = (self.api.llama_token * room)()
        n = self.api.llama_tokenize(self.vocab, data, len(data), ids, room, False, parse_special)
        assert n >= 0
        return list(ids[:n])


def summary(ids):
    out = []
    for i in ids:
        if out and out[-2] == i:
            out[-1] += 1
        else:
            out += [i, 1]
    if len(out) <= 64:
        return out
    h = 0xCBF29CE484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in ids):
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return {"count": len(ids), "fnv1a": f"{h:016x}"}


CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
REST_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = [r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+", r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*"]
DEEPSEEK_3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
              r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def rules():
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {
        "gpt-2": byte_level,
        "smollm": pre_tokenizers.Sequence([digits, byte_level]),
        "llama-bpe": split("|".join([CONTRACTIONS, LETTERS, r"\p{N}{1,3}", REST])),
        "qwen2": split("|".join([CONTRACTIONS, LETTERS, r"\p{N}", REST])),
        "gpt-4o": split("|".join([CASED[0] + CONTRACTIONS + "?", CASED[1] + CONTRACTIONS + "?", r"\p{N}{1,3}",
                                  REST_SLASH])),
        "tekken": split("|".join(CASED + [r"\p{N}", REST_SLASH])),
        "deepseek-coder": pre_tokenizers.Sequence([
            split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits]),
        "deepseek-v3": pre_tokenizers.Sequence([
            split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK_3)]),
    }


def main(model, out_dir):
    out_dir = Path(out_dir)
    reader = gguf.GGUFReader(model)
    plain, parsing = hugging_face(reader, False), hugging_face(reader, True)
    try:
        llama = Llama(model)
    except ImportError:
        llama = None

    texts = []

    def add(name, data, parse_special=False, repeat=None):
        text = data.decode("utf-8", "replace")
        ids = (parsing if parse_special else plain).encode(text, add_special_tokens=False).ids
        entry = {"name": name}
        if repeat:
            entry["repeat"] = repeat
        elif text.encode() == data:
            entry["text"] = text
        else:
            entry["hex"] = data.hex()
        if parse_special:
            entry["parse_special"] = True
        entry["runs" if repeat else "ids"] = summary(ids) if repeat else ids
        if llama:
            # llama.cpp's own replacement of ill-formed bytes is by single bytes; it is asked with the repaired text.
            other = llama.encode(text.encode(), parse_special)
            if other != ids:
                entry["llama"] = summary(other) if repeat else other
        texts.append(entry)

    kinds = {"prose": PROSE, "code": CODE, "emoji": EMOJI, "marks": MARKS, "spaces": SPACES, "digits": DIGITS,
             "odd": ODDITIES, "random": random_texts()}
    for kind, group in kinds.items():
        for name, text in group.items():
            add(f"{kind}/{name}", text.encode())
    for name, text in SPECIAL.items():
        add(f"special/{name}", text.encode())
        add(f"special/{name}_parsed", text.encode(), True)
    for name, data in INVALID.items():
        add(f"invalid/{name}", data)
    for name, (unit, count) in REPEATS.items():
        add(f"repeat/{name}", (unit * count).encode(), repeat=[unit, count])
    assert len({t["name"] for t in texts}) == len(texts) >= 200

    golden = {
        "model": Path(model).name,
        "peers": {"tokenizers": tokenizers.__version__, "llama": llama and llama.version},
        "texts": texts,
    }
    out_dir.mkdir(parents=True, exist_ok=True)
    dump(out_dir / "smollm.json", golden, "texts")

    short = [t for kind in kinds.values() for t in kind.values() if 0 < len(t) <= 250]
    cut = {}
    for name, rule in rules().items():
        cut[name] = []
        for text in short:
            ends = [end for _, (_, end) in rule.pre_tokenize_str(text)]
            starts = [start for _, (start, _) in rule.pre_tokenize_str(text)]
            assert starts == [0] + ends[:-1] and ends[-1] == len(text)
            cut[name].append([len(text[s:e].encode()) for s, e in zip(starts, ends)])
    dump(out_dir / "splits.json", {"peers": {"tokenizers": tokenizers.__version__}, "texts": short, "rules": cut},
         "texts", "rules")

    differing = [t["name"] for t in texts if "llama" in t]
    print(f"{len(texts)} texts, {sum(len(t.get('ids', [])) for t in texts)} ids, {len(short)} split texts")
    print("llama.cpp:", f"differs on {differing}" if llama else "not asked")


def dump(path, value, *lists):
    """JSON with one line an element of the named members, so that a change shows as one line."""
    compact = lambda v: json.dumps(v, separators=(",", ":"))
    lines = []
    for key, v in value.items():
        if key not in lists:
            lines.append(f"{compact(key)}:{compact(v)}")
        elif isinstance(v, list):
            lines.append(f"{compact(key)}:[\n" + ",\n".join(map(compact, v)) + "\n]")
        else:
            lines.append(f"{compact(key)}:{{\n" + ",\n".join(f"{compact(k)}:{compact(x)}" for k, x in v.items()) + "\n}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
