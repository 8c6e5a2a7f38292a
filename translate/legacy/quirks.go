package legacy

// Quirks are the differences between the dialects that have no other reason than
// their history, and the settings of operators that both have.
type Quirks struct {
	// Interface is the dialect's name in warnings.
	Interface string
	// ReadFirst reads a resource before it is changed, also where the change
	// needs nothing of it: v1 tells a missing resource by that read.
	ReadFirst bool
	// RollOut applies a changed template to the endpoints made from it.
	RollOut bool
	// RaisedSize and NoVolume word the warnings about sizes below the smallest
	// and about volumes of templates that can have none.
	RaisedSize, NoVolume string
}
