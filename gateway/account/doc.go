// Package account asks the platform what an organisation has there and what it was billed, for the ledger, for audits and for what
// follows them: on the gateway's own behalf, outside any call.
package account
