// Package money governs spending. Its stages of the chain price a call, reserve the price against budgets and settle it with the answer. Beside
// requests it reconciles the ledger with the platform, stops resources as budgets say, lets owners keep idle resources, counts the tokens of
// model servers, and answers operators.
package money
