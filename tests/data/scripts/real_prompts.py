"""The prompts of the goldens of a real model. Raw text: special tokens written in it are read as such."""

SHORT = "Water boils when it is"

QUESTION = (
    "<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n"
    "Why does ice float on water, and what would happen to a lake in winter if it did not?<|im_end|>\n"
    "<|im_start|>assistant\n"
)

CODE = '''import heapq


def shortest_paths(graph, source):
    """Lengths of the shortest paths from source to every reachable node of a weighted graph."""
    distance = {source: 0}
    queue = [(0, source)]
    while queue:
        d, node = heapq.heappop(queue)
        if d > distance[node]:
            continue
        for neighbour, weight in graph[node].items():
            candidate = d + weight
            if neighbour not in distance or candidate < distance[neighbour]:
                distance[neighbour] = candidate
                heapq.heappush(queue, (candidate, neighbour))
    return distance


def test_shortest_paths():
    graph = {"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}
'''

CHINESE = (
    "北京的秋天很美。🍁 香山的红叶像火一样，天空又高又蓝，人们带着孩子去公园散步。"
    "Café, naïve, Ελλάδα, Привет! 👩‍👩‍👧‍👦 今天是2024年10月15日，气温18℃。我们早上八点出发，"
)

PROSE = (
    "The lighthouse keeper's daughter had learned to read the weather before she learned to read books. "
    "She knew that when the gulls came inland in the morning there would be wind by the afternoon, and that a "
    "ring around the moon meant rain within two days. Her father kept a ledger in which he wrote, every evening, "
    "the height of the barometer, the direction of the wind, the ships that had passed and the oil that had been "
    "burned. On the last page of every month he drew a small picture of whatever had surprised him most: a whale, "
    "a broken mast, a letter in a bottle that turned out to be a bill from a tailor in Lisbon.\n\n"
    "In the autumn of her twelfth year the supply boat did not come. At first nobody worried, because the sea had "
    "been rough and the captain was a careful man. They ate the potatoes, then the salted fish, then the flour that "
    "was meant for Christmas. The keeper went on writing in his ledger as if nothing had changed, but his "
    "handwriting became smaller, as though he were saving ink as well. On the nineteenth day the girl climbed to "
    "the top of the tower with a mirror from her mother's room. The sun was low, and the mainland was only a grey "
    "line, nine miles away. She caught the light, lost it, and caught it again. Three short, three long, three "
    "short; then she waited, counted slowly to sixty, and began once more.\n\n"
    "It was a schoolmaster who saw it. He had taken his class to the beach to draw shells, and one of the boys "
    "asked why there was a star in the daytime. The schoolmaster looked for a long time before he understood. Then "
    "he sent the fastest runner to the harbour, and told the others to sit down in the sand and remember what they "
    "had seen, because they would be asked about it for the rest of their lives. By the time the"
)

PROMPTS = {"short": SHORT, "question": QUESTION, "code": CODE, "chinese": CHINESE, "prose": PROSE}

# What a person asks, to be put through the model's own chat template with the assistant's turn opened. Where no system
# message is given this template adds its own, and then "The" leads "L'" by 0.08 only: rounding activations to 8 bits
# is enough to turn it. With an empty system message it leads by 1.3, so every precision must agree.
QUESTION_ASKED = {"role": "user", "content": "What is the capital of France?"}
CHATS = {
    "chat": [QUESTION_ASKED],
    "chat_empty_system": [{"role": "system", "content": ""}, QUESTION_ASKED],
}
CHAT_ANSWER = "The capital of France is Paris."
CHAT_STEPS = 16
