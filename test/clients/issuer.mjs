// Runs oidc-provider on loopback until its standard input ends.
//
// Prints the issuer's URL, and a line for every line it reads, each of which puts
// another instance with keys of its own behind the same address, as a restart would.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { default: Provider } = await import(pathToFileURL(process.env.PROVIDER));
const clients = JSON.parse(process.env.CLIENTS); // id: the claims of its tokens
const lifetime = 3600; // of tokens, in seconds

// keys is a key for each algorithm that a resource asks for.
function keys() {
  const jwk = (pair, alg) => ({ ...pair.privateKey.export({ format: 'jwk' }), alg, use: 'sig' });
  return [
    jwk(generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RS256'),
    jwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ES256'),
    jwk(generateKeyPairSync('ed25519'), 'EdDSA'),
  ];
}

function provider(url) {
  return new Provider(url, {
    clients: Object.keys(clients).map((id) => ({
      client_id: id,
      client_secret: `secret_of_${id}`,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    jwks: { keys: keys() },
    clientAuthMethods: ['client_secret_basic'],
    extraTokenClaims: (_, token) => clients[token.clientId],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // https://HOST/ALGORITHM names its own algorithm.
        getResourceServerInfo: (_, resource) => ({
          scope: 'gpu',
          accessTokenFormat: 'jwt',
          accessTokenTTL: lifetime,
          jwt: { sign: { alg: new URL(resource).pathname.slice(1) || 'RS256' } },
        }),
      },
    },
  }).callback();
}

let serve;
const server = createServer((request, response) => serve(request, response));
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  serve = provider(url);
  console.log(url);
  const input = createInterface({ input: process.stdin });
  input.on('line', () => {
    serve = provider(url);
    console.log(url);
  });
  input.on('close', () => process.exit(0));
});
