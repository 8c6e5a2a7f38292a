package platform

// registry is a credential for a private image registry. The secret itself is
// checked on arrival and then forgotten: nothing here ever pulls an image.
type registry struct{ ID, Name string }

// checkRegistryLocked refuses a credential that is not the account's.
func (x *exchange) checkRegistryLocked(id string) error {
	if id != "" && !x.acct.registries.has(id) {
		return badRequest("no registry credential is called '" + id + "'")
	}
	return nil
}
