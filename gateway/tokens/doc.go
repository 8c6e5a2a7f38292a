// Package tokens revokes tokens of issuers, at all gateways that share a store.
package tokens
