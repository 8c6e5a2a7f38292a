package policies

// Held is how many evaluations hold a place.
func (e *Engine) Held() int { return len(e.places) }
