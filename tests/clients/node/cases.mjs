// What the programs in this folder share. Each runs in a Node with its client, and prints what its cases return.

export const url = process.env.CLIENT_URL; // with /v1
export const key = process.env.CLIENT_KEY;
export const block = "main";

// The scripted model says something, calls the client's tool, and repeats the tool's result.
export const look = 'say:I look. ;; call:weather {"town": "Ulm"} ;; quote';
export const report = '{"sea": "calm", "waves": 3}';

// A PNG image.
export const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFklEQVR42mP4z8CAFWEXZRiaEv///wcA+/8j3fMsMTEAAAAASUVORK5CYII=",
  "base64",
);

export async function run(cases) {
  const results = {};
  for (const [name, ask] of Object.entries(cases)) {
    try {
      results[name] = (await ask()) ?? null;
    } catch (error) {
      results[name] = String(error.stack);
    }
  }
  process.stdout.write(JSON.stringify(results));
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}
