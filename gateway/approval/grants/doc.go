// Package grants lets a call pass that policies or budgets refuse, if an operator has
// approved it. A refusal that can be approved becomes a request for approval, which package
// approval keeps; the repeat of the call takes the grant, and gives it back if the call was
// not carried out. A grant covers one call of one caller, up to a price.
package grants
