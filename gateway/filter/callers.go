package filter

import "github.com/tollgate-dev/tollgate/gateway/identity"

// Callers are all who may call, and their organisations. They are immutable: keys
// made at run time put others in their place, while the rest of a Pipeline stays.
type Callers struct {
	Directory *identity.Directory
	// Tenants holds the organisations by id.
	Tenants map[string]*Tenant
	// Incomplete says that there may be keys that were not read yet, because their store
	// is away: none can be called unknown.
	Incomplete bool
}
