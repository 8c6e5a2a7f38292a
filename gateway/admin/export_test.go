package admin

// Patterns lists the routes of the listener.
func Patterns(d Deps) []string {
	var out []string
	for _, r := range d.routes() {
		out = append(out, r.pattern)
	}
	return out
}
