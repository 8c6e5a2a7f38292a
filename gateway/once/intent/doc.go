// Package intent holds the known facts of each resource that is being made and must not
// be made twice. It is data: package once keeps it, the chain acts on it.
//
// An intent is noted before the platform is asked. Equal requests of a caller have one
// wish, so a request that finds other intents under its wish may be the repeat of one.
//
//	noted ──▶ made(id) ──▶ ended     its caller has the answer
//	  │          └───────▶ left      its caller has gone: a repeat takes it
//	  ├─────▶ open ──▶ left, ended   nobody knows what became of it: it is looked for
//	  └─────▶ ended                  refused, or never sent
package intent
