// Package money keeps the ledger of spending: it is brought in line with the platform, resources are stopped where a budget says so, and
// operators see it.
package money
