// Package money enforces budgets. Its stages of the filter chain price a call, reserve the price against budgets, and settle the
// reservation after the response. In the background it reconciles the ledger with the platform and stops resources when budgets require
// it. It also lets owners snooze idle resources, counts the tokens of model servers, and serves the admin endpoints for spending.
package money
