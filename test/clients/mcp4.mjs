// Drives version 4 of the MCP server over stdio, through the gateway: what a session
// does with pods, templates and the hub. Prints {"calls": {label: {"result": ...} or
// {"error": string}}, "missing": []}.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const { SERVER, GATEWAY, KEY } = process.env;
const server = spawn(process.execPath, [SERVER], {
  env: {
    ...process.env, // with the variables of docs/tasks/tools.md
  },
  stdio: ['pipe', 'pipe', 'inherit'],
});

let last = 0;
const waiting = new Map();
createInterface({ input: server.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const request = (method, params) => new Promise((resolve) => {
  waiting.set(++last, resolve);
  send({ id: last, method, params });
});

const calls = {};

// call makes a call and returns its result, decoded where it is JSON.
async function call(label, name, args = {}) {
  const { result, error } = await request('tools/call', { name, arguments: args });
  const words = error?.message ?? result.content.map((part) => part.text ?? '').join('\n');
  let value = words;
  try {
    value = JSON.parse(words);
  } catch {
    // prose stays prose
  }
  const failure = error || result.isError ? words : value.error; // some failures are told in a result
  calls[label] = failure ? { error: String(failure) } : { result: value };
  return calls[label].result ?? {};
}

await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
send({ method: 'notifications/initialized' });
await call('gpu types', 'list-gpu-types');
const pod = await call('create pod', 'create-pod', { body: { name: 'a', image: 'img:1', gpu: { id: 'NVIDIA L4', count: 1 } } });
await call('pods', 'list-pods');
await call('pod', 'get-pod', { id: pod.id });
await call('denied pod', 'create-pod', { body: { name: 'b', image: 'img:1', gpu: { id: 'NVIDIA L4', count: 8 } } });
await call('delete pod', 'delete-pod', { id: pod.id });
const template = await call('create template', 'create-template', { body: { name: 't', image: 'img:1' } });
await call('delete template', 'delete-template', { id: template.id });
await call('create registry', 'create-registry', { body: { name: 'r', username: 'u', password: 'p' } });
await call('hub', 'list-hub-repos');
server.kill();
console.log(JSON.stringify({ calls, missing: [] }));
