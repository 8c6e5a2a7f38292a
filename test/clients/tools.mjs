// Makes the first calls of the JavaScript SDK, made by the code in CODE that docs/tasks/tools.md shows. Prints {"calls": {label:
// {"result": ...} or {"error": string}}, "missing": []}.

const { SDK, CODE, ENDPOINT, KEY } = process.env;
const print = console.log;
console.log = console.error; // the SDK prints what it does
const { default: runpodSdk } = await import(SDK);
const client = new Function('runpodSdk', 'key', `return ${CODE || 'runpodSdk(key)'}`)(runpodSdk, KEY);
const calls = {};
try {
  await client.endpoint(ENDPOINT).health();
  calls.health = { result: 'ok' };
} catch (error) {
  calls.health = { error: `${error.constructor.name}: ${error.message}` };
}
print(JSON.stringify({ calls, missing: [] }));
