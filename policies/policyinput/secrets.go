package policyinput

import "github.com/tollgate-dev/tollgate/policies/operation"

// secrets lists the placeholders for account secrets in the state after the call.
func (d *Document) secrets() []any {
	found := operation.SecretReferences(d.in.Resource.After)
	all := make([]any, len(found))
	for i, s := range found {
		all[i] = object{"name": s.Name, "pointer": s.Pointer}
	}
	return all
}

// secretSchema describes one placeholder.
func secretSchema() object {
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"name":    object{"type": "string", "description": "of the secret, empty where the placeholder cannot be read"},
			"pointer": object{"type": "string", "description": "of the text in resource.after that has the placeholder"},
		},
	}
}
