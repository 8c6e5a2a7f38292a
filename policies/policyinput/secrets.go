package policyinput

import "github.com/tollgate-dev/tollgate/policies/operation"

// secrets returns the placeholders for account secrets in the resulting state.
func (d *Document) secrets() []any {
	all := []any{}
	for _, s := range operation.SecretReferences(d.in.Resource.After) {
		all = append(all, object{"name": s.Name, "pointer": s.Pointer})
	}
	return all
}

// secretSchema returns the schema of one placeholder.
func secretSchema() object {
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"name":    object{"type": "string", "description": "name of the secret; empty if it cannot be determined"},
			"pointer": object{"type": "string", "description": "pointer of the text in resource.after that contains the placeholder"},
		},
	}
}
