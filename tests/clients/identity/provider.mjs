// An OpenID Connect provider that nobody here wrote (panva's oidc-provider, which is certified), as it comes: with its own pages for signing
// in and for consent, on which whoever names a login is that login. Its one argument says what tests change; it keeps its keys in a file.

import { generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import Provider from "oidc-provider";

const KEYS = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
};

const { port, algorithm, keys, codeSeconds, clients, users } = JSON.parse(process.argv[2]);

if (!existsSync(keys)) {
  const { privateKey } = KEYS[algorithm]();
  const key = { ...privateKey.export({ format: "jwk" }), alg: algorithm, use: "sig" };
  writeFileSync(keys, JSON.stringify({ keys: [key] }), { mode: 0o600 });
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: JSON.parse(readFileSync(keys, "utf8")),
  clients: clients.map((client) => ({ ...client, id_token_signed_response_alg: algorithm })),
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  features: { claimsParameter: { enabled: true } },
  pkce: { required: () => true },
  ttl: { AuthorizationCode: codeSeconds },
  cookies: { keys: ["of no browser but the tests'"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...users[id] }) }),
});
provider.on("server_error", (_, error) => console.error(error));
provider.listen(port, "127.0.0.1");
