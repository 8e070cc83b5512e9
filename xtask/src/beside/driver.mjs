// Runs tool calls with the reference implementation. Arguments: the folder that has it in its node_modules.
// One JSON object per line comes in, {tool, arguments, cwd}, and one goes out for each.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const module = join(process.argv[2], "node_modules/@earendil-works/pi-coding-agent/dist/index.js");
const reference = await import(pathToFileURL(module));
const make = {
  read: reference.createReadTool,
  bash: reference.createBashTool,
  edit: reference.createEditTool,
  write: reference.createWriteTool,
  grep: reference.createGrepTool,
  find: reference.createFindTool,
  ls: reference.createLsTool,
};

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  const tool = make[call.tool](call.cwd);
  let answer;
  try {
    const prepared = tool.prepareArguments ? tool.prepareArguments(call.arguments) : call.arguments;
    const result = await tool.execute("call", prepared, undefined, undefined);
    const text = result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
    answer = { text, details: result.details, structured: result.structuredContent, failed: result.isError === true };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
