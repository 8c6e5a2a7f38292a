// Package clients runs public client programs, unmodified and of pinned versions, through
// the gateway over the emulator: the SDKs, a generated GraphQL client, flash, the MCP server, the price collector, the
// OpenAI clients, a v2 client of another author, and the clients that two generators make
// of the gateway's description. Their key has no roles, as the README writes one. Each
// is driven by a small script beside the tests that makes every call the program has and
// prints its result; the tests say what that must be. An OpenID Connect issuer,
// oidc-provider, gives callers and admins their tokens.
//
// make clients installs the programs and runs the tests, which are skipped without
// TOLLGATE_REQUIRE_CLIENTS.
package clients
