// Package grants allows calls that policies or budgets refuse if an operator has approved them. If a refusal can be approved, it creates an
// approval request, stored by package approval. When the caller repeats the call, the grant is used. If the call is then not carried out,
// the grant becomes valid again. A grant covers one call of one caller, up to a price.
package grants
