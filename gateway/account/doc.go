// Package account asks the platform what an organisation has there and what it was billed: beside the chain, with the organisation's
// credential and nothing of a caller's.
package account
