// Runs oidc-provider on loopback until its standard input ends, and prints its URL.
//
// People log in with any name and password. Whose name begins with "admin" is in the group gpu-admins, all others in researchers.

import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const { default: Provider } = await import(pathToFileURL(process.env.PROVIDER));

let serve;
const server = createServer((request, response) => serve(request, response));
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  serve = new Provider(url, {
    clients: [{
      client_id: 'console',
      client_secret: 'secret_of_the_console',
      redirect_uris: JSON.parse(process.env.REDIRECTS),
      grant_types: ['authorization_code'],
      response_types: ['code'],
    }],
    claims: { openid: ['sub'], groups: ['groups'] },
    conformIdTokenClaims: false, // an ID token has the claims of its scopes
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, groups: [id.startsWith('admin') ? 'gpu-admins' : 'researchers'] }),
    }),
  }).callback();
  console.log(url);
  process.stdin.resume().on('end', () => process.exit(0));
});
