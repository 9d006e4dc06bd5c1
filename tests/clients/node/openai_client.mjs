// The official package `openai` for Node, on both APIs.

import OpenAI, { toFile } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { ResponsesWS } from "openai/resources/responses/ws";
import { z } from "zod";
import { block, collect, key, look, report, run, url } from "./cases.mjs";

const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
const Report = z.object({ sea: z.enum(["calm", "rough"]), waves: z.number().int() });
const parameters = { type: "object", properties: { town: { type: "string" } }, required: ["town"] };
const says = (content) => [{ role: "user", content }];
const respond = (input, more = {}) => client.responses.create({ model: block, input, ...more });
const complete = (content, more = {}) =>
  client.chat.completions.create({ model: block, messages: says(content), ...more });

async function refused(promise) {
  const error = await promise.then(() => "not refused", (reason) => reason);
  return [error.constructor.name, error.status, error.code, error.param];
}

await run({
  async chat() {
    const answer = await complete("say:Hello there.");
    const [choice] = answer.choices;
    return [choice.message.content, choice.finish_reason, answer.usage.total_tokens > 0];
  },

  async chatStream() {
    const stream = await complete("slow:12:10", { stream: true, stream_options: { include_usage: true } });
    const chunks = await collect(stream);
    const texts = chunks.map((chunk) => chunk.choices[0]?.delta.content).filter(Boolean);
    return [texts.join("").split(" ").at(-1), texts.length > 3, chunks.at(-1).usage.completion_tokens];
  },

  async chatTools() {
    const weather = { name: "weather", parameters, parse: JSON.parse, function: ({ town }) => `rain in ${town}` };
    const tools = [{ type: "function", function: weather }];
    const runner = client.chat.completions.runTools({ model: block, messages: says(look), tools });
    return runner.finalContent();
  },

  async chatToolsInAStream() {
    const weather = { name: "weather", parameters, parse: JSON.parse, function: ({ town }) => `rain in ${town}` };
    const tools = [{ type: "function", function: weather }];
    const runner = client.chat.completions.runTools({ model: block, messages: says(look), tools, stream: true });
    return runner.finalContent();
  },

  async chatParse() {
    const answer = await client.chat.completions.parse({
      model: block, messages: says(`say:${report}`), response_format: zodResponseFormat(Report, "report"),
    });
    return answer.choices[0].message.parsed;
  },

  async response() {
    const answer = await respond("say:Hello there.");
    return [answer.output_text, answer.status, answer.usage.total_tokens > 0];
  },

  async responseChain() {
    const first = await respond("say:one");
    const second = await respond("roles", { previous_response_id: first.id });
    return second.output_text.split(/\s+/);
  },

  async responseStream() {
    const stream = client.responses.stream({ model: block, input: "slow:12:10" });
    const types = (await collect(stream)).map((event) => event.type);
    const final = await stream.finalResponse();
    return [types[0], types.at(-1), final.output_text.split(" ").at(-1)];
  },

  async responseTools() {
    const tools = [{ type: "function", name: "weather", parameters, strict: true }];
    const first = await respond(look, { tools });
    const call = first.output.find((item) => item.type === "function_call");
    const output = `rain in ${JSON.parse(call.arguments).town}`;
    const result = [{ type: "function_call_output", call_id: call.call_id, output }];
    return (await respond(result, { tools, previous_response_id: first.id })).output_text;
  },

  async responseParse() {
    const answer = await client.responses.parse({
      model: block, input: `say:${report}`, text: { format: zodTextFormat(Report, "report") },
    });
    return answer.output_parsed;
  },

  async background() {
    let answer = await respond("slow:12:10", { background: true });
    const begun = answer.status;
    while (["queued", "in_progress"].includes(answer.status)) answer = await client.responses.retrieve(answer.id);
    return [begun, answer.status, answer.output_text.split(" ").at(-1)];
  },

  async backgroundResumed() {
    // The connection is left after a few events, and a second one has the rest.
    const events = [];
    for await (const event of await respond("slow:30:20", { background: true, stream: true })) {
      events.push(event);
      if (events.length === 8) break;
    }
    const resumed = { stream: true, starting_after: events.at(-1).sequence_number };
    events.push(...(await collect(await client.responses.retrieve(events[0].response.id, resumed))));
    const numbered = events.every((event, number) => event.sequence_number === number);
    const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    return [numbered, events.at(-1).type, text.split(" ").at(-1)];
  },

  async backgroundCancelled() {
    const answer = await respond("slow:500:50", { background: true });
    return (await client.responses.cancel(answer.id)).status;
  },

  async socket() {
    const socket = new ResponsesWS(client);
    const turn = (given) =>
      new Promise((resolve, reject) => {
        socket.once("response.completed", (event) => resolve(event.response));
        socket.once("error", reject);
        socket.send({ type: "response.create", model: block, ...given });
      });
    const first = await turn({ input: "say:one" });
    const second = await turn({ input: "roles", previous_response_id: first.id });
    socket.close();
    return second.output[0].content[0].text.split(/\s+/);
  },

  async models() {
    return (await collect(await client.models.list())).map((model) => model.id);
  },

  async files() {
    const file = await client.files.create({ file: await toFile(Buffer.from("beans"), "a.txt"), purpose: "user_data" });
    const content = await (await client.files.content(file.id)).text();
    return [content, (await client.files.delete(file.id)).deleted];
  },

  async embeddings() {
    const made = await client.embeddings.create({ model: block, input: ["one", "two"] });
    return made.data.map(({ embedding }) => typeof embedding[0]);
  },

  async unknownModel() {
    return refused(client.chat.completions.create({ model: "gpt-nothing", messages: says("x") }));
  },

  async wrongField() {
    return refused(respond([{ role: "user", content: [{ type: "input_image", image_url: "x" }] }]));
  },

  async wrongKey() {
    return refused(client.withOptions({ apiKey: "sk-wrong" }).models.list());
  },
});
