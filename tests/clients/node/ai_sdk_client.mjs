// The Vercel AI SDK, with its provider for OpenAI on both APIs and its provider for compatible servers.

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateSpeech, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { block, collect, key, look, picture, report, run, url } from "./cases.mjs";

const openai = createOpenAI({ baseURL: url, apiKey: key });
const compatible = createOpenAICompatible({
  name: "trunkline", baseURL: url, apiKey: key, includeUsage: true, supportsStructuredOutputs: true,
});
const models = { responses: openai.responses(block), chat: openai.chat(block), compatible: compatible(block) };
const schema = z.object({ sea: z.enum(["calm", "rough"]), waves: z.number().int() });
const weather = tool({
  description: "The weather somewhere.",
  inputSchema: z.object({ town: z.string() }),
  execute: async ({ town }) => `rain in ${town}`,
});

async function onAll(ask) {
  const results = {};
  for (const [name, model] of Object.entries(models)) results[name] = await ask({ model, maxRetries: 0 });
  return results;
}

await run({
  text: () => onAll(async (given) => {
    const { text, finishReason, usage } = await generateText({ ...given, prompt: "say:Hello there." });
    return [text, finishReason, usage.totalTokens > 0];
  }),

  stream: () => onAll(async (given) => {
    const result = streamText({ ...given, prompt: "slow:12:10" });
    const pieces = await collect(result.textStream);
    const usage = await result.usage;
    return [pieces.join("").split(" ").at(-1), pieces.length > 3, usage.outputTokens];
  }),

  picture: () => onAll(async (given) => {
    const file = { type: "file", data: picture, mediaType: "image/png" };
    const messages = [{ role: "user", content: [{ type: "text", text: "say:I see." }, file] }];
    return (await generateText({ ...given, messages })).text.includes("[Attached: image-");
  }),

  async vectors() {
    const vendors = [openai.embedding(block), compatible.embeddingModel(block)];
    const made = await Promise.all(vendors.map((model) => embedMany({ model, values: ["beans", "boats"] })));
    return made.map(({ embeddings }) => embeddings.every((vector) => vector.length > 0));
  },

  async speech() {
    const { audio } = await generateSpeech({ model: openai.speech(block), text: "hello" });
    return [audio.mediaType, Buffer.from(audio.uint8Array).toString()];
  },

  tools: () => onAll(async (given) => {
    const { text, steps } = await generateText({
      ...given, prompt: look, tools: { weather }, stopWhen: stepCountIs(3),
    });
    return [text, steps.length];
  }),

  toolsInAStream: () => onAll(async (given) => {
    const result = streamText({ ...given, prompt: look, tools: { weather }, stopWhen: stepCountIs(3) });
    return (await collect(result.textStream)).join("");
  }),

  object: () => onAll(async (given) => {
    const { output } = await generateText({ ...given, prompt: `say:${report}`, output: Output.object({ schema }) });
    return output;
  }),

  objectInAStream: () => onAll(async (given) => {
    const result = streamText({ ...given, prompt: `say:${report}`, output: Output.object({ schema }) });
    return (await collect(result.partialOutputStream)).at(-1);
  }),

  chosenTool: () => onAll(async (given) => {
    const { toolCalls } = await generateText({
      ...given, prompt: 'call:weather {"town": "Ulm"}', tools: { weather },
      toolChoice: { type: "tool", toolName: "weather" },
    });
    return toolCalls.map((call) => [call.toolName, call.input]);
  }),
});
