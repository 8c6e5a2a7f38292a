// Drives the JavaScript SDK's endpoint client, or the OpenAI client for JavaScript, through
// the gateway. Makes an endpoint by v2, and prints {"calls": {label: {"result": ...} or
// {"error": string}}, "missing": []}.

const { GATEWAY, KEY, SDK, OPENAI } = process.env;
const print = console.log;
console.log = console.error; // the SDK prints what it does
const calls = {};

async function v2(method, path, body) {
  const answer = await fetch(GATEWAY + path, {
    method, headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text ? JSON.parse(text) : null;
}

// call makes a call and keeps what it returned, as JSON knows it.
async function call(label, make, keep = (result) => result) {
  try {
    const result = await make();
    calls[label] = { result: keep(result) ?? null };
    return result;
  } catch (error) {
    calls[label] = { error: `${error.constructor.name}: ${error.message}` };
    return null;
  }
}

async function drain(parts, most = Infinity) {
  const out = [];
  for await (const part of parts) {
    out.push(part);
    if (out.length === most) break;
  }
  return out;
}

const { id } = await v2('POST', '/v2/serverless', {
  name: 'worker', templateId: 'tplworker1', gpu: { pools: ['ADA_24'] }, workers: { max: 2 }, scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
});
const missing = [];

if (SDK) {
  const { default: sdk } = await import(SDK);
  const lasting = { input: { emulator: { delay_ms: 3600000 } } };
  const yielding = { input: { emulator: { chunks: ['a', { b: 2 }, 'c'], delay_ms: 180000 } } }; // 3 s of this clock
  const endpoint = sdk(KEY, { baseUrl: `${GATEWAY}/v2` }).endpoint(id);
  const none = () => null;
  const started = await call('run', () => endpoint.run({ input: { x: [1, 2.5] } }), (job) => ({ status: job.status }));
  await call('status sync', () => endpoint.statusSync(started.id));
  await call('status', () => endpoint.status(started.id));
  await call('run sync', () => endpoint.runSync({ input: { y: 'ä' } }));
  await call('run sync that fails', () => endpoint.runSync({ input: { emulator: { error: 'out of memory' } } }), (job) => ({ status: job.status, succeeded: job.succeeded }));
  const streaming = await call('run to stream', () => endpoint.run(yielding), none);
  await call('stream', () => drain(endpoint.stream(streaming.id), 2));
  const long = await call('run to cancel', () => endpoint.run(lasting), none);
  await call('cancel', () => endpoint.cancel(long.id));
  await call('purge queue', () => endpoint.purgeQueue());
  await call('health', () => endpoint.health());
  await call('denied', () => endpoint.runSync({ input: { max_tokens: 65 } }));
  await call('no such endpoint', () => sdk(KEY, { baseUrl: `${GATEWAY}/v2` }).endpoint('nothing').run({ input: {} }));
  await call('wrong key', () => sdk('key_of_a_stranger', { baseUrl: `${GATEWAY}/v2` }).endpoint(id).run({ input: {} }));
  const made = ['run', 'status', 'statusSync', 'runSync', 'stream', 'cancel', 'purgeQueue', 'health', 'constructor'];
  missing.push(...Object.getOwnPropertyNames(Object.getPrototypeOf(endpoint)).filter((name) => !made.includes(name)));
} else {
  const { default: OpenAI } = await import(OPENAI);
  const client = (apiKey = KEY, endpoint = id) => new OpenAI({ apiKey, baseURL: `${GATEWAY}/v2/${endpoint}/openai/v1`, maxRetries: 0 });
  const own = client();
  const chat = { model: 'small-chat', messages: [{ role: 'user', content: 'one two three' }] };
  await call('models', async () => (await own.models.list()).data);
  await call('chat', () => own.chat.completions.create(chat));
  await call('chat stream', async () => drain(await own.chat.completions.create({ ...chat, stream: true })));
  await call('chat stream with usage', async () => drain(await own.chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true } })), (parts) => parts.at(-1).usage);
  await call('completion', () => own.completions.create({ model: 'small-chat', prompt: 'one two three', max_tokens: 8 }));
  await call('embeddings', () => own.embeddings.create({ model: 'small-chat', input: 'one two', encoding_format: 'float' }), (result) => ({ object: result.object, usage: result.usage }));
  await call('too many tokens', () => own.chat.completions.create({ ...chat, max_tokens: 65 }));
  await call('a model that is not allowed', () => own.chat.completions.create({ ...chat, model: 'large-chat' }));
  await call('no such endpoint', () => client(KEY, 'nothing').chat.completions.create(chat));
  await call('wrong key', () => client('key_of_a_stranger').chat.completions.create(chat));
}
await v2('DELETE', `/v2/serverless/${id}`);
print(JSON.stringify({ calls, missing }));
