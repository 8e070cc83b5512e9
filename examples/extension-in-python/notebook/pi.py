"""The protocol between pi and an extension, and nothing else: JSON-RPC 2.0, one message per line.

pi asks; `main.py` says with decorators what is answered. While the program waits for an answer of pi, it goes on
answering: pi may have to ask it something before it can answer.
"""

import itertools
import json
import sys


class Refused(Exception):
    """pi, or this program, answered with an error."""


class Pi:
    def __init__(self):
        self.handlers = {"initialize": self._initialize, "shutdown": lambda params: None}
        self.flags = {}
        self.cwd = None
        self._ids = itertools.count(1)
        self._answers = {}
        self._call = None

    def on(self, method):
        """Answers a method: `event/tool_call`, `tool/execute`, `command/run`, `render/entry`, …"""

        def register(handler):
            self.handlers[method] = handler
            return handler

        return register

    def ask(self, method, **params):
        """Asks pi and waits for the answer."""
        asked = f"p{next(self._ids)}"
        self._write({"id": asked, "method": method, "params": params})
        while asked not in self._answers:
            if not self._read_one():
                raise Refused("pi is gone")
        answer = self._answers.pop(asked)
        if "error" in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"]

    def tell(self, method, **params):
        """Tells pi something and goes on."""
        self._write({"method": method, "params": params})

    def run(self):
        """Answers until pi closes the input."""
        while self._read_one():
            pass

    def _initialize(self, params):
        self.flags = params["flags"]
        self.cwd = params["cwd"]
        return {"protocol": 1}

    def _read_one(self):
        line = sys.stdin.buffer.readline()
        if not line:
            return False
        message = json.loads(line)
        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message:
            self._answer(message)
        # A notification (`cancel`, `event/message_update`) is heard when there is a handler for it.
        elif message["method"] in self.handlers:
            self.handlers[message["method"]](message["params"])
        return True

    def _answer(self, message):
        handler = self.handlers.get(message["method"])
        try:
            if handler is None:
                raise Refused(f"no handler for {message['method']}")
            self._write({"id": message["id"], "result": handler(message["params"])})
        except Exception as error:  # Whatever it is: pi should know, and this program go on.
            print(f"{message['method']}: {error!r}", file=sys.stderr)
            self._write({"id": message["id"], "error": {"code": -32000, "message": str(error)}})

    def _write(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
