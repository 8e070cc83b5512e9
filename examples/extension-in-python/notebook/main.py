"""What the extension does."""

from pi import Pi

pi = Pi()
notes = 0


@pi.on("event/tool_call")
def guard(event):
    path = str(event["input"].get("path", ""))
    if event["toolName"] in ("write", "edit") and path.endswith(".lock"):
        return {"block": True, "reason": "Lock files are written by their tools."}
    return {}


@pi.on("event/tool_result")
def note(event):
    global notes
    notes += 1
    # State of the session: kept with it, and never shown to a model.
    pi.ask("session/append_entry", customType="note", data={"tool": event["toolName"], "failed": event["isError"]})
    return {}


@pi.on("event/context")
def prune(event):
    messages, keep = event["messages"], int(pi.flags.get("keep", 20))
    first = len(messages) - keep
    # A request may not begin with the results of calls that it leaves out.
    while 0 < first < len(messages) and messages[first]["role"] == "toolResult":
        first -= 1
    return {"operations": [{"drop": {"from": 0, "to": first}}]} if first > 0 else {}


@pi.on("tool/execute")
def count_words(call):
    words = call["arguments"]["text"].split()
    for done in range(1000, len(words), 1000):
        pi.tell("tool/update", callId=call["callId"], content=f"{done} words so far")
    return {"content": f"{len(words)} words", "details": {"words": len(words)}}


@pi.on("command/run")
def say(_command):
    pi.tell("ui/notify", message=f"{notes} notes in this session")


@pi.on("render/entry")
def draw(params):
    data = params["entry"]["data"]
    lines = [[{"text": "[note] ", "token": "accent"}, {"text": data["tool"]}]]
    if params["expanded"]:
        lines.append([{"text": "it failed" if data["failed"] else "it went well", "token": "dim"}])
    return lines


pi.run()
