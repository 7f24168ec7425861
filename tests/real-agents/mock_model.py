"""A model of the suite's own on loopback: it speaks four dialects and does as the prompt says.

Dialects: Anthropic messages, OpenAI responses, OpenAI chat completions, Gemini;
with and without streaming. A prompt that holds one of these words steers the turn:

    run-tool{COMMAND}   call the agent's shell tool with COMMAND, so that the agent asks for
                        permission; say "tool done" when its result is there
    run-agent{NAME}     call the agent's tool for sub-agents with the prompt `hold-turn{NAME}`
    hold-turn{NAME}     send nothing until the suite calls `release(NAME)`

Any other prompt is answered with one short sentence. Requests without tools
(titles, summaries and the like, which agents make on the side) are never
steered, so a directive acts once.
"""

import collections
import gzip
import itertools
import json
import re
import select
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_BYTES_MAX = 64 * 1024 * 1024
REQUESTS_KEPT = 2000
HOLD_SECONDS_MAX = 180
HOLD_STEP_SECONDS = 0.05
DIRECTIVE = re.compile(r"(run-tool|run-agent|hold-turn)\{([^}\n]*)\}")
SHELL_TOOLS = ("Bash", "Shell", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command",
               "bash", "exec", "run_commands")
AGENT_TOOLS = ("Agent", "Task")
MODELS = ("claude-opus-4-8", "gpt-5-codex", "mock-model")
# What Gemini's side questions, which want JSON, may ask for.
GEMINI_SIDE_ANSWER = {"reasoning": "mock", "model_choice": "flash", "next_speaker": "user",
                      "complexity_score": 10, "complexity_reasoning": "mock"}
ANSWER = "This is the mock model."
REMINDER = "<system-reminder>"


@dataclass
class Ask:
    """One request, the same for every dialect."""

    dialect: str
    prompt: str
    tools: dict
    follows_tool: bool
    streams: bool
    model: str
    headers: dict = field(default_factory=dict)
    at: float = 0.0
    # Tells whether who asked has closed the connection.
    is_given_up: Callable = lambda: False


@dataclass
class Reply:
    """What the model says: a text, or one tool call (`freeform` where its input is bare text)."""

    text: str = ""
    tool: str = ""
    arguments: dict = field(default_factory=dict)
    freeform: str = ""


class MockModel:
    """The server; `with MockModel() as model:` starts and stops it."""

    def __init__(self):
        self.requests = collections.deque(maxlen=REQUESTS_KEPT)
        self._released = collections.defaultdict(threading.Event)
        self._held = set()
        self._dropped = set()
        self._answered = collections.deque(maxlen=REQUESTS_KEPT)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.mock_model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        for event in list(self._released.values()):
            event.set()
        self._server.shutdown()
        self._server.server_close()

    def is_held(self, name):
        """Whether a turn waits for `release(name)`."""
        return name in self._held

    def is_dropped(self, name):
        """Whether the agent has given up a turn that was held under this name."""
        return name in self._dropped

    def release(self, name):
        """Lets the turn that was held under this name go on."""
        self._released[name].set()

    def asked(self, text):
        """Returns the requests of turns (those that offer tools) whose prompt holds `text`."""
        return [one for one in list(self.requests) if one.tools and text in one.prompt]

    def answers_to(self, text):
        """Returns how many requests with `text` were answered to the end."""
        return sum(text in prompt for prompt in list(self._answered))

    def has_answered(self, ask):
        """Notes that the whole answer has been sent."""
        self._answered.append(ask.prompt)

    def answer(self, ask):
        """Decides the reply, holding the turn first where the prompt asks for it."""
        self.requests.append(ask)
        directives = DIRECTIVE.findall(ask.prompt) if ask.tools else []
        if ask.follows_tool:
            return Reply(text="tool done")
        if not directives:
            return Reply(text=ANSWER)
        kind, value = directives[-1]
        if kind == "hold-turn":
            self._held.add(value)
            self._hold(value, ask.is_given_up)
            self._held.discard(value)
            return Reply(text="the turn was let go")
        if kind == "run-agent":
            return agent_call(ask.tools, value)
        return shell_call(ask.tools, value)


    def _hold(self, name, is_given_up):
        deadline = time.monotonic() + HOLD_SECONDS_MAX
        while not self._released[name].wait(HOLD_STEP_SECONDS) and time.monotonic() < deadline:
            if is_given_up():
                self._dropped.add(name)
                return


