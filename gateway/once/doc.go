// Package once keeps the intents that a gateway has in hand: what is being made for a
// caller and must not be made twice. It says whether the caller of an intent still
// waits, to requests here and, asked through the store, to other gateways; it writes
// what has ended until the store has taken it; and it holds the lease by which other
// gateways know that this one lives.
package once
