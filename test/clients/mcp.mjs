// Drives the MCP server over stdio, through the gateway.
//
// Prints {"calls": {label: {"result": ...} or {"error": string}}, "missing": [...]}:
// every tool with what it answered, and the tools that this script does not call.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const { SERVER, GATEWAY, CONTROL, KEY, REST_VERSION } = process.env;
const server = spawn(process.execPath, [SERVER], {
  env: {
    ...process.env, // with the variables of docs/tasks/tools.md
    RUNPOD_REST_VERSION: REST_VERSION,
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
const made = new Set();

// call makes a call and returns its result, decoded where it is JSON.
async function call(label, name, args = {}) {
  made.add(name);
  const { result, error } = await request('tools/call', { name, arguments: args });
  const words = error?.message ?? result.content.map((part) => part.text ?? '').join('\n');
  let value = words;
  try {
    value = JSON.parse(words);
  } catch {
    // prose stays prose
  }
  const failure = error || result.isError ? words : value.error; // some failures are told in a result
  calls[label] = failure ? { error: failure } : { result: value };
  return calls[label].result ?? {};
}

// clock moves the platform's clock, which stands still otherwise, or lets it run.
async function clock(change) {
  await (await fetch(`${CONTROL}/clock`, { method: 'POST', body: JSON.stringify(change) })).text();
}

await request('initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
send({ method: 'notifications/initialized' });
const { result: { tools } } = await request('tools/list', {});

const l4 = 'NVIDIA L4';
await call('gpu types', 'list-gpu-types', { searchTerm: 'L4', limit: 100, includeAvailability: true, product: 'POD' });
await call('gpu type', 'get-gpu-type', { gpuTypeId: l4, includeAvailability: true, product: 'POD' });
await call('cpu types', 'list-cpu-types');
await call('cpu type', 'get-cpu-type', { cpuTypeId: 'cpu3c' });
await call('data centers', 'list-data-centers', { limit: 100 });
await call('data center', 'get-data-center', { dataCenterId: 'EU-RO-1' });
await call('capacity', 'get-capacity', { gpuTypeIds: [l4] });
await call('hub', 'list-hub-repos');
await call('deploy from the hub', 'deploy-hub-repo', { repo: 'a/b' });
await call('public endpoints', 'list-public-endpoints');

const volume = await call('create volume', 'create-network-volume', { name: 'v', size: 10, dataCenterId: 'EU-RO-1' });
await call('volumes', 'list-network-volumes');
await call('volume', 'get-network-volume', { networkVolumeId: volume.id });
await call('update volume', 'update-network-volume', { networkVolumeId: volume.id, name: 'w', size: 20 });
await call('delete volume', 'delete-network-volume', { networkVolumeId: volume.id });

const registry = await call('create registry', 'create-container-registry-auth', { name: 'r', username: 'u', password: 'p' });
await call('registries', 'list-container-registry-auths');
await call('registry', 'get-container-registry-auth', { containerRegistryAuthId: registry.id });
await call('delete registry', 'delete-container-registry-auth', { containerRegistryAuthId: registry.id });
const delegation = await call('create delegation', 'create-registry-delegation', { resource: 'arn:aws:ecr:eu-west-1:123456789012:repository/x', name: 'd' });
await call('delegations', 'list-registry-delegations');
await call('delete delegation', 'delete-registry-delegation', { delegationId: delegation.id });

const pod = await call('create pod', 'create-pod', {
  name: 'a', imageName: 'img:1', gpuTypeIds: [l4], gpuCount: 2, cloudType: 'SECURE', containerDiskInGb: 15, volumeInGb: 20,
  volumeMountPath: '/workspace', ports: ['8888/http', '22/tcp'], env: { A: '1' }, dataCenterIds: ['EU-NL-1'],
});
await clock({ advance: '10s' });
await call('pods', 'list-pods');
await call('pod', 'get-pod', { podId: pod.id });
await call('update pod', 'update-pod', { podId: pod.id, name: 'b', env: { A: '2' } });
await call('pod logs', 'stream-pod-logs', { podId: pod.id, tail: 3, maxWaitMs: 500 });
await call('stop pod', 'stop-pod', { podId: pod.id });
await call('start pod', 'start-pod', { podId: pod.id });
await clock({ advance: '10s' });
await call('restart pod', 'restart-pod', { podId: pod.id });
await call('delete pod', 'delete-pod', { podId: pod.id });
await call('deleted pod', 'get-pod', { podId: pod.id });
await call('denied pod', 'create-pod', { name: 'c', imageName: 'img:1', gpuTypeIds: [l4], gpuCount: 8 });
const fromTemplate = await call('pod from a public template', 'create-pod', { name: 'd', templateId: 'runpod-torch-v280', gpuTypeIds: [l4] });
await call('delete pod from a template', 'delete-pod', { podId: fromTemplate.id });
const cpu = await call('create CPU pod', 'create-pod', { name: 'e', imageName: 'img:1', computeType: 'CPU' });
await call('delete CPU pod', 'delete-pod', { podId: cpu.id });

const template = await call('create template', 'create-template', {
  name: 't', imageName: 'worker:1', isServerless: true, dockerStartCmd: ['python', 'handler.py'], env: { A: '1' }, containerDiskInGb: 15,
});
await call('templates', 'list-templates');
await call('template', 'get-template', { templateId: template.id });
await call('update template', 'update-template', { templateId: template.id, name: 'u', env: { A: '2' } });

const endpoint = await call('create endpoint', 'create-endpoint', {
  name: 'f', imageName: 'worker:1', templateId: REST_VERSION === 'v1' ? template.id : undefined, gpuPoolIds: ['ADA_24'],
  gpuTypeIds: REST_VERSION === 'v1' ? ['NVIDIA GeForce RTX 4090'] : undefined, workersMin: 1, workersMax: 1,
});
await call('endpoints', 'list-endpoints');
await call('endpoint', 'get-endpoint', { endpointId: endpoint.id });
await call('update endpoint', 'update-endpoint', { endpointId: endpoint.id, name: 'g', workersMax: 2, idleTimeout: 20 });
await call('set GPUs', 'set-endpoint-gpus', { endpointId: endpoint.id, gpuIds: 'AMPERE_24,ADA_24' });
await clock({ advance: '10s' });
await call('releases', 'list-endpoint-releases', { endpointId: endpoint.id });
const { items: workers = [] } = await call('workers', 'list-endpoint-workers', { endpointId: endpoint.id });
await call('worker logs', 'stream-worker-logs', { endpointId: endpoint.id, workerId: workers[0]?.id ?? 'none', tail: 3, maxWaitMs: 500 });

const job = await call('run', 'run-endpoint', { endpointId: endpoint.id, input: { prompt: 'x' } });
const jobId = job.id ?? 'none';
await call('health', 'endpoint-health', { endpointId: endpoint.id });
await call('job status', 'get-job-status', { endpointId: endpoint.id, jobId });
await call('cancel job', 'cancel-job', { endpointId: endpoint.id, jobId });
await call('retry job', 'retry-job', { endpointId: endpoint.id, jobId });
await call('purge queue', 'purge-endpoint-queue', { endpointId: endpoint.id });
await clock({ speed: 60 });
const streamed = await call('run to stream', 'run-endpoint', { endpointId: endpoint.id, input: { emulator: { chunks: ['a', 'b'] } } });
await call('stream job', 'stream-job', { endpointId: endpoint.id, jobId: streamed.id ?? 'none' });
await call('run and wait', 'runsync-endpoint', { endpointId: endpoint.id, input: { prompt: 'x' }, wait: 60000 });
await call('denied run', 'run-endpoint', { endpointId: endpoint.id, input: { max_tokens: 65 } });
await clock({ speed: 0 });

await call('delete endpoint', 'delete-endpoint', { endpointId: endpoint.id });
await call('delete template', 'delete-template', { templateId: template.id });
await call('billing', 'get-billing', { scope: 'all', lastN: 2 });

server.kill();
const missing = tools.map((tool) => tool.name).filter((name) => !made.has(name));
console.log(JSON.stringify({ calls, missing }));