def agent_call(tools, name):
    """Returns the reply that starts a sub-agent whose own turn is held under `name`."""
    tool = next((one for one in AGENT_TOOLS if one in tools), None)
    if tool is None:
        return Reply(text="no tool for sub-agents among " + ", ".join(sorted(tools)))
    return Reply(tool=tool, arguments={"description": "a sub-agent of the mock model", "prompt": f"hold-turn{{{name}}}",
                                       "subagent_type": "general-purpose"})


def shell_call(tools, command):
    """Returns the reply that calls the agent's shell tool."""
    name = next((one for one in SHELL_TOOLS if one in tools), None)
    if name is None:
        return Reply(text="no shell tool among " + ", ".join(sorted(tools)))
    properties = (tools[name] or {}).get("properties") or {}
    if not properties:
        script = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(r.output ?? '');"
        return Reply(tool=name, freeform=script)
    arguments = {}
    if "cmd" in properties:
        arguments["cmd"] = command
    elif "commands" in properties:
        arguments["commands"] = [command]
    elif (properties.get("command") or {}).get("type") == "array":
        arguments["command"] = ["bash", "-c", command]
    else:
        arguments["command"] = command
    if "description" in properties:
        arguments["description"] = "a call of the mock model"
    if "is_background" in properties:
        arguments["is_background"] = False
    if "sandbox_permissions" in properties:
        # Codex asks a human only for a command that wants out of its sandbox.
        arguments.update(sandbox_permissions="require_escalated", justification="the mock model asks")
    return Reply(tool=name, arguments=arguments)


def _plain(content):
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") or "" for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if not text.startswith(REMINDER))


def read_messages(body):
    """Reads an Anthropic messages request."""
    users = [one for one in body.get("messages") or [] if one.get("role") == "user"]
    content = users[-1].get("content") if users else ""
    follows = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
    tools = {one.get("name", ""): one.get("input_schema") for one in body.get("tools") or []}
    return _ask("messages", body, _plain(content), tools, follows)


def read_responses(body):
    """Reads an OpenAI responses request; tools may be nested in namespaces."""
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    prompt = next((_plain(one.get("content")) for one in reversed(items) if one.get("role") == "user"), "")
    follows = bool(items) and "output" in items[-1].get("type", "")
    tools, queue = {}, list(body.get("tools") or [])
    while queue:
        tool = queue.pop(0)
        if tool.get("type") == "namespace":
            queue.extend(tool.get("tools") or [])
        else:
            tools[tool.get("name") or tool.get("type", "")] = tool.get("parameters")
    return _ask("responses", body, prompt, tools, follows)


def read_chat(body):
    """Reads an OpenAI chat completions request."""
    messages = body.get("messages") or []
    texts = (_plain(one.get("content")) for one in reversed(messages) if one.get("role") == "user")
    # A reminder may follow the prompt as a message of its own.
    prompt = next((text for text in texts if text and not text.startswith(REMINDER)), "")
    follows = bool(messages) and messages[-1].get("role") == "tool"
    functions = [one.get("function") or {} for one in body.get("tools") or []]
    tools = {one.get("name", ""): one.get("parameters") for one in functions}
    return _ask("chat", body, prompt, tools, follows)


