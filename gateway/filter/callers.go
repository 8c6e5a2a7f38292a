package filter

import "github.com/tollgate-dev/tollgate/gateway/identity"

// Callers contains the directory of callers and their organisations. It is immutable. When keys change at run time, a new Callers replaces
// it, and the rest of the Pipeline stays the same.
type Callers struct {
	Directory *identity.Directory
	// Tenants holds the organisations by ID.
	Tenants map[string]*Tenant
	// Incomplete reports that the store of keys created at run time has not been read yet. While Incomplete is true, an unknown key must not
	// be rejected with 401, because the store may contain it.
	Incomplete bool
}
