// A mock server of others with a conversation in it. Argument: the folder that has it in its node_modules.
// The first line out is its address; it stops when the input ends.
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const module = join(process.argv.at(-1), "node_modules/@copilotkit/aimock/dist/index.js");
const { LLMock } = await import(pathToFileURL(module));
const mock = new LLMock({ port: 0, logLevel: "silent" });
const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, input_tokens: 100, output_tokens: 20, promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 };
const call = { name: "read", arguments: JSON.stringify({ path: "a \"b\".txt", lines: [1, 2] }) };
mock.on({ userMessage: "what is in it", hasToolResult: false }, { content: "I look, Grüße 🦀.", toolCalls: [call] });
mock.on({ userMessage: "what is in it", hasToolResult: true }, { content: "It says hello." });
mock.on({ userMessage: "think" }, { content: "Yes.", reasoning: "I weigh it." });
mock.on({ userMessage: "too fast" }, { error: { message: "slow down", type: "rate_limit_error" }, status: 429 });
mock.on({ userMessage: "hi" }, { content: "Hello to you. ".repeat(40).trim(), usage });
await mock.start();
process.stdout.write(`${mock.url}\n`);
process.stdin.resume();
process.stdin.on("end", async () => {
  await mock.stop();
  process.exit(0);
});