def read_gemini(body):
    """Reads a Gemini request; a side question that wants JSON counts as one without tools."""
    contents = body.get("contents") or []
    parts = (contents[-1].get("parts") or []) if contents else []
    follows = any("functionResponse" in part for part in parts)
    functions = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    tools = {one.get("name", ""): one.get("parametersJsonSchema") or one.get("parameters") for one in functions}
    if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
        tools = {}
    return _ask("gemini", body, _plain(parts), tools, follows)


def _ask(dialect, body, prompt, tools, follows):
    return Ask(dialect=dialect, prompt=prompt, tools=tools, follows_tool=follows,
               streams=bool(body.get("stream")), model=str(body.get("model") or "mock-model"))


def events_of_messages(ask, reply):
    """Yields the stream of an Anthropic answer."""
    start = dict(whole_message(ask, reply), content=[], stop_reason=None)
    yield "message_start", {"type": "message_start", "message": start}
    block, stop = _message_block(reply)
    if reply.tool:
        opening = dict(block, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        opening = dict(block, text="")
        delta = {"type": "text_delta", "text": reply.text}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": opening}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "usage": {"output_tokens": 56},
                            "delta": {"stop_reason": stop, "stop_sequence": None}}
    yield "message_stop", {"type": "message_stop"}


def _message_block(reply):
    if reply.tool:
        identifier = "toolu_" + uuid.uuid4().hex[:24]
        return {"type": "tool_use", "id": identifier, "name": reply.tool, "input": reply.arguments}, "tool_use"
    return {"type": "text", "text": reply.text}, "end_turn"


def whole_message(ask, reply):
    """Returns an Anthropic answer in one piece."""
    block, stop = _message_block(reply)
    usage = {"input_tokens": 234, "cache_creation_input_tokens": 0,
             "cache_read_input_tokens": 1000, "output_tokens": 56}
    return {"id": "msg_" + uuid.uuid4().hex[:24], "type": "message", "role": "assistant", "model": ask.model,
            "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}


def events_of_responses(ask, reply):
    """Yields the stream of an OpenAI responses answer."""
    whole = whole_response(ask, reply)
    item, numbers = whole["output"][0], itertools.count()

    def event(kind, **fields):
        return kind, dict({"type": kind, "sequence_number": next(numbers)}, **fields)

    yield event("response.created", response=dict(whole, status="in_progress", output=[], usage=None))
    yield event("response.output_item.added", output_index=0, item=dict(item, status="in_progress"))
    if item["type"] == "message":
        yield event("response.output_text.delta", item_id=item["id"], output_index=0, content_index=0,
                    delta=reply.text)
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response=whole)


def whole_response(ask, reply):
    """Returns an OpenAI responses answer in one piece."""
    mark = uuid.uuid4().hex[:20]
    if reply.freeform:
        item = {"type": "custom_tool_call", "id": "ctc_" + mark, "call_id": "call_" + mark,
                "name": reply.tool, "input": reply.freeform, "status": "completed"}
    elif reply.tool:
        item = {"type": "function_call", "id": "fc_" + mark, "call_id": "call_" + mark,
                "name": reply.tool, "arguments": json.dumps(reply.arguments), "status": "completed"}
    else:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        item = {"type": "message", "id": "msg_" + mark, "role": "assistant", "status": "completed",
                "content": content}
    usage = {"input_tokens": 1234, "input_tokens_details": {"cached_tokens": 1000}, "output_tokens": 56,
             "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 1290}
    return {"id": "resp_" + mark, "object": "response", "created_at": int(time.time()),
            "status": "completed", "model": ask.model, "output": [item], "usage": usage}


def events_of_chat(ask, reply):
    """Yields the stream of an OpenAI chat completions answer."""
    whole = whole_chat(ask, reply)
    base = {"id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"],
            "model": ask.model}
    choice = whole["choices"][0]
    yield None, dict(base, choices=[{"index": 0, "delta": choice["message"], "finish_reason": None}])
    yield None, dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    yield None, dict(base, choices=[], usage=whole["usage"])
    yield None, "[DONE]"


