package policies

import "slices"

// BoundedNames lists the functions that are replaced by ones that look at sizes.
func BoundedNames() []string {
	var names []string
	for _, b := range bounded() {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// Held is how many evaluations hold a place.
func (e *Engine) Held() int { return len(e.places) }
