package filter

import "github.com/tollgate-dev/tollgate/gateway/identity"

// Callers contains everyone who may call, and their organisations. It is immutable: a change of keys at run time replaces it, while the
// rest of the Pipeline stays.
type Callers struct {
	Directory *identity.Directory
	// Tenants holds the organisations by ID.
	Tenants map[string]*Tenant
	// Incomplete reports that keys created at run time may be missing because their store has not been read yet. An unknown key must then
	// not be rejected with 401.
	Incomplete bool
}
