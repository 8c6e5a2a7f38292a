// Package money keeps the ledger of spending: what organisations spend by what they run, in line with the platform, stopped where a budget says
// so, and shown to operators.
package money