def whole_chat(ask, reply):
    """Returns an OpenAI chat completions answer in one piece."""
    message, finish = {"role": "assistant", "content": reply.text}, "stop"
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
        call = {"index": 0, "id": "call_" + uuid.uuid4().hex[:20], "type": "function", "function": function}
        message, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    usage = {"prompt_tokens": 1234, "completion_tokens": 56, "total_tokens": 1290,
             "prompt_tokens_details": {"cached_tokens": 1000}}
    return {"id": "chatcmpl-" + uuid.uuid4().hex[:20], "object": "chat.completion",
            "created": int(time.time()), "model": ask.model, "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def events_of_gemini(ask, reply):
    """Yields the stream of a Gemini answer."""
    yield None, whole_gemini(ask, reply)


def whole_gemini(ask, reply):
    """Returns a Gemini answer in one piece."""
    if reply.tool:
        part = {"functionCall": {"name": reply.tool, "args": reply.arguments}}
    elif ask.tools:
        part = {"text": reply.text}
    else:
        part = {"text": json.dumps(GEMINI_SIDE_ANSWER)}
    usage = {"promptTokenCount": 1234, "candidatesTokenCount": 56, "totalTokenCount": 1290,
             "cachedContentTokenCount": 1000}
    candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": ask.model,
            "responseId": uuid.uuid4().hex[:12]}


DIALECTS = (
    ("/messages", read_messages, events_of_messages, whole_message),
    ("/responses", read_responses, events_of_responses, whole_response),
    ("/chat/completions", read_chat, events_of_chat, whole_chat),
    (":generateContent", read_gemini, events_of_gemini, whole_gemini),
    (":streamGenerateContent", read_gemini, events_of_gemini, whole_gemini),
)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        # An agent that is killed, or gives a turn up, resets its connections.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Keeps the server silent."""

    def do_HEAD(self):
        self._json({})

    def do_GET(self):
        if "models" not in self.path:
            return self._json({}, 200 if self.path == "/" else 404)
        models = [{"id": one, "object": "model", "type": "model", "display_name": one, "created": 1,
                   "owned_by": "mock"} for one in MODELS]
        return self._json({"object": "list", "data": models, "models": [], "has_more": False})

    def do_POST(self):
        try:
            body = json.loads(self._body() or b"{}")
        except ValueError:
            return self._json({"error": {"message": "not JSON"}}, 400)
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith("/count_tokens"):
            return self._json({"input_tokens": 1234})
        if path.endswith(":countTokens"):
            return self._json({"totalTokens": 1234})
        # Gemini asks for a stream by the method, the others in the body.
        if path.endswith(":streamGenerateContent"):
            body["stream"] = True
        for suffix, read, events, whole in DIALECTS:
            if path.endswith(suffix):
                return self._reply(read(body), events, whole)
        return self._json({}, 404)

    def _body(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            raw = b"".join(self._chunks())
        else:
            raw = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), BODY_BYTES_MAX))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _chunks(self):
        total = 0
        while total < BODY_BYTES_MAX:
            size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
            if size == 0:
                self.rfile.readline()
                return
            total += size
            yield self.rfile.read(size)
            self.rfile.readline()

    def _reply(self, ask, events, whole):
        ask.at = time.time()
        ask.is_given_up = self._is_closed
        ask.headers = {name.lower(): value for name, value in self.headers.items()
                       if name.lower() not in ("authorization", "x-api-key")}
        try:
            reply = self.server.mock_model.answer(ask)
            if ask.streams:
                self._stream(events(ask, reply))
            else:
                self._json(whole(ask, reply))
            if ask.tools:
                self.server.mock_model.has_answered(ask)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _is_closed(self):
        """Whether the other side has closed the connection, without reading from it."""
        try:
            if not select.select([self.connection], [], [], 0)[0]:
                return False
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def _json(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, value in events:
            text = value if isinstance(value, str) else json.dumps(value)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
            self.wfile.flush()
